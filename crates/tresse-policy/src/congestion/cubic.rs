//! CUBIC (RFC 9438): windows grow by the time since the last loss, not by round trips.
//!
//! "cubic" treats each path separately. "coupled_cubic" treats paths that share a bottleneck as one flow, whose window
//! is the sum of theirs. A SACK makes the window of the acknowledged path grow. After a loss the window of the path
//! that lost data is reduced first, at most once in a round trip. If all windows were reduced together, their queues
//! would drain together, and paths that were once found to share a bottleneck would always seem to share it.
//!
//! It suits bulk transfer over disjoint paths with a large BDP, where growth by a packet per round trip takes minutes
//! to fill the path; on other paths it grows as RFC 9260 does. If paths share a bottleneck and are not coupled, it is
//! unfair: n paths take the share of n flows. It keeps queues fuller than `rfc9260`, which costs delay.
//!
//! Windows and times have the units of the RFC: packets and seconds, as f64. Reductions start from cwnd. §4.6 allows
//! this because only a fully used window grows. HyStart++ ends the first slow start of each path (§4.10).

use super::CongestionControl;
use super::bottleneck::Bottlenecks;
use super::controller::Sizes;
use super::hystart::HyStart;
use super::steps::Earned;
use super::window::{LARGEST, PathAck, Window};
use crate::path::{PathId, path_entry};
use crate::time::Instant;

/// The controllers "cubic" and, if paths that share a bottleneck are to be one flow, "coupled_cubic".
#[derive(Default)]
pub(super) struct Cubic<const COUPLED: bool> {
    /// Created when the first window grows, or the round trips of two paths are compared: an idle association has none.
    curves: Option<Box<Curves>>,
}

/// State of CUBIC by path, for paths whose windows have grown.
#[derive(Default)]
struct Curves {
    by_path: Vec<Curve>,
    /// The first slow start of each path.
    starts: Vec<HyStart>,
    /// `None` until the round trips of two paths are compared.
    bottlenecks: Option<Box<Bottlenecks>>,
}

/// State of CUBIC for one path.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Curve {
    /// W_max, at which the curve is flat; 0 if the next stage is to begin at its W_max.
    plateau: f64,
    /// cwnd_prior: the window before the last reduction.
    prior: f64,
    /// The current stage of congestion avoidance.
    stage: Option<Stage>,
    /// The state before the last reduction, until the reduction is undone.
    before: Option<CutUndo>,
    /// Time of the last reduction of a flow of several paths.
    cut: Option<Instant>,
}

/// State before a reduction, apart from the window of the path with the loss.
#[derive(Copy, Clone, PartialEq, Debug)]
struct CutUndo {
    /// The path with the loss.
    path: PathId,
    /// Fields of the curve.
    plateau: f64,
    prior: f64,
    stage: Option<Stage>,
    /// Bytes by which other windows of the flow were reduced.
    others: usize,
}

/// Windows that grow and shrink as one: a path, or all paths that share a bottleneck.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Flow {
    /// The first of its paths. The flow uses the curve of this path.
    first: PathId,
    /// The sum of their windows, in bytes.
    cwnd: usize,
    /// Number of these paths.
    paths: usize,
}

/// One stage of congestion avoidance, from its first growth on.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Stage {
    /// t_epoch, postponed by the time in which the window was not fully used.
    start: Instant,
    /// Time at which the window was last fully used.
    used: Instant,
    /// Time of the last SACK that acknowledged data.
    last_ack: Instant,
    /// K: seconds from the start to the plateau.
    to_plateau: f64,
    /// W_est: the window that RFC 5681 would have.
    reno: f64,
    /// Growth below one byte, added to the next growth.
    fraction: f64,
}

