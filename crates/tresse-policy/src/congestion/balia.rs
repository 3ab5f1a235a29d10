//! BALIA, balanced linked adaptation: a compromise of LIA and OLIA, friendly to single-path flows and yet responsive.
//!
//! It balances fairness to single-path flows, responsiveness and stability. It suits associations over paths of varying
//! quality that share bottlenecks with TCP. On disjoint paths with losses it has less throughput than `rfc9260`: a loss
//! reduces the window of a path that is slower than the best one by up to three quarters, and the window grows more
//! slowly.
//!
//! Peng, Walid, Hwang, Low: "Multipath TCP: Analysis, Design, and Implementation" (IEEE/ACM Transactions on Networking,
//! 2016); draft-walid-mptcp-congestion-control-04. The authors' code for Linux rounds the ratio of rates to whole
//! numbers, so that a loss reduces the window by either 1 or 1.5 halves; here the ratio is exact. The floor after a
//! loss is that of RFC 9260 §7.2.3.

use super::CongestionControl;
use super::group::{Group, whole_bytes};
use super::steps::Earned;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "balia". It has no state beyond the windows.
pub(super) struct Balia;

impl CongestionControl for Balia {
    fn on_sack(&mut self, _now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        let group = Group::of(windows);
        for ack in acks {
            let Some(window) = windows.get_mut(ack.path.index()) else { continue };
            match window.earned(ack) {
                Earned::Nothing => {}
                Earned::SlowStart(bytes) => window.grow(bytes),
                Earned::FullWindow => window.grow(increase(&group, window)),
            }
            if window.recovery_begins(ack) {
                window.cut_to(after_loss(&group, window));
            }
        }
    }

    /// The algorithm leaves timeouts to RFC 9260 §7.2.3.
    fn on_timeout(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.time_out(window.halved());
    }
}

/// Returns the growth of the window in bytes, for one window of acknowledged bytes. With rates x and alpha = max x /
/// x_r, each acknowledged packet adds x_r / (rtt_r (Σx)²) * (1 + alpha)/2 * (4 + alpha)/5 packets. A whole window then
/// adds (share + top) (4 share + top) / 10 packets, where share is x_r / Σx and top is max x / Σx.
fn increase(group: &Group, window: &Window) -> usize {
    let (share, top) = (group.rate_share(window), group.top_share(window));
    let packets = (share + top) * (4.0 * share + top) / 10.0;
    whole_bytes(packets * window.pmdcs as f64).clamp(1, window.pmdcs)
}

/// Returns the window after a loss, in bytes. It is reduced by half on the fastest path, and by more on slower paths.
fn after_loss(group: &Group, window: &Window) -> usize {
    let behind = group.top_share(window) / group.rate_share(window);
    let left = window.cwnd as f64 * (1.0 - behind.min(MOST_HALVES) / 2.0);
    (left.round() as usize).max(window.floor())
}

/// Most halves of its window by which a loss reduces a path.
const MOST_HALVES: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::group::tests::{M, full_ack, loss, window};

    fn after(mut windows: [Window; 2], ack: PathAck) -> [usize; 2] {
        Balia.on_sack(Instant::ZERO, &mut windows, &[ack]);
        windows.map(|window| window.cwnd)
    }

    /// Equal rates: alpha = 1 and share 1/2 give (1/2)² packets, as LIA does.
    #[test]
    fn equal_paths_grow_by_a_quarter_packet_each() {
        let windows = [window(10, 100), window(10, 100)];
        let ack = full_ack(0, &windows[0]);
        assert_eq!(after(windows, ack), [10 * M + M / 4, 10 * M]);
    }

    /// Rates 100 and 400 packets/s. Slower path: alpha = 4, 0.2² * 5/2 * 8/5 = 0.16 packets.
    /// Faster one: alpha = 1, 0.8² = 0.64 packets.
    #[test]
    fn a_slower_path_grows_by_more_than_its_share_squared() {
        let windows = [window(10, 100), window(40, 100)];
        let [slow, fast] = [full_ack(0, &windows[0]), full_ack(1, &windows[1])];
        assert!(after(windows.clone(), slow)[0].abs_diff(10 * M + 160) <= 1);
        assert!(after(windows, fast)[1].abs_diff(40 * M + 640) <= 1);
    }

    /// Rates 100 and 400: the slower path loses 3/4, the faster one half; at 320 and 400, 1.25 halves.
    #[test]
    fn a_loss_takes_more_from_paths_that_are_behind() {
        let windows = [window(10, 100), window(40, 100)];
        assert_eq!(after(windows.clone(), loss(1, &windows[1])), [10 * M, 20 * M]);
        let windows = [window(100, 1000), window(40, 100)];
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [25 * M, 40 * M]);
        let windows = [window(32, 100), window(40, 100)];
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [12 * M, 40 * M]);
    }

    #[test]
    fn a_loss_leaves_four_packets_and_a_timeout_one() {
        let mut windows = [window(10, 100), window(40, 100)];
        assert_eq!(after(windows.clone(), loss(0, &windows[0])), [4 * M, 40 * M]);
        Balia.on_timeout(Instant::ZERO, &mut windows, PathId(1));
        assert_eq!((windows[1].cwnd, windows[1].ssthresh), (M, 20 * M));
    }

    #[test]
    fn alone_it_is_the_uncoupled_algorithm() {
        let unusable = Window { usable: false, ..window(90, 10) };
        let windows = [window(10, 70), unusable];
        assert_eq!(after(windows.clone(), full_ack(0, &windows[0]))[0], 11 * M);
        assert_eq!(after(windows.clone(), loss(0, &windows[0]))[0], 5 * M);
    }
}
