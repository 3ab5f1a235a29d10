//! The four-way handshake (RFC 9260 §5.1): lost, repeated, stale and forged packets, and both sides at once.

use std::time::Duration;

use tresse_proto::{AssociationConfig, CloseReason, Connect, ConnectError, EndpointConfig, Event, PathId};
use tresse_wire::{Cause, Chunk, ChunkKind};

use crate::common::{Flight, PORT, Pair, address};

const HANDSHAKE: [ChunkKind; 4] =
    [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::COOKIE_ECHO, ChunkKind::COOKIE_ACK];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn established(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Established { .. })).count()
}

/// Sends a message each way and waits for both.
fn talk(pair: &mut Pair) {
    let now = pair.now;
    pair.send(0, 1, 2000);
    let options = tresse_proto::SendOptions::default();
    pair.server().send(now, options, crate::common::content(0, 2, 2000)).expect("room");
    pair.run_until(Duration::from_secs(30), |pair| {
        pair.server.received.len() == 1 && pair.client.received.len() == 1
    });
}

#[test]
fn four_packets_and_two_round_trips() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    assert_eq!(pair.client().state_name(), "COOKIE-WAIT");
    pair.run_for(ms(25));
    assert_eq!(pair.client().state_name(), "COOKIE-ECHOED");
    pair.run_for(ms(20));
    assert!(pair.client().is_established() && pair.server().is_established());
    let kinds: Vec<ChunkKind> = pair.wire.iter().flat_map(|flight| flight.kinds()).collect();
    assert_eq!(kinds, HANDSHAKE);
    assert_eq!((established(&pair.client.events), established(&pair.server.events)), (1, 1));
    assert_eq!(pair.path(0).srtt, Some(ms(20)), "measured by the set-up");
}

#[test]
fn streams_are_what_one_offers_and_the_other_allows() {
    let client = AssociationConfig::default().with(|c| {
        c.outbound_streams = 50;
        c.inbound_streams = 7;
    });
    let server = AssociationConfig::default().with(|c| {
        c.outbound_streams = 20;
        c.inbound_streams = 30;
    });
    let mut pair = Pair::unlike(1, &client, &server, 1);
    pair.connect();
    pair.run_for(ms(100));
    let streams = |events: &[Event]| match events[0] {
        Event::Established { outbound_streams, inbound_streams } => (outbound_streams, inbound_streams),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(streams(&pair.client.events), (30, 7));
    assert_eq!(streams(&pair.server.events), (7, 30));
    assert_eq!((pair.client().streams(), pair.server().streams()), ((30, 7), (7, 30)));
}

#[test]
fn each_packet_may_be_lost() {
    for kind in HANDSHAKE {
        for losses in 1..=3 {
            let mut pair = Pair::new(2, &AssociationConfig::default());
            pair.lose(kind, losses);
            pair.connect();
            pair.run_until(ms(8000), |pair| pair.client().is_established());
            assert!(pair.server().is_established());
            // T1 doubles: 1 s, 2 s, 4 s.
            let waited = ((1 << losses) - 1) * 1000;
            assert_eq!(pair.now.as_nanos() / 1_000_000, waited + 40, "{kind} lost {losses} times");
            assert_eq!((established(&pair.client.events), established(&pair.server.events)), (1, 1));
            // Repeated packets take turns over the paths.
            let of_client = pair.wire.iter().filter(|flight| flight.to_server);
            let used: Vec<u8> = of_client.take(losses).map(|flight| flight.path()).collect();
            if kind == ChunkKind::INIT {
                assert_eq!(used, [0, 1, 0][..losses]);
            }
            talk(&mut pair);
        }
    }
}

#[test]
fn each_packet_may_come_twice() {
    for kind in HANDSHAKE {
        let mut pair = Pair::new(1, &AssociationConfig::default());
        pair.connect();
        pair.run_until(ms(1000), |pair| pair.wire.iter().any(|flight| flight.carries(kind)));
        let copy = pair.wire.iter().find(|flight| flight.carries(kind)).expect("sent").clone();
        // Once before the original arrives, once after, and once when all is done.
        pair.inject(copy.to_server, 0, copy.bytes.clone());
        pair.run_for(ms(15));
        pair.inject(copy.to_server, 0, copy.bytes.clone());
        pair.run_for(ms(500));
        pair.inject(copy.to_server, 0, copy.bytes.clone());
        pair.run_for(ms(500));
        assert!(pair.client().is_established() && pair.server().is_established(), "{kind}");
        assert_eq!((established(&pair.client.events), established(&pair.server.events)), (1, 1), "{kind}");
        talk(&mut pair);
        assert!(!pair.client.events.iter().any(|event| matches!(event, Event::Closed(_))));
    }
}

#[test]
fn both_sides_may_open_at_once() {
    for (paths, lost) in
        [(1, None), (2, None), (1, Some(ChunkKind::COOKIE_ECHO)), (2, Some(ChunkKind::INIT_ACK))]
    {
        let mut pair = Pair::crossing(paths, lost, 3);
        pair.connect();
        pair.run_for(ms(3000));
        assert_eq!((established(&pair.client.events), established(&pair.server.events)), (1, 1), "{lost:?}");
        talk(&mut pair);
        let abort = pair.wire.iter().find(|flight| flight.carries(ChunkKind::ABORT));
        assert!(abort.is_none(), "{}", pair.log.join("\n"));
    }
}

#[test]
fn a_stale_cookie_is_reported_and_a_new_one_fetched() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = Box::new(|flight| {
        // The first COOKIE ECHOs crawl: they arrive when their cookie is past its minute.
        let late = flight.carries(ChunkKind::COOKIE_ECHO) && flight.sent.as_secs_f64() < 50.0;
        Some(if late { Duration::from_secs(61) } else { ms(10) })
    });
    pair.connect();
    pair.run_until(Duration::from_secs(120), |pair| pair.client().is_established());
    assert_eq!(pair.server.endpoint.discards().stale_cookie, 1);
    let error = pair.wire.iter().find(|flight| flight.carries(ChunkKind::ERROR)).expect("told the client");
    let staleness = error.chunks().into_iter().find_map(|chunk| match chunk {
        Chunk::Error(error) => error.causes.iter().flatten().find_map(|cause| match cause {
            Cause::StaleCookie { micros } => Some(micros),
            _ => None,
        }),
        _ => None,
    });
    // Created at 10 ms, echoed at 20 ms, there at 61.02 s: 1.01 s too late.
    assert_eq!(staleness, Some(1_010_000));
    talk(&mut pair);
}

