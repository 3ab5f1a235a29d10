//! Receiving application: it reads every message at once, or all that have arrived at intervals.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{AssociationId, CloseReason, Event, Instant, Joiner, Part};

use super::{AddressPlan, AppContext, Application};
use crate::error::RunError;
use crate::traffic::DeliveryViolation;

/// Order of two consequences of a packet at the receiver: its SACK, and the application's reading of its messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ReadOrder {
    /// The application reads first: its host writes packets after the application has run.
    #[default]
    BeforeSack,
    /// A SACK that is due leaves first, and the application runs later at the same instant. This is the order of a host
    /// whose transport answers a packet before the application's thread runs.
    AfterSack,
}

impl ReadOrder {
    /// Both orders, in the order of declaration.
    pub const ALL: &'static [ReadOrder] = &[ReadOrder::BeforeSack, ReadOrder::AfterSack];

    /// Name of the order in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            ReadOrder::BeforeSack => "before_sack",
            ReadOrder::AfterSack => "after_sack",
        }
    }
}

/// A receiver that reads at once, unless it reads at intervals or after a SACK.
#[derive(Debug, Default)]
pub struct Sink {
    association: Option<AssociationId>,
    joiner: Joiner,
    addresses: AddressPlan,
    /// Content with which every message is compared, up to its length, if contents are checked.
    expected: Option<Bytes>,
    ended: Option<CloseReason>,
    order: ReadOrder,
    /// Pause after each read.
    pause: Duration,
    /// Time of the next read; nothing is read before it.
    next: Instant,
    /// True if there may be something to read at `next`.
    waits: bool,
}

impl Sink {
    /// Makes a receiver whose addresses change as planned; with `expected`, it also compares the content of every message.
    pub fn new(addresses: AddressPlan, expected: Option<Bytes>) -> Self {
        Sink { addresses, expected, ..Sink::default() }
    }

    /// Sets whether the receiver reads before or after a SACK leaves.
    #[must_use]
    pub fn reading(self, order: ReadOrder) -> Self {
        Sink { order, ..self }
    }

    /// Sets the interval between reads.
    #[must_use]
    pub fn reading_every(self, pause: Duration) -> Self {
        Sink { pause, ..self }
    }

    /// Reads all messages, unless it is too early.
    fn read(&mut self, turn: &mut AppContext<'_>, id: AssociationId) -> Result<(), RunError> {
        let at = turn.now;
        self.waits = at < self.next;
        if self.waits {
            return Ok(());
        }
        self.next = at + self.pause;
        self.read_all(turn, id).map_err(|breach| RunError::Broken { at, breach })
    }

    fn read_all(&mut self, turn: &mut AppContext<'_>, id: AssociationId) -> Result<(), DeliveryViolation> {
        let Some(mut association) = turn.endpoint.association(id) else { return Ok(()) };
        while let Some(mut message) = association.recv(turn.now) {
            if message.part != Part::Whole {
                let Some(whole) = self.joiner.join(message) else { continue };
                message = whole;
            }
            turn.ledger.delivered(turn.now, &message)?;
            if let Some(expected) = &self.expected
                && !message.payload.pieces().iter().flatten().eq(expected.iter().take(message.payload.len()))
            {
                return Err(DeliveryViolation::Altered { stream: message.stream.0, message: message.ppid.0 });
            }
        }
        Ok(())
    }
}

impl Application for Sink {
    fn due(&self) -> Option<Instant> {
        let reading = self.waits.then_some(self.next);
        let addresses = || self.addresses.due();
        let open = self.association.filter(|_| self.ended.is_none());
        open.and_then(|_| [reading, addresses()].into_iter().flatten().min())
    }

    fn on_due(&mut self, turn: &mut AppContext<'_>) -> Result<(), RunError> {
        let Some(id) = self.association else { return Ok(()) };
        if self.waits {
            self.read(turn, id)?;
        }
        self.addresses.on_due(turn, id)
    }

    fn on_event(
        &mut self,
        turn: &mut AppContext<'_>,
        id: AssociationId,
        event: &Event,
    ) -> Result<(), RunError> {
        match event {
            Event::Established { .. } => self.association = Some(id),
            Event::Readable if self.order == ReadOrder::AfterSack => {
                self.waits = true;
                self.next = self.next.max(turn.now);
            }
            Event::Readable => self.read(turn, id)?,
            Event::Closed(reason) => self.ended = Some(reason.clone()),
            _ => {}
        }
        Ok(())
    }

    fn refill(&mut self, _turn: &mut AppContext<'_>) -> Result<bool, RunError> {
        Ok(false)
    }

    fn association(&self) -> Option<AssociationId> {
        self.association
    }

    fn ended(&self) -> Option<&CloseReason> {
        self.ended.as_ref()
    }
}
