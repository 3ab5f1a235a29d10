//! A stream scheduler as an application brings it along.

use std::collections::BTreeSet;

use tresse::StreamId;
use tresse::schedule::{Backlog, PathView, Queued, StreamScheduler, Taken};

/// The highest stream first.
#[derive(Default)]
pub(crate) struct HighestFirst(BTreeSet<StreamId>);

impl StreamScheduler for HighestFirst {
    fn on_queued(&mut self, queued: Queued) {
        self.0.insert(queued.stream);
    }
    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.0.last().copied()
    }
    fn on_taken(&mut self, taken: Taken) {
        if taken.stream_empty {
            self.0.remove(&taken.stream);
        }
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