#[test]
fn a_peer_whose_cookies_are_always_stale_is_given_up() {
    let config = AssociationConfig::default().with(|c| c.max_init_retransmits = 3);
    // Cookies live 5 ms on a round trip of 20, and nobody can talk the server into longer ones.
    let hasty = EndpointConfig::default().with(|c| {
        c.port = PORT;
        c.listen = true;
        c.cookie_lifetime = ms(5);
    });
    let hasty = hasty.with(|c| c.cookie_extension = ms(0));
    let mut pair = Pair::between(1, (&config, EndpointConfig::default()), (&config, hasty), 1);
    pair.connect();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::SetupTimeout)]);
    let inits = pair.wire.iter().filter(|flight| flight.carries(ChunkKind::INIT)).count();
    assert_eq!(inits, 4, "one, and three more");
    assert!(pair.server.events.is_empty());
}

#[test]
fn timeouts_of_the_set_up_alone_may_have_another_bound() {
    // Longer than the bound of data, and shorter than the first timeout.
    for (bound, times) in [(3000, [0, 1000, 3000, 6000]), (400, [0, 400, 800, 1200])] {
        let config = AssociationConfig::default().with(|c| {
            c.rto_max = ms(1500);
            c.max_init_retransmits = 3;
        });
        let mut pair = Pair::new(1, &config);
        pair.network = Box::new(|_| None);
        let begin = pair.now;
        let connect = Connect::new(vec![address(1, 0)], vec![address(2, 0)], PORT, config);
        let connect = connect.with(|c| c.setup_rto_max = Some(ms(bound)));
        pair.client.id = Some(pair.client.endpoint.connect(begin, connect).expect("a sound request"));
        pair.run_for(Duration::from_secs(30));
        let sent: Vec<_> = pair.wire.iter().map(|flight| flight.sent - begin).collect();
        assert_eq!(sent, times.map(ms));
        assert_eq!(pair.client.events, [Event::Closed(CloseReason::SetupTimeout)]);
    }
}

