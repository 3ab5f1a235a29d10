use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::congestion::group::tests::{M, full_ack, loss, window};

/// Returns scripted answers: the worst that a controller of an application can do.
struct Scripted {
    answers: Vec<Answer>,
    asked: usize,
}

#[derive(Copy, Clone, Debug)]
enum Answer {
    Unchanged,
    Cwnd(usize),
    Ssthresh(usize),
    Panics,
    Fails,
}

impl Scripted {
    fn answer(&mut self, situation: &Situation<'_>) -> Sizes {
        let window = situation.window();
        self.asked += 1;
        match self.now() {
            Answer::Unchanged | Answer::Fails => window.unchanged(),
            Answer::Cwnd(cwnd) => Sizes { cwnd, ..window.unchanged() },
            Answer::Ssthresh(ssthresh) => Sizes { ssthresh, ..window.unchanged() },
            Answer::Panics => panic!("no more"),
        }
    }

    fn now(&self) -> Answer {
        self.answers[self.asked.saturating_sub(1) % self.answers.len()]
    }
}

impl Controller for Scripted {
    fn on_ack(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        self.answer(situation)
    }
    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        self.answer(situation)
    }
    fn on_timeout(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        Some(self.answer(situation))
    }
    fn on_idle(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        Some(self.answer(situation))
    }
    fn failure(&self) -> Option<String> {
        (self.asked > 0 && matches!(self.now(), Answer::Fails)).then(|| "tired".to_owned())
    }
}

fn guarded(answers: &[Answer]) -> Box<dyn CongestionControl> {
    let answers = answers.to_vec();
    let factory: ControllerFactory =
        Arc::new(move |_| Ok(Box::new(Scripted { answers: answers.clone(), asked: 0 })));
    make(&factory, "", NameInUse::of("mine")).unwrap_or_else(|reason| panic!("{reason}"))
}

/// Returns the window of 20 packets after a SACK that acknowledges all of it, and the failure reported then.
fn after_ack(answer: Answer) -> (usize, usize, Option<(String, String)>) {
    let mut controller = guarded(&[answer]);
    let mut windows = [window(20, 100)];
    controller.on_path_added(&mut windows, PathId(0));
    let ack = full_ack(0, &windows[0]);
    controller.on_sack(Instant::ZERO, &mut windows, &[ack]);
    (windows[0].cwnd, windows[0].ssthresh, controller.pop_failure())
}

#[test]
fn answers_within_bounds_are_followed() {
    assert_eq!(after_ack(Answer::Unchanged), (20 * M, 20 * M - 1, None));
    for cwnd in [M, 7 * M, LARGEST] {
        assert_eq!(after_ack(Answer::Cwnd(cwnd)), (cwnd, 20 * M - 1, None));
        assert_eq!(after_ack(Answer::Ssthresh(cwnd)), (20 * M, cwnd, None));
    }
}

#[test]
fn rfc_9260_takes_over_within_the_same_sack_where_an_answer_is_out_of_bounds() {
    let told = |what: &str, size: usize| {
        let reason = format!("it set the {what} of path 0 to {size} bytes: 1000 to 1073741824 are accepted");
        Some(("mine".to_owned(), reason))
    };
    for size in [0, M - 1, LARGEST + 1, usize::MAX] {
        assert_eq!(after_ack(Answer::Cwnd(size)), (21 * M, 20 * M - 1, told("window", size)));
        let threshold = told("slow-start threshold", size);
        assert_eq!(after_ack(Answer::Ssthresh(size)), (21 * M, 20 * M - 1, threshold));
    }
    let mine = |reason: &str| Some(("mine".to_owned(), reason.to_owned()));
    assert_eq!(after_ack(Answer::Panics), (21 * M, 20 * M - 1, mine("it panicked: no more")));
    assert_eq!(after_ack(Answer::Fails), (21 * M, 20 * M - 1, mine("tired")));
}

/// Sets half a megabyte per second, until it panics at its second SACK; keeps the views that it got.
#[derive(Default)]
struct Pacing {
    shown: Vec<(usize, u64, Option<Duration>)>,
}

impl Controller for Pacing {
    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        self.shown.push((ack.lost, ack.rate, situation.window().min_rtt));
        assert!(self.shown.len() < 2, "{:?}", self.shown);
        situation.window().unchanged()
    }
    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        situation.window().unchanged()
    }
    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        (path == PathId(0)).then_some(NonZeroU64::new(500_000)).flatten()
    }
}

