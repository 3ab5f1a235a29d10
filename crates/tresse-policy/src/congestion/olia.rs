//! OLIA, opportunistic linked increases: as little traffic as possible on congested paths, but no idle paths.
//!
//! It aims at Pareto-optimality: no other distribution would help one flow without harm to another. A part of the
//! growth is moved from the paths with the largest windows to those that look best by their losses and yet have small
//! windows. It suits associations that share some of their bottlenecks with TCP. It costs throughput if conditions
//! change quickly: only a packet or two probe a path that was bad, and its window grows late.
//!
//! Khalili, Gast, Popovic, Le Boudec: "MPTCP Is Not Pareto-Optimal" (IEEE/ACM Transactions on Networking, 2013);
//! draft-khalili-mptcp-congestion-control-05. Paths are ranked by ℓ / rtt², as in the authors' code for Linux. With ℓ
//! bytes between losses this orders paths by the rate of TCP, √(2ℓ) / rtt. INET's model takes ℓ² / rtt from the draft,
//! which corresponds to no rate. It also keeps only one ℓ, one path in each set, and an α that integer division makes
//! 0. The floor after a loss is that of RFC 9260 §7.2.3.

use super::CongestionControl;
use super::group::Group;
use super::steps::Earned;
use super::window::{LARGEST, PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "olia".
#[derive(Default)]
pub(super) struct Olia {
    /// History of each path.
    histories: Vec<History>,
}

/// Bytes acknowledged around the last loss of a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct History {
    /// ℓ1: bytes between the last two losses.
    between_losses: u64,
    /// ℓ2: bytes since the last loss.
    since_loss: u64,
}

impl CongestionControl for Olia {
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        self.histories.resize(windows.len(), History::default());
        self.histories[path.index()] = History::default();
    }

    fn on_sack(&mut self, _now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        for ack in acks {
            if let Some(history) = self.histories.get_mut(ack.path.index()) {
                history.since_loss = history.since_loss.saturating_add(ack.acked as u64);
            }
        }
        let ranking = Ranking::of(windows, &self.histories);
        for ack in acks {
            let place = ack.path.index();
            let (Some(window), Some(history)) = (windows.get_mut(place), self.histories.get_mut(place))
            else {
                continue;
            };
            let alpha = ranking.alpha(window, history);
            match window.earned(ack) {
                Earned::Nothing => {}
                Earned::SlowStart(bytes) => window.grow(bytes),
                Earned::FullWindow => change(window, ranking.group.rate_share(window), alpha),
            }
            if window.recovery_begins(ack) {
                history.on_loss();
                window.cut_to(window.halved());
            }
        }
    }

    fn on_timeout(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        if let Some(history) = self.histories.get_mut(path.index()) {
            history.on_loss();
        }
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.time_out(window.halved());
    }
}

impl History {
    /// Returns ℓ.
    fn bytes(&self) -> u64 {
        self.between_losses.max(self.since_loss)
    }

    fn on_loss(&mut self) {
        self.between_losses = self.since_loss;
        self.since_loss = 0;
    }
}

/// Comparison of the usable paths. It represents the sets of the draft by the values that their members have in common.
struct Ranking {
    group: Group,
    /// The largest window.
    largest: usize,
    /// Number of paths with this window.
    largest_count: usize,
    /// The best ℓ / rtt².
    best: f64,
    /// Number of the best paths that have less than the largest window ("collected").
    collected_count: usize,
}

impl Ranking {
    fn of(windows: &[Window], histories: &[History]) -> Self {
        let group = Group::of(windows);
        let usable = || windows.iter().zip(histories).filter(|(window, _)| window.usable);
        let largest = usable().map(|(window, _)| window.cwnd).max().unwrap_or(0);
        let best = usable().map(|(window, history)| quality(&group, window, history)).fold(0.0, f64::max);
        let mut ranking = Ranking { group, largest, largest_count: 0, best, collected_count: 0 };
        ranking.largest_count = usable().filter(|(window, _)| window.cwnd == largest).count();
        ranking.collected_count =
            usable().filter(|(window, history)| ranking.collected(window, history)).count();
        ranking
    }

