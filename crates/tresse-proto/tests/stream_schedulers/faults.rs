//! Schedulers that misbehave: their own association goes on without them, and nobody else notices.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tresse_proto::config::StreamMap;
use tresse_proto::schedule::{Backlog, Queued, StreamSchedulerFactory, Taken};
use tresse_proto::{
    AssociationConfig, Event, PathId, PathState, PathView, PolicyKind, ScheduleError, SchedulerFault,
    SendOptions, StreamId, StreamScheduler,
};

use crate::common::{Pair, content};
use crate::packets::{finish, queue};

/// Lowest stream first, until it has been asked often enough to go wrong.
struct Turncoat {
    waiting: BTreeSet<StreamId>,
    loyal: u32,
    fault: Fault,
}

#[derive(Copy, Clone)]
enum Fault {
    Names(u16),
    Silent,
    ClaimsEmpty,
    /// Panics when it is asked, or told of what was taken.
    PanicsAsked,
    PanicsTold,
    /// Says that it cannot go on.
    GivesUp,
    /// Answers only this path: no fault as long as that path comes round.
    Only(PathId),
}

impl StreamScheduler for Turncoat {
    fn on_queued(&mut self, queued: Queued) {
        self.waiting.insert(queued.stream);
    }
    fn next(&mut self, path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        match self.fault {
            Fault::Only(only) if path.id != only => None,
            Fault::Names(stream) if self.loyal == 0 => Some(StreamId(stream)),
            Fault::Silent | Fault::ClaimsEmpty | Fault::GivesUp if self.loyal == 0 => None,
            Fault::PanicsAsked if self.loyal == 0 => panic!("asked too much"),
            _ => self.waiting.first().copied(),
        }
    }
    fn on_taken(&mut self, taken: Taken) {
        assert!(self.loyal > 0 || !matches!(self.fault, Fault::PanicsTold), "told too much");
        self.loyal = self.loyal.saturating_sub(1);
        if taken.stream_empty {
            self.waiting.remove(&taken.stream);
        }
    }
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() || (self.loyal == 0 && matches!(self.fault, Fault::ClaimsEmpty))
    }
    fn failure(&self) -> Option<String> {
        (self.loyal == 0 && matches!(self.fault, Fault::GivesUp)).then(|| "no more ideas".to_owned())
    }
}

fn pair(paths: u8, loyal: u32, fault: Fault, config: &AssociationConfig) -> Pair {
    let mut pair = Pair::established(paths, config);
    let factory = Arc::new(move |_: &str| {
        Ok(Box::new(Turncoat { waiting: BTreeSet::new(), loyal, fault }) as Box<dyn StreamScheduler>)
    });
    pair.client.endpoint.schedulers().register_stream_scheduler("turncoat", factory).expect("a new name");
    pair.client().set_stream_scheduler("turncoat", "").expect("registered");
    pair
}

fn failures(pair: &Pair) -> Vec<SchedulerFault> {
    let events = pair.client.events.iter();
    events
        .filter_map(|event| match event {
            Event::SchedulerFailed { kind, name, fault } => {
                assert_eq!((*kind, name.as_str()), (PolicyKind::StreamScheduler, "turncoat"));
                Some(fault.clone())
            }
            _ => None,
        })
        .collect()
}

fn failure_count(pair: &mut Pair) -> u64 {
    let now = pair.now;
    pair.client().stats(now).expect("an open association").scheduler_failures
}

#[test]
fn first_come_takes_over_and_nothing_is_lost_or_reordered() {
    let named = |stream| SchedulerFault::NothingToSend { stream: StreamId(stream) };
    let failed = |reason: &str| SchedulerFault::Failed { reason: reason.to_owned() };
    let faults = [
        (Fault::Names(7), named(7)),
        (Fault::Names(10), named(10)),
        (Fault::Names(65_535), named(65_535)),
        (Fault::Silent, SchedulerFault::NoAnswer),
        (Fault::ClaimsEmpty, SchedulerFault::NoAnswer),
        (Fault::PanicsAsked, failed("it panicked: asked too much")),
        (Fault::PanicsTold, failed("it panicked: told too much")),
        (Fault::GivesUp, failed("no more ideas")),
    ];
    for (fault, told) in faults {
        for loyal in [0, 1, 5, 50] {
            for preset in ["cmt", "rfc9260"] {
                let config = AssociationConfig::preset(preset).expect("a preset");
                let mut pair = pair(2, loyal, fault, &config);
                queue(&mut pair, &[0, 3, 9], 40, 1_900);
                finish(&mut pair, &[0, 3, 9], 40);
                assert_eq!(failures(&pair), std::slice::from_ref(&told), "{preset}, after {loyal}");
                assert_eq!(failure_count(&mut pair), 1);
            }
        }
    }
}

