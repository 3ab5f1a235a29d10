//! Sender of messages at random times, which wait if the transport has no room for them.

use std::collections::VecDeque;
use std::time::Duration;

use tresse_proto::{AssociationId, Instant, SendError, SendOptions, StreamId};

use super::{AppContext, pattern};
use crate::error::RunError;
use crate::seed::{Generator, exponential, unit_interval};

/// A stream that carries a message now and then.
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sporadic {
    /// The stream.
    pub stream: u16,
    /// Mean time between messages; exponentially distributed.
    pub gap: Duration,
    /// Bytes of the smallest message and of the largest; uniformly distributed.
    pub size: (usize, usize),
}

/// The messages of one stream.
#[derive(Debug)]
pub(super) struct MessageSource {
    sporadic: Sporadic,
    ordered: bool,
    rng: Generator,
    /// Time of the next message, once the association is open.
    next: Option<Instant>,
    /// Messages not accepted yet: their times and lengths.
    waiting: VecDeque<(Instant, usize)>,
}

impl MessageSource {
    pub(super) fn new(sporadic: Sporadic, ordered: bool, rng: Generator) -> Self {
        MessageSource { sporadic, ordered, rng, next: None, waiting: VecDeque::new() }
    }

    /// Starts the messages.
    pub(super) fn on_open(&mut self, now: Instant) {
        self.next = Some(now + exponential(self.sporadic.gap, &mut self.rng));
    }

    /// Returns the number of messages that are due and not yet accepted.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Returns the time of the next message.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Generates the messages that are due.
    pub(super) fn on_due(&mut self, now: Instant) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            let (least, most) = self.sporadic.size;
            let step = unit_interval(&mut self.rng) * (most - least + 1) as f64;
            self.waiting.push_back((at, least + (step as usize).min(most - least)));
            self.next = Some(at + exponential(self.sporadic.gap, &mut self.rng));
        }
    }

    /// Sends waiting messages until the transport refuses one; returns whether it took any. Delays count from the time
    /// of the message.
    pub(super) fn hand_over(
        &mut self,
        turn: &mut AppContext<'_>,
        id: AssociationId,
    ) -> Result<bool, RunError> {
        let stream = StreamId(self.sporadic.stream);
        let mut any = false;
        while let Some((at, size)) = self.waiting.front().copied() {
            let Some(mut association) = turn.endpoint.association(id) else { break };
            let ppid = turn.ledger.next_ppid(stream);
            let options = SendOptions::on(stream).with(|o| {
                o.ppid = ppid;
                o.unordered = !self.ordered;
            });
            match association.send(turn.now, options, pattern(size)) {
                Ok(()) => turn.ledger.accepted(at, stream, size),
                Err(SendError::Full { .. } | SendError::NotOpen { .. }) => break,
                Err(error) => return Err(error.into()),
            }
            self.waiting.pop_front();
            any = true;
        }
        Ok(any)
    }
}
