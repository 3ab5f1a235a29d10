//! Settings that change while the association runs, and an endpoint that changes what it gives to associations to come.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::config::{AuthHash, Size};
use tresse_proto::{
    AdjustError, Adjustment, AssociationConfig, ConfigError, Endpoint, EndpointConfig, Event, PacketSize,
    PathAdjustment, PathId, PathState, SendError, SendOptions, StreamId,
};
use tresse_wire::ChunkKind;

use crate::common::{Network, Pair, address, by_reports};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn all_lost() -> Network {
    Box::new(|_| None)
}

/// When packets with a chunk of `kind` left from the client since `from`, in ms.
fn sent(pair: &Pair, from: usize, kind: ChunkKind) -> Vec<u64> {
    let sent = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.carries(kind));
    sent.map(|flight| flight.sent.as_nanos() / 1_000_000).collect()
}

#[test]
fn a_timeout_keeps_to_bounds_that_were_changed() {
    let mut pair = Pair::established(1, &by_reports());
    assert_eq!(pair.path(0).rto, ms(1000));
    let change = Adjustment::default().with(|a| {
        a.rto_initial = Some(ms(100));
        a.rto_min = Some(ms(50));
        a.rto_max = Some(ms(200));
    });
    pair.client().adjust(change).expect("sound bounds");
    assert_eq!(pair.path(0).rto, ms(200), "the estimate is bounded at once");
    pair.network = all_lost();
    let (start, before) = (pair.now, pair.wire.len());
    pair.send(0, 1, 100);
    pair.run_for(ms(1300));
    let start = (start.as_nanos() / 1_000_000) as i64;
    let after: Vec<i64> = sent(&pair, before, ChunkKind::DATA).iter().map(|&at| at as i64 - start).collect();
    assert_eq!(after, [0, 200, 400, 600, 800, 1000, 1200], "a back-off that the bound holds");
}

#[test]
fn what_contradicts_itself_changes_nothing() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let change = Adjustment::default().with(|a| {
        a.sack_frequency = Some(9);
        a.rto_min = Some(ms(90_000));
    });
    let error = pair.client().adjust(change).expect_err("more than rto_max");
    assert!(matches!(error, AdjustError::Config(ConfigError::Inconsistent { name: "rto_max", .. })));
    assert_eq!(pair.client().config(), &AssociationConfig::default());
    let tiny = PathAdjustment::default().with(|a| a.packet_size = Some(PacketSize::Fixed(100)));
    assert!(matches!(pair.client().adjust_path(PathId(0), tiny), Err(AdjustError::Config(_))));
    assert!(matches!(pair.client().adjust_path(PathId(7), tiny), Err(AdjustError::NoSuchPath(_))));
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(500));
    assert_eq!(pair.client().adjust(Adjustment::default()), Err(AdjustError::NotOpen { state: "CLOSED" }));
}

#[test]
fn what_is_changed_during_the_set_up_the_association_begins_with() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    let change = Adjustment::default().with(|a| a.max_burst = Some(3));
    pair.client().adjust(change).expect("sound");
    pair.run_for(ms(500));
    assert!(pair.client().is_established());
    assert_eq!(pair.client().config().max_burst, 3);
}

#[test]
fn a_send_buffer_that_grows_tells_who_was_refused_and_one_that_shrinks_keeps_what_it_has() {
    let mut pair = Pair::established(1, &AssociationConfig::default().with(|c| c.send_buffer = Size(1000)));
    pair.network = all_lost();
    let now = pair.now;
    let send = |pair: &mut Pair, len| {
        let options = SendOptions::on(StreamId(0));
        pair.client().send(now, options, Bytes::from(vec![0; len]))
    };
    let resized = |pair: &mut Pair, bytes| {
        pair.client().adjust(Adjustment::default().with(|a| a.send_buffer = Some(bytes))).expect("sound");
        pair.run_for(ms(1));
        std::mem::take(&mut pair.client.events).contains(&Event::Writable)
    };
    assert_eq!(send(&mut pair, 1001), Err(SendError::TooLong { len: 1001, limit: 1000 }));
    assert_eq!(send(&mut pair, 900), Ok(()));
    assert_eq!(send(&mut pair, 200), Err(SendError::Full { free: 100 }));
    assert!(!resized(&mut pair, 900), "there is no room");
    assert!(resized(&mut pair, 2000));
    assert!(!resized(&mut pair, 3000), "nobody was refused since then");
    assert_eq!(send(&mut pair, 1001), Ok(()));
    assert!(!resized(&mut pair, 500));
    assert_eq!(pair.client().send_queue().used, 1901);
    assert_eq!(send(&mut pair, 1), Err(SendError::Full { free: 0 }));
}

