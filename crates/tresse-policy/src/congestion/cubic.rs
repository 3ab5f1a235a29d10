//! CUBIC (RFC 9438) on each path by itself: growth by time since the last loss, not by round trips.
//!
//! Optimises the use of fast, long paths, where a packet per round trip takes minutes to fill them;
//! where that is not the question it grows as RFC 9260 would. For bulk transfer over paths that are
//! not shared among themselves. Loses where they are: n paths take n flows' share. It keeps queues
//! fuller than `rfc9260`, which costs delay.
//!
//! Windows and times are those of the RFC: packets and seconds, as f64. Cuts start from cwnd, which
//! §4.6 allows as no window grows that is not fully used. HyStart++ (§4.10) is not there.

use super::CongestionControl;
use super::controller::Sizes;
use super::steps::Earned;
use super::window::{LARGEST, PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "cubic".
#[derive(Default)]
pub(super) struct Cubic {
    /// Made when the first path leaves slow start: an association at rest has none.
    curves: Option<Box<Curves>>,
}

/// Curves of CUBIC by path, as far as a path has left slow start.
#[derive(Default)]
struct Curves(Vec<Curve>);

/// State of CUBIC for one path.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Curve {
    /// W_max, where the curve is flat; 0 to begin the next stage there.
    plateau: f64,
    /// cwnd_prior: the window before the last cut.
    prior: f64,
    /// The current stage of congestion avoidance.
    stage: Option<Stage>,
    /// Plateau, prior and stage before the last cut.
    before: Option<(f64, f64, Option<Stage>)>,
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

impl CongestionControl for Cubic {
    fn on_path_added(&mut self, _windows: &mut [Window], path: PathId) {
        // To ask for what is not there yet, as something to change, would make it.
        if let Some(curve) = self.known_curve(path) {
            *curve = Curve::default();
        }
    }

    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        for ack in acks {
            let Some(window) = windows.get_mut(ack.path.index()) else { continue };
            if window.cwnd <= window.ssthresh {
                if let Earned::SlowStart(bytes) = window.earned(ack) {
                    window.grow(bytes);
                }
            } else if window.growth_allowed(ack) {
                self.curve(ack.path).on_ack(now, window, ack);
            }
            if window.recovery_begins(ack) {
                window.cut_to(self.curve(ack.path).on_loss(window));
            }
        }
    }

    fn on_timeout(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        let curve = self.curve(path);
        // Of a series of timeouts the first one found the window as it was.
        let first = if window.one_packet { curve.before } else { None };
        window.time_out(curve.on_loss(window));
        curve.before = first.or(curve.before);
        // The next stage begins on the plateau (§4.8).
        curve.plateau = 0.0;
    }

    fn on_spurious(&mut self, _now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        let larger = window.cwnd >= before.cwnd;
        window.restore(before);
        // Where the window has outgrown what it was, it goes on from there (§4.9.2).
        if let Some(curve) = self.known_curve(path)
            && let Some((plateau, prior, stage)) = curve.before.take()
            && !larger
        {
            *curve = Curve { plateau, prior, stage, before: None };
        }
    }

    fn on_idle(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        if let Some(curve) = self.known_curve(path) {
            // Idle time is no time (§4.2): a new stage begins when data flows again.
            curve.stage = None;
        }
        if let Some(window) = windows.get_mut(path.index()) {
            window.decay();
        }
    }
}

impl Cubic {
    fn known_curve(&mut self, path: PathId) -> Option<&mut Curve> {
        self.curves.as_mut()?.0.get_mut(path.index())
    }

    fn curve(&mut self, path: PathId) -> &mut Curve {
        let (place, curves) = (path.index(), &mut self.curves.get_or_insert_default().0);
        if curves.len() <= place {
            curves.resize(place + 1, Curve::default());
        }
        &mut curves[place]
    }
}

impl Curve {
    /// Data was acknowledged in congestion avoidance (§4.2 to §4.5).
    fn on_ack(&mut self, now: Instant, window: &mut Window, ack: &PathAck) {
        let packet = window.pmdcs as f64;
        let cwnd = window.cwnd as f64 / packet;
        if self.stage.is_none() {
            self.stage = Some(self.begin(now, cwnd));
        }
        // Changed where it is: it is too large to be taken out and put back for each SACK.
        let Curve { plateau, prior, stage: Some(stage), .. } = self else { return };
        let rtt = window.srtt.unwrap_or_default();
        let fully_used = window.is_fully_used(ack);
        if fully_used {
            stage.used = now;
        }
        if now.since(stage.used) > rtt {
            // The sender did not use the window for a round trip: that time does not count (§4.2).
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

    /// The new threshold, in bytes; where the plateau will be (§4.6, §4.7).
    fn on_loss(&mut self, window: &Window) -> usize {
        let cwnd = window.cwnd as f64 / window.pmdcs as f64;
        self.before = Some((self.plateau, self.prior, self.stage));
        // Below the last plateau: someone else came, and gets room sooner (fast convergence).
        self.plateau = if cwnd < self.plateau { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.stage = None;
        ((window.cwnd as f64 * BETA) as usize).max(window.floor())
    }
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
