//! A congestion controller out of a shared object, as the core sees it.

use std::num::NonZeroU64;
use std::sync::Arc;

use tresse_policy::PathId;
use tresse_policy::congestion::{Ack, Controller, PathWindow, Situation, Sizes};

use crate::abi::{self, ControllerHooks, Judge};
use crate::instance::Instance;
use crate::library::Loaded;
use crate::views;

/// A controller of foreign code.
pub(crate) struct ForeignController {
    instance: Instance,
    hooks: ControllerHooks,
    /// Windows that it was shown last, kept for their memory.
    shown: Vec<abi::Window>,
}

impl ForeignController {
    /// `hooks` are out of the table of `loaded`.
    ///
    /// # Errors
    /// Fault of the configuration, in the controller's words.
    pub(crate) fn create(loaded: &Arc<Loaded>, hooks: ControllerHooks, config: &str) -> Result<Self, String> {
        let instance = Instance::create(loaded, hooks.life, config)?;
        Ok(ForeignController { instance, hooks, shown: Vec::new() })
    }

    /// Window that `ask` answers with; it is shown all of `situation`.
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
        // A size that does not fit is out of bounds in any case.
        let whole = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Sizes { cwnd: whole(sizes.cwnd), ssthresh: whole(sizes.ssthresh) }
    }

    /// The answer of a hook that may not be there.
    fn judge(&mut self, situation: &Situation<'_>, hook: Option<Judge>) -> Option<Sizes> {
        let hook = hook?;
        // SAFETY: as below.
        Some(self.answer(situation, |itself, shown, sizes| unsafe { hook(itself, shown, sizes) }))
    }
}

// SAFETY, for all calls: code and controller are there as long as `instance` is, and nobody else uses it meanwhile; views
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