#[test]
fn a_burst_is_limited_from_the_next_packet_on() {
    let config = AssociationConfig::default().with(|c| {
        c.pacing = false;
        c.mtu_discovery = false;
    });
    let mut pair = Pair::established(1, &config);
    let burst = |pair: &mut Pair, number| {
        let before = pair.wire.len();
        pair.send(0, number, 20 * 1452);
        let count = sent(pair, before, ChunkKind::DATA).len();
        pair.run_for(ms(2000));
        count
    };
    let unlimited = burst(&mut pair, 1);
    assert!(unlimited > 2, "{unlimited}");
    let change = Adjustment::default().with(|a| a.max_burst = Some(2));
    pair.client().adjust(change).expect("sound");
    assert_eq!(burst(&mut pair, 2), 2);
}

#[test]
fn reports_are_delayed_as_the_application_says_now() {
    let mut pair = Pair::established(1, &by_reports());
    pair.send(0, 1, 100);
    pair.run_for(ms(1000));
    let answered_after = |pair: &mut Pair, number| {
        let (start, before) = (pair.now, pair.wire.len());
        pair.send(0, number, 100);
        pair.run_for(ms(1000));
        let report = pair.sent_since(before).iter().find(|flight| !flight.to_server).expect("a SACK");
        report.sent - start
    };
    assert_eq!(answered_after(&mut pair, 2), ms(210));
    let change = Adjustment::default().with(|a| a.sack_delay = Some(ms(50)));
    pair.server().adjust(change).expect("sound");
    assert_eq!(answered_after(&mut pair, 3), ms(60));
    let change = Adjustment::default().with(|a| a.sack_frequency = Some(1));
    pair.server().adjust(change).expect("sound");
    assert_eq!(answered_after(&mut pair, 4), ms(10));
}

#[test]
fn the_end_comes_after_as_many_timeouts_as_are_allowed_now() {
    let mut pair = Pair::established(1, &by_reports());
    let change = Adjustment::default().with(|a| a.association_max_retrans = Some(2));
    pair.client().adjust(change).expect("sound");
    pair.network = all_lost();
    let start = pair.now;
    pair.send(0, 1, 100);
    pair.run_until(Duration::from_secs(60), |pair| {
        pair.client.events.iter().any(|event| matches!(event, Event::Closed(_)))
    });
    assert_eq!(pair.now - start, Duration::from_secs(1 + 2 + 4));
}

#[test]
fn each_path_has_thresholds_of_its_own_until_all_are_given_others() {
    let config = AssociationConfig::default().with(|c| c.heartbeat_interval = ms(100));
    let mut pair = Pair::established(2, &config);
    let own = PathAdjustment::default().with(|a| a.max_retrans = Some(0));
    pair.client().adjust_path(PathId(1), own).expect("a path");
    let fail = |pair: &mut Pair| {
        pair.network = all_lost();
        pair.run_until(Duration::from_secs(60), |pair| {
            (0..2).all(|path| pair.path(path).state != PathState::Active)
        });
        pair.run_for(ms(50));
        let states = [pair.path(0).state, pair.path(1).state];
        pair.network = Box::new(|_| Some(ms(10)));
        pair.run_until(Duration::from_secs(60), |pair| {
            (0..2).all(|path| pair.path(path).state == PathState::Active)
        });
        states
    };
    assert_eq!(fail(&mut pair), [PathState::PotentiallyFailed, PathState::Inactive]);
    let paths = PathAdjustment::default().with(|a| a.max_retrans = Some(5));
    pair.client().adjust(Adjustment::default().with(|a| a.paths = paths)).expect("sound");
    assert_eq!(fail(&mut pair), [PathState::PotentiallyFailed; 2]);
    let paths = PathAdjustment::default().with(|a| a.potentially_failed_max_retrans = Some(65_535));
    pair.client().adjust(Adjustment::default().with(|a| a.paths = paths)).expect("sound");
    assert!(!pair.client().config().potentially_failed);
    pair.network = all_lost();
    pair.run_for(Duration::from_secs(5));
    assert_eq!(
        [pair.path(0).state, pair.path(1).state],
        [PathState::Active; 2],
        "5 errors make none inactive"
    );
}

