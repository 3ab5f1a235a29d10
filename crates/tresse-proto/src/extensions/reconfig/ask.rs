//! Requests of the application about streams (RFC 6525 §5.1).

use super::{Action, MOST_NAMED, Origin, Reconfig, View};
use crate::interface::error::ReconfigurationError as Error;
use crate::interface::reconfiguration::{Direction, Reconfiguration, Streams};

/// A request of the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Reset streams, which restart at SSN 0. Data that is queued on them is sent first. Data that is queued from now on waits
    /// for the peer's response.
    Reset(Streams, Direction),
    /// Reset all streams of both directions, and the TSNs.
    ResetAssociation,
    /// Add streams: so many for this side to send on, and so many for the peer.
    Add {
        /// For this side.
        outbound: u16,
        /// For the peer.
        inbound: u16,
    },
}

impl Reconfig {
    /// Begins a request of the application.
    ///
    /// # Errors
    /// See `ReconfigurationError`; nothing is begun then.
    pub(crate) fn ask(&mut self, view: &View<'_>, ask: Ask) -> Result<Vec<Action>, Error> {
        if self.is_under_way() {
            return Err(Error::Busy);
        }
        let wanted = match ask {
            Ask::Reset(streams, direction) => reset(view, streams, direction)?,
            Ask::ResetAssociation => {
                let wait = self.own.renumbering_pause(view.now);
                if !wait.is_zero() {
                    return Err(Error::TooSoon { wait });
                }
                vec![Reconfiguration::ResetAssociation]
            }
            Ask::Add { outbound, inbound } => add(view, outbound, inbound)?,
        };
        let mut actions = Vec::new();
        self.begin_request(wanted, Origin::Application, &mut actions);
        Ok(actions)
    }
}

fn reset(view: &View<'_>, streams: Streams, direction: Direction) -> Result<Vec<Reconfiguration>, Error> {
    if direction != Direction::Inbound {
        check_named(&streams, view.sending.streams)?;
    }
    if direction != Direction::Outbound {
        check_named(&streams, view.receiving.streams)?;
    }
    Ok(match direction {
        Direction::Outbound => vec![Reconfiguration::ResetOutbound(streams)],
        Direction::Inbound => vec![Reconfiguration::ResetInbound(streams)],
        Direction::Both => {
            vec![Reconfiguration::ResetOutbound(streams.clone()), Reconfiguration::ResetInbound(streams)]
        }
    })
}

fn add(view: &View<'_>, outbound: u16, inbound: u16) -> Result<Vec<Reconfiguration>, Error> {
    let most_outbound = u16::MAX - view.sending.streams;
    let most_inbound = view.config.inbound_streams.saturating_sub(view.receiving.streams);
    if outbound > most_outbound || inbound > most_inbound || (outbound == 0 && inbound == 0) {
        return Err(Error::Added { outbound, inbound, most_outbound, most_inbound });
    }
    let mut wanted = Vec::new();
    if outbound > 0 {
        wanted.push(Reconfiguration::AddOutbound(outbound));
    }
    if inbound > 0 {
        wanted.push(Reconfiguration::AddInbound(inbound));
    }
    Ok(wanted)
}

fn check_named(streams: &Streams, exist: u16) -> Result<(), Error> {
    let Streams::These(named) = streams else { return Ok(()) };
    if named.is_empty() || named.len() > MOST_NAMED {
        return Err(Error::Count { count: named.len(), most: MOST_NAMED });
    }
    match streams.highest_named().filter(|highest| highest.0 >= exist) {
        Some(stream) => Err(Error::NoSuchStream { stream, count: exist }),
        None => Ok(()),
    }
}
