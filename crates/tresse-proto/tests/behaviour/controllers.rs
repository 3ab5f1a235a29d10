//! Congestion controllers of an application's own: they decide, and one that misbehaves costs nothing but its place.

use std::sync::Arc;
use std::time::Duration;

use tresse_proto::congestion::{Ack, Controller, ControllerFactory, PathWindow, Situation, Sizes};
use tresse_proto::{AssociationConfig, Connect, Event, Instant, PathId, ScheduleError};

use crate::common::{PORT, Pair, address};

#[path = "../../../../examples/controllers/scalable.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod scalable;

/// Keeps every window at seven packets until it has been asked for the hundredth time.
struct Seven {
    asked: u32,
    then: Fault,
}

#[derive(Copy, Clone)]
enum Fault {
    None,
    Panics,
    TiredOf,
    Window(usize),
    Threshold(usize),
}

impl Controller for Seven {
    fn on_ack(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        self.asked += 1;
        let packet = situation.window().packet;
        let seven = Sizes { cwnd: 7 * packet, ssthresh: 7 * packet };
        match self.then {
            Fault::Panics if self.asked >= 100 => panic!("asked too often"),
            Fault::Window(cwnd) if self.asked >= 100 => Sizes { cwnd, ..seven },
            Fault::Threshold(ssthresh) if self.asked >= 100 => Sizes { ssthresh, ..seven },
            _ => seven,
        }
    }

    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        situation.window().unchanged()
    }

    fn failure(&self) -> Option<String> {
        (matches!(self.then, Fault::TiredOf) && self.asked >= 100).then(|| "tired".to_owned())
    }
}

fn seven(then: Fault) -> ControllerFactory {
    Arc::new(move |_| Ok(Box::new(Seven { asked: 0, then })))
}

/// Two paths, and a client that brings a controller along.
fn pair(factory: ControllerFactory) -> Pair {
    let settings = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::new(2, &settings);
    pair.client.endpoint.schedulers().register_controller("mine", factory).expect("a new name");
    pair.config.congestion_control = "mine".to_owned();
    pair.settled()
}

/// Sends so many messages of 1,400 bytes on two streams in turn, and waits until all are there.
fn transfer(pair: &mut Pair, count: u32) {
    for number in 0..count {
        pair.send((number % 2) as u16, number / 2, 1_400);
    }
    let done = pair.server.received.len() + count as usize;
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == done);
    for stream in 0..2 {
        assert_eq!(pair.server.numbers_on(stream), (0..count / 2).collect::<Vec<_>>());
    }
}

/// Loses every so manieth packet to the server.
fn lossy(pair: &mut Pair, every: u32) {
    let mut count = 0;
    pair.network = Box::new(move |flight| {
        count += u32::from(flight.to_server);
        let lost = flight.to_server && count % every == 0;
        (!lost).then(|| Duration::from_millis(10))
    });
}

fn windows(pair: &mut Pair) -> Vec<usize> {
    let now = pair.now;
    pair.client().path_stats(now).iter().map(|path| path.cwnd).collect()
}

#[test]
fn an_own_controller_says_how_large_windows_are() {
    let mut pair = pair(seven(Fault::None));
    assert_eq!(pair.client().config().congestion_control, "mine");
    lossy(&mut pair, 50);
    transfer(&mut pair, 400);
    let packet = windows(&mut pair)[0] / 7;
    assert!(packet > 1_400, "a full packet carries {packet} bytes");
    assert_eq!(windows(&mut pair), [7 * packet; 2]);
    let failed = |event: &Event| matches!(event, Event::SchedulerFailed { .. });
    assert!(!pair.client.events.iter().any(failed));
}

#[test]
fn rfc_9260_takes_over_from_one_that_misbehaves_and_nothing_is_lost() {
    for (fault, told) in [
        (Fault::Panics, "it panicked: asked too often"),
        (Fault::TiredOf, "tired"),
        (Fault::Window(0), "it set the window of path "),
        (Fault::Window(1_000), "it set the window of path "),
        (Fault::Window(usize::MAX), "it set the window of path "),
        (Fault::Threshold(0), "it set the slow-start threshold of path "),
    ] {
        let mut pair = pair(seven(fault));
        lossy(&mut pair, 50);
        transfer(&mut pair, 700);
        let failures: Vec<String> = pair
            .client
            .events
            .iter()
            .filter_map(|event| match event {
                Event::SchedulerFailed { kind, name, fault } => Some(format!("{kind} {name}: {fault}")),
                _ => None,
            })
            .collect();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].starts_with(&format!("congestion controller mine: {told}")), "{failures:?}");
        let now = pair.now;
        assert_eq!(pair.client().stats(now).map(|stats| stats.scheduler_failures), Some(1));
        assert_eq!(pair.client.endpoint.schedulers().remove_controller("mine"), Ok(()), "nobody uses it");
    }
}

