//! Paths that time out are doubted at once and left alone until they answer (RFC 7829).

use std::time::Duration;

use tresse_proto::{AssociationConfig, Event, PathId, PathState};
use tresse_wire::ChunkKind;

use crate::common::{Network, Pair, by_reports};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config(lines: &[(&str, &str)]) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    for (switch, value) in lines {
        config.set(switch, value).expect("a switch");
    }
    config
}

/// The paths in `dead` lead nowhere.
fn dead(dead: &'static [u8]) -> Network {
    Box::new(|flight| (!dead.contains(&flight.path())).then_some(ms(10)))
}

fn changed(path: u8, state: PathState) -> Event {
    Event::PathChanged { path: PathId(path), state }
}

fn send_many(pair: &mut Pair, numbers: std::ops::Range<u32>) {
    for number in numbers {
        pair.send(0, number, 1000);
    }
}

fn all_arrived(pair: &Pair, count: u32) -> bool {
    pair.server.numbers_on(0) == (0..count).collect::<Vec<_>>()
}

/// What the client sent on `path` from packet `from` on.
fn kinds_on(pair: &Pair, path: u8, from: usize) -> Vec<ChunkKind> {
    let sent = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.path() == path);
    sent.flat_map(|flight| flight.kinds()).collect()
}

#[test]
fn one_timeout_is_enough_to_leave_a_path_alone() {
    let mut pair = Pair::established(2, &config(&[]));
    pair.network = dead(&[1]);
    send_many(&mut pair, 0..60);
    let doubtful = changed(1, PathState::PotentiallyFailed);
    pair.run_until(ms(1500), |pair| pair.client.events.contains(&doubtful));
    let before = pair.wire.len();
    // One RTO after the loss everything is there; RFC 9260 alone would go on trying the dead path.
    pair.run_until(ms(500), |pair| all_arrived(pair, 60));
    send_many(&mut pair, 60..400);
    pair.run_until(ms(2000), |pair| all_arrived(pair, 400));
    pair.run_for(Duration::from_secs(15));
    let kinds = kinds_on(&pair, 1, before);
    assert!(kinds.iter().all(|&kind| kind == ChunkKind::HEARTBEAT), "{kinds:?}");
    assert_eq!(pair.path(1).state, PathState::PotentiallyFailed, "not yet inactive");
}

#[test]
fn probes_follow_each_other_by_the_retransmission_timeout() {
    let mut pair = Pair::established(2, &by_reports());
    pair.network = dead(&[1]);
    send_many(&mut pair, 0..60);
    let inactive = changed(1, PathState::Inactive);
    pair.run_until(Duration::from_secs(70), |pair| pair.client.events.contains(&inactive));
    let probes: Vec<u64> = pair
        .wire
        .iter()
        .filter(|flight| flight.to_server && flight.path() == 1 && flight.carries(ChunkKind::HEARTBEAT))
        .map(|flight| flight.sent.as_nanos() / 1_000_000)
        .collect();
    let gaps: Vec<u64> = probes.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
    assert!(gaps.ends_with(&[2, 4, 8, 16]), "{gaps:?} s between {probes:?}");
}

#[test]
fn a_path_that_answers_begins_with_a_small_window() {
    for (packets, window) in [("1", 1468), ("2", 2936)] {
        let mut pair = Pair::established(
            2,
            &config(&[("potentially_failed_window", packets), ("mtu_discovery", "false")]),
        );
        send_many(&mut pair, 0..300);
        pair.run_until(ms(2000), |pair| all_arrived(pair, 300));
        pair.network = dead(&[1]);
        send_many(&mut pair, 300..360);
        let doubtful = changed(1, PathState::PotentiallyFailed);
        pair.run_until(ms(3000), |pair| pair.client.events.contains(&doubtful));
        pair.network = dead(&[]);
        let active = changed(1, PathState::Active);
        pair.run_until(ms(4000), |pair| pair.client.events.last() == Some(&active));
        assert_eq!(pair.path(1).cwnd, window);
        let before = pair.wire.len();
        send_many(&mut pair, 360..500);
        pair.run_until(ms(2000), |pair| all_arrived(pair, 500));
        assert!(kinds_on(&pair, 1, before).contains(&ChunkKind::DATA), "it is in use again");
    }
}

