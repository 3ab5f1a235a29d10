//! The guard of a path scheduler: it also holds answers against what was offered.

use crate::names::NameInUse;
use crate::panics::{Made, attempt};
use crate::path::PathId;
use crate::schedule::PathSchedulerFactory;
use crate::schedule::path::{Asked, Offer, OpenPath, PathScheduler};
use crate::time::Instant;

/// A scheduler whose first fault is its last act. Afterwards it names no path.
struct Guarded {
    /// `None` once it has failed.
    scheduler: Option<Box<dyn PathScheduler>>,
    /// Whether it leaves data to full paths, whether it wants copies, and when it is asked; each asked once.
    assigns: bool,
    copies: bool,
    asked: Asked,
    failed: Option<String>,
    name: NameInUse,
}

/// What the factory makes of `config`; a panic counts as a refusal.
pub(crate) fn make(factory: &PathSchedulerFactory, config: &str, name: NameInUse) -> Made<dyn PathScheduler> {
    let scheduler = attempt(|| factory(config)).and_then(|made| made)?;
    let (assigns, copies, asked) = attempt(|| (scheduler.assigns(), scheduler.copies(), scheduler.asked()))?;
    Ok(Box::new(Guarded { scheduler: Some(scheduler), assigns, copies, asked, failed: None, name }))
}

impl Guarded {
    /// What `act` answers; `None` when the scheduler panics, says that it cannot go on, or has failed before.
    fn run<T>(&mut self, act: impl FnOnce(&mut dyn PathScheduler) -> T) -> Option<T> {
        let scheduler = self.scheduler.as_deref_mut()?;
        match attempt(|| (act(scheduler), scheduler.failure())) {
            Ok((answer, None)) => Some(answer),
            Ok((_, Some(reason))) | Err(reason) => {
                self.fail(reason);
                None
            }
        }
    }

    fn fail(&mut self, reason: String) {
        self.failed.get_or_insert(reason);
        self.let_go();
    }

    fn let_go(&mut self) {
        let scheduler = self.scheduler.take();
        if let Err(reason) = attempt(|| drop(scheduler)) {
            self.failed.get_or_insert(reason);
        }
    }
}

impl PathScheduler for Guarded {
    /// The registered one.
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn assigns(&self) -> bool {
        self.assigns
    }

    fn copies(&self) -> bool {
        self.copies
    }

    fn asked(&self) -> Asked {
        self.asked
    }

    fn pick(&mut self, now: Instant, offer: &Offer<'_>) -> Option<PathId> {
        let choice = self.run(|scheduler| scheduler.pick(now, offer)).flatten()?;
        let path = offer.paths.iter().find(|path| path.id == choice);
        if path.is_some_and(|path| path.open || (self.assigns && path.assignable)) {
            return Some(choice);
        }
        self.fail(refused(choice));
        None
    }

    fn pick_unseen(&mut self, open: &[OpenPath]) -> Option<PathId> {
        let choice = self.run(|scheduler| scheduler.pick_unseen(open)).flatten()?;
        if open.iter().any(|path| path.id == choice) {
            return Some(choice);
        }
        self.fail(refused(choice));
        None
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        self.run(|scheduler| scheduler.on_sent(path, bytes));
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}

fn refused(choice: PathId) -> String {
    format!("it named path {}, which can take no data now", choice.0)
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schedule::path::tests::{full, offer, view};

    /// Always names path 1; panics in the hook of this name.
    struct Stubborn(&'static str);

    impl Stubborn {
        fn hook(&self, name: &str) {
            assert!(self.0 != name, "no {name}");
        }
    }

    impl PathScheduler for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }
        fn assigns(&self) -> bool {
            self.hook("assigns");
            false
        }
        fn pick(&mut self, _now: Instant, _offer: &Offer<'_>) -> Option<PathId> {
            self.hook("pick");
            Some(PathId(1))
        }
        fn pick_unseen(&mut self, _open: &[OpenPath]) -> Option<PathId> {
            self.hook("pick_unseen");
            (self.0 == "unseen").then_some(PathId(1))
        }
        fn on_sent(&mut self, _path: PathId, _bytes: usize) {
            self.hook("on_sent");
        }
        fn failure(&self) -> Option<String> {
            (self.0 == "failure").then(|| "tired".to_owned())
        }
    }

    fn stubborn(hook: &'static str) -> Made<dyn PathScheduler> {
        let factory: PathSchedulerFactory = Arc::new(move |_| Ok(Box::new(Stubborn(hook))));
        make(&factory, "", NameInUse::of("mine"))
    }

    fn after_a_pick(hook: &'static str) -> (Option<PathId>, Option<String>) {
        let mut scheduler = stubborn(hook).unwrap();
        assert_eq!(scheduler.name(), "mine");
        let choice = scheduler.pick(Instant::ZERO, &offer(&[view(0), view(1)]));
        (choice, scheduler.failure())
    }

    #[test]
    fn a_good_answer_passes_and_a_panic_is_told() {
        assert_eq!(after_a_pick(""), (Some(PathId(1)), None));
        assert_eq!(after_a_pick("pick"), (None, Some("it panicked: no pick".to_owned())));
        assert_eq!(after_a_pick("failure"), (None, Some("tired".to_owned())));
        assert!(stubborn("assigns").is_err_and(|reason| reason == "it panicked: no assigns"));
        let mut scheduler = stubborn("on_sent").unwrap();
        scheduler.on_sent(PathId(0), 1);
        assert_eq!(scheduler.failure().as_deref(), Some("it panicked: no on_sent"));
    }

    #[test]
    fn a_choice_that_needs_no_views_is_guarded_as_well() {
        let open = [0, 1].map(|id| OpenPath { id: PathId(id), allowance: 1452 });
        let mut scheduler = stubborn("").unwrap();
        assert_eq!((scheduler.pick_unseen(&open), scheduler.failure()), (None, None), "it wants views");
        let mut scheduler = stubborn("unseen").unwrap();
        assert_eq!((scheduler.pick_unseen(&open), scheduler.failure()), (Some(PathId(1)), None));
        assert_eq!(scheduler.pick_unseen(&open[..1]), None);
        assert_eq!(scheduler.failure().as_deref(), Some("it named path 1, which can take no data now"));
        let mut scheduler = stubborn("pick_unseen").unwrap();
        assert_eq!(scheduler.pick_unseen(&open), None);
        assert_eq!(scheduler.failure().as_deref(), Some("it panicked: no pick_unseen"));
    }

    #[test]
    fn a_path_that_is_full_or_not_there_is_a_fault() {
        for paths in [vec![view(0), full(view(1))], vec![view(0)]] {
            let mut scheduler = stubborn("").unwrap();
            assert_eq!(scheduler.pick(Instant::ZERO, &offer(&paths)), None);
            let told = "it named path 1, which can take no data now";
            assert_eq!(scheduler.failure().as_deref(), Some(told));
            assert_eq!(scheduler.pick(Instant::ZERO, &offer(&[view(0), view(1)])), None, "it is gone");
        }
    }
}
