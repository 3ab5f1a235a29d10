//! One stream after the other: a stream that has its turn keeps it until nothing of it is left.
//!
//! For files on streams of their own: the first is complete early, instead of all of them late. Loses where a
//! stream never pauses: those behind it starve. The same policy as one_by_one.c and one_by_one.py.

use std::collections::VecDeque;
use std::sync::Arc;

use tresse_policy::StreamId;
use tresse_policy::schedule::{Backlog, PathView, Queued, StreamScheduler, StreamSchedulerFactory, Taken};

/// Streams with data, in the order in which they came.
#[derive(Default)]
struct OneByOne {
    waiting: VecDeque<StreamId>,
}

impl StreamScheduler for OneByOne {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.waiting.push_back(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.waiting.front().copied()
    }

    fn on_taken(&mut self, taken: Taken) {
        if taken.stream_empty {
            // Nearly always the first.
            let position = self.waiting.iter().position(|&stream| stream == taken.stream);
            position.and_then(|position| self.waiting.remove(position));
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// What makes one of these schedulers for each association.
pub fn factory() -> StreamSchedulerFactory {
    Arc::new(|config| match config {
        "" => Ok(Box::new(OneByOne::default())),
        _ => Err(format!("\"{config}\": no configuration is accepted")),
    })
}
