//! Properties of all controllers.

use std::time::Duration;

use proptest::prelude::*;

use super::window::{LARGEST, PathAck, Window};
use super::*;
use crate::path::PathId;

/// Something that happens to a path.
#[derive(Clone, Debug)]
enum Step {
    Sack(Vec<PathAck>),
    Timeout(PathId),
    Spurious(PathId, usize, usize),
    Idle(PathId),
    DataSent(PathId),
    Rtt(PathId, Option<Duration>),
    Usable(PathId, bool),
    PeerWindow(usize),
    PathAdded,
}

/// One path more than there are at first, so that some steps name a path that does not exist (yet).
const PATHS: u8 = 4;

fn path() -> impl Strategy<Value = PathId> {
    (0..=PATHS).prop_map(PathId)
}

/// Bytes of all orders of magnitude, often at the bounds.
fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        1..3000usize,
        1000..1_000_000usize,
        1_000_000..=LARGEST,
        Just(LARGEST),
        Just(usize::MAX)
    ]
}

fn ack() -> impl Strategy<Value = PathAck> {
    (path(), bytes(), bytes(), bytes(), any::<bool>(), prop::bool::weighted(0.2), 0..9u64, 0..9u64).prop_map(
        |(path, acked, flight_before, flight_after, may_grow, lost, exit_point, recovered_to)| PathAck {
            path,
            acked,
            lost_bytes: 0,
            rtt: None,
            flight_before,
            flight_after,
            may_grow,
            lost,
            exit_point,
            recovered_to,
        },
    )
}

fn srtt() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![
        Just(None),
        Just(Some(Duration::ZERO)),
        Just(Some(Duration::MAX)),
        (1..10_000_000_000u64).prop_map(|nanos| Some(Duration::from_nanos(nanos))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(ack(), 1..4).prop_map(Step::Sack),
        1 => path().prop_map(Step::Timeout),
        1 => (path(), bytes(), bytes())
            .prop_map(|(path, cwnd, ssthresh)| Step::Spurious(path, cwnd.min(LARGEST), ssthresh.min(LARGEST))),
        1 => path().prop_map(Step::Idle),
        1 => path().prop_map(Step::DataSent),
        2 => (path(), srtt()).prop_map(|(path, srtt)| Step::Rtt(path, srtt)),
        2 => (path(), any::<bool>()).prop_map(|(path, usable)| Step::Usable(path, usable)),
        1 => bytes().prop_map(Step::PeerWindow),
        1 => Just(Step::PathAdded),
    ]
}

/// Microseconds to the next step, and sometimes half of the largest time.
fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![
        9 => (0..2_000_000u64).prop_map(Duration::from_micros),
        1 => Just(Duration::from_nanos(u64::MAX / 2)),
    ]
}

/// The built-in controllers.
fn controllers() -> impl Iterator<Item = (&'static str, Box<dyn CongestionControl>)> {
    built_in().map(|(name, make)| (name, make.make("", || NameInUse::of(name)).expect("no configuration")))
}

struct Run {
    controller: Box<dyn CongestionControl>,
    windows: Vec<Window>,
    pmdcs: usize,
}

impl Run {
    fn new(controller: Box<dyn CongestionControl>, pmdcs: usize, initial: usize) -> Self {
        let mut run = Run { controller, windows: Vec::new(), pmdcs };
        for _ in 1..PATHS {
            run.add_path(initial);
        }
        run
    }

    fn add_path(&mut self, initial: usize) {
        self.windows.push(Window { usable: true, ..Window::new(self.pmdcs, false, initial) });
        let id = PathId(self.windows.len() as u8 - 1);
        self.controller.on_path_added(&mut self.windows, id);
    }

