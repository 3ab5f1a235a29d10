//! Guard of a path scheduler. It also checks each decision against the offered paths.

use crate::names::NameInUse;
use crate::panics::{Made, attempt};
use crate::path::PathId;
use crate::schedule::PathSchedulerFactory;
use crate::schedule::path::{Decision, Offer, PathScheduler};
use crate::time::Instant;

/// A scheduler that is dropped after its first fault. Afterwards this guard selects no path.
struct Guarded {
    /// `None` after a fault.
    scheduler: Option<Box<dyn PathScheduler>>,
    failed: Option<String>,
    name: NameInUse,
}

/// Makes a scheduler from `config`; a panic of the factory counts as a refusal.
pub(crate) fn make(factory: &PathSchedulerFactory, config: &str, name: NameInUse) -> Made<dyn PathScheduler> {
    let scheduler = attempt(|| factory(config)).and_then(|made| made)?;
    Ok(Box::new(Guarded { scheduler: Some(scheduler), failed: None, name }))
}

impl Guarded {
    /// Returns the result of `act`; `None` if the scheduler panics, reports a failure, or has failed before.
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
        self.release();
    }

    fn release(&mut self) {
        let scheduler = self.scheduler.take();
        if let Err(reason) = attempt(|| drop(scheduler)) {
            self.failed.get_or_insert(reason);
        }
    }
}

impl PathScheduler for Guarded {
    /// The registered name.
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision {
        let decision = self.run(|scheduler| scheduler.decide(now, offer)).unwrap_or(Decision::Wait);
        let possible = match decision {
            Decision::Send(path) | Decision::Duplicate(path) => offer.open_ids().any(|open| open == path),
            Decision::Assign(path) => {
                offer.paths().iter().any(|view| view.id == path && view.assignable && !view.open)
            }
            Decision::Wait => true,
        };
        if possible {
            return decision;
        }
        if let Some(path) = decision.path() {
            self.fail(format!("it named path {}, which can take no data now", path.0));
        }
        Decision::Wait
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        self.run(|scheduler| scheduler.on_sent(path, bytes));
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schedule::path::PathView;
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
        fn decide(&mut self, _now: Instant, _offer: &Offer<'_>) -> Decision {
            self.hook("decide");
            if self.0 == "assign" { Decision::Assign(PathId(1)) } else { Decision::Send(PathId(1)) }
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

    fn after_a_decision(hook: &'static str) -> (Option<PathId>, Option<String>) {
        let mut scheduler = stubborn(hook).unwrap();
        assert_eq!(scheduler.name(), "mine");
        let decision = scheduler.decide(Instant::ZERO, &offer(&[view(0), view(1)]));
        (decision.path(), scheduler.failure())
    }

    #[test]
    fn a_good_answer_passes_and_a_panic_is_told() {
        assert_eq!(after_a_decision(""), (Some(PathId(1)), None));
        assert_eq!(after_a_decision("decide"), (None, Some("it panicked: no decide".to_owned())));
        assert_eq!(after_a_decision("failure"), (None, Some("tired".to_owned())));
        let mut scheduler = stubborn("on_sent").unwrap();
        scheduler.on_sent(PathId(0), 1);
        assert_eq!(scheduler.failure().as_deref(), Some("it panicked: no on_sent"));
    }

    #[test]
    fn data_is_assigned_only_to_a_path_that_is_full_and_may_be_left_more() {
        let full = full(view(1));
        let assignable = PathView { assignable: true, ..full.clone() };
        for (path, possible) in
            [(assignable.clone(), true), (full, false), (PathView { open: true, ..assignable }, false)]
        {
            let mut scheduler = stubborn("assign").unwrap();
            let decision = scheduler.decide(Instant::ZERO, &offer(&[view(0), path]));
            assert_eq!((decision.path().is_some(), scheduler.failure().is_none()), (possible, possible));
        }
    }

    #[test]
    fn a_path_that_is_full_or_not_there_is_a_fault() {
        for paths in [vec![view(0), full(view(1))], vec![view(0)]] {
            let mut scheduler = stubborn("").unwrap();
            assert_eq!(scheduler.decide(Instant::ZERO, &offer(&paths)), Decision::Wait);
            let told = "it named path 1, which can take no data now";
            assert_eq!(scheduler.failure().as_deref(), Some(told));
            let later = scheduler.decide(Instant::ZERO, &offer(&[view(0), view(1)]));
            assert_eq!(later, Decision::Wait, "it is gone");
        }
    }
}
