//! The receiver: takes every message at once.

use bytes::Bytes;
use tresse_proto::{AssociationId, Event, Instant, Joiner, Part};

use super::{AddressPlan, Application, Turn};
use crate::error::RunError;
use crate::traffic::Breach;

/// A receiver that reads as soon as there is something to read.
#[derive(Debug, Default)]
pub struct Sink {
    association: Option<AssociationId>,
    joiner: Joiner,
    addresses: AddressPlan,
    /// What every message must begin with, as far as it goes, when contents are to be compared.
    expected: Option<Bytes>,
    ended: Option<String>,
}

impl Sink {
    /// A receiver whose addresses change as planned; with `expected`, it also compares the content of every message.
    pub fn new(addresses: AddressPlan, expected: Option<Bytes>) -> Self {
        Sink { addresses, expected, ..Sink::default() }
    }

    fn read_all(&mut self, turn: &mut Turn<'_>, id: AssociationId) -> Result<(), Breach> {
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
                return Err(Breach::Altered { stream: message.stream.0, message: message.ppid.0 });
            }
        }
        Ok(())
    }
}

impl Application for Sink {
    fn due(&self) -> Option<Instant> {
        self.association.filter(|_| self.ended.is_none()).and_then(|_| self.addresses.due())
    }

    fn on_due(&mut self, turn: &mut Turn<'_>) -> Result<(), RunError> {
        self.association.map_or(Ok(()), |id| self.addresses.on_due(turn, id))
    }

    fn on_event(&mut self, turn: &mut Turn<'_>, id: AssociationId, event: &Event) -> Result<(), RunError> {
        match event {
            Event::Established { .. } => self.association = Some(id),
            Event::Readable => {
                let at = turn.now;
                self.read_all(turn, id).map_err(|breach| RunError::Broken { at, breach })?;
            }
            Event::Closed(reason) => self.ended = Some(super::describe(reason)),
            _ => {}
        }
        Ok(())
    }

    fn refill(&mut self, _turn: &mut Turn<'_>) -> Result<bool, RunError> {
        Ok(false)
    }

    fn association(&self) -> Option<AssociationId> {
        self.association
    }

    fn ended(&self) -> Option<String> {
        self.ended.clone()
    }
}
