//! The guard of a stream scheduler.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tresse_wire::StreamId;

use crate::panics::{Made, attempt, message_of};
use crate::schedule::StreamSchedulerFactory;
use crate::schedule::path::PathView;
use crate::schedule::stream::{Backlog, Queued, Removed, StreamScheduler, Taken};

/// A scheduler that is dropped after its first panic.
struct Guarded {
    /// `None` after a panic.
    scheduler: Option<Box<dyn StreamScheduler>>,
    panicked: Option<String>,
}

/// Makes a scheduler from `config`; a panic of the factory counts as a refusal.
pub(crate) fn make(factory: &StreamSchedulerFactory, config: &str) -> Made<dyn StreamScheduler> {
    let made = attempt(|| factory(config)).and_then(|made| made)?;
    Ok(Box::new(Guarded { scheduler: Some(made), panicked: None }))
}

impl Guarded {
    /// Returns the result of `act`; `None` if the scheduler panics, or has panicked before. After a panic the scheduler
    /// is not used again, because its state may be inconsistent.
    fn run<T>(&mut self, act: impl FnOnce(&mut dyn StreamScheduler) -> T) -> Option<T> {
        let scheduler = self.scheduler.as_deref_mut()?;
        match catch_unwind(AssertUnwindSafe(|| act(scheduler))) {
            Ok(answer) => Some(answer),
            Err(payload) => {
                self.panicked = Some(message_of(payload));
                self.release();
                None
            }
        }
    }

    /// Returns the result of `query`; `None` if it panics. The scheduler is then kept until a call of `run` panics.
    fn query<T>(&self, query: impl FnOnce(&dyn StreamScheduler) -> T) -> Option<T> {
        let scheduler = self.scheduler.as_deref()?;
        catch_unwind(AssertUnwindSafe(|| query(scheduler))).ok()
    }

    fn release(&mut self) {
        let scheduler = self.scheduler.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(scheduler))) {
            self.panicked.get_or_insert_with(|| message_of(payload));
        }
    }
}

impl StreamScheduler for Guarded {
    fn on_queued(&mut self, queued: Queued) {
        self.run(|scheduler| scheduler.on_queued(queued));
    }

    fn next(&mut self, path: &PathView, backlog: &dyn Backlog) -> Option<StreamId> {
        self.run(|scheduler| scheduler.next(path, backlog)).flatten()
    }

    fn on_taken(&mut self, taken: Taken) {
        self.run(|scheduler| scheduler.on_taken(taken));
    }

    fn on_removed(&mut self, removed: Removed) {
        self.run(|scheduler| scheduler.on_removed(removed));
    }

    fn on_packet_end(&mut self) {
        self.run(|scheduler| scheduler.on_packet_end());
    }

    fn is_empty(&self) -> bool {
        self.query(|scheduler| scheduler.is_empty()).unwrap_or(true)
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let outcome = self.run(|scheduler| scheduler.set_value(stream, value));
        outcome.unwrap_or_else(|| Err(self.failure().unwrap_or_default()))
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        self.query(|scheduler| scheduler.value(stream)).flatten()
    }

    fn failure(&self) -> Option<String> {
        self.panicked.clone().or_else(|| self.query(|scheduler| scheduler.failure()).flatten())
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

    /// Panics in the hook of this name.
    struct Bomb(&'static str);

    impl Bomb {
        fn hook(&self, name: &str) {
            assert!(self.0 != name, "no {name}\ntoday");
        }
    }

    impl StreamScheduler for Bomb {
        fn on_queued(&mut self, _queued: Queued) {
            self.hook("on_queued");
        }
        fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
            None
        }
        fn on_taken(&mut self, _taken: Taken) {}
        fn on_packet_end(&mut self) {
            self.hook("on_packet_end");
        }
        fn is_empty(&self) -> bool {
            self.hook("is_empty");
            false
        }
        fn set_value(&mut self, _stream: StreamId, _value: u16) -> Result<(), String> {
            self.hook("set_value");
            Ok(())
        }
        fn value(&self, _stream: StreamId) -> Option<u16> {
            self.hook("value");
            Some(7)
        }
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.hook("drop");
        }
    }

    fn bomb(hook: &'static str) -> Box<dyn StreamScheduler> {
        let factory: StreamSchedulerFactory = Arc::new(move |_| Ok(Box::new(Bomb(hook))));
        make(&factory, "").unwrap_or_else(|reason| panic!("{reason}"))
    }

    #[test]
    fn a_panic_ends_the_scheduler_and_is_told_on_one_line() {
        let mut scheduler = bomb("on_packet_end");
        assert_eq!((scheduler.value(StreamId(0)), scheduler.failure()), (Some(7), None));
        scheduler.on_packet_end();
        assert_eq!(scheduler.failure().as_deref(), Some("it panicked: no on_packet_end today"));
        assert_eq!(scheduler.value(StreamId(0)), None, "it is gone");
        scheduler.on_packet_end();
    }

    #[test]
    fn a_panic_where_an_answer_is_wanted_gives_the_answer_of_nobody() {
        assert!(bomb("is_empty").is_empty());
        assert_eq!(bomb("value").value(StreamId(0)), None);
        let refused = bomb("set_value").set_value(StreamId(0), 1);
        assert_eq!(refused, Err("it panicked: no set_value today".to_owned()));
        drop(bomb("drop"));
    }

    #[test]
    fn a_factory_that_panics_has_refused() {
        let factory: StreamSchedulerFactory = Arc::new(|config| panic!("what is \"{config}\"?"));
        let refused = make(&factory, "x").map(|_| ());
        assert_eq!(refused, Err("it panicked: what is \"x\"?".to_owned()));
    }
}
