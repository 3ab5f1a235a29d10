//! Selection of the path of the next new data: the only path that can send, or else the decision of the path scheduler.

use std::num::NonZeroU32;

use tresse_policy::engine::{fallback_path_scheduler, most_assigned};
use tresse_policy::schedule::{OpenPath, PathScheduler, PathView};
use tresse_policy::{Decision, Instant, Offer, PathId};

use super::sender::{Sender, Views};
use crate::transmission::CopyScope;

/// The path that sends next. It takes eight bytes, also in an `Option`, because every association keeps one.
#[derive(Copy, Clone)]
pub(super) struct PathTurn {
    pub(super) path: PathId,
    /// Bytes of new data that the peer can take there, if they were computed to select the path; otherwise [`UNASKED`].
    allowance: NonZeroU32,
}

/// Stands for an allowance that was not computed: no packet holds so many bytes.
const UNASKED: NonZeroU32 = NonZeroU32::MAX;

impl PathTurn {
    pub(super) fn of(path: PathId) -> Self {
        PathTurn { path, allowance: UNASKED }
    }

    /// A turn in which new data may leave on `path`.
    fn on(path: OpenPath) -> Self {
        let allowance = u32::try_from(path.allowance).unwrap_or(u32::MAX - 1);
        PathTurn { path: path.id, allowance: NonZeroU32::new(allowance).unwrap_or(UNASKED) }
    }

    pub(super) fn allowance(self) -> Option<usize> {
        (self.allowance != UNASKED).then_some(self.allowance.get() as usize)
    }
}

/// The path scheduler of an association.
pub(super) struct Scheduling {
    scheduler: Box<dyn PathScheduler>,
}

impl Scheduling {
    pub(super) fn new(scheduler: Box<dyn PathScheduler>) -> Self {
        Scheduling { scheduler }
    }

    /// Notes that `bytes` bytes of new data were sent on `path`, or queued on it.
    pub(super) fn on_sent(&mut self, path: PathId, bytes: usize) {
        self.scheduler.on_sent(path, bytes);
    }

    /// Replaces a path scheduler that has failed by the fallback; returns the name of the failed one, and the reason.
    pub(super) fn replace_failed(&mut self) -> Option<(String, String)> {
        let reason = self.scheduler.failure()?;
        let failed = std::mem::replace(&mut self.scheduler, fallback_path_scheduler());
        Some((failed.name().to_owned(), reason))
    }

    /// Chooses the path of the next packet of new data.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        sender: &mut Sender,
        views: &mut Views,
    ) -> Option<PathTurn> {
        if sender.outbound.is_empty() {
            return None;
        }
        let choice = self.pick(now, sender, views);
        let silent = |sender: &mut Sender| {
            sender.outbound.replace_silent(|path| sender.paths.may_carry_new_data(path))
        };
        if choice.is_none() && silent(sender) {
            return self.pick(now, sender, views);
        }
        choice
    }

    fn pick(&mut self, now: Instant, sender: &mut Sender, views: &mut Views) -> Option<PathTurn> {
        if sender.paths.len() == 1 {
            return sender.open_paths().next().map(PathTurn::on);
        }
        let Views { open, candidates, .. } = views;
        let choice = loop {
            open.clear();
            open.extend(sender.open_paths());
            let show = |views: &mut Vec<PathView>| show_paths(sender, open, views);
            let (buffer, peer_window) = (&sender.outbound.buffer, sender.transmission.peer_window());
            let mut offer = Offer::lazy(open, candidates, &show, buffer.unsent(), peer_window);
            offer.buffer_limited = buffer.limits_application();
            offer.streams_bound = sender.outbound.is_mapped();
            match self.scheduler.decide(now, &offer) {
                Decision::Wait => break None,
                Decision::Send(path) => break Some(path),
                Decision::Duplicate(path) => {
                    if !sender.transmission.copies.is_of_everything() {
                        sender.transmission.start_copying(CopyScope::Everything);
                    }
                    break Some(path);
                }
                // New data is queued on the full path, and the scheduler decides on the next data.
                Decision::Assign(path) => {
                    let full = offer.paths().iter().find(|view| view.id == path && !view.open);
                    let assigned = full.cloned().map_or(0, |full| sender.assign(now, &full));
                    if assigned == 0 {
                        break None;
                    }
                    self.scheduler.on_sent(path, assigned);
                }
            }
        };
        let named = choice.and_then(|choice| open.iter().find(|path| path.id == choice));
        // While nothing is in flight, no acknowledgement would end a wait.
        let alone = || sender.transmission.outstanding.flight() == 0;
        named.or_else(|| open.first().filter(|_| alone())).map(|&path| PathTurn::on(path))
    }
}

/// Replaces `views` by those of all paths that may carry new data; `open` are the paths that have room for it now.
fn show_paths(sender: &Sender, open: &[OpenPath], views: &mut Vec<PathView>) {
    views.clear();
    for path in sender.path_ids().filter(|&path| sender.paths.may_carry_new_data(path)) {
        let is_open = open.iter().any(|open| open.id == path);
        views.push(sender.paths.view(path, sender.transmission.outstanding.flight_on(path), is_open));
    }
    let slowest = views.iter().filter_map(|view| view.srtt).max().unwrap_or_default();
    for view in views {
        view.assigned = sender.transmission.outstanding.assigned_on(view.id);
        view.early = sender.transmission.early_on(view.id);
        view.assignable = sender.may_assign(view.id, most_assigned(view, slowest)).is_some();
    }
}