#[test]
fn the_pace_is_the_controllers_until_it_fails() {
    let factory: ControllerFactory = Arc::new(|_| Ok(Box::new(Pacing::default())));
    let mut controller =
        make(&factory, "", NameInUse::of("mine")).unwrap_or_else(|reason| panic!("{reason}"));
    let mut windows = [window(20, 100), window(20, 100)];
    for path in 0..2 {
        controller.on_path_added(&mut windows, PathId(path));
    }
    let paces = |controller: &dyn CongestionControl| [0, 1].map(|path| controller.pacing_rate(PathId(path)));
    assert_eq!(paces(controller.as_ref()), [NonZeroU64::new(500_000), None]);
    let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
    let rtt = |millis: u64| Some(Duration::from_millis(millis));
    let lost = PathAck { lost_bytes: 3 * M, ..loss(0, &windows[0]) };
    controller.on_sack(at(90), &mut windows, &[lost]);
    let first = PathAck { rtt: rtt(100), ..full_ack(0, &windows[0]) };
    controller.on_sack(at(100), &mut windows, &[first]);
    assert_eq!(controller.pop_failure(), None);
    let second = PathAck { rtt: rtt(80), ..first };
    controller.on_sack(at(200), &mut windows, &[second]);
    let (_, reason) = controller.pop_failure().expect("it panicked");
    assert!(reason.contains("[(3000, 200000, Some(100ms)), (0, 200000, Some(80ms))]"), "{reason}");
    assert_eq!(paces(controller.as_ref()), [None, None]);
}

#[test]
fn a_fault_at_a_loss_a_timeout_or_in_silence_is_answered_as_rfc_9260_would() {
    let faults = |hook: fn(&mut dyn CongestionControl, &mut [Window])| {
        let mut windows = [window(20, 100)];
        let mut controller = guarded(&[Answer::Panics]);
        hook(controller.as_mut(), &mut windows);
        assert!(controller.pop_failure().is_some());
        assert_eq!(controller.pop_failure(), None, "told once");
        let [window] = windows;
        (window.cwnd, window.ssthresh)
    };
    let lost = |controller: &mut dyn CongestionControl, windows: &mut [Window]| {
        let loss = loss(0, &windows[0]);
        controller.on_sack(Instant::ZERO, windows, &[loss]);
        assert_eq!(windows[0].recovery, Some(100));
    };
    assert_eq!(faults(lost), (10 * M, 10 * M));
    let expired = |controller: &mut dyn CongestionControl, windows: &mut [Window]| {
        controller.on_timeout(Instant::ZERO, windows, PathId(0));
    };
    assert_eq!(faults(expired), (M, 10 * M));
    let silent = |controller: &mut dyn CongestionControl, windows: &mut [Window]| {
        controller.on_idle(Instant::ZERO, windows, PathId(0));
    };
    assert_eq!(faults(silent), (10 * M, 20 * M));
}

#[test]
fn a_window_that_was_smaller_than_a_packet_may_stay_so() {
    let mut windows = [Window { pmdcs: 3 * M, cwnd: 2 * M, ..window(20, 100) }];
    let mut controller = guarded(&[Answer::Unchanged]);
    let ack = full_ack(0, &windows[0]);
    controller.on_sack(Instant::ZERO, &mut windows, &[ack]);
    assert_eq!((windows[0].cwnd, controller.pop_failure()), (2 * M, None));
}

#[test]
fn a_timeout_ends_a_recovery_whoever_decides() {
    let mut windows = [Window { recovery: Some(9), ..window(20, 100) }];
    let mut controller = guarded(&[Answer::Cwnd(5 * M)]);
    controller.on_timeout(Instant::ZERO, &mut windows, PathId(0));
    assert_eq!((windows[0].cwnd, windows[0].recovery), (5 * M, None));
}

/// Keeps the views that it gets.
struct Watcher(Arc<std::sync::Mutex<Vec<String>>>);

impl Watcher {
    fn note(&self, words: String) {
        self.0.lock().expect("nobody panics").push(words);
    }
}

impl Controller for Watcher {
    fn on_path_added(&mut self, window: &PathWindow) {
        self.note(format!("path {} with {}", window.path, window.cwnd));
    }
    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        let windows: Vec<usize> = situation.windows.iter().map(|window| window.cwnd).collect();
        let Ack { bytes, may_grow, fully_used, .. } = ack;
        self.note(format!("{bytes} on {}: {windows:?} {may_grow} {fully_used}", situation.path));
        situation.window().grown_by(1)
    }
    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        self.note(format!("loss on {}: {} {}", window.path, window.cwnd, window.recovering));
        window.cut_to(window.cwnd / 2)
    }
}

