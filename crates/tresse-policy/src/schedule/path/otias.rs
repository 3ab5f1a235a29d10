//! Out-of-order transmission for in-order arrival (Yang, Wang and Amer, WAINA 2014): the next data is queued on the path
//! on which it would arrive first, even if that path's window is full.
//!
//! It optimises order at the peer, and so delay and receive buffer, over paths of different delay. Data that waits a
//! round trip for a fast path still arrives before data that leaves at once on a slow path, and the slow path takes
//! later data meanwhile. It costs delay if delays or windows change: queued data stays on its path, and all later data
//! waits for it at the peer.

use std::time::Duration;

use super::{Decision, Offer, PathScheduler, PathView};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "otias".
pub(super) struct Otias;

impl PathScheduler for Otias {
    fn name(&self) -> &'static str {
        "otias"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        Decision::send_or_assign(offer.available().min_by_key(|path| (arrival(path), !path.primary, path.id)))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

/// Returns the time until a packet arrives at the peer if it is given to `path` now: whole round trips until the window has admitted all
/// waiting data and the packet, and half a round trip of travel. A path without a measurement counts with its RTO.
fn arrival(path: &PathView) -> Duration {
    let srtt = path.srtt.unwrap_or(path.rto);
    let rounds = if path.assigned < path.room {
        0
    } else {
        (path.assigned - path.room + path.mtu).div_ceil(path.cwnd.max(1))
    };
    srtt.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)) + srtt / 2
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assigned, full, offer, view, with_srtt};
    use super::*;

    fn pick(paths: &[PathView]) -> Option<u8> {
        Otias.decide(Instant::ZERO, &offer(paths)).path().map(|path| path.0)
    }

    #[test]
    fn arrival_counts_the_rounds_that_the_window_needs() {
        let fast = with_srtt(0, 20);
        let millis = |path: &PathView| arrival(path).as_millis();
        assert_eq!(millis(&fast), 10, "room now");
        assert_eq!(millis(&full(fast.clone())), 30, "one round, and half of one");
        // A window of 14,520 bytes admits the waiting bytes, and 1500 more, in that many round trips.
        let after =
            [0, 13_020, 13_021, 27_540, 27_541].map(|bytes| millis(&assigned(full(fast.clone()), bytes)));
        assert_eq!(after, [30, 30, 50, 50, 70]);
        let half = PathView { room: 7_260, flight: 7_260, ..fast };
        assert_eq!(millis(&assigned(half.clone(), 7_259)), 10);
        assert_eq!(millis(&assigned(half, 7_260)), 30);
        assert_eq!(millis(&view(1)), 500, "by its timeout");
    }

    #[test]
    fn a_full_fast_path_is_left_data_until_the_slow_one_would_be_sooner() {
        // On the slow path a packet arrives after 50 ms: two rounds of the fast one, and half of one.
        let slow = with_srtt(1, 100);
        let waits = |bytes| [assigned(full(with_srtt(0, 20)), bytes), slow.clone()];
        assert_eq!(pick(&waits(0)), Some(0));
        assert_eq!(pick(&waits(27_540)), Some(0), "as soon, and it is the primary");
        assert_eq!(pick(&waits(27_541)), Some(1));
        assert_eq!(pick(&[with_srtt(0, 20), slow]), Some(0));
    }

    #[test]
    fn a_path_that_may_be_left_nothing_more_is_passed_over() {
        let fast = PathView { assignable: false, ..full(with_srtt(0, 20)) };
        assert_eq!(pick(&[fast.clone(), with_srtt(1, 100)]), Some(1));
        assert_eq!(pick(&[fast, PathView { assignable: false, ..full(with_srtt(1, 100)) }]), None);
    }
}
