//! Redundant transmission: new data leaves on the open path with the smallest smoothed round-trip time. Duplicates of
//! it leave on the other paths as their windows allow, until it is acknowledged.
//!
//! It shortens the slowest deliveries, for messages that must not be late over paths with losses or stalls: the first
//! arrival of a message counts, and the failure of a path delays nothing. It costs throughput: all paths together
//! deliver as much as the best one, and each carries the whole load.

use super::{Decision, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "redundant".
pub(super) struct Redundant;

impl PathScheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        match offer.send_on_least(Offer::by_rtt) {
            Decision::Send(path) => Decision::Duplicate(path),
            other => other,
        }
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::{full, offer, with_srtt};
    use super::*;

    #[test]
    fn new_data_begins_on_the_fastest_path_with_room_and_is_copied() {
        let decide = |paths: &[_]| Redundant.decide(Instant::ZERO, &offer(paths));
        assert_eq!(decide(&[with_srtt(0, 40), with_srtt(1, 25)]), Decision::Duplicate(PathId(1)));
        assert_eq!(decide(&[with_srtt(0, 40), full(with_srtt(1, 25))]), Decision::Duplicate(PathId(0)));
    }
}