impl<const COUPLED: bool> CongestionControl for Cubic<COUPLED> {
    fn on_path_added(&mut self, _windows: &mut [Window], path: PathId) {
        // `curve` and `start` would create an entry that does not exist yet.
        if let Some(curve) = self.known_curve(path) {
            *curve = Curve::default();
        }
        if let Some(start) = self.known_start(path) {
            *start = HyStart::default();
        }
        if let Some(bottlenecks) = self.bottlenecks_mut() {
            bottlenecks.forget(path);
        }
    }

    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        if COUPLED && windows.len() > 1 {
            self.compare(now, windows, acks);
        }
        for ack in acks {
            let flow = self.flow(windows, ack.path);
            let Some(window) = windows.get_mut(ack.path.index()) else { continue };
            if window.cwnd <= window.ssthresh {
                let (start, limits) = (self.known_start(ack.path), window.is_fully_used(ack));
                let ends =
                    start.zip(ack.rtt).is_some_and(|(start, rtt)| start.on_round_trip(now, rtt, limits));
                if ends {
                    window.ssthresh = window.cwnd;
                } else if let Earned::SlowStart(bytes) = window.earned(ack) {
                    window.grow(self.start(ack.path).growth(bytes));
                }
            } else if window.growth_allowed(ack) {
                self.curve(flow.first).on_ack(now, window, flow.cwnd, ack);
            }
            if window.recovery_begins(ack) {
                // The reduction starts from the window as it has just grown.
                let flow = self.flow(windows, ack.path);
                self.start(ack.path).end();
                let due = self.curve(flow.first).on_loss(now, &windows[ack.path.index()], ack.path, flow);
                self.cut(windows, ack.path, flow, due);
            }
        }
    }

    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        let flow = self.flow(windows, path);
        let Some(window) = windows.get_mut(path.index()) else { return };
        self.start(path).end();
        let curve = self.curve(flow.first);
        // In a series of timeouts, only the first one found the window before its reduction.
        let first = if window.one_packet { curve.before } else { None };
        let due = curve.on_loss(now, window, path, flow);
        window.time_out(flow.left_of(window, due));
        curve.before = first.or(curve.before);
        // The next stage begins at its W_max (§4.8).
        curve.plateau = 0.0;
    }

    fn on_spurious(&mut self, _now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        let larger = window.cwnd >= before.cwnd;
        window.restore(before);
        let first = self.bottlenecks().map_or(path, |found| found.flow(path));
        let cut = self.known_curve(first).and_then(|curve| curve.before.take_if(|cut| cut.path == path));
        let Some(CutUndo { plateau, prior, stage, others, .. }) = cut.filter(|_| !larger) else {
            // A window that is as large as before the reduction, or larger, continues from its present size (§4.9.2).
            return;
        };
        if let Some(curve) = self.known_curve(first) {
            *curve = Curve { plateau, prior, stage, before: None, cut: None };
        }
        if others > 0
            && let Some(payer) = self.largest_companion(windows, path, first, |_| true)
        {
            let window = &mut windows[payer.index()];
            window.cwnd = (window.cwnd + others).min(LARGEST);
            window.ssthresh = window.ssthresh.max(window.cwnd);
        }
    }

    fn on_idle(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        if let Some(curve) = self.known_curve(path) {
            // Idle time does not count (§4.2): a new stage begins when data is sent again.
            curve.stage = None;
        }
        if let Some(start) = self.known_start(path) {
            start.pause();
        }
        if let Some(window) = windows.get_mut(path.index()) {
            window.decay();
        }
    }

    fn shares_with(&self, path: PathId) -> Option<PathId> {
        self.bottlenecks()?.shares_with(path)
    }
}

impl<const COUPLED: bool> Cubic<COUPLED> {
    fn bottlenecks(&self) -> Option<&Bottlenecks> {
        self.curves.as_ref()?.bottlenecks.as_deref()
    }

    fn bottlenecks_mut(&mut self) -> Option<&mut Bottlenecks> {
        self.curves.as_mut()?.bottlenecks.as_deref_mut()
    }

    /// Updates the detection of shared bottlenecks. Paths whose flow changes keep their windows and begin new curves.
    fn compare(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        let Curves { starts, bottlenecks, .. } = &mut **self.curves.get_or_insert_default();
        let bottlenecks = bottlenecks.get_or_insert_default();
        for ack in acks {
            // If a buffer is the limit, it stops all paths at once, and their queues drain together. In the first slow start, the windows
            // of paths that start together double at the same times, and their queues with them. So these round trips do not count.
            let counts = starts.get(ack.path.index()).is_some_and(HyStart::is_over)
                && windows.get(ack.path.index()).is_some_and(|window| window.is_fully_used(ack));
            if let Some(rtt) = ack.rtt.filter(|_| counts) {
                bottlenecks.on_round_trip(now, ack.path, rtt);
            }
        }
        while let Some(change) = self.bottlenecks_mut().and_then(Bottlenecks::pop_change) {
            *self.curve(change.from) = Curve::default();
            *self.curve(change.to) = Curve::default();
        }
    }

