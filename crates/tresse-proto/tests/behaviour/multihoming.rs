//! Several paths: which address pairs become paths, how they are confirmed, and how they stay alive.

use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::config::PathPairs;
use tresse_proto::{AssociationConfig, CloseReason, Event, Instant, PathId, PathState, PathStats};
use tresse_wire::ChunkKind;

use crate::common::{Pair, address, by_reports};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn stats(pair: &mut Pair) -> (Vec<PathStats>, Vec<PathStats>) {
    let now = pair.now;
    (pair.client().path_stats(now), pair.server().path_stats(now))
}

/// When packets with `kind` were sent from the client (or the server) on a path, in milliseconds.
fn times(pair: &Pair, from_client: bool, path: u8, kind: ChunkKind) -> Vec<u64> {
    let of_side = pair.wire.iter().filter(|flight| flight.to_server == from_client && flight.path() == path);
    of_side.filter(|flight| flight.carries(kind)).map(|flight| flight.sent.as_nanos() / 1_000_000).collect()
}

#[test]
fn addresses_pair_up_by_position_on_both_sides() {
    let mut pair = Pair::established(3, &AssociationConfig::default());
    let (client, server) = stats(&mut pair);
    let ends = |stats: &[PathStats]| -> Vec<(IpAddr, IpAddr)> {
        stats.iter().map(|path| (path.local, path.remote)).collect()
    };
    assert_eq!(ends(&client), [0, 1, 2].map(|path| (address(1, path), address(2, path))));
    assert_eq!(ends(&server), [0, 1, 2].map(|path| (address(2, path), address(1, path))));
    assert_eq!(
        client.iter().filter(|path| path.primary).map(|path| path.id).collect::<Vec<_>>(),
        [PathId(0)]
    );
}

#[test]
fn a_full_mesh_pairs_every_address_with_every_other() {
    let config = AssociationConfig::default().with(|c| c.path_pairs = PathPairs::FullMesh);
    let mut pair = Pair::new(2, &config);
    pair.connect();
    // Probes of unconfirmed paths take turns, one in an RTO.
    pair.run_for(Duration::from_secs(10));
    let (client, server) = stats(&mut pair);
    assert_eq!((client.len(), server.len()), (4, 4));
    assert!(client.iter().chain(&server).all(|path| path.state == PathState::Active));
}

#[test]
fn more_addresses_than_paths_are_ignored() {
    let config = AssociationConfig::default().with(|c| c.max_paths = 2);
    let mut pair = Pair::established(5, &config);
    let (client, server) = stats(&mut pair);
    assert_eq!((client.len(), server.len()), (2, 2));
}

#[test]
fn heartbeats_confirm_what_the_handshake_did_not() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.connect();
    pair.run_for(ms(35));
    // COOKIE ECHO has arrived: the server has seen path 0 work, and not yet path 1.
    assert_eq!(
        pair.server().path_stats(Instant::ZERO).iter().map(|path| path.state).collect::<Vec<_>>(),
        [PathState::Active, PathState::Unconfirmed]
    );
    pair.run_for(ms(100));
    let confirmed = Event::PathChanged { path: PathId(1), state: PathState::Active };
    assert_eq!(pair.server.events.iter().filter(|&event| *event == confirmed).count(), 1);
    assert_eq!(times(&pair, false, 1, ChunkKind::HEARTBEAT).len(), 1);
    assert_eq!(times(&pair, true, 1, ChunkKind::HEARTBEAT_ACK).len(), 1);
    let (client, server) = stats(&mut pair);
    assert_eq!(server[1].srtt, Some(ms(20)), "and measured it");
    // The client's user named both addresses, which confirms them (RFC 9260 §5.4).
    assert!(client.iter().all(|path| path.state == PathState::Active));
}

#[test]
fn nothing_but_heartbeats_travels_on_an_unconfirmed_path() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.network = Box::new(|flight| (flight.path() == 0).then_some(ms(10)));
    pair.connect();
    pair.run_for(ms(100));
    let now = pair.now;
    for number in 0..100 {
        let options = tresse_proto::SendOptions::default();
        pair.server().send(now, options, crate::common::content(0, number, 3000)).expect("room");
    }
    pair.run_until(Duration::from_secs(20), |pair| pair.client.received.len() == 100);
    let of_server = pair.wire.iter().filter(|flight| !flight.to_server && flight.path() == 1);
    let kinds: Vec<_> = of_server.flat_map(|flight| flight.kinds()).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|&kind| kind == ChunkKind::HEARTBEAT), "{kinds:?}");
}

