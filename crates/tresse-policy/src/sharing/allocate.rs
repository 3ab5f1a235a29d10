//! Allocation of a buffer that several paths use, by the demand of each path.
//!
//! It optimises throughput for a buffer that is too small for all paths: a byte occupies the buffer for a round trip,
//! so the paths with the shortest round trips are filled first (docs/sharing.md has the bound). No path gets more than
//! its demand. Independent of windows and of data in flight.

use std::time::Duration;

/// Part of a buffer that a path could use.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// Round trip without a queue; zero before the first measurement.
    pub min_rtt: Duration,
    /// The estimated BDP; 0 for a path that cannot be used, or is suspended.
    pub bdp: usize,
    /// Additional time for which a byte holds buffer because of head-of-line blocking.
    pub blocked_time: Duration,
    /// Most bytes that the path has blocked at one time.
    pub most_blocked: usize,
    /// True if the path could be used, but costs the others more than it brings.
    pub suspended: bool,
}

impl Demand {
    /// Returns the time for which a byte holds buffer. Blocking of less than half a round trip counts as chance.
    pub fn hold_time(&self) -> Duration {
        if self.min_rtt.is_zero() {
            return self.min_rtt;
        }
        self.min_rtt + self.min_rtt / 2 * (2.0 * self.blocked_time.div_duration_f64(self.min_rtt)) as u32
    }

    /// Returns the buffer that a fully used path needs, in bytes: its flight, and the data that it blocks meanwhile.
    pub fn buffer_needed(&self) -> usize {
        if self.min_rtt.is_zero() {
            return self.bdp;
        }
        let blocked = self.bdp as f64 * self.blocked_time.div_duration_f64(self.min_rtt);
        self.bdp + (blocked as usize).min(self.most_blocked)
    }
}

/// Allocates `buffer` by demand: the paths that hold buffer for the shortest time are filled first.
pub(crate) fn shortest_first(demands: &[Demand], buffer: usize, allocation: &mut Vec<usize>) {
    allocation.clear();
    allocation.resize(demands.len(), 0);
    let mut left = buffer;
    let mut served = Duration::ZERO;
    while left > 0 {
        let waiting = demands.iter().filter(|demand| demand.bdp > 0 && demand.hold_time() >= served);
        let Some(shortest) = waiting.map(Demand::hold_time).min() else { break };
        // Paths with similar times are filled in proportion: if one of them were filled completely first, it would have a queue.
        let reach = shortest + shortest / ALIKE;
        let alike = |demand: &Demand| (shortest..=reach).contains(&demand.hold_time());
        let wanted: usize = demands.iter().filter(|demand| alike(demand)).map(Demand::buffer_needed).sum();
        let granted = wanted.min(left);
        for (bytes, demand) in allocation.iter_mut().zip(demands).filter(|(_, demand)| alike(demand)) {
            *bytes = part(granted, demand.bdp, wanted);
        }
        left -= granted;
        served = reach + Duration::from_nanos(1);
    }
}

/// Allocates a `buffer` that suffices for all paths: equal parts, but its BDP to a path with a larger one.
pub(crate) fn equal_or_demand(demands: &[Demand], buffer: usize, allocation: &mut Vec<usize>) {
    let usable = demands.iter().filter(|demand| demand.bdp > 0);
    let equal = buffer / usable.clone().count().max(1);
    let (many, needed) = usable
        .filter(|demand| demand.bdp > equal)
        .fold((0, 0), |(many, needed), demand| (many + 1, needed + demand.bdp));
    let modest = demands.iter().filter(|demand| demand.bdp > 0).count() - many;
    let rest = buffer.saturating_sub(needed) / modest.max(1);
    allocation.clear();
    allocation.extend(demands.iter().map(|demand| match demand.bdp {
        0 => 0,
        bdp if bdp > equal => bdp,
        bdp => rest.max(bdp),
    }));
}

/// Returns the path, among those with a demand, that holds buffer for the shortest time; a path without a measurement comes last.
pub(crate) fn best(demands: &[Demand]) -> Option<usize> {
    let usable = (0..).zip(demands).filter(|(_, demand)| demand.bdp > 0);
    usable
        .min_by_key(|(_, demand)| (demand.min_rtt.is_zero(), demand.hold_time()))
        .map(|(position, _)| position)
}

/// Returns `whole` times `amount` / `total`.
fn part(whole: usize, amount: usize, total: usize) -> usize {
    if total == 0 { 0 } else { (whole as u128 * amount as u128 / total as u128) as usize }
}

