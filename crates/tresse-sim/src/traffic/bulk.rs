//! Saturated sender: it always has another message for each of its saturated streams, as fast as the send buffer takes
//! them.
//!
//! The rule for refilling the send buffer is a setting, because it determines whose messages fill the buffer.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_proto::{AssociationId, CloseReason, Connect, Event, Instant, SendError, SendOptions, StreamId};

use super::sporadic::{MessageSource, Sporadic};
use super::{AddressPlan, AppContext, Application};
use crate::error::RunError;
use crate::seed::Generator;

/// Rule for the stream of the next message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Refill {
    /// The streams in turn, whenever the send buffer has room: an application without information on the streams'
    /// queues ("without API extension" in the PFLDNeT 2010 paper).
    #[default]
    InTurn,
    /// The streams in turn, but only those with less unsent data than an equal share of the send buffer: an application
    /// that reads the queue length of each stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo).
    ByQueue,
}

impl Refill {
    /// All rules, in the order of declaration.
    pub const ALL: &'static [Refill] = &[Refill::InTurn, Refill::ByQueue];

    /// Name of the rule in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Refill::InTurn => "in_turn",
            Refill::ByQueue => "by_queue",
        }
    }
}

/// Settings of a saturated sender.
#[derive(Clone, Debug)]
pub struct BulkSpec {
    /// The association to open.
    pub connect: Connect,
    /// Streams in use, from 0 on; at least 1.
    pub streams: u16,
    /// Streams that always have another message, in the order of their turns.
    pub saturated: Vec<u16>,
    /// Streams with messages at random times, each with its random generator.
    pub sporadic: Vec<(Sporadic, Generator)>,
    /// Content of every message; not empty.
    pub message: Bytes,
    /// True if messages are delivered in the order of their stream.
    pub ordered: bool,
    /// Rule for the stream of the next message.
    pub refill: Refill,
    /// Number of messages to send before the association is shut down; without a number there is no end.
    pub messages: Option<u64>,
    /// Loss rates of the paths by their own addresses, if known, for the transport.
    pub loss_rates: Vec<(IpAddr, f64)>,
    /// Own addresses that are added and removed.
    pub addresses: AddressPlan,
    /// Time at which the association is opened.
    pub start: Instant,
    /// Time after which no message is sent and at which the association is shut down.
    pub stop: Option<Instant>,
}

/// A saturated sender.
#[derive(Debug)]
pub struct Bulk {
    spec: BulkSpec,
    sources: Vec<MessageSource>,
    state: State,
    /// True if several streams are saturated, and none has sent yet.
    beginning: bool,
    /// Position of the stream whose turn it is, among the saturated streams.
    turn_of: usize,
    /// Messages still to be sent, if there is an end.
    left: Option<u64>,
    ended: Option<CloseReason>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Connecting(AssociationId),
    /// Established; `full` is true from a refusal until the transport reports that there is room.
    Open {
        id: AssociationId,
        full: bool,
    },
    Stopped(AssociationId),
}

impl Bulk {
    /// Makes a sender with these settings.
    pub fn new(mut spec: BulkSpec) -> Self {
        let ordered = spec.ordered;
        let sporadic = std::mem::take(&mut spec.sporadic).into_iter();
        let sources = sporadic.map(|(one, rng)| MessageSource::new(one, ordered, rng)).collect();
        let (left, beginning) = (spec.messages, spec.saturated.len() > 1);
        Bulk { left, spec, sources, state: State::Waiting, beginning, turn_of: 0, ended: None }
    }

    /// Sets the loss rates of the present paths in the transport.
    fn set_loss_rates(&self, turn: &mut AppContext<'_>, id: AssociationId) {
        let rates = &self.spec.loss_rates;
        let Some(mut association) = turn.endpoint.association(id).filter(|_| !rates.is_empty()) else {
            return;
        };
        for path in association.path_stats(turn.now) {
            let rate = rates.iter().find(|(local, _)| *local == path.local).map(|(_, rate)| *rate);
            association.set_loss_rate(path.id, rate);
        }
    }

