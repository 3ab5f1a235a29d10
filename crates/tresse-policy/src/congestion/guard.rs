//! Adapter from [`Controller`] to [`CongestionControl`]: it computes the views of the windows and checks the answers
//! against their bounds. A fault of a controller affects only its association, in which `rfc9260` replaces it at once.

use std::num::NonZeroU64;
use std::time::Duration;

use super::CongestionControl;
use super::controller::{Ack, Controller, ControllerFactory, PathWindow, Situation, Sizes};
use super::delivery::Delivery;
use super::rfc9260::Rfc9260;
use super::window::{LARGEST, PathAck, Window};
use crate::names::NameInUse;
use crate::panics::{Made, attempt};
use crate::path::PathId;
use crate::time::Instant;

/// A controller that is dropped after its first fault.
struct Guarded {
    /// The controller and its name. Both are dropped when the controller fails, so that the name is no longer in use.
    supplied: Option<(Box<dyn Controller>, NameInUse)>,
    /// Name of a failed controller and the reason, until reported.
    failed: Option<(String, String)>,
    /// Views for the controller; kept so that no SACK causes an allocation.
    views: Vec<PathWindow>,
    /// Delivery of each path, and the pacing rate that the controller set for it.
    deliveries: Vec<Delivery>,
    pacing_rates: Vec<Option<NonZeroU64>>,
}

/// Makes a controller from `config`; a panic of the factory counts as a refusal.
pub(super) fn make(
    factory: &ControllerFactory,
    config: &str,
    name: NameInUse,
) -> Made<dyn CongestionControl> {
    let controller = attempt(|| factory(config)).and_then(|made| made)?;
    Ok(Box::new(Guarded {
        supplied: Some((controller, name)),
        failed: None,
        views: Vec::new(),
        deliveries: Vec::new(),
        pacing_rates: Vec::new(),
    }))
}

impl CongestionControl for Guarded {
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        if let Some(delivery) = self.deliveries.get_mut(path.index()) {
            *delivery = Delivery::default();
        }
        let view = window.view(path, None);
        self.ask(|controller| controller.on_path_added(&view));
        self.update_pacing_rate(path);
    }

    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        self.update_views(windows);
        for ack in acks {
            if self.supplied.is_some() {
                self.apply_ack(now, windows, ack);
            } else {
                Rfc9260.on_sack(now, windows, &[*ack]);
            }
        }
    }

    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        self.update_views(windows);
        match self.decide(now, path, |controller, situation| controller.on_timeout(situation)) {
            Some(sizes) => {
                let Some(window) = windows.get_mut(path.index()) else { return };
                window.set(sizes);
                window.recovery = None;
            }
            None => Rfc9260.on_timeout(now, windows, path),
        }
        self.update_pacing_rate(path);
    }

    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        self.update_views(windows);
        match self.decide(now, path, |controller, situation| controller.on_idle(situation)) {
            Some(sizes) => {
                if let Some(window) = windows.get_mut(path.index()) {
                    window.set(sizes);
                }
            }
            None => Rfc9260.on_idle(now, windows, path),
        }
        self.update_pacing_rate(path);
    }

    fn on_spurious(&mut self, now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        self.update_views(windows);
        let ask = |controller: &mut dyn Controller, situation: &Situation<'_>| {
            Some(controller.on_spurious(situation, before))
        };
        let restored = self.decide(now, path, ask);
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.restore(restored.unwrap_or(before));
        if let Some(sizes) = restored {
            window.set(sizes);
        }
        self.update_pacing_rate(path);
    }

    fn pacing_rate(&self, path: PathId) -> Option<NonZeroU64> {
        // `rfc9260`, which replaces a failed controller, sets no pacing rate.
        self.supplied.as_ref().and_then(|_| *self.pacing_rates.get(path.index())?)
    }

    fn pop_failure(&mut self) -> Option<(String, String)> {
        self.failed.take()
    }
}

impl Guarded {
    /// Updates the views of all windows.
    fn update_views(&mut self, windows: &[Window]) {
        self.views.clear();
        if self.supplied.is_some() {
            self.deliveries.resize_with(windows.len(), Delivery::default);
            let paths = windows.iter().zip(&self.deliveries).enumerate();
            let view = |(position, (window, delivery)): (usize, (&Window, &Delivery))| {
                window.view(PathId(position as u8), delivery.shortest())
            };
            self.views.extend(paths.map(view));
        }
    }