/// Hold times that differ by less than this part of the shorter one count as alike.
const ALIKE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A demand with these milliseconds of round trip and of blocking.
    fn demand(&(min_rtt, bdp, blocked_time, most_blocked): &(u64, usize, u64, usize)) -> Demand {
        let millis = Duration::from_millis;
        Demand {
            min_rtt: millis(min_rtt),
            bdp,
            blocked_time: millis(blocked_time),
            most_blocked,
            suspended: false,
        }
    }

    fn blocked(demands: &[(u64, usize, u64, usize)], buffer: usize) -> Vec<usize> {
        let demands: Vec<Demand> = demands.iter().map(demand).collect();
        let mut allocation = Vec::new();
        shortest_first(&demands, buffer, &mut allocation);
        allocation
    }

    fn unblocked(demands: &[(u64, usize)], buffer: usize) -> Vec<usize> {
        let demands: Vec<_> = demands.iter().map(|&(millis, bdp)| (millis, bdp, 0, 0)).collect();
        blocked(&demands, buffer)
    }

    #[test]
    fn a_buffer_that_is_too_small_fills_the_shortest_round_trips_first() {
        let demands = [(100, 125_000), (20, 25_000), (60, 75_000)];
        assert_eq!(unblocked(&demands, 10_000), [0, 10_000, 0]);
        assert_eq!(unblocked(&demands, 40_000), [0, 25_000, 15_000]);
        assert_eq!(unblocked(&demands, 150_000), [50_000, 25_000, 75_000]);
    }

    #[test]
    fn a_buffer_that_is_large_enough_gives_each_what_fills_it_and_no_more() {
        assert_eq!(unblocked(&[(20, 25_000), (100, 125_000)], 300_000), [25_000, 125_000]);
        assert_eq!(unblocked(&[(20, 25_000), (100, 125_000)], 150_000), [25_000, 125_000]);
    }

    #[test]
    fn round_trips_that_hardly_differ_are_filled_alike() {
        assert_eq!(unblocked(&[(20, 50_000), (22, 50_000)], 60_000), [30_000, 30_000]);
        assert_eq!(unblocked(&[(20, 50_000), (23, 50_000)], 60_000), [50_000, 10_000]);
    }

    #[test]
    fn a_path_that_blocks_others_is_filled_as_if_it_were_longer() {
        let demands = [(90, 10_000, 40, 10_000), (90, 10_000, 100, 10_000), (130, 10_000, 0, 0)];
        assert_eq!(
            blocked(&demands, 13_000),
            [9_000, 0, 0],
            "less than half a round trip may be chance, but takes room"
        );
        assert_eq!(blocked(&demands, 14_444), [10_000, 0, 0]);
        assert_eq!(
            blocked(&demands, 24_444),
            [10_000, 0, 10_000],
            "before the one that is shorter by itself"
        );
    }

    #[test]
    fn what_a_path_blocks_takes_room_beside_its_flight() {
        assert_eq!(blocked(&[(100, 10_000, 100, 50_000)], 10_000), [5_000]);
        assert_eq!(blocked(&[(100, 10_000, 900, 5_000)], 10_000), [6_666], "never more than there was");
    }

    #[test]
    fn a_path_that_cannot_be_used_gets_nothing() {
        assert_eq!(unblocked(&[(20, 0), (100, 10_000)], 5_000), [0, 5_000]);
        assert_eq!(unblocked(&[(20, 0), (100, 0)], 5_000), [0, 0]);
        assert_eq!(unblocked(&[], 5_000), [0_usize; 0]);
    }

    #[test]
    fn where_there_is_enough_parts_are_equal_but_for_whoever_needs_more() {
        let demands = [(20, 25_000, 0, 0), (100, 0, 0, 0), (60, 75_000, 0, 0)].map(|it| demand(&it));
        let mut allocation = Vec::new();
        equal_or_demand(&demands, 200_000, &mut allocation);
        assert_eq!(allocation, [100_000, 0, 100_000]);
        equal_or_demand(&demands, 140_000, &mut allocation);
        assert_eq!(allocation, [65_000, 0, 75_000]);
        assert_eq!(best(&demands), Some(0));
        assert_eq!(best(&demands[1..2]), None);
        let unknown = Demand { min_rtt: Duration::ZERO, ..demands[2] };
        assert_eq!(best(&[unknown, demands[2]]), Some(1));
    }

    #[test]
    fn no_more_is_allocated_than_there_is() {
        for buffer in [0, 1, 7, 99_999, 1 << 30] {
            let demands = [(0, 10), (1, 1 << 30), (1, 3), (50, 1 << 29), (50, 0)];
            assert!(unblocked(&demands, buffer).iter().sum::<usize>() <= buffer, "{buffer}");
        }
    }
}
