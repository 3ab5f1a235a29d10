//! Selection of the path with the smallest smoothed round-trip time among those with room.
//!
//! It optimises delay while the fast path has room, for ordinary multipath traffic. It costs throughput if the receive
//! buffer is small and delays differ much: the slow path then still takes the data that the window of the fast path
//! does not allow.

use super::{Decision, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "lowest_rtt".
pub(super) struct LowestRtt;

impl PathScheduler for LowestRtt {
    fn name(&self) -> &'static str {
        "lowest_rtt"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        offer.send_on_least(Offer::by_rtt)
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::super::PathView;
    use super::super::tests::{full, offer, view, with_srtt};
    use super::*;

    fn pick(paths: &[PathView]) -> Option<u8> {
        LowestRtt.decide(Instant::ZERO, &offer(paths)).path().map(|path| path.0)
    }

    #[test]
    fn takes_the_smallest_round_trip_time() {
        assert_eq!(pick(&[with_srtt(0, 40), with_srtt(1, 25), with_srtt(2, 30)]), Some(1));
        assert_eq!(pick(&[with_srtt(0, 40), full(with_srtt(1, 25)), with_srtt(2, 30)]), Some(2));
    }

    #[test]
    fn measured_paths_come_first_and_ties_go_to_the_primary() {
        assert_eq!(pick(&[view(0), with_srtt(1, 900)]), Some(1));
        assert_eq!(pick(&[view(1), view(0)]), Some(0));
        assert_eq!(pick(&[with_srtt(2, 25), with_srtt(1, 25)]), Some(1));
    }
}
