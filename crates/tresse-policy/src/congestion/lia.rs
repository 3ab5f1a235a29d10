//! LIA, the linked increases of RFC 6356: coupled increase, separate decrease.
//!
//! It aims at fairness where paths share a bottleneck: all paths together take about the throughput of one flow on the
//! best of them, and never more than one flow's share of any. It suits associations that must not harm TCP. On disjoint
//! paths with losses it has less throughput than `rfc9260`, because it grows more slowly, which helps no other flow
//! there. It also keeps sending more than is optimal over congested paths; OLIA avoids this.
//!
//! INET's CMT-SCTP couples slow start too; RFC 6356 and this controller do not. In the RFC a window in recovery counts
//! with its ssthresh. Here that is its cwnd, because SCTP does not inflate windows.

use super::CongestionControl;
use super::group::{Group, whole_bytes};
use super::steps::Earned;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "lia". It has no state beyond the windows.
pub(super) struct Lia;

impl CongestionControl for Lia {
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
                window.cut_to(window.halved());
            }
        }
    }

    fn on_timeout(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.time_out(window.halved());
    }
}

/// Returns the growth of the window in bytes, for one window of acknowledged bytes. RFC 6356 §3 adds, for each acknowledged byte, the
/// smaller of alpha * M / total and M / cwnd. Over a whole window the latter is one packet, as without coupling.
fn increase(group: &Group, window: &Window) -> usize {
    let packet = window.pmdcs as f64;
    // alpha / total, by §3 (2): the largest cwnd / rtt² over the square of all cwnd / rtt.
    let linked = group.top_pull / (group.rate * group.rate) * window.cwnd as f64 * packet;
    // If no path is usable, the sum of the rates is 0, and the window grows as if it were alone.
    whole_bytes(linked.min(packet)).clamp(1, window.pmdcs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::group::tests::{M, full_ack, loss, window};

    fn after(mut windows: [Window; 2], ack: PathAck) -> [usize; 2] {
        Lia.on_sack(Instant::ZERO, &mut windows, &[ack]);
        windows.map(|window| window.cwnd)
    }

    /// Ten packets at 100 ms on both: alpha = 20 * (10 / 0.01) / (200)² = 0.5, so each adds
    /// 0.5 * 10 / 20 = 1/4 packet a round trip.
    #[test]
    fn equal_paths_grow_by_a_quarter_packet_each() {
        let windows = [window(10, 100), window(10, 100)];
        let ack = full_ack(0, &windows[0]);
        assert_eq!(after(windows, ack), [10 * M + M / 4, 10 * M]);
    }

    /// 10 packets at 100 ms, 40 at 200 ms: cwnd/rtt² is 1000 on both, the rates are 100 and 200, so
    /// alpha = 50 * 1000 / 300² = 0.5556; increases 0.5556 * 10 / 50 and 0.5556 * 40 / 50 packets.
    #[test]
    fn a_longer_path_with_a_larger_window_grows_by_its_part() {
        let windows = [window(10, 100), window(40, 200)];
        let [first, second] = [full_ack(0, &windows[0]), full_ack(1, &windows[1])];
        assert_eq!(after(windows.clone(), first)[0], 10 * M + 112);
        assert_eq!(after(windows, second)[1], 40 * M + 445);
    }

    /// 2 packets at 10 ms, 40 at 1 s: alpha = 42 * 20,000 / 240² = 14.58, so the second path would
    /// add 13.9 packets; one flow adds 1.
    #[test]
    fn no_path_grows_faster_than_one_flow_would() {
        let windows = [window(2, 10), window(40, 1000)];
        let ack = full_ack(1, &windows[1]);
        assert_eq!(after(windows, ack)[1], 41 * M);
    }

    #[test]
    fn alone_it_is_the_uncoupled_algorithm() {
        let unusable = Window { usable: false, ..window(10, 100) };
        let windows = [window(10, 70), unusable.clone()];
        let ack = full_ack(0, &windows[0]);
        assert_eq!(after(windows, ack)[0], 11 * M);
        let stranger = full_ack(1, &unusable);
        let nobody = [unusable.clone(), unusable];
        assert_eq!(after(nobody, stranger)[1], 11 * M, "no usable path at all");
    }

    #[test]
    fn slow_start_and_losses_are_not_coupled() {
        let starting = Window { ssthresh: 1 << 30, ..window(10, 100) };
        let ack = full_ack(0, &starting);
        assert_eq!(after([starting, window(10, 100)], ack), [11 * M, 10 * M]);

        let windows = [window(20, 100), window(30, 100)];
        let lost = loss(0, &windows[0]);
        assert_eq!(after(windows.clone(), lost), [10 * M, 30 * M]);
        let mut windows = windows;
        Lia.on_timeout(Instant::ZERO, &mut windows, PathId(1));
        assert_eq!((windows[1].cwnd, windows[1].ssthresh), (M, 15 * M));
    }
}