#[test]
fn it_sees_the_windows_as_its_own_answers_left_them() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let factory: ControllerFactory = {
        let seen = Arc::clone(&seen);
        Arc::new(move |_| Ok(Box::new(Watcher(Arc::clone(&seen)))))
    };
    let mut controller = make(&factory, "", NameInUse::of("mine")).expect("it refuses nothing");
    let mut windows = [window(10, 100), window(20, 100)];
    controller.on_path_added(&mut windows, PathId(1));
    let [first, second] = [full_ack(0, &windows[0]), full_ack(1, &windows[1])];
    let second = PathAck { flight_before: 5, may_grow: false, lost: true, ..second };
    controller.on_sack(Instant::ZERO, &mut windows, &[first, second]);
    let expected = [
        "path 1 with 20000",
        "10000 on 0: [10000, 20000] true true",
        "20000 on 1: [10001, 20000] false false",
        "loss on 1: 20001 true",
    ];
    assert_eq!(*seen.lock().expect("nobody panics"), expected);
    assert_eq!(windows.map(|window| (window.cwnd, window.ssthresh)), [(10_001, 9_999), (10_000, 10_000)]);
}

fn answer() -> impl Strategy<Value = Answer> {
    let size = || prop_oneof![0..3000usize, 1000..LARGEST + 2, Just(LARGEST), Just(usize::MAX)];
    prop_oneof![
        4 => Just(Answer::Unchanged),
        4 => size().prop_map(Answer::Cwnd),
        2 => size().prop_map(Answer::Ssthresh),
        1 => Just(Answer::Panics),
        1 => Just(Answer::Fails),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_it_answers_windows_stay_within_their_bounds(
        answers in prop::collection::vec(answer(), 1..20),
        steps in prop::collection::vec((0..4u8, 0..4u8), 1..60),
    ) {
        let mut controller = guarded(&answers);
        let mut windows = [window(10, 100), window(20, 50)];
        let mut told = 0;
        for (number, (step, path)) in steps.into_iter().enumerate() {
            let now = Instant::ZERO + Duration::from_millis(number as u64);
            let seen = windows[usize::from(path % 2)].clone();
            match step {
                0 => controller.on_timeout(now, &mut windows, PathId(path)),
                1 => controller.on_idle(now, &mut windows, PathId(path)),
                2 => controller.on_sack(now, &mut windows, &[loss(path, &seen)]),
                _ => controller.on_sack(now, &mut windows, &[full_ack(path, &seen)]),
            }
            told += usize::from(controller.pop_failure().is_some());
            for window in &windows {
                prop_assert!((M..=LARGEST).contains(&window.cwnd), "{window:?}");
                prop_assert!((M..=LARGEST).contains(&window.ssthresh), "{window:?}");
            }
        }
        prop_assert!(told <= 1);
    }
}

#[test]
fn a_cut_that_was_for_nothing_is_taken_back_unless_the_controller_says_otherwise() {
    struct Stubborn;
    impl Controller for Stubborn {
        fn on_ack(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
            situation.window().unchanged()
        }
        fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
            situation.window().cut_to(5 * M)
        }
        fn on_spurious(&mut self, situation: &Situation<'_>, before: Sizes) -> Sizes {
            situation.window().cut_to((before.cwnd + situation.window().cwnd) / 2)
        }
    }
    let stubborn: ControllerFactory = Arc::new(|_| Ok(Box::new(Stubborn)));
    let stubborn = make(&stubborn, "", NameInUse::of("mine")).unwrap_or_else(|reason| panic!("{reason}"));
    let expected = [
        (guarded(&[Answer::Cwnd(7 * M)]), 20 * M),
        (guarded(&[Answer::Fails]), 20 * M),
        (stubborn, 12 * M + M / 2),
    ];
    for (mut controller, expected) in expected {
        let mut windows = [window(20, 100)];
        controller.on_path_added(&mut windows, PathId(0));
        let lost = loss(0, &windows[0]);
        controller.on_sack(Instant::ZERO, &mut windows, &[lost]);
        assert!(windows[0].cwnd < 20 * M);
        let before = Sizes { cwnd: 20 * M, ssthresh: 20 * M };
        controller.on_spurious(Instant::ZERO, &mut windows, PathId(0), before);
        assert_eq!((windows[0].cwnd, windows[0].recovery), (expected, None));
    }
}
