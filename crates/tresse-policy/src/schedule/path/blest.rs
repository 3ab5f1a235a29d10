//! Blocking estimation (Ferlin et al., IFIP Networking 2016): a slow path gets no data that would use up the part
//! of the peer's window that the fast path needs.
//!
//! It optimises throughput with a small receive buffer and different delays. It costs throughput if its estimate of the data that the
//! fast path could send is too high: then the slow path is idle although the peer's window had room for both.

use std::time::Duration;

use super::{Decision, Offer, PathScheduler, PathView};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "blest".
pub(super) struct Blest {
    /// Factor on the bytes that the fast path is expected to send (lambda in the paper).
    caution: f64,
    /// Time at which the factor was last changed.
    changed: Instant,
    /// True if the peer's window has kept the fast path from sending since then.
    blocked: bool,
}

impl Default for Blest {
    fn default() -> Self {
        Blest { caution: START, changed: Instant::ZERO, blocked: false }
    }
}

impl PathScheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision {
        let Some(fast) = Offer::fastest(offer.paths().iter()) else { return Decision::Wait };
        // The fast path has room in its own window, but may not send: data of slow paths fills the peer's window.
        self.blocked |= fast.room > 0 && !fast.open;
        let Some(slow) = Offer::fastest(offer.open()) else { return Decision::Wait };
        if slow.id == fast.id {
            return Decision::Send(fast.id);
        }
        self.adapt(now, slow.rtt_range.0);
        let left = offer.peer_window.saturating_sub(slow.flight + slow.mtu);
        Decision::send((self.caution * sendable(fast, slow) <= left as f64).then_some(slow))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

impl Blest {
    /// Changes the factor at most once in a round trip of the slow path: up if the fast path was blocked, else down.
    fn adapt(&mut self, now: Instant, rtt: Duration) {
        if now - self.changed >= rtt.max(Duration::from_millis(1)) {
            let step = if self.blocked { STEP_UP } else { -STEP_DOWN };
            self.caution = (self.caution + step).clamp(LEAST, MOST);
            self.changed = now;
            self.blocked = false;
        }
    }
}

/// Returns the bytes that the fast path could send while one packet is in flight on the slow path.
fn sendable(fast: &PathView, slow: &PathView) -> f64 {
    let seconds = |time: Duration| time.as_secs_f64();
    let (shortest, longest) = slow.rtt_range;
    let packet = slow.mtu.max(1);
    // The fuller the slow path's window, the closer its delay is to the longest one measured.
    let filled = ((slow.flight + packet) as f64 / slow.cwnd.max(1) as f64).min(1.0);
    let expected = seconds(shortest) + (seconds(longest) - seconds(shortest)) * filled;
    let linger = expected.max(seconds(slow.srtt.unwrap_or_default()));
    let fast_rtt = (seconds(fast.rtt_range.0) + seconds(fast.rtt_range.1)) / 2.0;
    if fast_rtt <= 0.0 {
        return 0.0;
    }
    let rounds = (linger / fast_rtt).floor() + 1.0;
    let window = fast.cwnd as f64;
    if fast.cwnd < fast.ssthresh {
        window * (rounds.min(MOST_DOUBLINGS).exp2() - 1.0)
    } else {
        // In congestion avoidance the window grows by a packet in each round.
        (window + (rounds - 1.0) / 2.0 * fast.mtu as f64) * rounds
    }
}

/// Initial value of the factor, its bounds, and its steps.
const START: f64 = 1.2;
const LEAST: f64 = 1.0;
const MOST: f64 = 1.3;
const STEP_UP: f64 = 0.04;
const STEP_DOWN: f64 = 0.01;
/// Upper bound of the exponent: slow start ends before the window has doubled so often.
const MOST_DOUBLINGS: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::super::tests::{full, with_srtt};
    use super::*;

    /// The path in congestion avoidance.
    fn steady(path: PathView) -> PathView {
        PathView { ssthresh: path.cwnd, ..path }
    }

    fn pick(scheduler: &mut Blest, at: u64, paths: &[PathView], peer_window: usize) -> Option<u8> {
        let now = Instant::ZERO + Duration::from_millis(at);
        scheduler.decide(now, &Offer::new(paths, 1 << 20, peer_window)).path().map(|path| path.0)
    }

    #[test]
    fn what_the_fast_path_could_send_meanwhile_follows_the_worked_example() {
        // 100 ms hold five round trips of 20 ms and the one begun: six windows that grow by a packet each.
        let (fast, slow) = (steady(with_srtt(0, 20)), steady(with_srtt(1, 100)));
        assert_eq!(sendable(&fast, &slow), (14_520.0 + 2.5 * 1500.0) * 6.0);
        // In slow start they double.
        assert_eq!(sendable(&with_srtt(0, 20), &slow), 14_520.0 * 63.0);
    }

    #[test]
    fn the_slow_path_is_used_only_with_window_to_spare() {
        let paths = [full(steady(with_srtt(0, 20))), steady(with_srtt(1, 100))];
        // 1.19 x 109,620 bytes for the fast path, and the packet itself.
        assert_eq!(pick(&mut Blest::default(), 1000, &paths, 135_000), Some(1));
        assert_eq!(pick(&mut Blest::default(), 1000, &paths, 125_000), None);
        assert_eq!(pick(&mut Blest::default(), 1000, &[paths[1].clone()], 1452), Some(1), "the only one");
    }

    #[test]
    fn caution_grows_when_the_fast_path_was_blocked_and_fades_else() {
        let paths = [full(steady(with_srtt(0, 20))), steady(with_srtt(1, 100))];
        let shut = PathView { open: false, ..steady(with_srtt(0, 20)) };
        let mut scheduler = Blest::default();
        let caution = |scheduler: &Blest| (scheduler.caution * 100.0).round() as u32;
        for (at, expected) in [(1000, 119), (1050, 119), (1100, 118)] {
            pick(&mut scheduler, at, &paths, 1 << 20);
            assert_eq!(caution(&scheduler), expected, "at {at} ms");
        }
        pick(&mut scheduler, 1150, &[shut], 0);
        pick(&mut scheduler, 1200, &paths, 1 << 20);
        assert_eq!(caution(&scheduler), 122);
        for at in 13..40 {
            pick(&mut scheduler, at * 100, &paths, 1 << 20);
        }
        assert_eq!(caution(&scheduler), 100, "never below what is expected");
    }
}
