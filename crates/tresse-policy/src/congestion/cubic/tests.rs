use std::time::Duration;

use super::*;
use crate::congestion::group::tests::{M, full_ack, loss, window};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn sizes(window: &Window) -> Sizes {
    Sizes { cwnd: window.cwnd, ssthresh: window.ssthresh }
}

/// A controller of one path, with its window.
struct One {
    cubic: Cubic<false>,
    windows: [Window; 1],
}

impl One {
    fn new(window: Window) -> Self {
        One {
            cubic: Cubic {
                curves: Some(Box::new(Curves { by_path: vec![Curve::default()], ..Curves::default() })),
            },
            windows: [window],
        }
    }

    fn ack(&mut self, now: Instant, acked: usize) {
        let ack = PathAck { acked, ..full_ack(0, &self.windows[0]) };
        self.cubic.on_sack(now, &mut self.windows, &[ack]);
    }

    /// A loss at `now`, with recovery at the same instant.
    fn lose(&mut self, now: Instant) {
        let lost = loss(0, &self.windows[0]);
        let recovered = PathAck { lost: false, recovered_to: lost.exit_point, ..lost };
        self.cubic.on_sack(now, &mut self.windows, &[lost]);
        self.cubic.on_sack(now, &mut self.windows, &[recovered]);
    }

    fn curve(&mut self) -> &mut Curve {
        self.cubic.curve(PathId(0))
    }

