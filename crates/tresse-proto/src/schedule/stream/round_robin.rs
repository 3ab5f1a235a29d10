//! One message of each stream that has data, in turn by stream number (SCTP_SS_RR, RFC 8260 §3.2).
//!
//! Optimises fairness in messages: streams with longer messages get more bytes.

use std::collections::BTreeSet;

use tresse_wire::StreamId;

use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "round_robin".
#[derive(Default)]
pub(in crate::schedule) struct RoundRobin {
    waiting: BTreeSet<StreamId>,
    /// The stream after which the turn goes on.
    last: Option<StreamId>,
}

impl StreamScheduler for RoundRobin {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.waiting.insert(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        let after = self.last.and_then(|last| self.waiting.range(StreamId(last.0.checked_add(1)?)..).next());
        after.or_else(|| self.waiting.first()).copied()
    }

    fn on_taken(&mut self, taken: Taken) {
        if taken.message_done {
            self.last = Some(taken.stream);
        }
        if taken.stream_empty {
            self.waiting.remove(&taken.stream);
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.waiting.remove(&removed.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
