//! Adapter for a stream scheduler from a shared object: implements the core's interface by its hooks.

use std::sync::Arc;

use tresse_policy::StreamId;
use tresse_policy::schedule::{Backlog, PathView, Queued, Removed, StreamScheduler, Taken};

use crate::abi::StreamHooks;
use crate::instance::Instance;
use crate::library::Loaded;
use crate::views::{self, Questions};

/// A stream scheduler whose hooks are foreign code.
pub(crate) struct ForeignStream {
    instance: Instance,
    hooks: StreamHooks,
}

impl ForeignStream {
    /// Creates a scheduler with `config`; `hooks` come from the table of `loaded`.
    ///
    /// # Errors
    /// The scheduler's message about an invalid configuration.
    pub(crate) fn create(loaded: &Arc<Loaded>, hooks: StreamHooks, config: &str) -> Result<Self, String> {
        Ok(ForeignStream { instance: Instance::create(loaded, hooks.life, config)?, hooks })
    }
}

// SAFETY, for all calls below: `instance` keeps the code and the scheduler alive, and no other code uses the scheduler meanwhile;
// views live until the call returns.
impl StreamScheduler for ForeignStream {
    fn on_queued(&mut self, queued: Queued) {
        // SAFETY: see above.
        unsafe { (self.hooks.on_queued)(self.instance.itself(), &views::queued(&queued)) }
    }

    fn next(&mut self, path: &PathView, backlog: &dyn Backlog) -> Option<StreamId> {
        if self.instance.failed().is_some() {
            return None;
        }
        let questions = Questions::new(backlog);
        // SAFETY: see above.
        let answer =
            unsafe { (self.hooks.next)(self.instance.itself(), &views::path(path), &questions.view()) };
        self.instance.heed(answer, "stream").map(StreamId)
    }

    fn on_taken(&mut self, taken: Taken) {
        // SAFETY: see above.
        unsafe { (self.hooks.on_taken)(self.instance.itself(), &views::taken(&taken)) }
    }

    fn on_removed(&mut self, removed: Removed) {
        match self.hooks.on_removed {
            // SAFETY: see above.
            Some(on_removed) => unsafe { on_removed(self.instance.itself(), &views::removed(&removed)) },
            None if removed.stream_empty => {
                let mut taken = Taken::new(removed.stream, removed.bytes);
                taken.stream_empty = true;
                self.on_taken(taken);
            }
            None => {}
        }
    }

    fn on_packet_end(&mut self) {
        if let Some(on_packet_end) = self.hooks.on_packet_end {
            // SAFETY: see above.
            unsafe { on_packet_end(self.instance.itself()) }
        }
    }

    fn is_empty(&self) -> bool {
        // SAFETY: see above.
        unsafe { (self.hooks.is_empty)(self.instance.itself()) != 0 }
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let set_value = self.hooks.set_value.ok_or("streams have no values with this scheduler")?;
        // SAFETY: see above.
        match unsafe { set_value(self.instance.itself(), stream.0, value) } {
            0 => Ok(()),
            code => Err(format!("it refuses with code {code}")),
        }
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        let value = self.hooks.value?;
        // SAFETY: see above.
        u16::try_from(unsafe { value(self.instance.itself(), stream.0) }).ok()
    }

    fn failure(&self) -> Option<String> {
        self.instance.failed().map(str::to_owned)
    }
}