#[test]
fn heartbeats_are_switched_off_and_on_for_one_path() {
    let config = AssociationConfig::default().with(|c| {
        c.heartbeat_interval = Duration::from_secs(1);
        c.sack_path_probes = Duration::ZERO;
    });
    let mut pair = Pair::established(2, &config);
    let count = |pair: &mut Pair| {
        let before = [0, 1].map(|path| pair.path(path).heartbeats_sent);
        pair.run_for(Duration::from_secs(20));
        [0, 1].map(|path| pair.path(path).heartbeats_sent - before[path])
    };
    let both = count(&mut pair);
    assert!(both.iter().all(|&count| count > 5), "{both:?}");
    let off = PathAdjustment::default().with(|a| a.heartbeat_interval = Some(Duration::ZERO));
    pair.client().adjust_path(PathId(1), off).expect("a path");
    let one = count(&mut pair);
    assert!(one[0] > 5 && one[1] == 0, "{one:?}");
    let on = PathAdjustment::default().with(|a| a.heartbeat_interval = Some(ms(1)));
    pair.client().adjust_path(PathId(1), on).expect("a path");
    let more = count(&mut pair);
    assert!(more[1] > more[0], "{more:?}");
}

#[test]
fn a_heartbeat_leaves_when_the_application_asks_for_it() {
    let config = AssociationConfig::default().with(|c| c.heartbeat_interval = Duration::ZERO);
    let mut pair = Pair::established(2, &config);
    pair.run_for(Duration::from_secs(10));
    let before = pair.wire.len();
    let (now, acked) = (pair.now, pair.path(1).heartbeats_acked);
    pair.client().request_heartbeat(now, PathId(1)).expect("a path");
    pair.client().request_heartbeat(now, PathId(1)).expect("a path");
    pair.run_for(ms(100));
    assert_eq!(sent(&pair, before, ChunkKind::HEARTBEAT).len(), 1, "one that is under way is enough");
    assert_eq!(pair.path(1).heartbeats_acked, acked + 1);
    assert!(pair.client().request_heartbeat(now, PathId(2)).is_err());
    pair.client().shutdown(now);
    let before = pair.wire.len();
    pair.client().request_heartbeat(now, PathId(1)).expect("a path");
    pair.run_for(ms(100));
    assert_eq!(sent(&pair, before, ChunkKind::HEARTBEAT), [0; 0], "none in a shutdown");
}

#[test]
fn a_packet_size_is_fixed_and_found_out_again() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let fixed = PathAdjustment::default().with(|a| a.packet_size = Some(PacketSize::Fixed(800)));
    pair.client().adjust_path(PathId(0), fixed).expect("a path");
    let largest = |pair: &mut Pair, number| {
        let before = pair.wire.len();
        pair.send(0, number, 50_000);
        pair.run_for(Duration::from_secs(5));
        let lengths = pair.sent_since(before).iter().filter(|flight| flight.to_server);
        20 + lengths.map(|flight| flight.bytes.len()).max().expect("packets")
    };
    assert_eq!(largest(&mut pair, 1), 800);
    let searched = PathAdjustment::default().with(|a| a.packet_size = Some(PacketSize::Discovered));
    pair.client().adjust_path(PathId(0), searched).expect("a path");
    assert_eq!(largest(&mut pair, 2), 1500);
}