    /// Sends messages until the transport refuses one, or no stream needs one. If several streams begin, the very first
    /// message is sent alone, before others can be ahead of it. So the application determines the first stream, and not
    /// a scheduler that serves streams by number.
    fn fill(&mut self, turn: &mut AppContext<'_>, id: AssociationId) -> Result<Filled, RunError> {
        let Some(mut association) = turn.endpoint.association(id) else { return Ok(Filled::default()) };
        let share = match self.spec.refill {
            Refill::InTurn => None,
            Refill::ByQueue => Some(association.config().send_buffer.0 / self.spec.saturated.len().max(1)),
        };
        let mut filled = Filled::default();
        let mut passed_over = 0;
        while passed_over < self.spec.saturated.len() && self.left != Some(0) {
            let stream = StreamId(self.spec.saturated[self.turn_of]);
            if share.is_some_and(|share| association.unsent_on(stream) >= share) {
                passed_over += 1;
            } else {
                let ppid = turn.ledger.next_ppid(stream);
                let options = SendOptions::on(stream).with(|o| {
                    o.ppid = ppid;
                    o.unordered = !self.spec.ordered;
                });
                match association.send(turn.now, options, self.spec.message.clone()) {
                    Ok(()) => {
                        turn.ledger.accepted(turn.now, stream, self.spec.message.len());
                        turn.ledger.bounded(turn.now, 0)?;
                    }
                    Err(SendError::Full { .. }) => {
                        filled.full = true;
                        break;
                    }
                    Err(SendError::NotOpen { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
                self.left = self.left.map(|left| left - 1);
                filled.any = true;
                passed_over = 0;
            }
            self.turn_of = (self.turn_of + 1) % self.spec.saturated.len();
            if self.beginning && filled.any {
                self.beginning = false;
                break;
            }
        }
        if self.left == Some(0) {
            association.shutdown(turn.now);
            turn.ledger.close();
        }
        Ok(filled)
    }
}

#[derive(Copy, Clone, Default)]
struct Filled {
    any: bool,
    full: bool,
}

impl Application for Bulk {
    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Waiting => Some(self.spec.start),
            State::Connecting(_) | State::Open { .. } if self.ended.is_none() => {
                let messages = self.sources.iter().filter_map(MessageSource::due);
                let open = matches!(self.state, State::Open { .. });
                let addresses = self.spec.addresses.due().filter(|_| open);
                messages.chain(self.spec.stop).chain(addresses).min()
            }
            _ => None,
        }
    }

    fn on_due(&mut self, turn: &mut AppContext<'_>) -> Result<(), RunError> {
        match self.state {
            State::Waiting => {
                let id = turn.endpoint.connect(turn.now, self.spec.connect.clone())?;
                self.state = State::Connecting(id);
            }
            State::Connecting(id) | State::Open { id, .. } => {
                self.sources.iter_mut().for_each(|source| source.on_due(turn.now));
                turn.ledger.bounded(turn.now, self.sources.iter().map(MessageSource::waiting).sum())?;
                if matches!(self.state, State::Open { .. }) {
                    self.spec.addresses.on_due(turn, id)?;
                }
                if self.spec.stop.is_some_and(|stop| stop <= turn.now) {
                    if let Some(mut association) = turn.endpoint.association(id) {
                        association.shutdown(turn.now);
                    }
                    turn.ledger.close();
                    self.state = State::Stopped(id);
                }
            }
            State::Stopped(_) => {}
        }
        Ok(())
    }

    fn on_event(
        &mut self,
        turn: &mut AppContext<'_>,
        id: AssociationId,
        event: &Event,
    ) -> Result<(), RunError> {
        match (event, self.state) {
            (Event::Established { outbound_streams, .. }, State::Connecting(_)) => {
                let (wanted, outbound_streams) = (self.spec.streams, *outbound_streams);
                if outbound_streams < wanted {
                    return Err(RunError::TooFewStreams { wanted, negotiated: outbound_streams });
                }
                self.set_loss_rates(turn, id);
                self.sources.iter_mut().for_each(|source| source.on_open(turn.now));
                self.state = State::Open { id, full: false };
            }
            (Event::PathChanged { .. }, State::Open { .. }) => self.set_loss_rates(turn, id),
            (Event::Writable, State::Open { .. }) => self.state = State::Open { id, full: false },
            (Event::Closed(reason), _) => {
                self.ended = Some(reason.clone());
                self.state = State::Stopped(id);
            }
            _ => {}
        }
        Ok(())
    }

    fn refill(&mut self, turn: &mut AppContext<'_>) -> Result<bool, RunError> {
        let State::Open { id, full } = self.state else { return Ok(false) };
        let mut any = false;
        // A short message may still fit if the next full one does not.
        for source in &mut self.sources {
            any |= source.hand_over(turn, id)?;
        }
        if !full {
            let filled = self.fill(turn, id)?;
            self.state = State::Open { id, full: filled.full };
            any |= filled.any;
        }
        Ok(any)
    }

    fn association(&self) -> Option<AssociationId> {
        match self.state {
            State::Waiting => None,
            State::Connecting(id) | State::Open { id, .. } | State::Stopped(id) => Some(id),
        }
    }

    fn opened(&self) -> Option<Instant> {
        (self.state != State::Waiting).then_some(self.spec.start)
    }

    fn ended(&self) -> Option<&CloseReason> {
        self.ended.as_ref()
    }
}
