//! Bytes in proportion to the weights of the streams that have data; a weight is at least 1, and 1 by
//! default (SCTP_SS_WFQ, RFC 8260 §3.6).
//!
//! It suits streams that share the rate in known proportions, such as WebRTC's data channels. It does not suit messages
//! that must leave at once: a high weight gives a large share of the rate, not a low delay. Configuration: initial
//! weights, such as "0=1,5=10".

use tresse_wire::StreamId;

use super::fair_queue::FairQueue;
use super::values::pairs;
use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "weighted_fair".
#[derive(Default)]
pub(in crate::schedule) struct WeightedFair {
    queue: FairQueue,
}

impl WeightedFair {
    /// Makes a scheduler with the initial weights of `config`.
    ///
    /// # Errors
    /// Text that is not a list of "stream=weight", or a weight of zero.
    pub(in crate::schedule) fn new(config: &str) -> Result<Self, String> {
        let mut scheduler = WeightedFair::default();
        for (stream, weight) in pairs(config, 1..=u16::MAX)? {
            scheduler.queue.set_weight(stream, weight);
        }
        Ok(scheduler)
    }
}

impl StreamScheduler for WeightedFair {
    fn on_queued(&mut self, queued: Queued) {
        self.queue.on_queued(queued);
    }

    fn next(&mut self, _path: &PathView, backlog: &dyn Backlog) -> Option<StreamId> {
        self.queue.next(backlog)
    }

    fn on_taken(&mut self, taken: Taken) {
        self.queue.on_taken(taken);
    }

    fn on_removed(&mut self, removed: Removed) {
        self.queue.on_removed(removed);
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        if value == 0 {
            return Err("a weight is at least 1".to_owned());
        }
        self.queue.set_weight(stream, value);
        Ok(())
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        Some(self.queue.weight(stream))
    }
}