#[test]
fn a_forged_or_foreign_cookie_makes_no_association() {
    let config = AssociationConfig::default();
    let mut pair = Pair::new(1, &config);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::COOKIE_ECHO)).then_some(ms(10)));
    pair.connect();
    pair.run_for(ms(30));
    let echo = pair.wire.iter().find(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).expect("sent").clone();
    let before = pair.wire.len();
    // The last of them is of the signature; what may follow is padding, which nobody looks at.
    for position in [16, 40, 80, echo.bytes.len() - 4] {
        let mut forged = echo.bytes.to_vec();
        forged[position] ^= 1;
        tresse_wire::seal(&mut forged);
        pair.inject(true, 0, forged.into());
    }
    // The right cookie with another tag, and with other ports, than those it was made for.
    for position in [4, 1] {
        let mut moved = echo.bytes.to_vec();
        moved[position] ^= 1;
        tresse_wire::seal(&mut moved);
        pair.inject(true, 0, moved.into());
    }
    assert_eq!(pair.server.endpoint.discards().bad_cookie, 6);
    assert_eq!(pair.sent_since(before).iter().filter(|flight| !flight.to_server).count(), 0, "silently");
    assert!(pair.server.events.is_empty());
    // Another server does not know the signature.
    let mut other = Pair::with_seed(1, &config, 77);
    other.inject(true, 0, echo.bytes.clone());
    assert_eq!(other.server.endpoint.discards().bad_cookie, 1);
    // The unspoilt one is good for one association, however often it comes.
    for _ in 0..3 {
        pair.inject(true, 0, echo.bytes.clone());
    }
    assert_eq!(established(&pair.server.events), 1);
}

#[test]
fn data_may_follow_the_cookie_in_its_packet() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.lose(ChunkKind::COOKIE_ECHO, 1);
    pair.connect();
    pair.run_for(ms(30));
    let echo = pair.wire.iter().find(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).expect("sent").clone();
    let init = pair.wire[0].clone();
    let Some(Chunk::Init(init)) = init.chunks().into_iter().next() else { panic!("INIT comes first") };
    let payload = crate::common::content(0, 5, 100);
    let data = Chunk::Data(tresse_wire::Data {
        tsn: init.initial_tsn,
        stream: tresse_proto::StreamId(0),
        ssn: tresse_proto::Ssn(0),
        ppid: tresse_proto::Ppid(0),
        flags: tresse_wire::DataFlags { beginning: true, ending: true, ..Default::default() },
        payload: &payload,
    });
    let mut packet = echo.bytes.to_vec();
    packet.resize(packet.len().next_multiple_of(4), 0);
    data.write(&mut packet).expect("short enough");
    tresse_wire::seal(&mut packet);
    let before = pair.wire.len();
    pair.inject(true, 0, packet.into());
    assert_eq!(pair.server.numbers_on(0), [5]);
    // The first DATA is acknowledged at once, with COOKIE ACK first in the packet (RFC 9260 §5.1, §6.2).
    let kinds: Vec<ChunkKind> = pair.sent_since(before).iter().flat_map(|flight| flight.kinds()).collect();
    assert_eq!(kinds[..2], [ChunkKind::COOKIE_ACK, ChunkKind::NR_SACK], "{}", pair.log.join("\n"));
}

#[test]
fn a_second_association_with_the_same_peer_is_refused() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    let again = Connect::new(
        vec![address(1, 0)],
        vec![address(2, 7), address(2, 1)],
        PORT,
        AssociationConfig::default(),
    );
    let refused = pair.client.endpoint.connect(pair.now, again.clone()).expect_err("one is there");
    assert_eq!(refused, ConnectError::Connected { remote: address(2, 1), port: PORT });
    let elsewhere = again.with(|c| c.remote_port = PORT + 1);
    assert!(pair.client.endpoint.connect(pair.now, elsewhere).is_ok());
    talk(&mut pair);
}

#[test]
fn unless_messages_are_taken_early_nothing_can_be_sent_before_the_set_up_is_complete() {
    let config = AssociationConfig::default().with(|c| c.data_with_cookie = false);
    let mut pair = Pair::new(1, &config);
    pair.connect();
    let now = pair.now;
    let refused = pair.client().send(now, Default::default(), crate::common::content(0, 0, 10));
    assert_eq!(refused, Err(tresse_proto::SendError::NotOpen { state: "COOKIE-WAIT" }));
    assert!(pair.client().stats(now).is_none() && pair.client().path_stats(now).is_empty());
    assert_eq!(pair.client().streams(), (0, 0));
}

/// RFC 9260 §5.1, §6.10: whatever waits already.
#[test]
fn a_cookie_ack_is_the_first_chunk_of_its_packet() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let echo =
        pair.wire.iter().find(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).expect("set up").bytes.clone();
    let (now, before) = (pair.now, pair.wire.len());
    pair.server().request_heartbeat(now, PathId(0)).expect("there is one path");
    pair.inject(true, 0, echo);
    let kinds: Vec<_> = pair.sent_since(before).iter().map(Flight::kinds).collect();
    assert_eq!(kinds, [[ChunkKind::COOKIE_ACK, ChunkKind::HEARTBEAT]]);
}
