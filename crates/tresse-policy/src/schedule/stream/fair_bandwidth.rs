//! Equal bytes for every stream that has data, whatever the lengths of its messages (SCTP_SS_FB,
//! RFC 8260 §3.5).
//!
//! It suits streams of equal rank whose messages differ in length. A stream that needs more than an equal part needs a
//! weight, with "weighted_fair".

use tresse_wire::StreamId;

use super::fair_queue::FairQueue;
use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "fair_bandwidth".
#[derive(Default)]
pub(in crate::schedule) struct FairBandwidth {
    queue: FairQueue,
}

impl StreamScheduler for FairBandwidth {
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
}