    fn step(&mut self, now: Instant, step: &Step) {
        let windows = &mut self.windows;
        match step {
            Step::Sack(acks) => self.controller.on_sack(now, windows, acks),
            Step::Timeout(path) => self.controller.on_timeout(now, windows, *path),
            Step::Spurious(path, cwnd, ssthresh) => {
                let before = Sizes { cwnd: *cwnd, ssthresh: *ssthresh };
                self.controller.on_spurious(now, windows, *path, before);
            }
            Step::Idle(path) => self.controller.on_idle(now, windows, *path),
            Step::DataSent(path) => {
                windows.get_mut(path.index()).into_iter().for_each(|window| window.decayed = false);
            }
            Step::Rtt(path, srtt) => {
                windows.get_mut(path.index()).into_iter().for_each(|window| window.srtt = *srtt);
            }
            Step::Usable(path, usable) => {
                windows.get_mut(path.index()).into_iter().for_each(|window| window.usable = *usable);
            }
            Step::PeerWindow(bytes) => {
                for window in windows {
                    window.ssthresh = window.ssthresh.min((*bytes).max(window.pmdcs));
                }
            }
            Step::PathAdded if windows.len() < usize::from(PATHS) => self.add_path(0),
            Step::PathAdded => {}
        }
    }
}

/// RFC 4015 §3, RFC 9438 §4.9: by a loss, a timeout, and a series of timeouts.
#[test]
fn every_controller_takes_back_a_cut_that_was_for_nothing() {
    let path = PathId(0);
    let loss = Step::Sack(vec![PathAck {
        path,
        acked: 0,
        lost_bytes: 0,
        rtt: None,
        flight_before: 0,
        flight_after: 0,
        may_grow: false,
        lost: true,
        exit_point: 8,
        recovered_to: 0,
    }]);
    let timeout = Step::Timeout(path);
    for cuts in [vec![&loss], vec![&timeout], vec![&timeout; 3]] {
        for (name, controller) in controllers() {
            let mut run = Run::new(controller, 1452, 60_000);
            let before = Sizes { cwnd: run.windows[0].cwnd, ssthresh: 60_000 };
            run.windows[0].ssthresh = before.ssthresh;
            for cut in &cuts {
                run.step(Instant::ZERO, cut);
                run.windows[0].one_packet = matches!(cut, Step::Timeout(_));
            }
            assert!(run.windows[0].cwnd < before.cwnd, "{name}");
            run.controller.on_spurious(Instant::ZERO, &mut run.windows, path, before);
            let window = &run.windows[0];
            assert_eq!((window.cwnd, window.ssthresh), (before.cwnd, before.ssthresh), "{name}");
            assert!(!window.one_packet && window.recovery.is_none(), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn windows_stay_within_one_packet_and_a_gibibyte(
        pmdcs in prop_oneof![Just(528usize), Just(1452), Just(65_487)],
        initial in prop_oneof![Just(0usize), Just(100_000), Just(usize::MAX)],
        steps in prop::collection::vec((pause(), step()), 1..200),
    ) {
        for (name, controller) in controllers() {
            let mut run = Run::new(controller, pmdcs, initial);
            let mut now = Instant::ZERO;
            for (pause, step) in &steps {
                now += *pause;
                run.step(now, step);
                for window in &run.windows {
                    let allowed = pmdcs..=LARGEST;
                    prop_assert!(allowed.contains(&window.cwnd), "{name}: {step:?}: {window:?}");
                    prop_assert!(window.ssthresh <= LARGEST, "{name}: {step:?}: {window:?}");
                }
            }
        }
    }

    /// Without losses no window shrinks, except with OLIA, which may move growth to another path.
    #[test]
    fn acknowledgements_alone_take_nothing_away(
        acks in prop::collection::vec((0..3u8, 1..200_000usize), 1..200),
    ) {
        for (name, controller) in controllers().filter(|&(name, _)| name != "olia") {
            let mut run = Run::new(controller, 1452, 0);
            for (place, (path, acked)) in acks.iter().enumerate() {
                let window = &run.windows[usize::from(*path)];
                let before = window.cwnd;
                let ack = PathAck {
                    path: PathId(*path),
                    acked: *acked,
                    lost_bytes: 0,
                    rtt: None,
                    flight_before: before,
                    flight_after: 1,
                    may_grow: true,
                    lost: false,
                    exit_point: 0,
                    recovered_to: 0,
                };
                let now = Instant::ZERO + Duration::from_millis(10 * place as u64);
                run.step(now, &Step::Sack(vec![ack]));
                let after = run.windows[usize::from(*path)].cwnd;
                prop_assert!(after >= before, "{name}: {before} -> {after}");
                prop_assert!(after <= before + acked.max(&1452), "{name}: {before} -> {after}");
            }
        }
    }
}
