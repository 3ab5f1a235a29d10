//! Messages in the order in which the application sent them (SCTP_SS_FCFS, RFC 8260 §3.1).
//!
//! It suits applications that expect the order of their calls. The backlog of one stream delays all others.

use std::collections::VecDeque;

use tresse_wire::StreamId;

use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "first_come".
#[derive(Default)]
pub(in crate::schedule) struct FirstCome {
    runs: VecDeque<Run>,
}

/// Consecutive messages of one stream; a saturated stream is one run.
struct Run {
    stream: StreamId,
    messages: usize,
}

impl FirstCome {
    /// Returns the stream of the message that has waited longest. The path does not matter.
    pub(in crate::schedule) fn first(&self) -> Option<StreamId> {
        self.runs.front().map(|run| run.stream)
    }

    /// Removes the message of `stream` that has `ahead` other messages of the stream before it.
    fn forget(&mut self, stream: StreamId, mut ahead: usize) {
        for (position, run) in self.runs.iter_mut().enumerate() {
            if run.stream != stream {
                continue;
            }
            if ahead >= run.messages {
                ahead -= run.messages;
                continue;
            }
            run.messages -= 1;
            if run.messages == 0 {
                self.runs.remove(position);
            }
            return;
        }
    }
}

impl StreamScheduler for FirstCome {
    fn on_queued(&mut self, queued: Queued) {
        let stream = queued.stream;
        match self.runs.back_mut() {
            Some(run) if run.stream == stream => run.messages += 1,
            _ => self.runs.push_back(Run { stream, messages: 1 }),
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.first()
    }

    fn on_taken(&mut self, taken: Taken) {
        if !taken.message_done {
            return;
        }
        match self.runs.front_mut() {
            Some(run) if run.stream == taken.stream && run.messages > 1 => run.messages -= 1,
            Some(run) if run.stream == taken.stream => drop(self.runs.pop_front()),
            _ => self.forget(taken.stream, 0),
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        self.forget(removed.stream, removed.ahead);
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}
