//! Selection of the next stream by the schedulers of the groups, and replacement of schedulers that break their contract.
//!
//! Owns the faults that were not yet reported to the application. Independent of the cutting of messages.

use std::collections::VecDeque;
use std::ops::Deref;

use tresse_policy::PathId;
use tresse_policy::engine::FALLBACK;
use tresse_policy::schedule::{Backlog, PathView};
use tresse_wire::StreamId;

use super::Outbound;
use super::group::Group;
use crate::collections::LazyState;
use crate::interface::event::SchedulerFault;

/// Number of schedulers that broke their contract, and the faults not yet reported to the application.
#[derive(Default)]
pub(crate) struct Failures {
    count: u64,
    unreported: VecDeque<(String, SchedulerFault)>,
}

impl LazyState for Failures {
    const INITIAL: &Self = &Failures { count: 0, unreported: VecDeque::new() };
}

impl Failures {
    /// Returns the number of schedulers replaced so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the name of a replaced scheduler and its fault, once for each.
    pub(crate) fn pop(&mut self) -> Option<(String, SchedulerFault)> {
        self.unreported.pop_front()
    }

    pub(super) fn note(&mut self, name: &str, fault: SchedulerFault) {
        self.count += 1;
        self.unreported.push_back((name.to_owned(), fault));
    }
}

impl Outbound {
    /// Replaces the scheduler of each group that returned no stream for any path that it could use and that `carries` accepts,
    /// or overrules the stream map if that kept the data back. Returns whether there was one. Each is replaced at most once, so
    /// repeated calls end with false. A scheduler may wait for a better path while that path has no room: the path was not
    /// offered then.
    pub(crate) fn replace_silent(&mut self, carries: impl Fn(PathId) -> bool) -> bool {
        let mut any = false;
        for group in 0..self.groups.len() {
            let mut paths = (0..self.usable.len()).map(|position| PathId(position as u8));
            let silent = self.groups[group].declined_any()
                && paths.all(|path| {
                    self.groups[group].declined(path) || !self.serves(path, group) || !carries(path)
                });
            if silent && self.overrule_map() {
                return true;
            }
            // The fallback cannot be replaced; it always returns a stream.
            if silent && self.groups[group].scheduler.name() != FALLBACK {
                self.replace(group, SchedulerFault::NoAnswer);
                any = true;
            }
        }
        any
    }

    /// Overrules a policy that keeps data from the paths that `carries` accepts: first the stream map, then schedulers that
    /// return no stream. Returns whether there was one; repeated calls end with false.
    pub(crate) fn overrule(&mut self, carries: impl Fn(PathId) -> bool) -> bool {
        self.set_map_aside() || self.replace_silent(carries)
    }

    /// Lets declined paths be offered again, because an event happened or is about to happen.
    pub(crate) fn forget_declined(&mut self) {
        self.groups.iter_mut().for_each(Group::forget_declined);
        self.forget_kept();
    }

    #[inline]
    pub(super) fn pick(
        &mut self,
        path: PathId,
        view: &impl Deref<Target = PathView>,
    ) -> Option<(usize, StreamId)> {
        let groups = match self.packet {
            Some(own) => own..own + 1,
            None => 0..self.groups.len(),
        };
        groups.into_iter().find_map(|group| self.ask(group, path, view).map(|stream| (group, stream)))
    }

    /// Returns the stream of `group` whose data is sent next on the path. A scheduler that returns an invalid stream is
    /// replaced.
    // Always: most calls are for one message.
    #[inline(always)]
    pub(super) fn ask(
        &mut self,
        group: usize,
        path: PathId,
        view: &impl Deref<Target = PathView>,
    ) -> Option<StreamId> {
        if !self.serves(path, group) || self.groups[group].is_empty() {
            return None;
        }
        let named = self.groups[group].scheduler.next_for(view, &self.queues);
        if let Some(stream) = named
            && self.queues.head_bytes(stream) > 0
            && self.group_of(stream) == group
        {
            return named;
        }
        self.on_bad_answer(group, view, named)
    }

    /// Handles that the scheduler of `group`, which has data, returned no stream or one that it may not return.
    #[cold]
    fn on_bad_answer(&mut self, group: usize, view: &PathView, named: Option<StreamId>) -> Option<StreamId> {
        let fault = match named {
            Some(stream) => SchedulerFault::NothingToSend { stream },
            None => match self.groups[group].scheduler.failure() {
                Some(reason) => SchedulerFault::Failed { reason },
                None => {
                    // Within a packet, this only means that the packet ends here.
                    if self.packet.is_none() {
                        self.groups[group].decline(view.id);
                    }
                    return None;
                }
            },
        };
        self.replace(group, fault);
        self.groups[group].scheduler.next(view, &self.queues)
    }

    /// Replaces the scheduler of a group by first come, first served.
    #[cold]
    fn replace(&mut self, group: usize, fault: SchedulerFault) {
        let failed = std::mem::replace(&mut self.groups[group], Group::fallback());
        self.failures.note(failed.scheduler.name(), fault);
        self.refill(Some(group));
    }
}
