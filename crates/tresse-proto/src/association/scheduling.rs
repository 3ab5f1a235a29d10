//! The path of the next new data: where only one can send there is no question, and else the path scheduler is asked.

use std::num::NonZeroU32;

use tresse_policy::engine::{fallback_path_scheduler, most_assigned};
use tresse_policy::schedule::{OpenPath, PathScheduler, PathView};
use tresse_policy::{Asked, Instant, Offer, PathId};

use super::sender::{Sender, Views};

/// Whose turn it is to send. That nobody's is takes no tag of its own, so that the answer is handed on in registers: in
/// memory it would wait for the packet before it to leave for the cache.
#[derive(Copy, Clone)]
pub(super) struct Turn {
    pub(super) path: PathId,
    /// What the peer can take of new data there, where that was worked out to choose the path; else [`UNASKED`].
    allowance: NonZeroU32,
}

/// No packet holds so much.
const UNASKED: NonZeroU32 = NonZeroU32::MAX;

impl Turn {
    pub(super) fn of(path: PathId) -> Self {
        Turn { path, allowance: UNASKED }
    }

    /// New data may leave on this path.
    fn on(path: OpenPath) -> Self {
        let allowance = u32::try_from(path.allowance).unwrap_or(u32::MAX - 1);
        Turn { path: path.id, allowance: NonZeroU32::new(allowance).unwrap_or(UNASKED) }
    }

    /// `choice` sends, which is one of the `open` paths if it has new data.
    fn among(open: &[OpenPath], choice: PathId) -> Self {
        open.iter().find(|path| path.id == choice).map_or(Turn::of(choice), |&path| Turn::on(path))
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

    /// New data of `bytes` left on `path`, or was assigned to it.
    pub(super) fn on_sent(&mut self, path: PathId, bytes: usize) {
        self.scheduler.on_sent(path, bytes);
    }

    /// Lets another path scheduler go on in the place of one that cannot; answers the name of that one, and why.
    pub(super) fn replace_failed(&mut self) -> Option<(String, String)> {
        let reason = self.scheduler.failure()?;
        let failed = std::mem::replace(&mut self.scheduler, fallback_path_scheduler());
        Some((failed.name().to_owned(), reason))
    }

    /// Who sends the next packet of new data.
    pub(super) fn choose(&mut self, now: Instant, sender: &mut Sender, views: &mut Views) -> Option<Turn> {
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

    fn pick(&mut self, now: Instant, sender: &mut Sender, views: &mut Views) -> Option<Turn> {
        if sender.paths.len() == 1 {
            return sender.open_paths().next().map(Turn::on);
        }
        let Views { open, candidates, .. } = views;
        open.clear();
        open.extend(sender.open_paths());
        match (&open[..], self.scheduler.asked()) {
            _ if self.scheduler.assigns() => self.ask(now, sender, open, candidates),
            ([], Asked::WhenAnyIsOpen | Asked::WhenSeveralAreOpen) => None,
            ([only], Asked::WhenSeveralAreOpen) => Some(Turn::on(*only)),
            _ => match self.scheduler.pick_unseen(open) {
                Some(path) => Some(Turn::among(open, path)),
                None => self.ask(now, sender, open, candidates),
            },
        }
    }

    /// The choice of a path scheduler that is shown all paths, of which these are `open`. It may leave data to others.
    // Never: most schedulers go by less.
    #[inline(never)]
    fn ask(
        &mut self,
        now: Instant,
        sender: &mut Sender,
        open: &mut Vec<OpenPath>,
        views: &mut Vec<PathView>,
    ) -> Option<Turn> {
        let choice = loop {
            self.show_paths(sender, open, views);
            let offer = Offer {
                paths: views,
                unsent: sender.outbound.unsent(),
                peer_window: sender.transmission.peer_window(),
            };
            let choice = self.scheduler.pick(now, &offer);
            let Some(named) = choice.filter(|&choice| open.iter().all(|path| path.id != choice)) else {
                break choice;
            };
            // A full path is given data to wait there; then the question is where the next data goes.
            let full = views.iter().find(|path| path.id == named);
            let assigned = full.map_or(0, |full| sender.assign(now, full));
            if assigned == 0 {
                break None;
            }
            self.scheduler.on_sent(named, assigned);
            open.clear();
            open.extend(sender.open_paths());
        };
        // While nothing is in flight, nothing would ever end a wait.
        let alone = sender.transmission.outstanding.flight() == 0;
        let choice = choice.or_else(|| open.first().filter(|_| alone).map(|path| path.id))?;
        Some(Turn::among(open, choice))
    }

    /// Fills in how the paths are that carry new data.
    fn show_paths(&self, sender: &Sender, open: &[OpenPath], views: &mut Vec<PathView>) {
        views.clear();
        for path in sender.path_ids().filter(|&path| sender.paths.may_carry_new_data(path)) {
            let is_open = open.iter().any(|open| open.id == path);
            views.push(sender.paths.view(path, sender.transmission.outstanding.flight_on(path), is_open));
        }
        if self.scheduler.assigns() {
            let slowest = views.iter().filter_map(|view| view.srtt).max().unwrap_or_default();
            for view in views {
                view.assigned = sender.transmission.outstanding.assigned_on(view.id);
                view.early = sender.transmission.early_on(view.id);
                view.assignable = sender.may_assign(view.id, most_assigned(view, slowest)).is_some();
            }
        }
    }
}
