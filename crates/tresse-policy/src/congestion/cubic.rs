//! CUBIC (RFC 9438): windows grow by the time since the last loss, not by round trips.
//!
//! "cubic" does so on each path separately. "coupled_cubic" treats paths that share a bottleneck as one flow, whose
//! window is the sum of theirs. The window of the path that is acknowledged grows. After a loss the window of the path
//! that lost data is reduced first, at most once in a round trip. If all windows were reduced together, their queues
//! would drain together, and paths that were once found to share a bottleneck would always seem to.
//!
//! Optimises the use of fast, long paths, where a packet per round trip takes minutes to fill them; on other paths it
//! grows as RFC 9260 does. For bulk transfer over paths that are not shared among themselves. It is unfair where they
//! are and it does not couple them: n paths take the share of n flows. It keeps queues fuller than `rfc9260`, which
//! costs delay.
//!
//! Windows and times are those of the RFC: packets and seconds, as f64. Cuts start from cwnd, which
//! §4.6 allows as no window grows that is not fully used. The first slow start ends by HyStart++ (§4.10), for each path by itself.

use super::CongestionControl;
use super::bottleneck::Bottlenecks;
use super::controller::Sizes;
use super::hystart::HyStart;
use super::steps::Earned;
use super::window::{LARGEST, PathAck, Window};
use crate::path::{PathId, path_entry};
use crate::time::Instant;

/// The controllers "cubic" and, if it is to make one flow of paths that share a bottleneck, "coupled_cubic".
#[derive(Default)]
pub(super) struct Cubic<const COUPLED: bool> {
    /// Made when the first window grows, or the round trips of two paths are compared: an association at rest has none.
    curves: Option<Box<Curves>>,
}

/// Curves of CUBIC by path, as far as a window has grown.
#[derive(Default)]
struct Curves {
    by_path: Vec<Curve>,
    /// First slow starts by path, likewise.
    starts: Vec<HyStart>,
    /// There once the round trips of two paths have been compared.
    bottlenecks: Option<Box<Bottlenecks>>,
}

/// State of CUBIC for one path.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Curve {
    /// W_max, where the curve is flat; 0 to begin the next stage there.
    plateau: f64,
    /// cwnd_prior: the window before the last cut.
    prior: f64,
    /// The current stage of congestion avoidance.
    stage: Option<Stage>,
    /// There until the last cut is undone.
    before: Option<CutUndo>,
    /// Time of the last cut, of several paths.
    cut: Option<Instant>,
}

/// Changes by a cut, besides that of the window of the path with the loss.
#[derive(Copy, Clone, PartialEq, Debug)]
struct CutUndo {
    /// The path with the loss.
    path: PathId,
    /// Of the curve.
    plateau: f64,
    prior: f64,
    stage: Option<Stage>,
    /// Bytes by which other windows of the flow were reduced.
    others: usize,
}

/// Windows that grow and shrink as one: a path, or all paths that share a bottleneck.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Flow {
    /// The first of its paths, whose curve it has.
    first: PathId,
    /// The sum of their windows, in bytes.
    cwnd: usize,
    /// Number of these paths.
    paths: usize,
}

/// One stage of congestion avoidance, from its first growth on.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Stage {
    /// t_epoch, moved on by the time in which the window was not fully used.
    start: Instant,
    /// Time at which the window was last fully used.
    used: Instant,
    /// The last SACK that acknowledged data.
    last_ack: Instant,
    /// K: seconds from the start to the plateau.
    to_plateau: f64,
    /// W_est: the window that RFC 5681 would have.
    reno: f64,
    /// Growth below one byte, carried along.
    fraction: f64,
}

impl<const COUPLED: bool> CongestionControl for Cubic<COUPLED> {
    fn on_path_added(&mut self, _windows: &mut [Window], path: PathId) {
        // To ask for what is not there yet, as something to change, would make it.
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
                // What is cut is the window as it has just grown.
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
        // Of a series of timeouts the first one found the window as it was.
        let first = if window.one_packet { curve.before } else { None };
        let due = curve.on_loss(now, window, path, flow);
        window.time_out(flow.left_of(window, due));
        curve.before = first.or(curve.before);
        // The next stage begins on the plateau (§4.8).
        curve.plateau = 0.0;
    }

