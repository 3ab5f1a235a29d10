//! CMT/RPv1: paths grow by their share of the sum of all thresholds, and a loss reduces a window by half of the sum of
//! all windows.
//!
//! It aims at fairness: an association takes about one flow's share of a bottleneck however many of its paths cross it,
//! and moves its traffic away from congested paths. It suits networks where paths share bottlenecks. It costs
//! throughput where they do not: the window of a path that has at most half of the sum of all windows falls to one
//! packet at any loss, and then grows by its small part of the sum of all thresholds. It compares windows as if all
//! round-trip times were equal; CMT/RPv2 does not.
//!
//! Dreibholz, Becke, Pulinthanath, Rathgeb: "Applying TCP-Friendly Congestion Control to Concurrent Multipath Transfer"
//! (AINA 2010). The formulas and the smallest window of one packet are those of the authors' model in INET. A switch of
//! the model stops sending on a path for an RTO if the reduction goes below one packet; it is off by default there and
//! absent here. FreeBSD has other floors.

use super::group::Group;
use super::pooled::Pooled;
use super::window::Window;

/// The controller "cmt_rp_v1".
pub(super) fn controller() -> Pooled {
    Pooled::new(Group::ssthresh_share, after_loss)
}

/// Returns the window after a loss, in bytes: reduced by half of the sum of all windows, but at least one packet. The
/// model's other floor, the path's share of one packet, is never larger.
fn after_loss(group: &Group, window: &Window) -> usize {
    // The sum omits a path that is not usable. The window of such a path is reduced by half of itself at least.
    let total = group.cwnd.max(window.cwnd as f64);
    ((window.cwnd as f64 - total / 2.0) as usize).max(window.pmdcs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionControl;
    use crate::congestion::group::tests::{M, full_ack, loss, window};
    use crate::congestion::window::PathAck;
    use crate::path::PathId;
    use crate::time::Instant;

    fn with_ssthresh(window: Window, packets: usize) -> Window {
        Window { ssthresh: packets * M, ..window }
    }

    fn after(mut windows: [Window; 2], ack: PathAck) -> [usize; 2] {
        controller().on_sack(Instant::ZERO, &mut windows, &[ack]);
        windows.map(|window| window.cwnd)
    }

    /// Thresholds of 10 and 30 packets: growth by a quarter of a packet, or of the acknowledged bytes.
    #[test]
    fn growth_is_shared_by_thresholds() {
        let avoiding = [with_ssthresh(window(20, 100), 10), with_ssthresh(window(20, 10), 30)];
        assert_eq!(after(avoiding.clone(), full_ack(0, &avoiding[0]))[0], 20 * M + M / 4);

        let starting = [with_ssthresh(window(8, 100), 10), with_ssthresh(window(20, 10), 30)];
        assert_eq!(after(starting.clone(), full_ack(0, &starting[0]))[0], 8 * M + M / 4);
        let short = PathAck { acked: 401, ..full_ack(0, &starting[0]) };
        assert_eq!(after(starting, short)[0], 8 * M + 101, "rounded up");
    }

    /// 40 of 50 packets: 40 - 50/2 are left. 10 of 50: one packet.
    #[test]
    fn a_loss_costs_half_of_all_windows() {
        let windows = [window(40, 100), window(10, 100)];
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [15 * M, 10 * M]);
        assert_eq!(after(windows.clone(), loss(1, &windows[1])), [40 * M, M]);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_the_threshold_of_a_loss() {
        let mut windows = [window(40, 100), window(10, 100)];
        controller().on_timeout(Instant::ZERO, &mut windows, PathId(0));
        assert_eq!((windows[0].cwnd, windows[0].ssthresh), (M, 15 * M));
        controller().on_timeout(Instant::ZERO, &mut windows, PathId(1));
        assert_eq!((windows[1].cwnd, windows[1].ssthresh), (M, 10 * M - 11 * M / 2));
    }

    #[test]
    fn alone_it_grows_and_is_cut_as_one_flow() {
        let windows = [window(20, 100), Window { usable: false, ..window(90, 10) }];
        assert_eq!(after(windows.clone(), full_ack(0, &windows[0]))[0], 21 * M);
        assert_eq!(after(windows.clone(), loss(0, &windows[0]))[0], 10 * M);
        assert_eq!(after(windows.clone(), loss(1, &windows[1]))[1], 45 * M, "not counted");
    }

    #[test]
    fn sums_are_those_before_the_sack() {
        let mut windows = [window(40, 100), window(40, 100)];
        let losses = [loss(0, &windows[0]), loss(1, &windows[1])];
        controller().on_sack(Instant::ZERO, &mut windows, &losses);
        assert_eq!(windows.map(|window| window.cwnd), [M, M]);
    }
}
