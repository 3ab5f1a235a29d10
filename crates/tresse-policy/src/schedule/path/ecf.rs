//! Earliest completion first (Lim et al., CoNEXT 2017): a slow path gets no data if waiting for the fast path
//! completes the backlog earlier.
//!
//! It optimises the time until a backlog is delivered, for messages and downloads over paths of different delay. The
//! decisions are those of `lowest_rtt` where the backlog does not tell whether waiting has an advantage:
//!
//! - while the send buffer limits the application, because the end of the backlog is not known;
//! - if streams are bound to paths, because the fast path may not carry what waits.

use std::time::Duration;

use super::{Decision, Offer, PathScheduler, PathView};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "ecf".
#[derive(Default)]
pub(super) struct Ecf {
    /// True if the last decision was to wait. A wait may then last longer than would be accepted to begin one.
    waiting: bool,
}

impl PathScheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        if offer.buffer_limited || offer.streams_bound {
            self.waiting = false;
            return offer.send_on_least(Offer::by_rtt);
        }
        if offer.open_ids().next().is_none() {
            return Decision::Wait;
        }
        let (Some(fast), Some(slow)) = (Offer::fastest(offer.paths().iter()), Offer::fastest(offer.open()))
        else {
            return Decision::Wait;
        };
        if slow.id != fast.id {
            let comparison = Comparison::of(fast, slow, offer.unsent);
            let worth_waiting = comparison.fast_finishes_first(self.waiting);
            if worth_waiting && comparison.slow_takes_longer() {
                self.waiting = true;
                return Decision::Wait;
            }
            self.waiting &= worth_waiting;
        }
        Decision::Send(slow.id)
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

/// Comparison of a fast path that is full with a slow path that is not, by the time that each takes for the backlog.
/// Times are in seconds, sizes in bytes.
struct Comparison {
    fast_rtt: f64,
    slow_rtt: f64,
    /// Possible error of the estimates.
    margin: f64,
    fast_window: f64,
    slow_window: f64,
    backlog: f64,
}

impl Comparison {
    fn of(fast: &PathView, slow: &PathView, unsent: usize) -> Self {
        let seconds = |rtt: Option<Duration>| rtt.unwrap_or_default().as_secs_f64();
        Comparison {
            fast_rtt: seconds(fast.srtt),
            slow_rtt: seconds(slow.srtt),
            margin: fast.rttvar.max(slow.rttvar).as_secs_f64(),
            fast_window: fast.cwnd as f64,
            slow_window: slow.cwnd as f64,
            backlog: unsent as f64,
        }
    }

    /// Returns whether the fast path sends the backlog, after the window in flight, within one round trip of the slow
    /// path.
    fn fast_finishes_first(&self, waiting: bool) -> bool {
        let patience = if waiting { 1.0 + PATIENCE } else { 1.0 };
        let windows = self.backlog.max(self.fast_window) / self.fast_window + 1.0;
        self.fast_rtt * windows < patience * (self.slow_rtt + self.margin)
    }

    /// Returns whether the slow path alone needs longer for the backlog than two round trips of the fast path.
    fn slow_takes_longer(&self) -> bool {
        let windows = self.backlog.max(self.slow_window) / self.slow_window;
        self.slow_rtt * windows >= 2.0 * self.fast_rtt + self.margin
    }
}

/// Part of the slow path's round trip by which a wait may exceed it once it has begun (beta in the paper).
const PATIENCE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::super::tests::{full, view, with_srtt};
    use super::*;

    fn pick(scheduler: &mut Ecf, paths: &[PathView], unsent: usize) -> Option<u8> {
        scheduler.decide(Instant::ZERO, &Offer::new(paths, unsent, 1 << 20)).path().map(|path| path.0)
    }

    #[test]
    fn a_short_backlog_waits_for_the_fast_path_and_a_long_one_does_not() {
        let paths = [full(with_srtt(0, 20)), with_srtt(1, 100)];
        // One window of the fast path and the one in flight take 40 ms: less than 100.
        assert_eq!(pick(&mut Ecf::default(), &paths, 1452), None);
        // Ten windows and the one in flight take 220 ms.
        assert_eq!(pick(&mut Ecf::default(), &paths, 145_200), Some(1));
    }

    #[test]
    fn data_of_an_application_that_the_buffer_limits_does_not_wait() {
        let paths = [full(with_srtt(0, 20)), with_srtt(1, 100)];
        let mut offer = Offer::new(&paths, 1452, 1 << 20);
        offer.buffer_limited = true;
        assert_eq!(Ecf::default().decide(Instant::ZERO, &offer), Decision::Send(PathId(1)));
    }

    #[test]
    fn data_that_the_fast_path_may_not_carry_does_not_wait_for_it() {
        let paths = [full(with_srtt(0, 20)), with_srtt(1, 100)];
        let mut offer = Offer::new(&paths, 1452, 1 << 20);
        offer.streams_bound = true;
        assert_eq!(Ecf::default().decide(Instant::ZERO, &offer), Decision::Send(PathId(1)));
    }

    #[test]
    fn paths_of_like_delay_are_both_used() {
        let paths = [full(with_srtt(0, 20)), with_srtt(1, 25)];
        assert_eq!(pick(&mut Ecf::default(), &paths, 1452), Some(1));
    }

    #[test]
    fn the_fast_path_is_used_while_it_has_room() {
        assert_eq!(pick(&mut Ecf::default(), &[with_srtt(0, 20), with_srtt(1, 100)], 1452), Some(0));
        assert_eq!(pick(&mut Ecf::default(), &[view(0), with_srtt(1, 100)], 1452), Some(1), "measured first");
    }

    #[test]
    fn a_wait_goes_on_a_little_longer_than_it_would_begin() {
        // Five windows and the one in flight take 120 ms: too long to begin to wait, not to go on.
        let paths = [full(with_srtt(0, 20)), with_srtt(1, 100)];
        let mut scheduler = Ecf::default();
        assert_eq!(pick(&mut scheduler, &paths, 5 * 14_520), Some(1));
        assert_eq!(pick(&mut scheduler, &paths, 1452), None);
        assert_eq!(pick(&mut scheduler, &paths, 5 * 14_520), None);
        assert_eq!(pick(&mut scheduler, &paths, 6 * 14_520), Some(1));
        assert_eq!(pick(&mut scheduler, &paths, 5 * 14_520), Some(1), "the wait is over");
    }
}
