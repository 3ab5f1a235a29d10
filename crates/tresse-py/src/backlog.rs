//! Backlog of each stream, counted from the calls of the hooks.
//!
//! The core's own view is valid for one call only. A Python object can exist for longer, so this is a copy.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tresse_policy::StreamId;

/// The unsent bytes of every queued message.
#[derive(Default)]
pub(crate) struct Mirror {
    streams: BTreeMap<StreamId, Waiting>,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<usize>,
    bytes: usize,
}

impl Mirror {
    pub(crate) fn on_queued(&mut self, stream: StreamId, bytes: usize) {
        let waiting = self.streams.entry(stream).or_default();
        waiting.bytes += bytes;
        waiting.messages.push_back(bytes);
    }

    pub(crate) fn on_taken(&mut self, stream: StreamId, bytes: usize, message_done: bool) {
        let Some(waiting) = self.streams.get_mut(&stream) else { return };
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        if message_done {
            waiting.messages.pop_front();
        } else if let Some(head) = waiting.messages.front_mut() {
            *head = head.saturating_sub(bytes);
        }
    }

    pub(crate) fn on_removed(&mut self, stream: StreamId, ahead: usize) {
        let Some(waiting) = self.streams.get_mut(&stream) else { return };
        let bytes = waiting.messages.remove(ahead).unwrap_or(0);
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
    }
}

/// Unsent data of each stream; a stream that was never used has none.
#[pyclass(frozen, module = "tresse._native")]
pub(crate) struct Backlog {
    mirror: Arc<Mutex<Mirror>>,
}

impl Backlog {
    pub(crate) fn new(mirror: Arc<Mutex<Mirror>>) -> Self {
        Backlog { mirror }
    }

    fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Backlog {
    /// Bytes not yet sent.
    fn unsent_bytes(&self, stream: u16) -> usize {
        self.mirror().streams.get(&StreamId(stream)).map_or(0, |waiting| waiting.bytes)
    }

    /// Number of messages of which data is not yet sent.
    fn messages(&self, stream: u16) -> usize {
        self.mirror().streams.get(&StreamId(stream)).map_or(0, |waiting| waiting.messages.len())
    }

    /// Bytes not yet sent of the first message.
    fn head_bytes(&self, stream: u16) -> usize {
        let mirror = self.mirror();
        let head = mirror.streams.get(&StreamId(stream)).and_then(|waiting| waiting.messages.front());
        head.copied().unwrap_or(0)
    }
}
