//! A controller of an application among the built-in ones: shows it the windows, and holds its answers against their
//! bounds. Whatever goes wrong in it goes no further than its association, where `rfc9260` takes its place at once.

use super::CongestionControl;
use super::controller::{Ack, Controller, ControllerFactory, PathWindow, Situation, Sizes};
use super::rfc9260::Rfc9260;
use super::window::{LARGEST, PathAck, Window};
use crate::names::NameInUse;
use crate::panics::{Made, attempt};
use crate::path::PathId;
use crate::time::Instant;

/// A controller whose first fault is its last act.
struct Guarded {
    /// With its name, which is in use no longer once it has failed.
    brought: Option<(Box<dyn Controller>, NameInUse)>,
    /// Name and reason, until told.
    failed: Option<(String, String)>,
    /// What it is shown; kept so that no SACK allocates.
    views: Vec<PathWindow>,
}

/// What the factory makes of `config`; a panic counts as a refusal.
pub(super) fn make(
    factory: &ControllerFactory,
    config: &str,
    name: NameInUse,
) -> Made<dyn CongestionControl> {
    let controller = attempt(|| factory(config)).and_then(|made| made)?;
    Ok(Box::new(Guarded { brought: Some((controller, name)), failed: None, views: Vec::new() }))
}

impl CongestionControl for Guarded {
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        if let Some(window) = windows.get(path.index()) {
            self.ask(|controller| controller.on_path_added(&window.view(path)));
        }
    }

    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        if self.brought.is_none() {
            return Rfc9260.on_sack(now, windows, acks);
        }
        self.look(windows);
        for ack in acks {
            self.take(now, windows, ack);
        }
    }

    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        self.look(windows);
        match self.decide(now, path, |controller, situation| controller.on_timeout(situation)) {
            Some(sizes) => {
                let Some(window) = windows.get_mut(path.index()) else { return };
                window.set(sizes);
                window.recovery = None;
            }
            None => Rfc9260.on_timeout(now, windows, path),
        }
    }

    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        self.look(windows);
        match self.decide(now, path, |controller, situation| controller.on_idle(situation)) {
            Some(sizes) => {
                if let Some(window) = windows.get_mut(path.index()) {
                    window.set(sizes);
                }
            }
            None => Rfc9260.on_idle(now, windows, path),
        }
    }

    fn on_spurious(&mut self, now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        self.look(windows);
        let ask = |controller: &mut dyn Controller, situation: &Situation<'_>| {
            Some(controller.on_spurious(situation, before))
        };
        let restored = self.decide(now, path, ask);
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.restore(restored.unwrap_or(before));
        if let Some(sizes) = restored {
            window.set(sizes);
        }
    }

    fn pop_failure(&mut self) -> Option<(String, String)> {
        self.failed.take()
    }
}

impl Guarded {
    /// Sees the windows as they stand.
    fn look(&mut self, windows: &[Window]) {
        self.views.clear();
        if self.brought.is_some() {
            let view = |(position, window): (usize, &Window)| window.view(PathId(position as u8));
            self.views.extend(windows.iter().enumerate().map(view));
        }
    }

    /// One path's part of a SACK, in the order of `recovery`: growth, then a loss.
    fn take(&mut self, now: Instant, windows: &mut [Window], ack: &PathAck) {
        let place = ack.path.index();
        let Some(window) = windows.get_mut(place) else { return };
        let told = Ack {
            bytes: ack.acked,
            flight_before: ack.flight_before,
            flight_after: ack.flight_after,
            may_grow: window.growth_allowed(ack),
            fully_used: window.is_fully_used(ack),
        };
        if ack.acked > 0 {
            let grown =
                self.decide(now, ack.path, |controller, situation| Some(controller.on_ack(situation, &told)));
            let Some(sizes) = grown else {
                return Rfc9260.on_sack(now, windows, &[*ack]);
            };
            window.set(sizes);
        }
        let begins = window.recovery_begins(ack);
        self.refresh(window, ack.path);
        if begins {
            let cut = self
                .decide(now, ack.path, |controller, situation| Some(controller.on_loss(situation, &told)));
            match cut {
                Some(sizes) => window.set(sizes),
                None => window.cut_to(window.halved()),
            }
            self.refresh(window, ack.path);
        }
    }

    /// A window has changed since it was looked at.
    fn refresh(&mut self, window: &Window, path: PathId) {
        if let Some(view) = self.views.get_mut(path.index()) {
            *view = window.view(path);
        }
    }

    /// What `hook` answers for the path; `None` when that is nothing, or nothing to go by.
    fn decide(
        &mut self,
        now: Instant,
        path: PathId,
        hook: impl FnOnce(&mut dyn Controller, &Situation<'_>) -> Option<Sizes>,
    ) -> Option<Sizes> {
        let views = std::mem::take(&mut self.views);
        let answer = views.get(path.index()).and_then(|window| {
            let situation = Situation { now, path, windows: &views };
            let sizes = self.ask(|controller| hook(controller, &situation)).flatten()?;
            match out_of_bounds(sizes, window) {
                None => Some(sizes),
                Some(fault) => {
                    self.fail(fault);
                    None
                }
            }
        });
        self.views = views;
        answer
    }

    /// What `hook` answers; `None` when the controller panics, says that it cannot go on, or has failed before.
    fn ask<T>(&mut self, hook: impl FnOnce(&mut dyn Controller) -> T) -> Option<T> {
        let (controller, _) = self.brought.as_mut()?;
        match attempt(|| (hook(controller.as_mut()), controller.failure())) {
            Ok((answer, None)) => Some(answer),
            Ok((_, Some(reason))) | Err(reason) => {
                self.fail(reason);
                None
            }
        }
    }

    fn fail(&mut self, reason: String) {
        if let Some(name) = self.let_go() {
            self.failed = Some((name, reason));
        }
    }

    /// The controller goes, and its name is free. Whatever its end has to say comes too late.
    fn let_go(&mut self) -> Option<String> {
        let (controller, name) = self.brought.take()?;
        let _ = attempt(|| drop(controller));
        Some(name.as_str().to_owned())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// What is wrong with an answer for `window`, if anything. One that was smaller than a packet, because packets have grown
/// since, may stay so.
fn out_of_bounds(sizes: Sizes, window: &PathWindow) -> Option<String> {
    let PathWindow { path, packet, cwnd, ssthresh, .. } = *window;
    let answers = [("window", sizes.cwnd, cwnd), ("slow-start threshold", sizes.ssthresh, ssthresh)];
    let fault = |(what, size, before): (&str, usize, usize)| {
        let least = packet.min(before);
        (size < least || size > LARGEST).then(|| {
            format!("it set the {what} of path {path} to {size} bytes: {least} to {LARGEST} are accepted")
        })
    };
    answers.into_iter().find_map(fault)
}

impl Window {
    fn view(&self, path: PathId) -> PathWindow {
        PathWindow {
            path,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            packet: self.pmdcs,
            srtt: self.srtt,
            usable: self.usable,
            recovering: self.recovery.is_some(),
        }
    }

    /// As a controller of an application decided.
    fn set(&mut self, sizes: Sizes) {
        self.cwnd = sizes.cwnd;
        self.ssthresh = sizes.ssthresh;
        // Its count means nothing to such a controller; one that takes over begins anew.
        self.partial_bytes_acked = 0;
    }
}

#[cfg(test)]
mod tests;
