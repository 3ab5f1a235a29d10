//! A stream scheduler in use, with the name that it holds.
//!
//! The default scheduler is stored inline, and called without dynamic dispatch; any other one is a `Box<dyn
//! StreamScheduler>`. Independent of the factories of schedulers.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tresse_wire::StreamId;

use super::factories::FALLBACK;
use super::path::PathView;
use super::stream::{Backlog, FirstCome, Queued, StreamScheduler, Taken};
use crate::names::NameInUse;

/// A stream scheduler from a [`Registry`](crate::Registry). Its name cannot be removed as long as the scheduler exists.
pub struct Built {
    scheduler: Kind,
    name: NameInUse,
}

enum Kind {
    FirstCome(FirstCome),
    Other(Box<dyn StreamScheduler>),
}

impl Built {
    pub(crate) fn new(scheduler: Box<dyn StreamScheduler>, name: NameInUse) -> Self {
        Built { scheduler: Kind::Other(scheduler), name }
    }

    pub(crate) fn first_come(name: NameInUse) -> Self {
        Built { scheduler: Kind::FirstCome(FirstCome::default()), name }
    }

    /// Returns the scheduler that replaces one that fails.
    pub fn fallback() -> Self {
        Built::first_come(NameInUse::of(FALLBACK))
    }

    /// Returns the name by which the scheduler was built.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the name, which cannot be removed as long as the returned value exists. Only the core calls this.
    pub fn name_in_use(&self) -> NameInUse {
        self.name.clone()
    }

    /// As [`StreamScheduler::next`]; `path` is dereferenced only for schedulers other than the default, which ignores
    /// the path.
    pub fn next_for(
        &mut self,
        path: &impl Deref<Target = PathView>,
        backlog: &dyn Backlog,
    ) -> Option<StreamId> {
        match &mut self.scheduler {
            Kind::FirstCome(scheduler) => scheduler.first(),
            Kind::Other(scheduler) => scheduler.next(path, backlog),
        }
    }

    /// See [`StreamScheduler::on_queued`].
    pub fn on_queued(&mut self, queued: Queued) {
        match &mut self.scheduler {
            Kind::FirstCome(scheduler) => scheduler.on_queued(queued),
            Kind::Other(scheduler) => scheduler.on_queued(queued),
        }
    }

    /// See [`StreamScheduler::on_taken`].
    pub fn on_taken(&mut self, taken: Taken) {
        match &mut self.scheduler {
            Kind::FirstCome(scheduler) => scheduler.on_taken(taken),
            Kind::Other(scheduler) => scheduler.on_taken(taken),
        }
    }
}

impl Deref for Built {
    type Target = dyn StreamScheduler;

    fn deref(&self) -> &Self::Target {
        match &self.scheduler {
            Kind::FirstCome(scheduler) => scheduler,
            Kind::Other(scheduler) => scheduler.as_ref(),
        }
    }
}

impl DerefMut for Built {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.scheduler {
            Kind::FirstCome(scheduler) => scheduler,
            Kind::Other(scheduler) => scheduler.as_mut(),
        }
    }
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Built").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::LazyCell;

    use super::*;
    use crate::time::Instant;

    /// A backlog that must not be read.
    struct Unasked;

    impl Backlog for Unasked {
        fn unsent_bytes(&self, _: StreamId) -> usize {
            unreachable!("the order of messages does not depend on their lengths")
        }

        fn messages(&self, _: StreamId) -> usize {
            unreachable!("the order of messages does not depend on their number")
        }

        fn head_bytes(&self, _: StreamId) -> usize {
            unreachable!("the order of messages does not depend on their lengths")
        }
    }

    #[test]
    fn first_come_first_served_looks_at_no_path() {
        let path = LazyCell::new(|| -> PathView { unreachable!("no path changes the order of messages") });
        let mut built = Built::fallback();
        for stream in [3, 1] {
            let stream = StreamId(stream);
            built.on_queued(Queued { stream, bytes: 1, was_idle: true, at: Instant::ZERO });
        }
        for stream in [3, 1] {
            assert_eq!(built.next_for(&path, &Unasked), Some(StreamId(stream)));
            let stream = StreamId(stream);
            built.on_taken(Taken {
                stream,
                bytes: 1,
                message_done: true,
                turn_over: true,
                stream_empty: true,
            });
        }
        assert!(built.is_empty() && built.next_for(&path, &Unasked).is_none());
    }
}