#[test]
fn a_controller_in_use_stays_and_built_in_ones_always_do() {
    let mut pair = pair(seven(Fault::None));
    let registry = pair.client.endpoint.schedulers();
    assert_eq!(registry.remove_controller("mine"), Err(ScheduleError::InUse("mine".to_owned())));
    let built_in = Err(ScheduleError::BuiltIn("cubic".to_owned()));
    assert_eq!(registry.remove_controller("cubic"), built_in);
    let taken = Err(ScheduleError::NameTaken("cubic".to_owned()));
    assert_eq!(registry.register_controller("cubic", seven(Fault::None)), taken);
    assert!(registry.controller_names().contains(&"mine"));
    let (now, id) = (pair.now, pair.client.id.expect("connected"));
    pair.client().abort(now, "enough");
    pair.run_for(Duration::from_secs(1));
    pair.client.endpoint.release(pair.now, id);
    assert_eq!(pair.client.endpoint.schedulers().remove_controller("mine"), Ok(()));
}

#[test]
fn what_a_controller_refuses_is_told_where_it_is_chosen() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let registry = pair.client.endpoint.schedulers();
    registry.register_controller("scalable", scalable::factory()).expect("a new name");
    registry.register_controller("rash", Arc::new(|_| panic!("at once"))).expect("a new name");
    let mut connect = |controller: &str, settings: &str| {
        let config = AssociationConfig::default().with(|c| {
            c.congestion_control = controller.to_owned();
            c.congestion_control_config = settings.to_owned();
        });
        let (local, remote) = (vec![address(1, 0)], vec![address(2, 0)]);
        let request = Connect::new(local, remote, PORT, config);
        let refused = pair.client.endpoint.connect(pair.now, request);
        refused.map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = "setting \"congestion_control\" = \"scalable\": congestion controller \"scalable\" \
                   refused its configuration: \"100\" is no percentage between 0 and 100, such as 12.5";
    assert_eq!(connect("scalable", "100"), Err(refused.to_owned()));
    let panicked = "setting \"congestion_control\" = \"rash\": congestion controller \"rash\" refused \
                    its configuration: it panicked: at once";
    assert_eq!(connect("rash", ""), Err(panicked.to_owned()));
    let unknown = connect("reno", "").expect_err("not there");
    assert!(unknown.contains("unknown congestion controller \"reno\"; registered are balia, "), "{unknown}");
    assert_eq!(connect("scalable", "25"), Ok(()));
}

/// What the example makes of a window in congestion avoidance.
fn scalable_on(cwnd: usize, hook: impl FnOnce(&mut dyn Controller, &Situation<'_>) -> Sizes) -> Sizes {
    let mut controller = scalable::factory()("").expect("no configuration");
    let mut window = PathWindow::new(PathId(0), cwnd, 1_000);
    window.ssthresh = cwnd - 1;
    hook(controller.as_mut(), &Situation::new(Instant::ZERO, PathId(0), &[window]))
}

#[test]
fn scalable_grows_by_a_hundredth_and_loses_an_eighth() {
    let mut ack = Ack::new(2_000);
    ack.flight_before = 1 << 20;
    let grown = |cwnd: usize, ack: Ack| scalable_on(cwnd, |mine, seen| mine.on_ack(seen, &ack)).cwnd - cwnd;
    assert_eq!(grown(400_000, ack), 20);
    assert_eq!(grown(20_000, ack), 100, "a small window grows as RFC 9260 says");
    let (mut held, mut unused) = (ack, ack);
    (held.may_grow, unused.fully_used) = (false, false);
    assert_eq!((grown(400_000, held), grown(400_000, unused)), (0, 0));
    let left = |cwnd: usize| scalable_on(cwnd, |mine, seen| mine.on_loss(seen, &ack));
    assert_eq!(left(400_000), Sizes { cwnd: 350_000, ssthresh: 350_000 });
    assert_eq!(left(4_100), Sizes { cwnd: 4_000, ssthresh: 4_000 });
}

#[test]
fn scalable_makes_good_what_it_loses() {
    let mut pair = pair(scalable::factory());
    lossy(&mut pair, 100);
    transfer(&mut pair, 700);
    let now = pair.now;
    assert_eq!(pair.client().stats(now).map(|stats| stats.scheduler_failures), Some(0));
}
