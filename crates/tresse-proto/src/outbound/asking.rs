//! Selection of the next stream by the schedulers of the groups; one that breaks its contract is replaced.
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

/// Schedulers that broke their contract: how many, and which the application has not heard of.
#[derive(Default)]
pub(crate) struct Failures {
    count: u64,
    untold: VecDeque<(String, SchedulerFault)>,
}

impl LazyState for Failures {
    const INITIAL: &Self = &Failures { count: 0, untold: VecDeque::new() };
}

impl Failures {
    /// Schedulers that were replaced so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The name of a scheduler that was replaced and what it did, once for each.
    pub(crate) fn pop(&mut self) -> Option<(String, SchedulerFault)> {
        self.untold.pop_front()
    }

    pub(super) fn note(&mut self, name: &str, fault: SchedulerFault) {
        self.count += 1;
        self.untold.push_back((name.to_owned(), fault));
    }
}

impl Outbound {
    /// Replaces the scheduler of each group that named no stream to any of the paths it could use, those
    /// that `carries` accepts, or overrules the stream map if that kept the data; returns whether there was one. Each is
    /// replaced once at most, so asking again comes to an end. To wait for a better path is no fault as
    /// long as that path has no room: it was not offered then.
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
            // Nobody can take the place of the one that stands in, which always names a stream.
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

    /// Something happened, or will: paths that were left without data may be offered again.
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

    /// The stream of `group` whose data goes next on the path; a scheduler whose answer cannot be followed
    /// is replaced.
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

    /// The scheduler of `group`, which has data, named no stream or one that it may not name.
    #[cold]
    fn on_bad_answer(&mut self, group: usize, view: &PathView, named: Option<StreamId>) -> Option<StreamId> {
        let fault = match named {
            Some(stream) => SchedulerFault::NothingToSend { stream },
            None => match self.groups[group].scheduler.failure() {
                Some(reason) => SchedulerFault::Failed { reason },
                None => {
                    // In the middle of a packet it only means that the packet is to end there.
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

    /// Lets first come, first served take over a group.
    #[cold]
    fn replace(&mut self, group: usize, fault: SchedulerFault) {
        let failed = std::mem::replace(&mut self.groups[group], Group::fallback());
        self.failures.note(failed.scheduler.name(), fault);
        self.refill(Some(group));
    }
}
