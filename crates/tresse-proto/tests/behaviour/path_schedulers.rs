//! Path schedulers of an application's own: they decide, and one that misbehaves costs nothing but its place.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tresse_proto::schedule::{Decision, Offer, PathScheduler, PathSchedulerFactory};
use tresse_proto::{AssociationConfig, Event, Instant, PathId, ScheduleError, SendOptions, StreamId};

use crate::common::{Pair, address, content};

#[path = "../../../../examples/schedulers/cleanest.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod cleanest;

/// Names this path until it is asked for the hundredth time.
struct Always {
    path: u8,
    asked: u32,
    then: Fault,
}

#[derive(Copy, Clone)]
enum Fault {
    None,
    Panics,
    NamesNobody,
}

impl PathScheduler for Always {
    fn name(&self) -> &'static str {
        "always"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        self.asked += 1;
        match self.then {
            Fault::Panics if self.asked >= 100 => panic!("asked too often"),
            Fault::NamesNobody if self.asked >= 100 => Decision::Send(PathId(9)),
            _ => Decision::send(offer.open().find(|path| path.id.0 == self.path)),
        }
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

fn always(path: u8, then: Fault) -> PathSchedulerFactory {
    Arc::new(move |_| Ok(Box::new(Always { path, asked: 0, then })))
}

/// Two paths, and a client that uses a path scheduler of its own.
fn pair(factory: PathSchedulerFactory, config: &str) -> Pair {
    let settings = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::new(2, &settings);
    pair.client.endpoint.schedulers().register_path_scheduler("mine", factory).expect("a new name");
    pair.config.path_scheduler = "mine".to_owned();
    config.clone_into(&mut pair.config.path_scheduler_config);
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

fn sent(pair: &mut Pair) -> [u64; 2] {
    let now = pair.now;
    let paths = pair.client().path_stats(now);
    [paths[0].bytes_sent, paths[1].bytes_sent]
}

#[test]
fn an_own_scheduler_says_which_path_carries_the_data() {
    for path in 0..2 {
        let mut pair = pair(always(path, Fault::None), "");
        transfer(&mut pair, 200);
        let bytes = sent(&mut pair);
        assert_eq!((bytes[usize::from(path)], bytes[usize::from(1 - path)]), (200 * 1_400, 0));
    }
}

/// Names the paths in turn, and counts how often it is asked.
struct Counted {
    last: PathId,
    count: Arc<AtomicU32>,
}

impl PathScheduler for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        self.count.fetch_add(1, Ordering::Relaxed);
        Decision::send(offer.open().min_by_key(|path| path.id == self.last))
    }

    fn on_sent(&mut self, path: PathId, _bytes: usize) {
        self.last = path;
    }
}

/// Where the packets went that carry so many messages of a packet each, as far as windows let them leave at once, and how
/// often the scheduler was asked for them.
fn ask_for(messages: u32) -> (Vec<IpAddr>, usize) {
    let count = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&count);
    let factory = move |_: &str| {
        let counted = Counted { last: PathId(1), count: Arc::clone(&counter) };
        Ok(Box::new(counted) as Box<dyn PathScheduler>)
    };
    let mut pair = pair(Arc::new(factory), "");
    let now = pair.now;
    for number in 0..messages {
        let sent = pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number, 1_400));
        sent.expect("room in the send buffer");
    }
    let mut packets = Vec::new();
    let poll = || pair.client.endpoint.poll_transmit(now, 16, &mut packets).map(|transmit| transmit.remote);
    (std::iter::from_fn(poll).collect(), count.load(Ordering::Relaxed) as usize)
}

#[test]
fn a_scheduler_that_goes_to_another_path_is_asked_once_for_each_packet() {
    let [one, other] = [address(2, 0), address(2, 1)];
    assert_eq!(ask_for(4), (vec![one, other, one, other], 4));
}

