//! Delay-aware packet scheduling (Kuhn et al., ICC 2014): a schedule for the next round trips assigns data to
//! paths so that it arrives in the order of its TSNs.
//!
//! It makes best use of the receive buffer over paths whose delays differ much and hardly change. A period lasts until
//! the paths' round trips, in whole multiples of the shortest, end together. It costs throughput if delays or windows
//! change within a period, or if the ratio of delays is not a whole number: the schedule is followed to its end, and a
//! path that is ahead of the schedule waits.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Decision, Offer, PathScheduler, PathView};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "daps".
#[derive(Default)]
pub(super) struct Daps {
    /// The turns of the plan that are left.
    plan: VecDeque<Turn>,
}

/// A turn of the plan: the path gets the next data of this length.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Turn {
    path: PathId,
    bytes: usize,
}

impl PathScheduler for Daps {
    fn name(&self) -> &'static str {
        "daps"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        let offered = |turn: &Turn| offer.paths().iter().find(|path| path.id == turn.path);
        self.plan.retain(|turn| offered(turn).is_some());
        if self.plan.is_empty() {
            self.plan = plan(offer.paths());
        }
        let Some(path) = self.plan.front().and_then(offered) else { return Decision::Wait };
        if path.open || path.assignable {
            Decision::send_or_assign(Some(path))
        } else if path.assigned > 0 {
            // Enough data waits on the path already.
            Decision::Wait
        } else {
            // No data can be assigned to the path. Its turn must not keep the other paths idle.
            Decision::send(Offer::fastest(offer.open()))
        }
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        let Some(position) = self.plan.iter().position(|turn| turn.path == path) else { return };
        let turn = &mut self.plan[position];
        turn.bytes = turn.bytes.saturating_sub(bytes);
        if turn.bytes == 0 {
            self.plan.remove(position);
        }
    }
}

/// Returns the order in which the paths' windows of data arrive within one period.
fn plan(paths: &[PathView]) -> VecDeque<Turn> {
    let rtt = |path: &PathView| path.srtt.unwrap_or(path.rto);
    let shortest = paths.iter().map(rtt).min().unwrap_or_default().max(Duration::from_micros(1));
    let rounds = |path: &PathView| {
        let ratio = rtt(path).as_secs_f64() / shortest.as_secs_f64();
        (ratio.round() as u32).clamp(1, LONGEST)
    };
    let together = paths.iter().map(rounds).fold(1, least_common_multiple);
    let longest = paths.iter().map(rounds).max().unwrap_or(1);
    let period = if together > LONGEST { longest } else { together };
    let mut by_delay: Vec<&PathView> = paths.iter().collect();
    by_delay.sort_by_key(|path| (rounds(path), path.id));
    let mut plan: VecDeque<Turn> = VecDeque::new();
    for round in 1..=period {
        for path in by_delay.iter().filter(|path| round % rounds(path) == 0) {
            let bytes = path.cwnd.max(1);
            match plan.back_mut().filter(|turn| turn.path == path.id) {
                Some(turn) => turn.bytes += bytes,
                None => plan.push_back(Turn { path: path.id, bytes }),
            }
        }
    }
    plan
}

fn least_common_multiple(one: u32, other: u32) -> u32 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a.max(1)).saturating_mul(other)
}

/// Most round trips of the fastest path in a period. A longer period ends with a round trip of the slowest path.
const LONGEST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::super::tests::{assigned, full, offer, view, with_srtt};
    use super::*;

    const WINDOW: usize = 14_520;

    fn turns(paths: &[PathView]) -> Vec<(u8, usize)> {
        plan(paths).iter().map(|turn| (turn.path.0, turn.bytes / WINDOW)).collect()
    }

    fn pick(scheduler: &mut Daps, paths: &[PathView]) -> Option<u8> {
        scheduler.decide(Instant::ZERO, &offer(paths)).path().map(|path| path.0)
    }

    #[test]
    fn a_period_lasts_until_the_round_trips_end_together() {
        assert_eq!(turns(&[with_srtt(0, 20), with_srtt(1, 61)]), [(0, 3), (1, 1)]);
        assert_eq!(
            turns(&[with_srtt(0, 30), with_srtt(1, 20)]),
            [(1, 2), (0, 1)],
            "a ratio of 1.5 is one of 2"
        );
        assert_eq!(
            turns(&[with_srtt(0, 20), with_srtt(1, 40), with_srtt(2, 60)]),
            [(0, 2), (1, 1), (0, 1), (2, 1), (0, 1), (1, 1), (0, 2), (1, 1), (2, 1)],
            "the first six rounds"
        );
        assert_eq!(turns(&[with_srtt(0, 20), with_srtt(1, 20)]), [(0, 1), (1, 1)]);
    }

    #[test]
    fn a_long_period_is_cut_and_a_very_slow_path_has_a_turn_all_the_same() {
        let paths = [with_srtt(0, 10), with_srtt(1, 110), with_srtt(2, 130)];
        assert_eq!(turns(&paths).last(), Some(&(2, 1)));
        assert_eq!(turns(&[with_srtt(0, 1), with_srtt(1, 10_000)]), [(0, 64), (1, 1)]);
    }

    #[test]
    fn the_plan_is_followed_and_made_anew() {
        let mut scheduler = Daps::default();
        let paths = [assigned(full(with_srtt(0, 20)), 0), with_srtt(1, 40)];
        let mut picked = Vec::new();
        for _ in 0..6 {
            let path = pick(&mut scheduler, &paths).unwrap();
            scheduler.on_sent(PathId(path), WINDOW);
            picked.push(path);
        }
        assert_eq!(picked, [0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn the_slow_path_waits_for_a_fast_one_that_has_enough_and_not_for_one_that_has_nothing() {
        let slow = with_srtt(1, 40);
        let enough = PathView { assigned: 2 * WINDOW, ..full(with_srtt(0, 20)) };
        assert_eq!(pick(&mut Daps::default(), &[enough, slow.clone()]), None);
        assert_eq!(pick(&mut Daps::default(), &[full(with_srtt(0, 20)), slow]), Some(1));
    }

    #[test]
    fn a_path_that_is_gone_has_no_turn() {
        let mut scheduler = Daps::default();
        assert_eq!(pick(&mut scheduler, &[with_srtt(0, 20), view(1)]), Some(0));
        assert_eq!(pick(&mut scheduler, &[view(1)]), Some(1));
    }
}