#[test]
fn idle_paths_are_probed_every_interval_and_live_for_hours() {
    let mut pair = Pair::established(2, &by_reports());
    let start = pair.wire.len();
    pair.run_for(Duration::from_secs(3600));
    assert!(pair.client.events.is_empty() && pair.server.events.is_empty());
    for (from_client, path) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        // HB.interval 30 s and an RTO of 1 s, give or take half of it (RFC 9260 §8.3).
        let sent = times(&pair, from_client, path, ChunkKind::HEARTBEAT);
        let gaps: Vec<u64> =
            sent.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > 2000).collect();
        assert!(gaps.len() > 110, "{} heartbeats", gaps.len());
        assert!(gaps.iter().all(|gap| (30_500..=31_500).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| gap.abs_diff(gaps[0]) > 50), "they do not fall into step");
    }
    let kinds = [ChunkKind::HEARTBEAT, ChunkKind::HEARTBEAT_ACK];
    assert!(
        pair.sent_since(start).iter().flat_map(|flight| flight.kinds()).all(|kind| kinds.contains(&kind))
    );
}

#[test]
fn no_heartbeats_are_sent_when_they_are_switched_off() {
    let config = AssociationConfig::default().with(|c| c.heartbeat_interval = Duration::ZERO);
    let mut pair = Pair::established(2, &config);
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.wire.len(), before);
    assert!(pair.server().path_stats(Instant::ZERO).iter().all(|path| path.state == PathState::Active));
}

#[test]
fn an_idle_association_notices_that_its_peer_has_vanished() {
    let config = AssociationConfig::default();
    let mut pair = Pair::established(2, &config);
    pair.network = Box::new(|_| None);
    let before = pair.wire.len();
    pair.run_until(Duration::from_secs(7200), |pair| {
        pair.client.events.iter().any(|event| matches!(event, Event::Closed(_)))
    });
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::PathsLost)));
    let path_failed =
        |event: &Event, wanted| matches!(event, Event::PathChanged { state, .. } if *state == wanted);
    let failures = &pair.client.events[..pair.client.events.len() - 1];
    let (doubted, failed) = failures.split_at(2);
    assert!(doubted.iter().all(|event| path_failed(event, PathState::PotentiallyFailed)), "{failures:?}");
    assert!(failed.iter().all(|event| path_failed(event, PathState::Inactive)), "{failures:?}");
    assert!(!failed.is_empty(), "the first of the paths had failed before");
    // 11 unanswered heartbeats on paths that would carry data are too many. Once both paths are in doubt only the
    // better one would, and it depends on the jitter whose heartbeats count.
    let heartbeats = pair.sent_since(before).iter().filter(|flight| flight.to_server).count();
    let most = config.association_max_retrans as usize + 1;
    assert!((most..=2 * most).contains(&heartbeats), "{heartbeats}");
}

#[test]
fn a_path_that_returns_is_active_again() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = Box::new(|flight| (flight.path() == 0).then_some(ms(10)));
    let inactive = Event::PathChanged { path: PathId(1), state: PathState::Inactive };
    let active = Event::PathChanged { path: PathId(1), state: PathState::Active };
    pair.run_until(Duration::from_secs(3600), |pair| {
        pair.client.events.contains(&inactive) && pair.server.events.contains(&inactive)
    });
    let (client, _) = stats(&mut pair);
    assert_eq!((client[0].state, client[1].state), (PathState::Active, PathState::Inactive));
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_until(Duration::from_secs(200), |pair| {
        pair.client.events.last() == Some(&active) && pair.server.events.last() == Some(&active)
    });
    let doubtful = Event::PathChanged { path: PathId(1), state: PathState::PotentiallyFailed };
    assert_eq!(pair.client.events, [doubtful.clone(), inactive.clone(), active.clone()]);
    assert_eq!(pair.server.events, [doubtful, inactive, active]);
}

#[test]
fn only_one_path_carries_new_data_unless_paths_are_used_concurrently() {
    let config = AssociationConfig::preset("rfc9260").expect("a preset");
    let mut pair = Pair::established(2, &config);
    let transfer = |pair: &mut Pair, first: u32| {
        let before = pair.wire.len();
        for number in first..first + 50 {
            pair.send(0, number, 1000);
        }
        pair.run_until(Duration::from_secs(20), |pair| pair.server.received.len() == first as usize + 50);
        let data = pair.sent_since(before).iter().filter(|flight| flight.to_server && flight.has_data());
        data.map(|flight| flight.path()).collect::<std::collections::BTreeSet<u8>>()
    };
    assert_eq!(transfer(&mut pair, 0), [0].into());
    pair.client().set_primary(PathId(1)).expect("there are two");
    assert_eq!(transfer(&mut pair, 50), [1].into());
    let refused = pair.client().set_primary(PathId(7)).expect_err("there are two");
    assert_eq!(refused.to_string(), "path 7 does not exist: the association has 2");
    assert_eq!(transfer(&mut pair, 100), [1].into(), "there is no such path");
    let mut pair = Pair::established(2, &AssociationConfig::default());
    assert_eq!(transfer(&mut pair, 0), [0, 1].into());
}
