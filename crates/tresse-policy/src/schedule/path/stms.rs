//! Slide together (STMS; Shi et al., USENIX ATC 2018): the slow path carries data after a gap, and the fast
//! path sends the data in the gap while the slow path's packet is in flight.
//!
//! It optimises order at the peer for two paths of different delay, with a backlog: the slow path sends data of higher
//! TSNs early. The gap is first computed from delays and windows, and then corrected: it grows when data of the fast
//! path waits at the peer, and shrinks when data of the slow path does. It costs throughput if losses are frequent,
//! because they have the same effect at the peer. With more than two paths, data is queued on the fastest one only. The
//! paper corrects its gap by every acknowledgement; here it changes by a packet in each round trip.

use super::{Decision, Offer, PathScheduler, PathView};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "stms".
#[derive(Default)]
pub(super) struct Stms {
    /// Bytes by which the gaps are wider than estimated; negative if they are narrower.
    correction: isize,
    /// Time of the last correction.
    corrected_at: Instant,
}

impl PathScheduler for Stms {
    fn name(&self) -> &'static str {
        "stms"
    }

    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision {
        let Some(fast) = Offer::fastest(offer.paths().iter()) else { return Decision::Wait };
        if fast.open {
            return Decision::Send(fast.id);
        }
        let Some(slow) = Offer::fastest(offer.open()) else { return Decision::Wait };
        self.correct(now, fast, slow);
        let wide_enough = fast.assigned as isize >= gap(fast, slow) as isize + self.correction;
        if fast.assignable && !wide_enough { Decision::Assign(fast.id) } else { Decision::Send(slow.id) }
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

impl Stms {
    /// Corrects the gap once in a round trip of the fast path, by the data of each path that waits at the peer.
    fn correct(&mut self, now: Instant, fast: &PathView, slow: &PathView) {
        if now - self.corrected_at < fast.srtt.unwrap_or_default() || fast.recovering || slow.recovering {
            return;
        }
        self.corrected_at = now;
        let (step, most) = (fast.mtu as isize, gap(fast, slow) as isize);
        let towards = fast.early.cmp(&slow.early) as isize;
        self.correction = (self.correction + towards * step).clamp(-most, most);
    }
}

/// Returns the gap: the bytes that `fast` sends in the time by which its data arrives earlier, half the difference of the round trips.
fn gap(fast: &PathView, slow: &PathView) -> usize {
    let (Some(short), Some(long)) = (fast.srtt, slow.srtt) else { return 0 };
    let sooner = long.saturating_sub(short).as_secs_f64() / 2.0;
    let rounds = sooner / short.as_secs_f64().max(1e-6);
    (rounds * fast.cwnd as f64) as usize
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{assigned, full, offer, view, with_srtt};
    use super::*;

    fn pick(scheduler: &mut Stms, at: u64, paths: &[PathView]) -> Option<u8> {
        let now = Instant::ZERO + Duration::from_millis(at);
        scheduler.decide(now, &offer(paths)).path().map(|path| path.0)
    }

    /// A full fast path with `bytes` assigned bytes, and a slow path with room.
    fn paths(bytes: usize) -> [PathView; 2] {
        [assigned(full(with_srtt(0, 20)), bytes), with_srtt(1, 100)]
    }

    #[test]
    fn the_gap_is_what_the_fast_path_sends_while_it_is_ahead() {
        // 40 ms sooner: two windows.
        assert_eq!(gap(&with_srtt(0, 20), &with_srtt(1, 100)), 2 * 14_520);
        assert_eq!(gap(&with_srtt(0, 20), &with_srtt(1, 20)), 0);
        assert_eq!(gap(&with_srtt(0, 20), &view(1)), 0, "not measured");
    }

    #[test]
    fn the_slow_path_sends_when_the_gap_is_filled() {
        let mut scheduler = Stms::default();
        assert_eq!(pick(&mut scheduler, 0, &paths(0)), Some(0));
        assert_eq!(pick(&mut scheduler, 0, &paths(2 * 14_520 - 1)), Some(0));
        assert_eq!(pick(&mut scheduler, 0, &paths(2 * 14_520)), Some(1));
        assert_eq!(pick(&mut scheduler, 0, &[with_srtt(0, 20), with_srtt(1, 100)]), Some(0), "it has room");
    }

    #[test]
    fn nothing_is_left_to_the_fast_path_while_the_slow_one_is_full() {
        let [fast, slow] = paths(0);
        assert_eq!(pick(&mut Stms::default(), 0, &[fast, full(slow)]), None);
    }

    #[test]
    fn the_gap_follows_whose_data_waits_by_a_packet_a_round_trip() {
        let mut scheduler = Stms::default();
        let [fast, slow] = paths(0);
        let waiting = PathView { early: 3000, ..fast.clone() };
        for at in [1000, 1010, 1020, 1039] {
            pick(&mut scheduler, at, &[waiting.clone(), slow.clone()]);
        }
        assert_eq!(scheduler.correction, 2 * 1500);
        let overtaken = PathView { early: 3000, ..slow.clone() };
        for round in 0..100 {
            pick(&mut scheduler, 2000 + 20 * round, &[fast.clone(), overtaken.clone()]);
        }
        assert_eq!(scheduler.correction, -2 * 14_520, "never below no gap at all");
        let recovering = PathView { recovering: true, ..waiting };
        pick(&mut scheduler, 9000, &[recovering, slow]);
        assert_eq!(scheduler.correction, -2 * 14_520, "losses say nothing of delays");
    }
}
