//! CMT/RPv2: paths grow by their share of the sum of all rates (cwnd / srtt), and a loss reduces a rate by half of
//! that sum.
//!
//! It aims at fairness at shared bottlenecks as CMT/RPv1 does, and weights windows by round-trip times, so that paths
//! of unequal delay can share a bottleneck. It costs throughput on disjoint paths: the window of a path that has at
//! most half of the sum of all rates falls to one packet at any loss, and then grows by its small part of that sum. If
//! all paths are equal, this holds for each of them.
//!
//! Dreibholz, Becke, Adhari, Rathgeb: "On the Impact of Congestion Control for Concurrent Multipath Transfer on the
//! Transport Layer" (ConTEL 2011). The formulas and the smallest window of one packet are those of the authors' model
//! in INET, without its switch that stops sending on a path (off by default there). FreeBSD computes rates in whole
//! bytes per tick, which are 0 for small windows; here no rate is 0.

use super::group::Group;
use super::pooled::Pooled;
use super::window::Window;

/// The controller "cmt_rp_v2".
pub(super) fn controller() -> Pooled {
    Pooled::new(Group::rate_share, after_loss)
}

/// Returns the window after a loss, in bytes. The path's rate is reduced by half of the sum of all rates, but at least by half.
fn after_loss(group: &Group, window: &Window) -> usize {
    let given_up = (0.5 / group.rate_share(window)).clamp(0.5, 1.0);
    ((window.cwnd as f64 * (1.0 - given_up)) as usize).max(window.pmdcs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionControl;
    use crate::congestion::group::tests::{M, full_ack, loss, window};
    use crate::congestion::window::PathAck;
    use crate::path::PathId;
    use crate::time::Instant;

    fn after(mut windows: [Window; 2], ack: PathAck) -> [usize; 2] {
        controller().on_sack(Instant::ZERO, &mut windows, &[ack]);
        windows.map(|window| window.cwnd)
    }

    /// 10 packets in 100 ms and 60 in 200 ms: rates 100 and 300 packets/s.
    #[test]
    fn growth_is_shared_by_rates() {
        let windows = [window(10, 100), window(60, 200)];
        let [slow, fast] = [full_ack(0, &windows[0]), full_ack(1, &windows[1])];
        assert_eq!(after(windows.clone(), slow)[0], 10 * M + M / 4);
        assert_eq!(after(windows, fast)[1], 60 * M + 3 * M / 4);

        let starting = [Window { ssthresh: 1 << 30, ..window(10, 100) }, window(60, 200)];
        let short = PathAck { acked: 401, ..full_ack(0, &starting[0]) };
        assert_eq!(after(starting, short)[0], 10 * M + 101, "rounded up");
    }

    /// Rates 100 and 400: half of all is 250, which is 5/8 of the faster path and all of the slower.
    #[test]
    fn a_loss_costs_half_of_the_whole_rate() {
        let windows = [window(10, 100), window(80, 200)];
        assert_eq!(after(windows.clone(), loss(1, &windows[1])), [10 * M, 30 * M]);
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [M, 80 * M]);
    }

    #[test]
    fn of_equal_paths_a_loss_leaves_one_packet() {
        let windows = [window(40, 100), window(40, 100)];
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [M, 40 * M]);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_the_threshold_of_a_loss() {
        let mut windows = [window(10, 100), window(80, 200)];
        controller().on_timeout(Instant::ZERO, &mut windows, PathId(1));
        assert_eq!((windows[1].cwnd, windows[1].ssthresh), (M, 30 * M));
    }

    #[test]
    fn alone_it_grows_and_is_cut_as_one_flow() {
        let windows = [window(20, 100), Window { usable: false, ..window(90, 10) }];
        assert_eq!(after(windows.clone(), full_ack(0, &windows[0]))[0], 21 * M);
        assert_eq!(after(windows.clone(), loss(0, &windows[0]))[0], 10 * M);
        assert_eq!(after(windows.clone(), loss(1, &windows[1]))[1], 45 * M, "not counted");
    }
}
