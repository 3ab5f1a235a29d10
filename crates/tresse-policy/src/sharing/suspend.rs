//! Suspension of paths that cost the others more than they deliver, and trials of suspended paths.
//!
//! A suspended path carries no new data except an occasional trial; it still carries retransmissions and control
//! chunks. This optimises throughput of ordered data with short buffers. It costs throughput if a path becomes better
//! soon after it was suspended, because only a trial shows that.

use std::time::Duration;

use super::allocate::{self, Demand};
use super::hol_cost::HolCosts;
use super::view::{PathSample, SharingView};
use crate::path::PathId;
use crate::time::Instant;

/// Returns whether `path` displaces more bytes of other paths than it delivers.
pub(crate) fn costs_too_much(costs: &HolCosts, path: PathId) -> bool {
    costs.displaced_by(path) > DEAR
}

/// Sets the demand of each path that `costs_too_much` to 0, except for the [best](allocate::best) path; returns
/// whether there was one.
pub(crate) fn suspend(demands: &mut [Demand], costs_too_much: impl Fn(PathId) -> bool) -> bool {
    let mut best = None;
    for position in 0..demands.len() {
        if demands[position].bdp == 0 || !costs_too_much(PathId(position as u8)) {
            continue;
        }
        // Computed for the first such path, before any demand changes: it takes divisions, and mostly no path costs too much.
        if *best.get_or_insert_with(|| allocate::best(demands)) != Some(position) {
            (demands[position].suspended, demands[position].bdp) = (true, 0);
        }
    }
    demands.iter().any(|demand| demand.suspended)
}

/// Suspends paths with an allocation of less than a packet, too: with so little in flight every loss would have to wait
/// for a timer. The best path is never suspended: if even this path demands more than the `buffer` to allocate, no
/// other path would gain. Lets one packet leave on each suspended path whose trial is due.
pub(crate) fn suspend_or_try(
    now: Instant,
    buffer: usize,
    situation: &SharingView<'_>,
    demands: &[Demand],
    costs: &mut HolCosts,
    allocation: &mut [usize],
) {
    let best = allocate::best(demands);
    for ((sample, bytes), demand) in situation.paths.iter().zip(allocation).zip(demands) {
        if *bytes >= situation.packet {
            continue;
        }
        let usable = demand.bdp > 0 || demand.suspended;
        *bytes = if best == Some(sample.id.index()) {
            demand.bdp.min(buffer).max(1)
        } else if !usable || situation.bound {
            (*bytes).max(1)
        } else {
            let due = is_trial_due(now, situation.packet, sample, demand, costs);
            if due {
                costs.begin_trial(sample.id, situation.packet);
            }
            usize::from(due)
        }
    }
}

/// Returns whether a trial of a suspended path with one packet of `len` bytes is due.
fn is_trial_due(now: Instant, len: usize, sample: &PathSample, demand: &Demand, costs: &HolCosts) -> bool {
    let silent = now.since(sample.last_data);
    silent >= demand.min_rtt * TRIAL_ROUND_TRIPS
        && (silent >= LONGEST_SUSPENSION || costs.allows_trial(sample.id, len))
}

/// Most bytes by which a path may keep others from sending, for each of its own, before it is suspended.
const DEAR: f64 = 1.0;
/// Least number of round trips before a trial of a suspended path.
const TRIAL_ROUND_TRIPS: u32 = 16;
/// Time after which there is a trial at any cost: nothing else shows that the path has become better.
const LONGEST_SUSPENSION: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::hol_cost::Blocking;

    const PACKET: usize = 1000;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Path 1 has sent a packet, blocked as much for a tenth of a second, and kept others from sending so many bytes; path 0
    /// has sent `others` bytes.
    fn costs(displaced: usize, others: u64) -> HolCosts {
        let mut costs = HolCosts::new(Instant::ZERO);
        let blocking = Blocking { path: PathId(1), bytes: PACKET };
        costs.on_report(Instant::ZERO, Some(blocking), [0, PACKET as u64].into_iter());
        costs.set_unused_rate(10.0 * displaced as f64);
        costs.on_report(Instant::ZERO + millis(100), None, [others, PACKET as u64].into_iter());
        costs
    }

    /// A fast path and a slow one.
    fn demands() -> [Demand; 2] {
        [20, 100].map(|rtt| Demand { min_rtt: millis(rtt), bdp: 20 * PACKET, ..Demand::default() })
    }

    fn samples() -> [PathSample; 2] {
        [PathSample::new(PathId(0)), PathSample::new(PathId(1))]
    }

    fn situation(paths: &[PathSample]) -> SharingView<'_> {
        SharingView {
            paths,
            split_buffer: Some(20 * PACKET),
            whole_buffer: 20 * PACKET,
            packet: PACKET,
            bound: false,
        }
    }

    /// Returns what remains of these allocations at `now`.
    fn decide(
        now: Instant,
        situation: &SharingView<'_>,
        costs: &mut HolCosts,
        bytes: [usize; 2],
    ) -> [usize; 2] {
        let mut allocation = bytes;
        suspend_or_try(now, 20 * PACKET, situation, &demands(), costs, &mut allocation);
        allocation
    }

    #[test]
    fn a_path_costs_too_much_that_displaces_more_than_it_brings() {
        let dear = |displaced| costs_too_much(&costs(displaced, 0), PathId(1));
        assert_eq!((dear(PACKET), dear(PACKET + 1)), (false, true));
    }

    #[test]
    fn a_path_that_costs_too_much_demands_nothing_unless_it_is_the_best() {
        let mut both = demands();
        assert!(suspend(&mut both, |_| true));
        assert_eq!(both.map(|demand| (demand.bdp, demand.suspended)), [(20 * PACKET, false), (0, true)]);
        assert!(!suspend(&mut demands(), |path| path == PathId(0)));
    }

    #[test]
    fn a_path_allocated_less_than_a_packet_is_suspended_but_not_the_best_and_none_with_streams_of_its_own() {
        let paths = samples();
        let mut costs = costs(10 * PACKET, 0);
        let mut situation = situation(&paths);
        assert_eq!(decide(at(1), &situation, &mut costs, [PACKET, PACKET]), [PACKET, PACKET]);
        assert_eq!(decide(at(1), &situation, &mut costs, [PACKET - 1, PACKET - 1]), [20 * PACKET, 0]);
        situation.bound = true;
        assert_eq!(decide(at(1), &situation, &mut costs, [PACKET, 0]), [PACKET, 1]);
    }

    #[test]
    fn a_suspended_path_is_tried_when_others_can_afford_it_and_at_last_in_any_case() {
        let paths = samples();
        let situation = situation(&paths);
        let tried = |now, others| decide(now, &situation, &mut costs(PACKET, others), [PACKET, 0])[1] > 0;
        assert!(!tried(Instant::ZERO + millis(1599), 1 << 20), "sixteen of its round trips are not over");
        assert!(tried(Instant::ZERO + millis(1600), 100 * PACKET as u64));
        assert!(!tried(Instant::ZERO + millis(9999), 100 * PACKET as u64 - 1), "a hundredth at most");
        assert!(tried(at(10), 0));
    }
}