#[test]
fn a_scheduler_is_asked_in_vain_once_when_all_windows_are_full() {
    let (sent, count) = ask_for(40);
    assert!(sent.len() < 40, "the windows keep the rest");
    assert_eq!(count, sent.len() + 1);
}

#[test]
fn in_order_takes_over_from_one_that_misbehaves_and_nothing_is_lost() {
    for (fault, told) in [
        (Fault::Panics, "it panicked: asked too often"),
        (Fault::NamesNobody, "it named path 9, which can take no data now"),
    ] {
        let mut pair = pair(always(1, fault), "");
        transfer(&mut pair, 600);
        let failures: Vec<String> = pair
            .client
            .events
            .iter()
            .filter_map(|event| match event {
                Event::SchedulerFailed { kind, name, fault } => Some(format!("{kind} {name}: {fault}")),
                _ => None,
            })
            .collect();
        assert_eq!(failures, [format!("path scheduler mine: {told}")]);
        let now = pair.now;
        assert_eq!(pair.client().stats(now).map(|stats| stats.scheduler_failures), Some(1));
        assert!(sent(&mut pair)[0] > 0, "the primary path carries data again");
        assert_eq!(pair.client.endpoint.schedulers().remove_path_scheduler("mine"), Ok(()), "nobody uses it");
    }
}

#[test]
fn a_name_in_use_stays_and_built_in_ones_always_do() {
    let mut pair = pair(always(0, Fault::None), "");
    let schedulers = pair.client.endpoint.schedulers();
    let in_use = Err(ScheduleError::InUse("mine".to_owned()));
    assert_eq!(schedulers.remove_path_scheduler("mine"), in_use);
    let built_in = Err(ScheduleError::BuiltIn("in_order".to_owned()));
    assert_eq!(schedulers.remove_path_scheduler("in_order"), built_in);
    let taken = Err(ScheduleError::NameTaken("in_order".to_owned()));
    assert_eq!(schedulers.register_path_scheduler("in_order", always(0, Fault::None)), taken);
    assert!(schedulers.path_scheduler_names().contains(&"mine"));
    let (now, id) = (pair.now, pair.client.id.expect("connected"));
    pair.client().abort(now, "enough");
    pair.run_for(Duration::from_secs(1));
    pair.client.endpoint.release(pair.now, id);
    assert_eq!(pair.client.endpoint.schedulers().remove_path_scheduler("mine"), Ok(()));
}

#[test]
fn what_a_factory_refuses_is_told_where_it_is_chosen() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    let schedulers = pair.client.endpoint.schedulers();
    schedulers.register_path_scheduler("cleanest", cleanest::factory()).expect("a new name");
    let refused = schedulers.build_path_scheduler("cleanest", "-1").map(|_| ()).expect_err("no percentage");
    let told =
        "path scheduler \"cleanest\" refused its configuration: \"-1\" is no percentage above 0, such as 0.5";
    assert_eq!(refused.to_string(), told);
    assert!(schedulers.build_path_scheduler("round_robin", "1").is_err(), "it takes no configuration");
    let unknown = schedulers.build_path_scheduler("fastest", "").map(|_| ()).expect_err("not there");
    assert!(unknown.to_string().starts_with("unknown path scheduler \"fastest\"; registered are blest, "));
}

#[test]
fn cleanest_leaves_a_lossy_path() {
    let mut pair = pair(cleanest::factory(), "");
    // Every fifth packet of the first path is lost.
    let mut count = 0;
    pair.network = Box::new(move |flight| {
        if flight.path() == 0 && flight.to_server {
            count += 1;
        }
        let lost = flight.path() == 0 && flight.to_server && count % 5 == 0;
        (!lost).then(|| Duration::from_millis(10))
    });
    transfer(&mut pair, 600);
    let [lossy, clean] = sent(&mut pair);
    assert!(lossy * 2 < clean, "{lossy} bytes on the lossy path, {clean} on the other");
}
