//! A group of streams with its scheduler, its waiting data, and the paths for which its scheduler returned no stream.
//!
//! Independent of the queues, and of which streams belong to the group.

use tresse_policy::PathId;
use tresse_policy::engine::path_entry;
use tresse_policy::schedule::{Built, Queued, Removed, Taken};

use crate::collections::LazyBox;

/// Streams that share a scheduler.
pub(super) struct Group {
    pub(super) scheduler: Built,
    /// Bytes not yet sent on its streams, independent of the scheduler.
    unsent: usize,
    /// Paths, by position, for which the scheduler has returned no stream since the last event.
    declined: LazyBox<Vec<bool>>,
}

impl Group {
    pub(super) fn new(scheduler: Built) -> Self {
        Group { scheduler, unsent: 0, declined: LazyBox::default() }
    }

    /// Returns a group with the scheduler that replaces a failed one.
    pub(super) fn fallback() -> Self {
        Group::new(Built::fallback())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.unsent == 0
    }

    /// Returns whether data waits, and the scheduler has not declined `path` since the last event.
    #[inline]
    pub(super) fn has_data_for(&self, path: PathId) -> bool {
        !self.is_empty() && !self.declined(path)
    }

    #[inline]
    pub(super) fn on_queued(&mut self, queued: Queued) {
        self.unsent += queued.bytes;
        self.forget_declined();
        self.scheduler.on_queued(queued);
    }

    #[inline]
    pub(super) fn on_taken(&mut self, taken: Taken) {
        self.unsent -= taken.bytes;
        self.forget_declined();
        self.scheduler.on_taken(taken);
    }

    pub(super) fn on_removed(&mut self, removed: Removed) {
        self.unsent -= removed.bytes;
        self.forget_declined();
        self.scheduler.on_removed(removed);
    }

    pub(super) fn decline(&mut self, path: PathId) {
        *path_entry(&mut self.declined, path) = true;
    }

    #[inline]
    pub(super) fn declined(&self, path: PathId) -> bool {
        self.declined.get(path.index()).copied().unwrap_or(false)
    }

    pub(super) fn declined_any(&self) -> bool {
        self.declined.contains(&true)
    }

    #[inline]
    pub(super) fn forget_declined(&mut self) {
        if !self.declined.is_empty() {
            self.declined.clear();
        }
    }
}

/// Returns whether `path` serves `group`: its own group, the only one, or that of an unusable path.
#[inline]
pub(super) fn serves(usable: &[bool], path: PathId, group: usize, groups: usize) -> bool {
    groups == 1 || group == path.index() || !usable.get(group).copied().unwrap_or(false)
}
