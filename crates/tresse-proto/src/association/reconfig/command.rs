//! What the application asks of streams (RFC 6525 §5.1).

use tresse_policy::Instant;

use super::super::{Association, Extension, State};
use crate::extensions::reconfig::{MOST_NAMED, Origin};
use crate::interface::error::ReconfigurationError as Error;
use crate::interface::reconfiguration::{Direction, Reconfiguration, Streams};

impl Association {
    /// Lets streams begin anew at SSN 0. What was queued on them before is sent first; what is queued from
    /// now on waits for the peer's answer.
    ///
    /// # Errors
    /// See `ReconfigurationError`; nothing was begun then.
    pub(crate) fn reset_streams(
        &mut self,
        now: Instant,
        streams: Streams,
        direction: Direction,
    ) -> Result<(), Error> {
        self.check_free()?;
        let (outbound, inbound) = self.streams();
        if direction != Direction::Inbound {
            check_named(&streams, outbound)?;
        }
        if direction != Direction::Outbound {
            check_named(&streams, inbound)?;
        }
        let wanted = match direction {
            Direction::Outbound => vec![Reconfiguration::ResetOutbound(streams)],
            Direction::Inbound => vec![Reconfiguration::ResetInbound(streams)],
            Direction::Both => {
                vec![Reconfiguration::ResetOutbound(streams.clone()), Reconfiguration::ResetInbound(streams)]
            }
        };
        self.begin(now, wanted);
        Ok(())
    }

    /// Lets all streams of both directions, and the TSNs, begin anew.
    ///
    /// # Errors
    /// As `reset_streams`.
    pub(crate) fn reset_association(&mut self, now: Instant) -> Result<(), Error> {
        self.check_free()?;
        let wait = self.reconfig().own.renumbering_pause(now);
        if !wait.is_zero() {
            return Err(Error::TooSoon { wait });
        }
        self.begin(now, vec![Reconfiguration::ResetAssociation]);
        Ok(())
    }

    /// Adds streams: so many for this side to send on, and so many for the peer.
    ///
    /// # Errors
    /// As `reset_streams`.
    pub(crate) fn add_streams(&mut self, now: Instant, outbound: u16, inbound: u16) -> Result<(), Error> {
        self.check_free()?;
        let (outbound_streams, inbound_streams) = self.streams();
        let most_outbound = u16::MAX - outbound_streams;
        let most_inbound = self.config.inbound_streams.saturating_sub(inbound_streams);
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
        self.begin(now, wanted);
        Ok(())
    }

    fn begin(&mut self, now: Instant, wanted: Vec<Reconfiguration>) {
        self.undertake(wanted, Origin::Application);
        self.advance_reconfig(now);
        self.stir();
    }

    fn check_free(&self) -> Result<(), Error> {
        if self.state != State::Established {
            return Err(Error::NotOpen { state: self.state.name() });
        }
        if !self.capabilities.has(Extension::StreamReconfiguration) {
            return Err(Error::NotNegotiated);
        }
        let busy = self
            .reconfig
            .as_ref()
            .is_some_and(|reconfig| reconfig.own.is_busy() || reconfig.peer.renumbering.is_some());
        if busy { Err(Error::Busy) } else { Ok(()) }
    }
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
