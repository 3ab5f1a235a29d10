//! Queues of the chunks that are assigned to a path and wait for its congestion window.

use std::collections::BTreeSet;

use tresse_policy::PathId;

/// Chunks assigned to each path, by position; allocated with the first.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    pub(super) queues: Vec<Queue>,
    /// Bytes in all queues.
    pub(super) bytes: usize,
}

/// Chunks that wait for the window of one path.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Indices in TSN order, the order of sending.
    pub(super) chunks: BTreeSet<u64>,
    pub(super) bytes: usize,
    /// The highest index that was sent on the path, or an upper bound.
    pub(super) highest_sent: u64,
}

impl Assigned {
    /// Creates the queues of `count` paths. `highest` is an upper bound of the indices sent so far.
    pub(super) fn cover(&mut self, count: usize, highest: u64) {
        while self.queues.len() < count {
            self.queues.push(Queue { highest_sent: highest, ..Queue::default() });
        }
    }

    pub(super) fn queue_mut(&mut self, path: PathId) -> Option<&mut Queue> {
        self.queues.get_mut(path.index())
    }

    pub(super) fn enter(&mut self, path: PathId, index: u64, bytes: usize) {
        if let Some(queue) = self.queue_mut(path)
            && queue.chunks.insert(index)
        {
            queue.bytes += bytes;
            self.bytes += bytes;
        }
    }

    pub(super) fn leave(&mut self, path: PathId, index: u64, bytes: usize) {
        if let Some(queue) = self.queue_mut(path)
            && queue.chunks.remove(&index)
        {
            queue.bytes -= bytes;
            self.bytes -= bytes;
        }
    }
}
