//! Bound on the data that may be queued on a path ahead of its window.

use std::time::Duration;

use super::PathView;

/// Returns the most bytes that may wait for the congestion window of the path of `view`: as many as it sends in the
/// round-trip time of the slowest path, `slowest`. Data that would wait longer would arrive earlier on the slowest path.
/// 0 for the slowest path itself, and for a path without a measurement.
pub fn most_assigned(view: &PathView, slowest: Duration) -> usize {
    let Some(srtt) = view.srtt.filter(|&srtt| !srtt.is_zero() && srtt < slowest) else { return 0 };
    let rounds = slowest.as_secs_f64() / srtt.as_secs_f64();
    (rounds * view.cwnd as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::tests::{view, with_srtt};
    use super::*;

    #[test]
    fn no_more_is_assigned_than_leaves_within_a_round_trip_of_the_slowest_path() {
        let slowest = Duration::from_millis(100);
        assert_eq!(most_assigned(&with_srtt(0, 20), slowest), 5 * 14_520);
        assert_eq!(most_assigned(&with_srtt(0, 80), slowest), 14_520 * 5 / 4);
        assert_eq!(most_assigned(&with_srtt(1, 100), slowest), 0, "the slowest itself");
        assert_eq!(most_assigned(&view(2), slowest), 0, "not measured");
    }
}