    /// Reduces a flow by `due` bytes after a loss on `path`: the window of this path first, then the largest of the others.
    fn cut(&mut self, windows: &mut [Window], path: PathId, flow: Flow, due: usize) {
        let window = &mut windows[path.index()];
        let (whole, left) = (window.cwnd, flow.left_of(window, due));
        window.cut_to(left);
        let due = due.saturating_sub(whole.saturating_sub(left));
        let mut rest = due;
        while rest > 0
            && let Some(payer) = self.largest_companion(windows, path, flow.first, |window| {
                flow.left_of(window, rest) < window.cwnd
            })
        {
            let window = &mut windows[payer.index()];
            let left = flow.left_of(window, rest);
            rest = rest.saturating_sub(window.cwnd - left);
            window.cwnd = left;
            window.ssthresh = window.ssthresh.min(left);
        }
        if rest < due
            && let Some(before) = &mut self.curve(flow.first).before
        {
            before.others = due - rest;
        }
    }

    /// Returns the path with the largest of the other windows of a flow that are `eligible`.
    fn largest_companion(
        &self,
        windows: &[Window],
        path: PathId,
        first: PathId,
        eligible: impl Fn(&Window) -> bool,
    ) -> Option<PathId> {
        let bottlenecks = self.bottlenecks()?;
        paths(windows)
            .zip(windows)
            .filter(|(other, window)| {
                *other != path && window.usable && bottlenecks.flow(*other) == first && eligible(window)
            })
            .max_by_key(|(_, window)| window.cwnd)
            .map(|(other, _)| other)
    }

    /// Returns the flow of a path.
    fn flow(&self, windows: &[Window], path: PathId) -> Flow {
        let alone = windows.get(path.index()).map_or(0, |window| window.cwnd);
        let Some(bottlenecks) = self.bottlenecks() else {
            return Flow { first: path, cwnd: alone, paths: 1 };
        };
        let first = bottlenecks.flow(path);
        let others = paths(windows)
            .zip(windows)
            .filter(|(other, window)| *other != path && window.usable && bottlenecks.flow(*other) == first);
        others.fold(Flow { first, cwnd: alone, paths: 1 }, |flow, (_, window)| Flow {
            cwnd: flow.cwnd + window.cwnd,
            paths: flow.paths + 1,
            ..flow
        })
    }

    fn known_curve(&mut self, path: PathId) -> Option<&mut Curve> {
        self.curves.as_mut()?.by_path.get_mut(path.index())
    }

    fn known_start(&mut self, path: PathId) -> Option<&mut HyStart> {
        self.curves.as_mut()?.starts.get_mut(path.index())
    }

    fn curve(&mut self, path: PathId) -> &mut Curve {
        path_entry(&mut self.curves.get_or_insert_default().by_path, path)
    }

    fn start(&mut self, path: PathId) -> &mut HyStart {
        path_entry(&mut self.curves.get_or_insert_default().starts, path)
    }
}

