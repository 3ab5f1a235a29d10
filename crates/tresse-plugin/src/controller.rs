//! Adapter for a congestion controller from a shared object: implements the core's interface by its hooks.

use std::num::NonZeroU64;
use std::sync::Arc;

use tresse_policy::PathId;
use tresse_policy::congestion::{Ack, Controller, PathWindow, Situation, Sizes};

use crate::abi::{self, ControllerHooks, Judge};
use crate::instance::Instance;
use crate::library::Loaded;
use crate::views;

/// A controller whose hooks are foreign code.
pub(crate) struct ForeignController {
    instance: Instance,
    hooks: ControllerHooks,
    /// Views of the windows for the last call, kept to reuse their memory.
    shown: Vec<abi::Window>,
}

impl ForeignController {
    /// Creates a controller with `config`; `hooks` come from the table of `loaded`.
    ///
    /// # Errors
    /// The controller's message about an invalid configuration.
    pub(crate) fn create(loaded: &Arc<Loaded>, hooks: ControllerHooks, config: &str) -> Result<Self, String> {
        let instance = Instance::create(loaded, hooks.life, config)?;
        Ok(ForeignController { instance, hooks, shown: Vec::new() })
    }

    /// Calls the hook `ask` with a view of `situation`, and returns the window that it sets.
    fn answer(
        &mut self,
        situation: &Situation<'_>,
        ask: impl FnOnce(*mut std::ffi::c_void, &abi::Situation, &mut abi::Sizes) -> i32,
    ) -> Sizes {
        self.shown.clear();
        self.shown.extend(situation.windows.iter().map(views::window));
        let shown = views::situation(situation, &self.shown);
        let window = situation.window();
        let mut sizes = abi::Sizes { cwnd: window.cwnd as u64, ssthresh: window.ssthresh as u64 };
        let answer = ask(self.instance.itself(), &shown, &mut sizes);
        self.instance.confirm(answer);
        // A size that does not fit into `usize` is out of bounds in any case.
        let whole = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Sizes { cwnd: whole(sizes.cwnd), ssthresh: whole(sizes.ssthresh) }
    }

    /// Calls an optional hook; `None` if there is none.
    fn judge(&mut self, situation: &Situation<'_>, hook: Option<Judge>) -> Option<Sizes> {
        let hook = hook?;
        // SAFETY: see below.
        Some(self.answer(situation, |itself, shown, sizes| unsafe { hook(itself, shown, sizes) }))
    }
}

// SAFETY, for all calls: `instance` keeps the code and the controller alive, and no other code uses the controller meanwhile; views
// live until the call returns.
impl Controller for ForeignController {
    fn on_path_added(&mut self, window: &PathWindow) {
        if let Some(on_path_added) = self.hooks.on_path_added {
            // SAFETY: see above.
            unsafe { on_path_added(self.instance.itself(), &views::window(window)) }
        }
    }

    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        let (hook, ack) = (self.hooks.on_ack, views::ack(ack));
        // SAFETY: see above.
        self.answer(situation, |itself, shown, sizes| unsafe { hook(itself, shown, &ack, sizes) })
    }

    fn on_loss(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        let (hook, ack) = (self.hooks.on_loss, views::ack(ack));
        // SAFETY: see above.
        self.answer(situation, |itself, shown, sizes| unsafe { hook(itself, shown, &ack, sizes) })
    }

    fn on_timeout(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        self.judge(situation, self.hooks.on_timeout)
    }

    fn on_idle(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        self.judge(situation, self.hooks.on_idle)
    }

    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        // SAFETY: see above.
        self.hooks
            .pacing_rate
            .and_then(|hook| NonZeroU64::new(unsafe { hook(self.instance.itself(), path.0) }))
    }

    fn failure(&self) -> Option<String> {
        self.instance.failed().map(str::to_owned)
    }
}