#[test]
fn one_that_waits_for_a_path_of_its_own_is_left_alone() {
    for only in [0, 1] {
        // What is left of a message that was cut may take any path: here each fits a packet.
        let config = AssociationConfig::default().with(|c| c.mtu_discovery = false);
        let mut pair = pair(2, 0, Fault::Only(PathId(only)), &config);
        queue(&mut pair, &[0, 3], 200, 1_400);
        finish(&mut pair, &[0, 3], 200);
        assert_eq!(failures(&pair), []);
        let now = pair.now;
        let sent: Vec<u64> = pair.client().path_stats(now).iter().map(|path| path.bytes_sent).collect();
        assert_eq!((sent[usize::from(only)], sent[1 - usize::from(only)]), (560_000, 0));
    }
}

#[test]
fn a_path_that_is_refused_again_leaves_the_turn_to_the_others() {
    let mut config = AssociationConfig::default().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1, 2, 3]));
    // No message is cut: what is left of one may take any path.
    let settings = [
        ("max_burst", "0"),
        ("path_max_retrans", "0"),
        ("heartbeat_interval", "1s"),
        ("mtu_discovery", "false"),
    ];
    for (name, value) in settings {
        config.set(name, value).expect("a sound setting");
    }
    // Two paths are gone, and both others serve their streams; but the scheduler has something for path 1 alone.
    let mut pair = pair(4, u32::MAX, Fault::Only(PathId(1)), &config);
    pair.network = Box::new(|flight| (flight.path() < 2).then_some(Duration::from_millis(10)));
    pair.run_until(Duration::from_secs(60), |pair| {
        let now = pair.now;
        pair.client().path_stats(now)[2..].iter().all(|path| path.state == PathState::Inactive)
    });
    let before = pair.wire.len();
    queue(&mut pair, &[2, 3], 10, 1_400);
    pair.pump();
    let carriers =
        pair.sent_since(before).iter().filter(|flight| flight.has_data()).map(|flight| flight.path());
    let carriers: Vec<u8> = carriers.collect();
    // The least window lets four full packets out, however often path 0 is offered the rest meanwhile.
    assert!(carriers.len() >= 4 && carriers.iter().all(|&path| path == 1), "{carriers:?}");
    finish(&mut pair, &[2, 3], 10);
}

#[test]
fn each_group_falls_back_for_itself() {
    let config = AssociationConfig::default().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    // Stream 0 belongs to the other group: naming it is a fault there.
    let mut pair = pair(2, 3, Fault::Names(0), &config);
    queue(&mut pair, &[0, 1], 60, 1_400);
    finish(&mut pair, &[0, 1], 60);
    assert_eq!(failures(&pair), [SchedulerFault::NothingToSend { stream: StreamId(0) }]);
}

#[test]
fn the_registry_lets_go_of_a_scheduler_that_failed() {
    let mut pair = pair(1, 0, Fault::Silent, &AssociationConfig::default());
    assert!(pair.client.endpoint.schedulers().remove_stream_scheduler("turncoat").is_err(), "still in use");
    let now = pair.now;
    pair.client().send(now, SendOptions::on(StreamId(0)), content(0, 0, 100)).expect("room");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.received.len(), 1);
    assert_eq!(pair.client.endpoint.schedulers().remove_stream_scheduler("turncoat"), Ok(()));
}

#[test]
fn what_failed_once_may_be_tried_again() {
    let mut pair = pair(1, 3, Fault::PanicsTold, &AssociationConfig::default());
    let told = SchedulerFault::Failed { reason: "it panicked: told too much".to_owned() };
    for round in 0..2 {
        queue(&mut pair, &[0, 1], 20, 1_400);
        let all = 40 * (round + 1);
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == all);
        assert_eq!(failures(&pair), vec![told.clone(); round + 1]);
        pair.client().set_stream_scheduler("turncoat", "").expect("still registered");
    }
}

#[test]
fn an_association_begins_without_a_scheduler_that_no_longer_can() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let tries = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&tries);
    let factory: StreamSchedulerFactory = Arc::new(move |_| {
        // The first is built to see whether it can be.
        assert!(counter.fetch_add(1, Ordering::Relaxed) == 0, "once is enough");
        Ok(Box::new(Turncoat { waiting: BTreeSet::new(), loyal: 0, fault: Fault::Silent }))
    });
    pair.client.endpoint.schedulers().register_stream_scheduler("turncoat", factory).expect("a new name");
    pair.connect();
    pair.client().set_stream_scheduler("turncoat", "").expect("registered");
    let in_use = Err(ScheduleError::InUse("turncoat".to_owned()));
    assert_eq!(pair.client.endpoint.schedulers().remove_stream_scheduler("turncoat"), in_use, "by a set-up");
    pair.run_for(Duration::from_millis(200));
    queue(&mut pair, &[0, 3], 20, 1_400);
    finish(&mut pair, &[0, 3], 20);
    let reason = "stream scheduler \"turncoat\" refused its configuration: it panicked: once is enough";
    assert_eq!(failures(&pair), [SchedulerFault::Failed { reason: reason.to_owned() }]);
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    assert_eq!(pair.client.endpoint.schedulers().remove_stream_scheduler("turncoat"), Ok(()));
}
