//! Adapter for a path scheduler from a shared object: implements the core's interface by its hooks.

use std::sync::Arc;

use tresse_policy::schedule::{Decision, Offer, PathScheduler, PathView};
use tresse_policy::{Instant, PathId};

use crate::abi::{self, ASSIGNS, COPIES, PathHooks};
use crate::instance::Instance;
use crate::library::Loaded;
use crate::views;

/// A path scheduler whose hooks are foreign code.
pub(crate) struct ForeignPath {
    instance: Instance,
    hooks: PathHooks,
    name: String,
    /// Views of the paths for the last call, kept to reuse their memory.
    shown: Vec<abi::Candidate>,
}

impl ForeignPath {
    /// Creates a scheduler with `config`; `hooks` come from the table of `loaded`.
    ///
    /// # Errors
    /// The scheduler's message about an invalid configuration.
    pub(crate) fn create(loaded: &Arc<Loaded>, hooks: PathHooks, config: &str) -> Result<Self, String> {
        let instance = Instance::create(loaded, hooks.life, config)?;
        Ok(ForeignPath { instance, hooks, name: loaded.name().to_owned(), shown: Vec::new() })
    }

    fn has(&self, flag: u32) -> bool {
        self.hooks.flags & flag != 0
    }
}

// SAFETY, for both calls below: `instance` keeps the code and the scheduler alive, and no other code uses the scheduler meanwhile;
// views live until the call returns.
impl PathScheduler for ForeignPath {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision {
        if self.instance.failed().is_some() {
            return Decision::Wait;
        }
        let assigns = self.has(ASSIGNS);
        self.shown.clear();
        self.shown.extend(offer.paths().iter().map(|path| views::candidate(path, assigns)));
        let shown = views::offer(now, offer, &self.shown);
        // SAFETY: see above.
        let answer = unsafe { (self.hooks.pick)(self.instance.itself(), &shown) };
        let Some(path) = self.instance.heed(answer, "path").map(PathId) else { return Decision::Wait };
        let full = |view: &PathView| view.id == path && !view.open;
        if assigns && offer.paths().iter().any(full) {
            Decision::Assign(path)
        } else if self.has(COPIES) {
            Decision::Duplicate(path)
        } else {
            Decision::Send(path)
        }
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        if let Some(on_sent) = self.hooks.on_sent {
            // SAFETY: see above.
            unsafe { on_sent(self.instance.itself(), path.0, bytes as u64) }
        }
    }

    fn failure(&self) -> Option<String> {
        self.instance.failed().map(str::to_owned)
    }
}