    /// Stores the pacing rate that the controller returns for the path on which it has just decided.
    fn update_pacing_rate(&mut self, path: PathId) {
        let rate = self.ask(|controller| controller.pacing_rate(path)).flatten();
        if self.pacing_rates.len() <= path.index() {
            self.pacing_rates.resize(path.index() + 1, None);
        }
        self.pacing_rates[path.index()] = rate;
    }

    /// Applies one path's part of a SACK, in the order of `recovery`: growth, then a loss.
    fn apply_ack(&mut self, now: Instant, windows: &mut [Window], ack: &PathAck) {
        let place = ack.path.index();
        let Some(window) = windows.get_mut(place) else { return };
        let Some(delivery) = self.deliveries.get_mut(place) else { return };
        delivery.on_sack(now, (ack.acked, ack.lost_bytes), ack.rtt, ack.flight_after == 0);
        let lost = if ack.acked > 0 { delivery.take_lost() } else { 0 };
        let rate = delivery.rate();
        self.refresh(window, ack.path);
        let summary = Ack {
            bytes: ack.acked,
            flight_before: ack.flight_before,
            flight_after: ack.flight_after,
            may_grow: window.growth_allowed(ack),
            fully_used: window.is_fully_used(ack),
            lost,
            rtt: ack.rtt,
            rate,
        };
        if ack.acked > 0 {
            let grown = self
                .decide(now, ack.path, |controller, situation| Some(controller.on_ack(situation, &summary)));
            let Some(sizes) = grown else {
                return Rfc9260.on_sack(now, windows, &[*ack]);
            };
            window.set(sizes);
        }
        let begins = window.recovery_begins(ack);
        self.refresh(window, ack.path);
        if begins {
            let cut = self
                .decide(now, ack.path, |controller, situation| Some(controller.on_loss(situation, &summary)));
            match cut {
                Some(sizes) => window.set(sizes),
                None => window.cut_to(window.halved()),
            }
            self.refresh(window, ack.path);
        }
        self.update_pacing_rate(ack.path);
    }

    /// Updates the view of a window that has changed.
    fn refresh(&mut self, window: &Window, path: PathId) {
        let shortest = self.deliveries.get(path.index()).and_then(Delivery::shortest);
        if let Some(view) = self.views.get_mut(path.index()) {
            *view = window.view(path, shortest);
        }
    }

    /// Returns the answer of `hook` for the path; `None` if there is none, or it is out of bounds.
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

    /// Returns the answer of `hook`; `None` if the controller panics, reports a failure, or has failed before.
    fn ask<T>(&mut self, hook: impl FnOnce(&mut dyn Controller) -> T) -> Option<T> {
        let (controller, _) = self.supplied.as_mut()?;
        match attempt(|| (hook(controller.as_mut()), controller.failure())) {
            Ok((answer, None)) => Some(answer),
            Ok((_, Some(reason))) | Err(reason) => {
                self.fail(reason);
                None
            }
        }
    }

    fn fail(&mut self, reason: String) {
        if let Some(name) = self.release() {
            self.failed = Some((name, reason));
        }
    }

    /// Drops the controller and releases its name, which is returned. A panic of its destructor is ignored.
    fn release(&mut self) -> Option<String> {
        let (controller, name) = self.supplied.take()?;
        let _ = attempt(|| drop(controller));
        Some(name.as_str().to_owned())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns the objection to an answer for `window`, if there is one. A window that is smaller than a packet, because
/// packets have become larger, may stay so.
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
    fn view(&self, path: PathId, min_rtt: Option<Duration>) -> PathWindow {
        PathWindow {
            path,
            min_rtt,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            packet: self.pmdcs,
            srtt: self.srtt,
            usable: self.usable,
            recovering: self.recovery.is_some(),
        }
    }

    /// Applies the decision of an application's controller.
    fn set(&mut self, sizes: Sizes) {
        self.cwnd = sizes.cwnd;
        self.ssthresh = sizes.ssthresh;
        // An application's controller does not use this count. If `rfc9260` takes over, it begins at 0.
        self.partial_bytes_acked = 0;
    }
}

#[cfg(test)]
mod tests;