    fn on_spurious(&mut self, _now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        let larger = window.cwnd >= before.cwnd;
        window.restore(before);
        let first = self.bottlenecks().map_or(path, |found| found.flow(path));
        let cut = self.known_curve(first).and_then(|curve| curve.before.take_if(|cut| cut.path == path));
        let Some(CutUndo { plateau, prior, stage, others, .. }) = cut.filter(|_| !larger) else {
            // Where the window has outgrown what it was, it goes on from there (§4.9.2).
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
            // Idle time is no time (§4.2): a new stage begins when data flows again.
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

    /// Learns from round trips. Flows that are joined or separated go on with the windows that they have.
    fn compare(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        let Curves { starts, bottlenecks, .. } = &mut **self.curves.get_or_insert_default();
        let bottlenecks = bottlenecks.get_or_insert_default();
        for ack in acks {
            // Where a buffer is what limits, it stops all paths at once, and their queues drain together. In the first slow start
            // the windows of paths that start together double at the same times, and their queues with them.
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

    /// A flow pays for a loss on `path`: this path what it can, and the largest of the others what is still due.
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

    /// The path with the largest of the other windows of a flow that are `eligible`.
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

    /// The flow that a path is part of.
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
        // Changed where it is: it is too large to be taken out and put back for each SACK.
        let Curve { plateau, prior, stage: Some(stage), .. } = self else { return };
        let rtt = window.srtt.unwrap_or_default();
        let fully_used = window.is_fully_used(ack);
        // The sender did not use the window for a round trip. One that is full when a SACK arrives was filled a round trip
        // before.
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

            // What is not used now is earned all the same: the window follows once it is full again (RFC 9260 §7.2.2).
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

    /// A stage begins at a window of `cwnd` packets.
    fn begin(&mut self, now: Instant, cwnd: f64) -> Stage {
        if self.plateau <= cwnd {
            // Nothing lost below this window: on from here (§4.8, §4.10).
            self.plateau = cwnd;
            self.prior = cwnd;
        }
        let to_plateau = ((self.plateau - cwnd) / C).cbrt();
        Stage { start: now, used: now, last_ack: now, to_plateau, reno: cwnd, fraction: 0.0 }
    }

    /// Bytes that the flow is to lose, and where the plateau will be (§4.6, §4.7). Several paths lose once in a round trip, whichever
    /// of them lost something.
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
        // Below the last plateau: someone else came, and gets room sooner (fast convergence).
        self.plateau = if cwnd < self.plateau { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.stage = None;
        flow.cwnd - ((flow.cwnd as f64 * BETA) as usize).max(window.floor()).min(flow.cwnd)
    }
}

impl Flow {
    /// The rest of one of its windows that pays as much as it can of what is `due`: its part of the floor at least, and a packet.
    fn left_of(&self, window: &Window, due: usize) -> usize {
        let left = window.cwnd.saturating_sub(due).max((window.floor() / self.paths).max(window.pmdcs));
        // One window is the whole flow, and has the floor; of several none gains by a loss.
        if self.paths > 1 { left.min(window.cwnd) } else { left }
    }
}

/// The numbers of the paths.
fn paths(windows: &[Window]) -> impl Iterator<Item = PathId> + use<> {
    (0..windows.len()).map(|place| PathId(place as u8))
}

impl Stage {
    /// W_cubic, `seconds` after the start of the stage.
    fn at(&self, seconds: f64, plateau: f64) -> f64 {
        let from_plateau = seconds - self.to_plateau;
        C * from_plateau * from_plateau * from_plateau + plateau
    }
}

/// Packets per cubed second (§5.1).
const C: f64 = 0.4;
/// Part of a window that a cut leaves (§4.6).
const BETA: f64 = 0.7;
/// Packets per round trip at which a cut by `BETA` averages what Reno does (§4.3).
const FRIENDLY_ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The target is at most this times the window (§4.2).
const MOST_GROWTH: f64 = 1.5;

#[cfg(test)]
mod tests;
