//! Sums over the windows of an association, by which coupled algorithms decide.
//!
//! They are computed once, before a SACK or a timeout changes any window, over the usable paths only: a path that
//! carries nothing must not limit the others. Sizes are in bytes, times in seconds.

use super::window::Window;

/// Sums over all windows that coupled algorithms need.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Group {
    /// Number of usable windows; at least 1.
    pub(super) paths: f64,
    /// Sum of the congestion windows.
    pub(super) cwnd: f64,
    /// Sum of the thresholds.
    ssthresh: f64,
    /// Sum of the rates cwnd / srtt.
    pub(super) rate: f64,
    /// The highest rate of one path.
    top_rate: f64,
    /// The highest cwnd / srtt² of one path.
    pub(super) top_pull: f64,
    /// Round-trip time assumed for paths without a measurement.
    assumed_rtt: f64,
}

impl Group {
    /// Computes the sums over `windows`.
    pub(super) fn of(windows: &[Window]) -> Self {
        let usable = || windows.iter().filter(|window| window.usable);
        let longest = usable().filter_map(|window| window.srtt).max();
        let mut group = Group {
            paths: usable().count().max(1) as f64,
            cwnd: 0.0,
            ssthresh: 0.0,
            rate: 0.0,
            top_rate: 0.0,
            top_pull: 0.0,
            // If no path has a measurement, all count as equally long, whatever this value.
            assumed_rtt: longest.map_or(1.0, |srtt| srtt.as_secs_f64()).max(SHORTEST_RTT),
        };
        for window in usable() {
            let rate = group.rate_of(window);
            group.cwnd += window.cwnd as f64;
            group.ssthresh += window.ssthresh as f64;
            group.rate += rate;
            group.top_rate = group.top_rate.max(rate);
            group.top_pull = group.top_pull.max(rate / group.rtt_of(window));
        }
        group
    }

    /// Returns the round-trip time of the window, in seconds. A path without a measurement counts as long as the
    /// longest of the others, so that its rate is rather estimated too low.
    pub(super) fn rtt_of(&self, window: &Window) -> f64 {
        window.srtt.map_or(self.assumed_rtt, |srtt| srtt.as_secs_f64()).max(SHORTEST_RTT)
    }

    /// Returns cwnd / srtt, in bytes per second.
    pub(super) fn rate_of(&self, window: &Window) -> f64 {
        window.cwnd as f64 / self.rtt_of(window)
    }

    /// Returns the window's part of the sum of all cwnd / srtt, above 0 and at most 1.
    pub(super) fn rate_share(&self, window: &Window) -> f64 {
        share(self.rate_of(window), self.rate)
    }

    /// Returns the window's part of the sum of all thresholds, above 0 and at most 1.
    pub(super) fn ssthresh_share(&self, window: &Window) -> f64 {
        share(window.ssthresh as f64, self.ssthresh)
    }

    /// Returns the largest part that one path has of the sum of all cwnd / srtt; at least that of `window`.
    pub(super) fn top_share(&self, window: &Window) -> f64 {
        share(self.top_rate, self.rate).max(self.rate_share(window))
    }
}

/// Returns whole bytes, rounded up, so that small growth is not lost.
pub(super) fn whole_bytes(bytes: f64) -> usize {
    bytes.ceil() as usize
}

/// Returns `part / whole`. The whole omits a path that is not usable, so its part may be larger than the whole; the
/// path then counts as if it were alone.
fn share(part: f64, whole: f64) -> f64 {
    if part < whole { part / whole } else { 1.0 }
}

/// Lower bound of round-trip times, in seconds: a round trip on loopback may be measured as 0.
const SHORTEST_RTT: f64 = 1e-6;

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::congestion::window::PathAck;
    use crate::path::PathId;

    /// The chunk of a packet in the tests of coupled algorithms: a round number.
    pub(in crate::congestion) const M: usize = 1000;

    /// A usable window of so many packets, in congestion avoidance, with a smoothed round trip of so many ms.
    pub(in crate::congestion) fn window(packets: usize, srtt_ms: u64) -> Window {
        Window {
            cwnd: packets * M,
            ssthresh: packets * M - 1,
            srtt: Some(Duration::from_millis(srtt_ms)),
            usable: true,
            ..Window::new(M, false, 0)
        }
    }

    /// A SACK that acknowledges the whole of a fully used window; more is in flight.
    pub(in crate::congestion) fn full_ack(path: u8, window: &Window) -> PathAck {
        PathAck {
            path: PathId(path),
            acked: window.cwnd,
            lost_bytes: 0,
            rtt: None,
            flight_before: window.cwnd,
            flight_after: 1,
            may_grow: true,
            lost: false,
            exit_point: 100,
            recovered_to: 0,
        }
    }

    /// A SACK that acknowledges nothing and reports a loss.
    pub(in crate::congestion) fn loss(path: u8, window: &Window) -> PathAck {
        PathAck { acked: 0, lost: true, ..full_ack(path, window) }
    }

    #[test]
    fn sums_leave_out_what_is_not_usable() {
        let dead = Window { usable: false, ..window(50, 1) };
        let group = Group::of(&[window(10, 100), dead.clone(), window(30, 200)]);
        assert_eq!((group.paths, group.cwnd), (2.0, 40_000.0));
        assert_eq!((group.rate, group.top_rate), (250_000.0, 150_000.0));
        assert!((group.top_pull - 1_000_000.0).abs() < 1e-3, "10 packets / (100 ms)²");
        assert_eq!(group.rate_share(&dead), 1.0, "alone");
    }

    #[test]
    fn shares_add_up() {
        let windows = [window(10, 100), window(30, 200)];
        let group = Group::of(&windows);
        assert_eq!(windows.each_ref().map(|window| group.rate_share(window)), [0.4, 0.6]);
        assert_eq!(windows.each_ref().map(|window| group.top_share(window)), [0.6, 0.6]);
        let shares = windows.each_ref().map(|window| group.ssthresh_share(window));
        assert!((shares[0] + shares[1] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_path_without_measurement_counts_as_the_longest() {
        let fresh = Window { srtt: None, ..window(10, 1) };
        let group = Group::of(&[fresh.clone(), window(10, 50), window(20, 200)]);
        assert_eq!(group.rtt_of(&fresh), 0.2);
        assert_eq!(Group::of(&[fresh.clone(), fresh.clone()]).rate_share(&fresh), 0.5);
    }

    #[test]
    fn no_time_at_all_is_finite() {
        let instant = Window { srtt: Some(Duration::ZERO), ..window(1 << 20, 1) };
        let group = Group::of(&[instant.clone(), instant.clone()]);
        assert_eq!(group.rate_share(&instant), 0.5);
        assert!(group.top_pull.is_finite());
        assert_eq!(Group::of(&[]).rate_share(&instant), 1.0);
    }
}