    fn packets(&self) -> f64 {
        self.windows[0].cwnd as f64 / M as f64
    }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

#[test]
fn a_loss_leaves_seven_tenths() {
    let mut one = One::new(window(100, 100));
    one.lose(at(0));
    assert_eq!((one.windows[0].cwnd, one.windows[0].ssthresh), (70 * M, 70 * M));
    assert_eq!((one.curve().plateau, one.curve().prior), (100.0, 100.0));
}

/// From 1,000 packets down to 700: K = ∛(300 / 0.4) = 9.086 s. With a round trip of 100 ms and all
/// windows acknowledged, the window follows 0.4 (t - K)³ + 1000, one round trip ahead.
#[test]
fn a_loss_cuts_the_window_as_the_same_report_has_let_it_grow() {
    let (mut grown, mut cut) = (One::new(window(100, 1000)), One::new(window(100, 1000)));
    let lost = loss(0, &cut.windows[0]);
    let ack = PathAck { acked: M, ..full_ack(0, &cut.windows[0]) };
    grown.cubic.on_sack(at(0), &mut grown.windows, &[ack]);
    assert!(grown.packets() > 100.0, "it grows");
    let both = PathAck { lost: true, exit_point: lost.exit_point, ..ack };
    cut.cubic.on_sack(at(0), &mut cut.windows, &[both]);
    assert_eq!(cut.curve().prior, grown.packets());
    assert_eq!(cut.windows[0].cwnd, grown.windows[0].cwnd * 7 / 10);
}

#[test]
fn the_window_follows_the_curve_to_the_old_maximum_and_beyond() {
    let mut one = One::new(window(1000, 100));
    one.lose(at(0));
    one.windows[0].ssthresh -= 1; // past the one step of slow start at cwnd = ssthresh
    for step in 0..=90 {
        one.ack(at(step * 100), one.windows[0].cwnd);
    }
    near(one.curve().stage.unwrap().to_plateau, 9.0856, 1e-4);
    // 9.0 s: W_cubic(9.1) = 0.4 * 0.0144³ + 1000.
    near(one.packets(), 1000.0, 0.01);
    for step in 91..=140 {
        one.ack(at(step * 100), one.windows[0].cwnd);
    }
    // 14.0 s: W_cubic(14.1) = 0.4 * 5.0144³ + 1000 = 1050.4.
    near(one.packets(), 1050.4, 0.1);
}

/// Half a window is acknowledged: the window grows by half of the distance to the target.
#[test]
fn growth_is_in_proportion_to_what_is_acknowledged() {
    let mut one = One::new(window(700, 100));
    *one.curve() = Curve { plateau: 1000.0, prior: 1000.0, ..Curve::default() };
    one.ack(at(0), M);
    near(one.packets(), 700.0, 0.001);
    one.ack(at(100), 350 * M);
    // W_cubic(0.2) = 0.4 * (0.2 - 9.0856)³ + 1000 = 719.38
    near(one.packets(), 700.0 + 19.38 / 2.0, 0.01);
}

/// At ten packets and 10 ms the curve is slower than Reno: from 14 packets, Reno grows by 0.5294
/// packets in a round trip until it is back at 20, then by one.
#[test]
fn it_is_never_slower_than_reno_on_short_paths() {
    let mut one = One::new(window(20, 10));
    one.lose(at(0));
    assert_eq!(one.windows[0].cwnd, 14 * M);
    one.windows[0].ssthresh -= 1;
    one.ack(at(10), 14 * M);
    near(one.packets(), 14.529, 0.001);
    one.ack(at(20), one.windows[0].cwnd);
    near(one.packets(), 15.059, 0.002);
    one.curve().stage.as_mut().unwrap().reno = 20.0;
    one.ack(at(30), one.windows[0].cwnd);
    near(one.packets(), 21.0, 0.3);
}

/// The second loss is below the first one's plateau of 100: W_max = 80 * 1.7 / 2 = 68.
#[test]
fn a_lower_loss_lowers_the_plateau_further() {
    let mut one = One::new(window(100, 100));
    one.lose(at(0));
    one.windows[0].cwnd = 80 * M;
    one.lose(at(500));
    near(one.curve().plateau, 68.0, 1e-9);
    near(one.curve().prior, 80.0, 1e-9);
    assert_eq!(one.windows[0].cwnd, 56 * M);
}

#[test]
fn growth_in_one_sack_is_below_slow_start() {
    let mut one = One::new(window(10, 100));
    one.ack(at(60_000), M);
    one.curve().stage.as_mut().unwrap().start = at(0);
    // Far up the curve the target is 1.5 times the window: half of the acknowledged packets are added.
    one.ack(at(60_100), M);
    near(one.packets(), 10.0 + 0.1 + 0.5, 0.05);
}

#[test]
fn time_without_full_use_does_not_count() {
    let mut busy = One::new(window(1000, 100));
    busy.ack(at(0), M);
    let mut lazy = One::new(window(1000, 100));
    lazy.ack(at(0), M);
    let unused = PathAck { acked: M, flight_before: M, ..full_ack(0, &lazy.windows[0]) };
    lazy.cubic.on_sack(at(20_000), &mut lazy.windows, &[unused]);
    assert_eq!(lazy.windows, busy.windows);

    lazy.ack(at(20_100), 100 * M);
    busy.ack(at(100), 100 * M);
    assert_eq!(lazy.windows, busy.windows);
}

/// Nothing is acknowledged for 20 s, then the whole of a window that was filled at once.
#[test]
fn a_pause_does_not_count_though_the_next_report_finds_the_window_full() {
    let mut busy = One::new(window(1000, 100));
    let mut paused = One::new(window(1000, 100));
    busy.ack(at(0), M);
    paused.ack(at(0), M);
    paused.ack(at(20_000), M);
    assert_eq!(paused.windows, busy.windows);
    paused.ack(at(20_100), 100 * M);
    busy.ack(at(100), 100 * M);
    assert_eq!(paused.windows, busy.windows);
}

#[test]
fn idleness_ends_the_stage_and_shrinks_the_window() {
    let mut one = One::new(window(100, 100));
    one.lose(at(0));
    one.windows[0].ssthresh -= 1;
    one.ack(at(100), M);
    one.cubic.on_idle(at(2000), &mut one.windows, PathId(0));
    assert_eq!(one.windows[0].cwnd, (70 * M + 529 * M / 1000 / 70).div_ceil(2) - 1);
    assert_eq!(one.curve().stage, None);
}

/// After a timeout the next stage begins at its plateau: K = 0, W_max = the window then.
#[test]
fn a_timeout_leaves_one_packet_and_forgets_the_plateau() {
    let mut one = One::new(window(100, 100));
    one.cubic.on_timeout(at(0), &mut one.windows, PathId(0));
    assert_eq!((one.windows[0].cwnd, one.windows[0].ssthresh), (M, 70 * M));
    one.windows[0].cwnd = 71 * M;
    one.ack(at(1000), M);
    let curve = *one.curve();
    assert_eq!((curve.plateau, curve.stage.unwrap().to_plateau), (71.0, 0.0));
}

#[test]
fn a_cut_leaves_what_rfc_9260_leaves() {
    let mut one = One::new(window(5, 100));
    one.lose(at(0));
    assert_eq!(one.windows[0].cwnd, 4 * M);
}

/// Every other SACK finds the window full: time counts, and the growth of the others is made up for.
#[test]
fn a_window_counts_as_used_for_a_round_trip() {
    let mut busy = One::new(window(1000, 100));
    let mut bursts = One::new(window(1000, 100));
    for step in 0..=20 {
        busy.ack(at(step * 50), 500 * M);
        let full = full_ack(0, &bursts.windows[0]);
        let flight_before = if step % 2 == 0 { full.flight_before } else { full.flight_before - M };
        bursts.cubic.on_sack(
            at(step * 50),
            &mut bursts.windows,
            &[PathAck { acked: 500 * M, flight_before, ..full }],
        );
        assert!(step % 2 == 0 || bursts.windows[0].cwnd < busy.windows[0].cwnd);
    }
    near(bursts.packets(), busy.packets(), 0.01 * busy.packets());
}

#[test]
fn slow_start_is_that_of_rfc_9260() {
    let mut one = One::new(Window { ssthresh: 1 << 30, ..window(10, 100) });
    one.ack(at(0), 10 * M);
    assert_eq!(one.windows[0].cwnd, 11 * M);
    assert_eq!(one.curve().stage, None);
}

/// Ten packets and 100 ms; from the second round on a queue makes that 120 ms. The window grows by a packet for each
/// packet until the queue is detected, and by a quarter of one in the rest of five rounds. Then the window becomes the
/// threshold, and the curve begins there.
#[test]
fn the_first_slow_start_ends_when_round_trips_become_longer() {
    let mut one = One::new(Window { ssthresh: 1 << 30, ..window(10, 100) });
    let mut grown = Vec::new();
    for round in 0..7 {
        for sample in 0..10 {
            let rtt = ms(if round == 0 { 100 } else { 120 });
            let ack = PathAck { acked: M, rtt: Some(rtt), ..full_ack(0, &one.windows[0]) };
            one.cubic.on_sack(at(200 * round + sample), &mut one.windows, &[ack]);
        }
        grown.push(one.windows[0].cwnd);
    }
    // There is no measurement at the first growth. The eighth round trip of the second round makes growth slow.
    assert_eq!(grown[..6], [20_000, 27_750, 30_250, 32_750, 35_250, 37_750]);
    assert_eq!(one.windows[0].ssthresh, 37_750);
    assert_eq!(one.curve().plateau, 38.75, "after one step at the threshold");
}

/// RFC 9438 §4.9.2, and §4.9.1 for a series of timeouts: the curve continues from its state before.
#[test]
fn a_cut_that_was_for_nothing_is_taken_back_with_its_curve() {
    for timeouts in 0..3 {
        let mut one = One::new(window(100, 100));
        one.lose(at(0));
        one.ack(at(100), 70 * M);
        let (before, windows) = (*one.curve(), one.windows.clone());
        if timeouts == 0 {
            one.lose(at(200));
        }
        for _ in 0..timeouts {
            one.cubic.on_timeout(at(200), &mut one.windows, PathId(0));
            one.windows[0].one_packet = true;
        }
        one.cubic.on_spurious(at(300), &mut one.windows, PathId(0), sizes(&windows[0]));
        assert_eq!(one.windows[0].cwnd, windows[0].cwnd);
        assert_eq!(*one.curve(), Curve { before: None, ..before });
    }
}

/// Feeds `cubic` two constant windows over one queue, whose delay both paths have, for 60 s or until it takes the paths
/// for one flow. Returns the time at the end, in ms.
fn over_one_queue(cubic: &mut Cubic<true>, windows: &mut [Window; 2]) -> u64 {
    let mut now = 0;
    while now < 60_000 && cubic.shares_with(PathId(0)).is_none() {
        now += 10;
        // The delay varies without a pattern, from one interval of 70 ms to the next.
        let delay = Some(ms(100 + (now / 70) * (now / 70) % 17));
        let acks = [0, 1].map(|path| PathAck {
            acked: 0,
            rtt: delay,
            ..full_ack(path, &windows[usize::from(path)])
        });
        cubic.on_sack(at(now), windows, &acks);
    }
    now
}

/// Two windows in congestion avoidance, found to share a bottleneck.
fn companions() -> (Cubic<true>, [Window; 2], u64) {
    let mut cubic = Cubic::<true>::default();
    for path in 0..2 {
        cubic.start(PathId(path)).end();
    }
    let mut windows = [window(20, 100), window(10, 100)];
    let now = over_one_queue(&mut cubic, &mut windows);
    assert!(cubic.shares_with(PathId(0)).is_some(), "never found out");
    (cubic, windows, now)
}

/// Windows of separate paths that start together double together. The later slow starts follow timeouts.
#[test]
fn delays_in_the_first_slow_start_tell_nothing_of_a_common_queue() {
    for (over, found) in [(false, None), (true, Some(PathId(1)))] {
        let mut cubic = Cubic::<true>::default();
        cubic.start(PathId(1)).end();
        if over {
            cubic.start(PathId(0)).end();
        }
        let starting = Window { ssthresh: LARGEST, ..window(40, 100) };
        over_one_queue(&mut cubic, &mut [starting, window(20, 100)]);
        assert_eq!(cubic.shares_with(PathId(0)), found);
    }
}

#[test]
fn paths_that_are_found_to_share_a_bottleneck_keep_their_windows() {
    let (cubic, windows, _) = companions();
    assert_eq!(windows.map(|window| window.cwnd), [20 * M, 10 * M]);
    assert_eq!(cubic.shares_with(PathId(1)), Some(PathId(0)));
    assert_eq!(Cubic::<false>::default().shares_with(PathId(1)), None);
}

/// A loss costs three tenths of both windows together, and a second loss within the round trip costs nothing.
#[test]
fn one_flow_pays_for_a_loss_once_and_on_the_path_that_lost() {
    let (mut cubic, mut windows, now) = companions();
    for path in [0, 1] {
        let lost = loss(path, &windows[usize::from(path)]);
        cubic.on_sack(at(now + 50 + u64::from(path)), &mut windows, &[lost]);
    }
    assert_eq!(windows.each_ref().map(|window| window.cwnd), [11 * M, 10 * M]);
    assert!(windows.iter().all(|window| window.recovery.is_some()));
    let again = PathAck { exit_point: 300, recovered_to: 200, ..loss(1, &windows[1]) };
    cubic.on_sack(at(now + 500), &mut windows, &[again]);
    assert_eq!(
        windows.map(|window| window.cwnd),
        [11 * M, 10 * M - 6_301],
        "three tenths of 21 packets, rounded up"
    );
}

/// The reduction is three tenths of 30 packets. The path with the loss has only one packet above its part of the floor.
#[test]
fn what_a_small_window_cannot_pay_the_largest_other_one_pays() {
    let (mut cubic, mut windows, now) = companions();
    [windows[0].cwnd, windows[1].cwnd] = [27 * M, 3 * M];
    let lost = loss(1, &windows[1]);
    cubic.on_sack(at(now + 50), &mut windows, &[lost]);
    assert_eq!(windows.each_ref().map(|window| window.cwnd), [19 * M, 2 * M]);
    assert_eq!(windows[0].recovery, None, "nothing of it was lost");

    // No flow falls below the floor of one flow.
    [windows[0].cwnd, windows[1].cwnd] = [3 * M, 2 * M];
    let lost = PathAck { exit_point: 300, recovered_to: 200, ..loss(1, &windows[1]) };
    cubic.on_sack(at(now + 500), &mut windows, &[lost]);
    assert_eq!(windows.map(|window| window.cwnd), [2 * M, 2 * M]);
}

#[test]
fn an_undone_cut_gives_every_window_back_what_it_paid() {
    let (mut cubic, mut windows, now) = companions();
    [windows[0].cwnd, windows[1].cwnd] = [27 * M, 3 * M];
    let (small, whole) = (sizes(&windows[1]), windows.clone());
    let lost = loss(1, &windows[1]);
    cubic.on_sack(at(now + 50), &mut windows, &[lost]);
    // A loss on the other path in the same round trip reduced nothing, so undoing it restores nothing.
    let others = sizes(&windows[0]);
    let lost = loss(0, &windows[0]);
    cubic.on_sack(at(now + 60), &mut windows, &[lost]);
    cubic.on_spurious(at(now + 70), &mut windows, PathId(0), others);
    assert_eq!(windows.each_ref().map(|window| window.cwnd), [19 * M, 2 * M]);

    cubic.on_spurious(at(now + 80), &mut windows, PathId(1), small);
    assert_eq!(windows.each_ref().map(|window| window.cwnd), whole.each_ref().map(|window| window.cwnd));
    // A second undo of the same reduction has no effect.
    cubic.on_spurious(at(now + 90), &mut windows, PathId(1), small);
    assert_eq!(windows.map(|window| window.cwnd), whole.map(|window| window.cwnd));
}

/// Growth of a single window as large as their sum.
#[test]
fn one_flow_grows_by_what_all_its_paths_have_acknowledged() {
    let (mut cubic, mut windows, now) = companions();
    for window in &mut windows {
        window.ssthresh = window.cwnd - 1;
    }
    let before: usize = windows.iter().map(|window| window.cwnd).sum();
    let mut alone = One::new(window(30, 100));
    for round in 1..=20 {
        for path in [0, 1] {
            let ack = full_ack(path, &windows[usize::from(path)]);
            cubic.on_sack(at(now + round * 100), &mut windows, &[ack]);
        }
        let acked = alone.windows[0].cwnd;
        alone.ack(at(now + round * 100), acked);
    }
    let grown = windows.iter().map(|window| window.cwnd).sum::<usize>() - before;
    near(grown as f64 / M as f64, alone.packets() - 30.0, 0.3);
}