#[test]
fn an_endpoint_stops_and_starts_listening() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.server.endpoint.set_listening(false);
    assert!(!pair.server.endpoint.is_listening());
    pair.connect();
    pair.run_for(ms(500));
    assert!(matches!(pair.client.events[..], [Event::Closed(_)]), "{:?}", pair.client.events);
    assert_eq!(pair.server.endpoint.discards().refused, 1);
    pair.server.endpoint.set_listening(true);
    pair.connect();
    pair.run_for(ms(500));
    assert!(pair.client().is_established());
    pair.server.endpoint.set_listening(false);
    pair.send(0, 1, 100);
    pair.run_for(ms(500));
    assert_eq!(pair.server.received.len(), 1, "associations that there are go on");
}

#[test]
fn associations_to_come_are_made_of_a_new_template() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let template = AssociationConfig::default().with(|c| c.inbound_streams = 3);
    pair.server.endpoint.set_template(template.clone()).expect("sound settings");
    let bad = template.clone().with(|c| c.stream_scheduler = "none such".to_owned());
    assert!(pair.server.endpoint.set_template(bad).is_err());
    assert_eq!(pair.server.endpoint.template(), &template);
    pair.connect();
    pair.run_for(ms(500));
    assert_eq!(pair.client().streams(), (3, 10));
}

/// A pair whose server has answered an INIT and not seen the COOKIE ECHO.
fn answered(paths: u8, config: &AssociationConfig) -> Pair {
    let mut pair = Pair::new(paths, config);
    pair.connect();
    pair.run_for(ms(15));
    assert!(pair.wire.iter().any(|flight| flight.carries(ChunkKind::INIT_ACK)));
    pair
}

#[test]
fn a_cookie_is_stale_once_the_settings_are_no_longer_as_announced() {
    let default = AssociationConfig::default();
    let changes: [AssociationConfig; 5] = [
        default.clone().with(|c| c.inbound_streams = 3),
        default.clone().with(|c| c.receive_buffer = Size(100_000)),
        default.clone().with(|c| c.partial_reliability = false),
        default.clone().with(|c| c.adaptation = Some(1)),
        default.clone().with(|c| c.authentication_hash = AuthHash::Sha1),
    ];
    for change in changes {
        let mut pair = answered(1, &default);
        pair.server.endpoint.set_template(change.clone()).expect("sound settings");
        pair.run_for(ms(500));
        assert_eq!(pair.server.endpoint.discards().stale_cookie, 1);
        assert!(
            matches!(pair.client.events[..], [Event::Established { .. }, ..]),
            "{:?}",
            pair.client.events
        );
        assert_eq!(pair.client().streams().0, change.inbound_streams.min(10));
        assert_eq!(pair.server().config(), &change);
    }
    let mut pair = answered(1, &default);
    pair.server.endpoint.set_template(default.with(|c| c.rto_min = ms(500))).expect("sound settings");
    pair.run_for(ms(500));
    assert_eq!(pair.server.endpoint.discards().stale_cookie, 0, "nothing else was announced");
    assert_eq!(pair.server().config().rto_min, ms(500));
}

#[test]
fn an_association_has_the_addresses_that_its_init_ack_told() {
    let mut pair = answered(2, &AssociationConfig::default());
    pair.server.endpoint.set_local_addresses(vec![address(2, 0), address(2, 7)]);
    pair.run_for(ms(500));
    let now = pair.now;
    let local: Vec<_> = pair.server().path_stats(now).iter().map(|path| path.local).collect();
    assert_eq!(local, [address(2, 0), address(2, 1)]);
}

#[test]
fn both_sides_know_the_other_ones_port() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let ports = (pair.client.endpoint.port(), pair.server.endpoint.port());
    assert_eq!((pair.server().remote_port(), pair.client().remote_port()), ports);
    let config = EndpointConfig::default();
    let endpoint = Endpoint::new(config, AssociationConfig::default(), [9; 32]).expect("sound settings");
    assert!(!endpoint.is_listening());
}