    fn collected(&self, window: &Window, history: &History) -> bool {
        window.cwnd < self.largest && quality(&self.group, window, history) >= self.best
    }

    /// Returns the path's share in the growth that is moved, in packets for each window; negative for a path whose
    /// growth is moved to others. The sum over all paths is 0.
    fn alpha(&self, window: &Window, history: &History) -> f64 {
        if !window.usable || self.collected_count == 0 {
            0.0
        } else if self.collected(window, history) {
            1.0 / (self.group.paths * self.collected_count as f64)
        } else if window.cwnd == self.largest {
            -1.0 / (self.group.paths * self.largest_count as f64)
        } else {
            0.0
        }
    }
}

/// ℓ / rtt².
fn quality(group: &Group, window: &Window, history: &History) -> f64 {
    let rtt = group.rtt_of(window);
    history.bytes() as f64 / (rtt * rtt)
}

/// Changes the window for one window of acknowledged bytes. The draft adds M ((w / rtt²) / (Σ w/rtt)² + α / w) for each
/// acknowledged byte; over a whole window that is M (share² + α).
fn change(window: &mut Window, share: f64, alpha: f64) {
    let packets = share * share + alpha;
    let bytes = (packets * window.pmdcs as f64).ceil() as isize;
    window.cwnd = window.cwnd.saturating_add_signed(bytes).clamp(window.pmdcs, LARGEST);
    // Slow start must not restore growth that was moved to other paths.
    window.ssthresh = window.ssthresh.min(window.cwnd - 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::group::tests::{M, full_ack, loss, window};

    /// A controller that has seen so many bytes between losses on each path.
    fn olia<const N: usize>(between_losses: [u64; N]) -> Olia {
        let history = |between_losses| History { between_losses, since_loss: 0 };
        Olia { histories: between_losses.map(history).to_vec() }
    }

    fn after<const N: usize>(mut olia: Olia, mut windows: [Window; N], ack: PathAck) -> [usize; N] {
        olia.on_sack(Instant::ZERO, &mut windows, &[ack]);
        windows.map(|window| window.cwnd)
    }

    /// Both have the largest window, so nothing is moved: (1/2)² packets.
    #[test]
    fn equal_paths_grow_by_a_quarter_packet_each() {
        let windows = [window(10, 100), window(10, 100)];
        let ack = full_ack(0, &windows[0]);
        assert_eq!(after(olia([1_000_000, 100]), windows, ack), [10 * M + M / 4, 10 * M]);
    }

    /// Rates 100 and 300: squares 1/16 and 9/16. The smaller window is on the better path: it is the
    /// only one collected and gets 1 / (2 * 1) packets, which the largest gives.
    #[test]
    fn growth_moves_to_the_better_path_with_the_smaller_window() {
        let windows = [window(10, 100), window(30, 100)];
        let [small, large] = [full_ack(0, &windows[0]), full_ack(1, &windows[1])];
        let good = 10_000_000;
        assert_eq!(after(olia([good, 100]), windows.clone(), small)[0], 10 * M + 563);
        assert_eq!(after(olia([good, 100]), windows.clone(), large)[1], 30 * M + 63);
        // The larger window is on the better path: nothing is collected.
        assert_eq!(after(olia([100, good]), windows.clone(), small)[0], 10 * M + 63);
        assert_eq!(after(olia([100, good]), windows, large)[1], 30 * M + 563);
    }

    /// Three paths: the best is collected and gets 1/3, the largest gives 1/3, the third neither.
    /// Rates 100, 200, 100 packets/s: squares of shares 1/16, 4/16, 1/16.
    #[test]
    fn paths_that_are_neither_best_nor_largest_keep_their_part() {
        let windows = [window(10, 100), window(20, 100), window(10, 100)];
        let histories = [10_000_000, 100_000, 50_000];
        let acks = [0, 1, 2].map(|path| full_ack(path, &windows[usize::from(path)]));
        let grown = |place: usize| after(olia(histories), windows.clone(), acks[place])[place];
        assert_eq!(grown(0), 10 * M + 396);
        assert_eq!(grown(1), 20 * M - 83);
        assert_eq!(grown(2), 10 * M + 63);
    }

    #[test]
    fn several_best_paths_share_what_moves() {
        let windows = [window(10, 100), window(10, 100), window(20, 100)];
        let acks = [0, 2].map(|path| full_ack(path, &windows[usize::from(path)]));
        let histories = [10_000_000, 10_000_000, 0];
        // The SACK adds ten packets to the bytes of the first path. After it both best paths have the same bytes.
        let even = [10_000_000, 10_000_000 + 10 * M as u64, 0];
        let first = after(Olia { histories: olia_with_since(even) }, windows.clone(), acks[0]);
        assert_eq!(first[0], 10 * M + 230, "1/16 + 1/6");
        assert_eq!(after(olia(histories), windows, acks[1])[2], 20 * M - 83, "1/4 - 1/3");
    }

    fn olia_with_since<const N: usize>(since: [u64; N]) -> Vec<History> {
        since.map(|since_loss| History { between_losses: 0, since_loss }).to_vec()
    }

    /// 4 MB at 200 ms rank as 1 MB at 100 ms, and so below 2 MB at 100 ms.
    #[test]
    fn paths_are_ranked_by_the_rate_that_their_losses_allow() {
        let group = Group::of(&[window(10, 100), window(10, 200)]);
        let history = |between_losses| History { between_losses, since_loss: 0 };
        let near = quality(&group, &window(10, 100), &history(2_000_000));
        let far = quality(&group, &window(10, 200), &history(4_000_000));
        assert!((near / far - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_path_is_judged_by_its_longer_run() {
        let mut history = History { between_losses: 500, since_loss: 300 };
        assert_eq!(history.bytes(), 500);
        history.on_loss();
        assert_eq!((history.between_losses, history.since_loss, history.bytes()), (300, 0, 300));
    }

    #[test]
    fn a_loss_and_a_timeout_begin_a_new_run() {
        let mut windows = [window(20, 100), window(30, 100)];
        let mut olia = olia([7, 8]);
        let ack = full_ack(0, &windows[0]);
        let lost = PathAck { path: PathId(1), ..loss(1, &windows[1]) };
        olia.on_sack(Instant::ZERO, &mut windows, &[ack, lost]);
        assert_eq!(windows[1].cwnd, 15 * M);
        olia.on_timeout(Instant::ZERO, &mut windows, PathId(0));
        assert_eq!(windows[0].cwnd, M);
        let run = History { between_losses: 20 * M as u64, since_loss: 0 };
        assert_eq!(olia.histories, [run, History::default()]);
    }

    /// Share 1/3, two paths: the window changes by 1/9 - 1/2 packets, and slow start does not restore it.
    #[test]
    fn a_window_that_gives_stays_out_of_slow_start() {
        let mut windows = [window(20, 200), window(10, 50)];
        let ack = full_ack(0, &windows[0]);
        olia([0, 1_000_000_000]).on_sack(Instant::ZERO, &mut windows, &[ack]);
        assert_eq!(windows[0].cwnd, 20 * M - 388);
        assert!(windows[0].ssthresh < windows[0].cwnd);
    }

    #[test]
    fn alone_it_is_the_uncoupled_algorithm() {
        let windows = [window(10, 70), Window { usable: false, ..window(90, 10) }];
        let ack = full_ack(0, &windows[0]);
        assert_eq!(after(olia([0, 1_000_000]), windows, ack)[0], 11 * M);
    }
}
