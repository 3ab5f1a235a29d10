//! Paths that die and return in the middle of a transfer: nothing is lost, everybody is told.

use std::time::Duration;

use tresse_proto::config::{Size, StreamMap};
use tresse_proto::{
    AssociationConfig, CloseReason, Event, PathId, PathState, SendError, SendOptions, StreamId,
};
use tresse_wire::ChunkKind;

use crate::common::{Dice, Pair, by_reports, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Keeps the client's send buffer filled with messages of 1,000 bytes over two streams until `count` have
/// arrived.
fn transfer(pair: &mut Pair, next: &mut u32, count: u32, limit: Duration) {
    pair.run_until(limit, |pair| {
        while *next < count {
            let (now, options) = (pair.now, SendOptions::on(StreamId((*next % 2) as u16)));
            match pair.client().send(now, options, content((*next % 2) as u16, *next, 1000)) {
                Ok(()) => *next += 1,
                Err(SendError::Full { .. }) => break,
                Err(error) => panic!("{error}\n{:?}", pair.client.events),
            }
        }
        pair.pump();
        pair.server.received.len() as u32 >= count
    });
    for stream in 0..2 {
        let expected: Vec<u32> = (0..count).filter(|number| number % 2 == stream).collect();
        assert_eq!(pair.server.numbers_on(stream as u16), expected);
    }
}

fn dead(path: u8) -> crate::common::Network {
    Box::new(move |flight| (flight.path() != path).then_some(ms(10)))
}

fn configs() -> Vec<(&'static str, AssociationConfig)> {
    let cmt = AssociationConfig::default();
    vec![
        ("cmt", cmt.clone()),
        ("fixed map", cmt.clone().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]))),
        (
            "small buffers",
            cmt.with(|c| {
                c.send_buffer = Size(32_768);
                c.receive_buffer = Size(32_768);
            }),
        ),
        ("rfc9260", AssociationConfig::preset("rfc9260").expect("a preset")),
        ("pfldnet2010", AssociationConfig::preset("pfldnet2010").expect("a preset")),
    ]
}

#[test]
fn a_path_that_dies_takes_nothing_with_it() {
    for (name, config) in configs() {
        for path in [0, 1] {
            println!("{name}, path {path} dies");
            let mut pair = Pair::established(2, &config);
            let mut next = 0;
            transfer(&mut pair, &mut next, 300, Duration::from_secs(60));
            pair.network = dead(path);
            transfer(&mut pair, &mut next, 600, Duration::from_secs(120));
            assert!(!pair.client.events.iter().any(|event| matches!(event, Event::Closed(_))));
        }
    }
}

#[test]
fn the_dead_path_is_reported_and_left_alone_until_it_returns() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = dead(1);
    let inactive = Event::PathChanged { path: PathId(1), state: PathState::Inactive };
    let started = pair.now;
    let mut next = 0;
    while !pair.client.events.contains(&inactive) {
        let count = next + 100;
        transfer(&mut pair, &mut next, count, Duration::from_secs(300));
        pair.run_for(Duration::from_secs(1));
        assert!(pair.now - started < Duration::from_secs(130), "six timeouts: 63 s, or a little more");
    }
    // From now on only heartbeats go there.
    let before = pair.wire.len();
    let count = next + 1000;
    transfer(&mut pair, &mut next, count, Duration::from_secs(60));
    let there: Vec<ChunkKind> = pair
        .sent_since(before)
        .iter()
        .filter(|flight| flight.to_server && flight.path() == 1)
        .flat_map(|flight| flight.kinds())
        .collect();
    assert!(there.iter().all(|&kind| kind == ChunkKind::HEARTBEAT), "{there:?}");

    pair.network = Box::new(|_| Some(ms(10)));
    let active = Event::PathChanged { path: PathId(1), state: PathState::Active };
    pair.run_until(Duration::from_secs(120), |pair| pair.client.events.contains(&active));
    let before = pair.wire.len();
    let count = next + 3000;
    transfer(&mut pair, &mut next, count, Duration::from_secs(60));
    let data = |path| {
        let sent =
            pair.sent_since(before).iter().filter(move |flight| flight.to_server && flight.path() == path);
        sent.filter(|flight| flight.has_data()).count()
    };
    assert!(data(1) > 100, "{} packets there, {} on the other", data(1), data(0));
}

#[test]
fn the_last_living_path_carries_everything() {
    let mut pair = Pair::established(3, &AssociationConfig::default());
    let mut next = 0;
    for (dead, count) in
        [(vec![], 300), (vec![0], 600), (vec![0, 2], 900), (vec![1, 2], 1200), (vec![], 1500)]
    {
        pair.network = Box::new(move |flight| (!dead.contains(&flight.path())).then_some(ms(10)));
        transfer(&mut pair, &mut next, count, Duration::from_secs(600));
    }
}

#[test]
fn what_was_lost_with_the_last_path_leaves_on_the_first_that_returns() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = Box::new(|flight| (flight.path() == 0).then_some(ms(10)));
    let inactive = |path| Event::PathChanged { path: PathId(path), state: PathState::Inactive };
    pair.run_until(Duration::from_secs(3600), |pair| pair.client.events.contains(&inactive(1)));
    let mut next = 0;
    transfer(&mut pair, &mut next, 100, Duration::from_secs(20));
    // Now the other fails with data in flight, and the first comes back alone.
    pair.network = Box::new(|_| None);
    for number in 100..130 {
        pair.send((number % 2) as u16, number, 1000);
    }
    pair.run_until(Duration::from_secs(3600), |pair| pair.client.events.contains(&inactive(0)));
    pair.network = Box::new(|flight| (flight.path() == 1).then_some(ms(10)));
    let active = Event::PathChanged { path: PathId(1), state: PathState::Active };
    pair.run_until(Duration::from_secs(600), |pair| pair.client.events.contains(&active));
    // As soon as the server has found the path again too; not a packet in each backed-off RTO of a minute, as on
    // the path that stayed away.
    pair.run_until(Duration::from_secs(180), |pair| pair.server.received.len() == 130);
}

