//! Strict priority: the stream with the lowest value first, 0 by default; streams of equal value take turns, a message
//! each (SCTP_SS_PRIO, RFC 8260 §3.4).
//!
//! It suits applications whose streams have different urgency, such as control before bulk. If streams with a low value
//! always have data, the others starve. Configuration: initial priorities, such as "0=1,5=10".

use std::collections::BTreeMap;

use tresse_wire::StreamId;

use super::list::{Link, Linked, List};
use super::values::pairs;
use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;
use crate::stream_table::StreamTable;

/// The stream scheduler "priority".
#[derive(Default)]
pub(in crate::schedule) struct Priority {
    streams: StreamTable<RankedStream>,
    /// Streams with data by priority; no list is empty.
    levels: BTreeMap<u16, List>,
}

#[derive(Copy, Clone, Debug, Default)]
struct RankedStream {
    priority: u16,
    waiting: bool,
    link: Link,
}

impl Priority {
    /// Makes a scheduler with the initial priorities of `config`.
    ///
    /// # Errors
    /// Text that is not a list of "stream=priority".
    pub(in crate::schedule) fn new(config: &str) -> Result<Self, String> {
        let mut scheduler = Priority::default();
        for (stream, value) in pairs(config, 0..=u16::MAX)? {
            scheduler.streams.entry(stream).priority = value;
        }
        Ok(scheduler)
    }

    fn join(&mut self, stream: StreamId) {
        let standing = self.streams.entry(stream);
        standing.waiting = true;
        let priority = standing.priority;
        self.levels.entry(priority).or_default().push_back(&mut self.streams, stream);
    }

    /// Moves a stream behind the others of its priority.
    fn step_back(&mut self, stream: StreamId) {
        let RankedStream { priority, waiting, .. } = *self.streams.entry(stream);
        if waiting && let Some(level) = self.levels.get_mut(&priority) {
            level.remove(&mut self.streams, stream);
            level.push_back(&mut self.streams, stream);
        }
    }

    fn leave(&mut self, stream: StreamId) {
        let standing = self.streams.entry(stream);
        if !std::mem::replace(&mut standing.waiting, false) {
            return;
        }
        let priority = standing.priority;
        let Some(level) = self.levels.get_mut(&priority) else { return };
        level.remove(&mut self.streams, stream);
        if level.is_empty() {
            self.levels.remove(&priority);
        }
    }
}

impl Linked for RankedStream {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl StreamScheduler for Priority {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.join(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.levels.first_key_value().and_then(|(_, level)| level.front())
    }

    fn on_taken(&mut self, taken: Taken) {
        let Taken { stream, turn_over, stream_empty, .. } = taken;
        if stream_empty {
            self.leave(stream);
        } else if turn_over {
            self.step_back(stream);
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.leave(removed.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let waiting = self.streams.entry(stream).waiting;
        self.leave(stream);
        self.streams.entry(stream).priority = value;
        if waiting {
            self.join(stream);
        }
        Ok(())
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        Some(self.streams.get(stream).map_or(0, |standing| standing.priority))
    }
}