#[test]
fn when_every_path_is_doubted_data_still_goes() {
    let mut pair = Pair::established(2, &config(&[]));
    pair.network = dead(&[0, 1]);
    send_many(&mut pair, 0..60);
    let doubtful =
        |pair: &mut Pair, path| pair.client.events.contains(&changed(path, PathState::PotentiallyFailed));
    pair.run_until(ms(4000), |pair| doubtful(pair, 0) && doubtful(pair, 1));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(10));
    for path in [0, 1] {
        assert!(kinds_on(&pair, path, before).contains(&ChunkKind::DATA), "path {path}");
    }
    pair.network = dead(&[1]);
    // What waits for T3 of the dead path has backed off by now.
    pair.run_until(Duration::from_secs(60), |pair| all_arrived(pair, 60));
}

#[test]
fn paths_that_are_all_inactive_take_turns_until_one_works() {
    let lines = [("path_max_retrans", "1"), ("association_max_retrans", "40")];
    let mut pair = Pair::established(2, &config(&lines));
    pair.network = dead(&[0, 1]);
    send_many(&mut pair, 0..60);
    let inactive = |pair: &mut Pair, path| pair.client.events.contains(&changed(path, PathState::Inactive));
    pair.run_until(Duration::from_secs(60), |pair| inactive(pair, 0) && inactive(pair, 1));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(400));
    for path in [0, 1] {
        assert!(kinds_on(&pair, path, before).contains(&ChunkKind::DATA), "path {path}");
    }
    pair.network = dead(&[0]);
    pair.run_until(Duration::from_secs(300), |pair| all_arrived(pair, 60));
}

#[test]
fn a_primary_path_that_fails_may_lose_its_rank_for_good() {
    for (limit, primary) in [("2", 1), ("65535", 0)] {
        let lines = [("concurrent", "false"), ("primary_switchover_max_retrans", limit)];
        let mut pair = Pair::established(2, &config(&lines));
        pair.network = dead(&[0]);
        send_many(&mut pair, 0..20);
        pair.run_until(ms(3000), |pair| all_arrived(pair, 20));
        pair.run_for(Duration::from_secs(20));
        pair.network = dead(&[]);
        pair.run_until(Duration::from_secs(60), |pair| {
            pair.client.events.last() == Some(&changed(0, PathState::Active))
        });
        let now = pair.now;
        let ranks: Vec<bool> = pair.client().path_stats(now).iter().map(|path| path.primary).collect();
        assert_eq!(ranks, [primary == 0, primary == 1]);
        let before = pair.wire.len();
        send_many(&mut pair, 20..40);
        pair.run_until(ms(3000), |pair| all_arrived(pair, 40));
        assert!(kinds_on(&pair, primary, before).contains(&ChunkKind::DATA));
        assert!(!kinds_on(&pair, 1 - primary, before).contains(&ChunkKind::DATA));
    }
}

#[test]
fn what_another_path_may_have_brought_clears_no_suspicion() {
    // Path 1 only seems slow: its SACKs and heartbeat answers are lost, its data arrives late. By time, the peer's reports
    // that everything came twice would show that path 1 brought it.
    let lines = [("sack_path", "last_data"), ("loss_detection", "rfc9260")];
    let mut pair = Pair::established(2, &config(&lines));
    pair.network = Box::new(|flight| match (flight.path(), flight.to_server) {
        (1, true) if flight.carries(ChunkKind::HEARTBEAT) => None,
        (1, true) => Some(ms(1040)),
        _ => Some(ms(10)),
    });
    send_many(&mut pair, 0..12);
    let doubtful = changed(1, PathState::PotentiallyFailed);
    pair.run_until(ms(1500), |pair| pair.client.events.contains(&doubtful));
    pair.run_for(ms(900));
    assert!(all_arrived(&pair, 12));
    assert!(!pair.client.events.contains(&changed(1, PathState::Active)), "{:?}", pair.client.events);
    assert_eq!(pair.path(1).state, PathState::PotentiallyFailed);
}

#[test]
fn a_path_that_has_become_slow_returns_though_it_answers_later_than_it_is_asked_again() {
    let mut pair = Pair::established(2, &config(&[]));
    let mut number = pair.saturate(1, 0, 1000, ms(500));
    // Path 1 takes 800 ms for a round trip from now on, and path 0 goes on as before.
    pair.network = Box::new(|flight| Some(ms(if flight.path() == 1 { 400 } else { 10 })));
    number = pair.saturate(1, number, 1000, ms(1000));
    assert_ne!(pair.path(1).state, PathState::Active);
    pair.saturate(1, number, 1000, Duration::from_secs(20));
    assert_eq!(pair.path(1).state, PathState::Active, "{:?}", pair.client.events);
}