#[test]
fn a_transfer_survives_an_outage_of_all_paths() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    let mut next = 0;
    transfer(&mut pair, &mut next, 100, Duration::from_secs(20));
    pair.network = Box::new(|_| None);
    for number in 100..150 {
        pair.send((number % 2) as u16, number, 1000);
    }
    next = 150;
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.server.received.len(), 100);
    pair.network = Box::new(|_| Some(ms(10)));
    transfer(&mut pair, &mut next, 300, Duration::from_secs(120));
    assert!(!pair.client.events.iter().any(|event| matches!(event, Event::Closed(_))));
}

#[test]
fn a_peer_that_vanishes_in_mid_transfer_ends_it_after_the_configured_timeouts() {
    for (paths, limit) in [(1, 10), (2, 10), (2, 3)] {
        let config = AssociationConfig::default().with(|c| c.association_max_retrans = limit);
        let mut pair = Pair::established(paths, &config);
        pair.network = Box::new(|_| None);
        let before = pair.wire.len();
        for number in 0..20 {
            pair.send(0, number, 1000);
        }
        pair.run_until(Duration::from_secs(3600), |pair| {
            pair.client.events.iter().any(|event| matches!(event, Event::Closed(_)))
        });
        assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::PathsLost)));
        let now = pair.now;
        let timeouts: u64 = pair.client().path_stats(now).iter().map(|path| path.timeouts).sum();
        let heartbeats = pair
            .sent_since(before)
            .iter()
            .filter(|flight| flight.carries(ChunkKind::HEARTBEAT) && flight.to_server);
        let failures = timeouts + heartbeats.count() as u64;
        assert!(timeouts <= u64::from(limit) + 1 && failures > u64::from(limit), "{timeouts} of {failures}");
        // After the end there is silence.
        let quiet = pair.wire.iter().filter(|flight| flight.to_server).count();
        pair.run_for(Duration::from_secs(600));
        assert_eq!(pair.wire.iter().filter(|flight| flight.to_server).count(), quiet);
    }
}

#[test]
fn timeouts_on_the_wire_double_and_go_another_way() {
    // Heartbeats and probes, which would come through here, measure round trips and so end the back-off.
    let config = by_reports().with(|c| {
        c.potentially_failed = false;
        c.mtu_discovery = false;
    });
    let mut pair = Pair::established(2, &config);
    pair.network = Box::new(|flight| (!flight.has_data()).then_some(ms(10)));
    let (before, start) = (pair.wire.len(), pair.now);
    pair.send(0, 0, 1000);
    pair.run_for(Duration::from_secs(20));
    let sent: Vec<(u64, u8)> = pair
        .sent_since(before)
        .iter()
        .filter(|flight| flight.has_data())
        .map(|flight| ((flight.sent - start).as_millis() as u64, flight.path()))
        .collect();
    // RTO.Min is 1 s. Each path backs off by itself (RFC 9260 §6.3.3 E2), and each timeout goes to the other.
    let first = sent[0].1;
    let expected: Vec<(u64, u8)> = [0, 1000, 2000, 4000, 6000, 10_000, 14_000]
        .into_iter()
        .enumerate()
        .map(|(turn, at)| (at, if turn % 2 == 0 { first } else { 1 - first }))
        .collect();
    assert_eq!(sent[..7], expected);
}

#[test]
fn flapping_paths_lose_nothing() {
    for seed in 0..10 {
        let mut pair = Pair::established(3, &AssociationConfig::default());
        let mut dice = Dice::new(seed);
        // In each second each path is either up or down, and loses some packets when it is up.
        pair.network = Box::new(move |flight| {
            let second = flight.sent.as_nanos() / 1_000_000_000;
            let up = Dice::new(second * 31 + u64::from(flight.path()) * 7 + seed).below(3) > 0;
            (up && !dice.hits(0.02)).then(|| ms(5 + dice.below(30)))
        });
        transfer(&mut pair, &mut 0, 2000, Duration::from_secs(600));
    }
}

#[test]
fn streams_of_a_path_follow_when_its_errors_put_another_in_use() {
    let one_path = AssociationConfig::default().with(|c| {
        c.concurrent = false;
        c.stream_map = StreamMap::Fixed(vec![0]);
    });
    let narrow = one_path.clone().with(|c| c.receive_buffer = Size(1500));
    let mut pair = Pair::unlike(3, &one_path, &narrow, 1).settled();
    pair.client().set_primary(PathId(1)).expect("there are two");
    pair.network = dead(1);
    let inactive = Event::PathChanged { path: PathId(1), state: PathState::Inactive };
    pair.run_until(Duration::from_secs(600), |pair| pair.client.events.contains(&inactive));
    // One packet at a time is all that the peer takes. The first is lost, and with that path 0 has one error more
    // than path 2.
    let mut first = true;
    pair.network = Box::new(move |flight| {
        let lost = flight.path() == 1 || (flight.carries(ChunkKind::DATA) && std::mem::take(&mut first));
        (!lost).then_some(ms(10))
    });
    for number in 0..5 {
        pair.send(0, number, 1400);
    }
    pair.run_until(Duration::from_secs(4), |pair| pair.server.received.len() == 5);
}
