//! One message of each stream that has data, in turn by stream number (SCTP_SS_RR, RFC 8260 §3.2); with
//! interleaving, one fragment.
//!
//! It suits streams of equal rank with similar messages. It is unfair if lengths differ: streams with longer messages
//! get more bytes, unless fragments are interleaved.

use tresse_wire::StreamId;

use super::set::StreamSet;
use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "round_robin".
#[derive(Default)]
pub(in crate::schedule) struct RoundRobin {
    waiting: StreamSet,
    /// The stream that was served last.
    last: Option<StreamId>,
}

impl StreamScheduler for RoundRobin {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.waiting.insert(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.waiting.next_after(self.last)
    }

    fn on_taken(&mut self, taken: Taken) {
        if taken.turn_over {
            self.last = Some(taken.stream);
        }
        if taken.stream_empty {
            self.waiting.remove(taken.stream);
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.waiting.remove(removed.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
