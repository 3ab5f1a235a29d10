//! Latest time at which a duplicate of a chunk in flight is worth sending on another path.

use std::time::Duration;

/// Returns whether a duplicate still saves time, of a chunk that was sent `age` ago on a path with the smoothed round-trip
/// time `srtt`, on a path with the round-trip time `to`. If the chunk is lost, its retransmission is acknowledged after two
/// round trips of its path at the earliest; the duplicate must be acknowledged half a round trip before. Without
/// measurements it is assumed to save time.
pub fn duplicate_saves_time(age: Duration, srtt: Option<Duration>, to: Option<Duration>) -> bool {
    let (Some(srtt), Some(to)) = (srtt, to) else { return true };
    age <= srtt / LATEST && age + to + srtt / LATEST <= 2 * srtt
}

/// After this part of a round trip a duplicate does not leave any more: it would save only the rest.
const LATEST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn saves_time(age: u64, to: u64) -> bool {
        let millis = Duration::from_millis;
        duplicate_saves_time(millis(age), Some(millis(160)), Some(millis(to)))
    }

    #[test]
    fn a_duplicate_saves_time_during_half_a_round_trip() {
        assert_eq!([saves_time(0, 160), saves_time(80, 160), saves_time(81, 160)], [true, true, false]);
        assert_eq!([saves_time(80, 10), saves_time(81, 10)], [true, false]);
        let second = Duration::from_secs(1);
        assert!(
            duplicate_saves_time(second, None, Some(second))
                && duplicate_saves_time(second, Some(second), None)
        );
    }

    #[test]
    fn a_duplicate_saves_nothing_on_a_path_that_takes_longer_than_a_retransmission() {
        assert_eq!([saves_time(10, 230), saves_time(11, 230), saves_time(0, 241)], [true, false, false]);
    }
}