impl Curve {
    /// Data was acknowledged in congestion avoidance (§4.2 to §4.5).
    fn on_ack(&mut self, now: Instant, window: &mut Window, total: usize, ack: &PathAck) {
        let packet = window.pmdcs as f64;
        let cwnd = total as f64 / packet;
        if self.stage.is_none() {
            self.stage = Some(self.begin(now, cwnd));
        }
        // The stage is changed in place: it is too large to be taken out and put back for each SACK.
        let Curve { plateau, prior, stage: Some(stage), .. } = self else { return };
        let rtt = window.srtt.unwrap_or_default();
        let fully_used = window.is_fully_used(ack);
        // True if the sender did not use the window for a round trip. A window that is full when a SACK arrives was
        // filled a round trip before.
        let paused = if fully_used {
            window.srtt.is_some() && now.since(stage.last_ack) / 2 > rtt
        } else {
            now.since(stage.used) > rtt
        };
        if fully_used {
            stage.used = now;
        }
        if paused {
            // That time does not count (§4.2, §5.8).
            stage.start += now.since(stage.last_ack);
        } else {
            let acked = ack.acked as f64 / packet;
            let alpha = if stage.reno < *prior { FRIENDLY_ALPHA } else { 1.0 };
            stage.reno = (stage.reno + alpha * acked / cwnd).min(LARGEST as f64);

            // W_est grows without full use, too. The window follows once it is fully used again (RFC 9260 §7.2.2).
            if fully_used {
                let elapsed = now.since(stage.start).as_secs_f64();
                let target = if stage.at(elapsed, *plateau) < stage.reno {
                    stage.reno.max(cwnd)
                } else {
                    let ahead = stage.at(elapsed + rtt.as_secs_f64(), *plateau);
                    cwnd + (ahead.clamp(cwnd, MOST_GROWTH * cwnd) - cwnd) / cwnd * acked
                };
                let bytes = (target - cwnd) * packet + stage.fraction;
                let whole = bytes as usize;
                stage.fraction = bytes - whole as f64;
                window.grow(whole);
            }
        }
        stage.last_ack = now;
    }

    /// Begins a stage at a window of `cwnd` packets.
    fn begin(&mut self, now: Instant, cwnd: f64) -> Stage {
        if self.plateau <= cwnd {
            // No loss occurred below this window: growth continues from here (§4.8, §4.10).
            self.plateau = cwnd;
            self.prior = cwnd;
        }
        let to_plateau = ((self.plateau - cwnd) / C).cbrt();
        Stage { start: now, used: now, last_ack: now, to_plateau, reno: cwnd, fraction: 0.0 }
    }

    /// Sets the plateau after a loss, and returns the bytes by which the flow is to be reduced (§4.6, §4.7). A flow of
    /// several paths is reduced at most once in a round trip.
    fn on_loss(&mut self, now: Instant, window: &Window, path: PathId, flow: Flow) -> usize {
        let rtt = window.srtt.unwrap_or_default();
        if flow.paths > 1 {
            if self.cut.is_some_and(|cut| now.since(cut) < rtt) {
                return 0;
            }
            self.cut = Some(now);
        }
        let cwnd = flow.cwnd as f64 / window.pmdcs as f64;
        let Curve { plateau, prior, stage, .. } = *self;
        self.before = Some(CutUndo { path, plateau, prior, stage, others: 0 });
        // Below the last plateau, another flow has taken capacity. A lower plateau leaves it room sooner (fast convergence, §4.7).
        self.plateau = if cwnd < self.plateau { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.stage = None;
        flow.cwnd - ((flow.cwnd as f64 * BETA) as usize).max(window.floor()).min(flow.cwnd)
    }
}

impl Flow {
    /// Returns the rest of a window of the flow after a reduction by up to `due` bytes: at least its part of the floor, and one packet.
    fn left_of(&self, window: &Window, due: usize) -> usize {
        let left = window.cwnd.saturating_sub(due).max((window.floor() / self.paths).max(window.pmdcs));
        // A flow of one path has the whole floor. In a flow of several paths, a loss must not make a window larger.
        if self.paths > 1 { left.min(window.cwnd) } else { left }
    }
}

/// The numbers of the paths.
fn paths(windows: &[Window]) -> impl Iterator<Item = PathId> + use<> {
    (0..windows.len()).map(|place| PathId(place as u8))
}

impl Stage {
    /// Returns W_cubic in packets, `seconds` after the start of the stage.
    fn at(&self, seconds: f64, plateau: f64) -> f64 {
        let from_plateau = seconds - self.to_plateau;
        C * from_plateau * from_plateau * from_plateau + plateau
    }
}

/// Packets per cubed second (§5.1).
const C: f64 = 0.4;
/// Part of a window that remains after a reduction (§4.6).
const BETA: f64 = 0.7;
/// Packets per round trip with which a reduction by `BETA` gives the average window of Reno (§4.3).
const FRIENDLY_ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The target is at most this times the window (§4.2).
const MOST_GROWTH: f64 = 1.5;

#[cfg(test)]
mod tests;
