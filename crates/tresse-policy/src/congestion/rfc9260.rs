//! RFC 9260 §7.2 on each path separately: slow start, congestion avoidance, reduction of the window by half after a loss.
//!
//! It maximises the throughput of each path alone, which suits disjoint paths. It is unfair where paths share a
//! bottleneck: an association of n paths takes the share of n flows.

use super::CongestionControl;
use super::steps::Earned;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "rfc9260". It has no state beyond the windows.
pub(super) struct Rfc9260;

impl CongestionControl for Rfc9260 {
    fn on_sack(&mut self, _now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        for ack in acks {
            let Some(window) = windows.get_mut(ack.path.index()) else { continue };
            match window.earned(ack) {
                Earned::Nothing => {}
                Earned::SlowStart(bytes) => window.grow(bytes),
                Earned::FullWindow => window.grow(window.pmdcs),
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

#[cfg(test)]
mod tests {
    use super::*;

    const M: usize = 1468;

    fn window(cwnd: usize, ssthresh: usize) -> Window {
        Window { cwnd, ssthresh, ..Window::new(M, false, 0) }
    }

    fn ack(acked: usize, flight_before: usize) -> PathAck {
        PathAck {
            path: PathId(0),
            acked,
            lost_bytes: 0,
            rtt: None,
            flight_before,
            flight_after: flight_before - acked,
            may_grow: true,
            lost: false,
            exit_point: 100,
            recovered_to: 0,
        }
    }

    fn after_sack(window: Window, ack: PathAck) -> Window {
        let mut windows = [window];
        Rfc9260.on_sack(Instant::ZERO, &mut windows, &[ack]);
        let [window] = windows;
        window
    }

    #[test]
    fn slow_start_adds_at_most_one_packet_a_sack() {
        assert_eq!(after_sack(window(4404, 65_536), ack(2 * M, 4404)).cwnd, 4404 + M);
        assert_eq!(after_sack(window(4404, 65_536), ack(100, 4404)).cwnd, 4404 + 100);
        assert_eq!(after_sack(window(4404, 4404), ack(M, 4404)).cwnd, 4404 + M, "cwnd = ssthresh");
    }

    #[test]
    fn a_window_that_is_not_fully_used_does_not_grow() {
        assert_eq!(after_sack(window(4404, 65_536), ack(M, 4403)).cwnd, 4404);
    }

    #[test]
    fn congestion_avoidance_adds_one_packet_for_each_window() {
        let mut window = window(4 * M, 3 * M);
        for expected in [(4 * M, 2 * M), (5 * M, 0), (5 * M, 2 * M), (5 * M, 4 * M), (6 * M, M)] {
            let cwnd = window.cwnd;
            window = after_sack(window, ack(2 * M, cwnd));
            assert_eq!((window.cwnd, window.partial_bytes_acked), expected);
        }
    }

    #[test]
    fn unused_credit_is_kept_up_to_one_window() {
        let window = after_sack(window(4 * M, 3 * M), ack(3 * M, 3 * M));
        assert_eq!((window.cwnd, window.partial_bytes_acked), (4 * M, 0), "drained");

        let lazy = Window { partial_bytes_acked: 3 * M, ..window };
        let lazy = after_sack(lazy, ack(2 * M, 3 * M));
        assert_eq!((lazy.cwnd, lazy.partial_bytes_acked), (4 * M, 4 * M));

        let busy = after_sack(lazy, ack(M, 4 * M));
        assert_eq!((busy.cwnd, busy.partial_bytes_acked), (5 * M, M));
    }

    #[test]
    fn growth_comes_before_the_cut() {
        let lost = PathAck { lost: true, ..ack(M, 20 * M) };
        let window = after_sack(window(20 * M, 40 * M), lost);
        assert_eq!(window.ssthresh, 21 * M / 2);
        assert_eq!(window.cwnd, window.ssthresh);
        assert_eq!(window.recovery, Some(100));
    }

    #[test]
    fn a_recovery_cuts_once_and_freezes_the_window() {
        let lost = PathAck { lost: true, ..ack(M, 20 * M) };
        let cut = after_sack(window(20 * M, 10 * M), lost);
        assert_eq!((cut.cwnd, cut.partial_bytes_acked), (10 * M, 0));
        let again = after_sack(cut.clone(), PathAck { recovered_to: 99, ..lost });
        assert_eq!(again, cut);
        let out = after_sack(again, PathAck { recovered_to: 100, lost: false, ..lost });
        assert_eq!((out.cwnd, out.recovery), (10 * M, None));
    }

    #[test]
    fn a_cut_leaves_four_packets() {
        let lost = PathAck { lost: true, may_grow: false, ..ack(M, 5 * M) };
        assert_eq!(after_sack(window(5 * M, 65_536), lost).cwnd, 4 * M);
    }

    #[test]
    fn a_cut_leaves_two_packets_where_rfc_2960_is_followed() {
        let lost = PathAck { lost: true, may_grow: false, ..ack(M, 5 * M) };
        let window = |packets| Window { min_ssthresh: 2, ..window(packets * M, 65_536) };
        assert_eq!(after_sack(window(5), lost).cwnd, 5 * M / 2);
        assert_eq!(after_sack(window(3), lost).cwnd, 2 * M);
    }

    #[test]
    fn one_sack_moves_each_path_by_itself() {
        let mut windows = [window(10 * M, 65_536), window(20 * M, 65_536)];
        let lost = PathAck { path: PathId(1), lost: true, may_grow: false, ..ack(M, 20 * M) };
        Rfc9260.on_sack(Instant::ZERO, &mut windows, &[ack(M, 10 * M), lost]);
        assert_eq!(windows.map(|window| window.cwnd), [11 * M, 10 * M]);
    }

    #[test]
    fn a_timeout_leaves_one_packet() {
        let mut windows = [Window { recovery: Some(7), partial_bytes_acked: 9, ..window(20 * M, 65_536) }];
        Rfc9260.on_timeout(Instant::ZERO, &mut windows, PathId(0));
        assert_eq!((windows[0].cwnd, windows[0].ssthresh), (M, 10 * M));
        assert_eq!((windows[0].recovery, windows[0].partial_bytes_acked), (None, 0));
        Rfc9260.on_timeout(Instant::ZERO, &mut windows, PathId(0));
        assert_eq!((windows[0].cwnd, windows[0].ssthresh), (M, 4 * M));
    }

    #[test]
    fn idleness_halves_down_to_four_packets_and_remembers_the_first_window() {
        let mut windows = [window(20 * M, 1 << 30)];
        for cwnd in [10 * M, 5 * M, 4 * M, 4 * M] {
            Rfc9260.on_idle(Instant::ZERO, &mut windows, PathId(0));
            assert_eq!((windows[0].cwnd, windows[0].ssthresh), (cwnd, 20 * M));
        }
    }

    #[test]
    fn idleness_never_makes_a_window_larger() {
        let mut windows = [window(M, 10 * M)];
        Rfc9260.on_idle(Instant::ZERO, &mut windows, PathId(0));
        assert_eq!(windows, [window(M, 10 * M)]);
    }
}
