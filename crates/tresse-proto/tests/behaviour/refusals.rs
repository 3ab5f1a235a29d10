//! Set-ups that come to nothing: refused, impossible, flooded, unanswered. None leaves state behind.

use std::time::Duration;

use tresse_proto::{AssociationConfig, CloseReason, Connect, ConnectError, EndpointConfig, Event};
use tresse_wire::{Abort, Cause, CauseCode, Causes, Chunk, ChunkKind, Init, Param};

use crate::common::{self, PORT, Pair, aborted_for, address, packet};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn init(tag: u32) -> Init<'static> {
    common::init(tag, &[])
}

/// What the server sends when this INIT comes from port 700: type of the chunk and tag of the packet.
fn answer_to(pair: &mut Pair, init: Init<'_>) -> Option<(ChunkKind, u32)> {
    let before = pair.wire.len();
    pair.inject(true, 0, packet(700, PORT, 0, &[Chunk::Init(init)]));
    let answer = pair.sent_since(before).first()?;
    let tag = u32::from_be_bytes(answer.bytes[4..8].try_into().expect("a header"));
    Some((answer.kinds()[0], tag))
}

#[test]
fn an_init_with_an_impossible_field_is_aborted_with_its_own_tag() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let bad = [
        Init { a_rwnd: 1499, ..init(9) },
        Init { outbound_streams: 0, ..init(9) },
        Init { inbound_streams: 0, ..init(9) },
    ];
    for init in bad {
        assert_eq!(answer_to(&mut pair, init), Some((ChunkKind::ABORT, 9)), "{init:?}");
    }
    assert_eq!(answer_to(&mut pair, init(0)), None, "there is no tag to answer with");
    assert_eq!(pair.server.endpoint.discards().bad_init, 4);
    assert_eq!(answer_to(&mut pair, Init { a_rwnd: 1500, ..init(9) }), Some((ChunkKind::INIT_ACK, 9)));
}

/// RFC 9260 §3.3.2.1.4: the ABORT names the parameter.
#[test]
fn a_host_name_is_unresolvable() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let params = [Param::Address(address(1, 0)), Param::HostName(b"client.example\0")];
    assert_eq!(answer_to(&mut pair, common::init(9, &params)), Some((ChunkKind::ABORT, 9)));
    let abort = pair.wire.last().expect("sent").clone();
    let Chunk::Abort(abort) = abort.chunks()[0] else { panic!("{}", abort.dissect()) };
    let Some(Ok(Cause::UnresolvableAddress(whole))) = abort.causes.iter().next() else { panic!("{abort:?}") };
    assert_eq!(whole, b"\x00\x0b\x00\x13client.example\0");
    assert_eq!(pair.server.endpoint.discards().bad_init, 1);
}

/// The same in an INIT ACK, and one without a cookie: the ABORT carries the tag of the INIT ACK.
#[test]
fn an_init_ack_that_cannot_be_used_is_aborted_with_its_own_tag() {
    let name = [Param::StateCookie(b"cookie"), Param::HostName(b"server.example\0")];
    let cookie = [Param::StateCookie(b"cookie")];
    let many = Init { outbound_streams: 20, ..common::init(9, &cookie) };
    for (init, code, words) in [
        (common::init(9, &[]), CauseCode::MISSING_PARAMETERS, "INIT ACK without a state cookie"),
        (common::init(9, &name), CauseCode::UNRESOLVABLE_ADDRESS, "INIT ACK with a host name"),
        (
            Init { a_rwnd: 0, ..common::init(9, &cookie) },
            CauseCode::INVALID_PARAMETER,
            "INIT ACK with an impossible mandatory field",
        ),
        (many, CauseCode::PROTOCOL_VIOLATION, "INIT ACK with more streams than the INIT allowed"),
        (
            common::init(0, &cookie),
            CauseCode::INVALID_PARAMETER,
            "INIT ACK with an impossible mandatory field",
        ),
    ] {
        let config = AssociationConfig::default().with(|c| c.inbound_streams = 10);
        let mut pair = Pair::new(1, &config);
        pair.network = Box::new(|_| None);
        pair.connect();
        pair.pump();
        let own = pair.tag(false);
        pair.inject(false, 0, pair.packet_with_tag(false, own, &[Chunk::InitAck(init)]));
        let answer = pair.wire.last().expect("sent").clone();
        let Chunk::Abort(abort) = answer.chunks()[0] else { panic!("{}", answer.dissect()) };
        assert_eq!(abort.causes.iter().flatten().next().map(|cause| cause.code()), Some(code));
        let tag = u32::from_be_bytes(answer.bytes[4..8].try_into().expect("a header"));
        // Without a tag of the peer it gets back the one that it used.
        assert_eq!((tag, abort.tag_reflected), if init.initiate_tag == 0 { (own, true) } else { (9, false) });
        assert_eq!(pair.client.events, [Event::Closed(CloseReason::PeerFault(words))]);
    }
}

#[test]
fn an_init_must_be_alone_and_carry_tag_zero() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    for (tag, chunks) in [
        (5, vec![Chunk::Init(init(9))]),
        (0, vec![Chunk::Init(init(9)), Chunk::CookieAck]),
        (0, vec![Chunk::Init(init(9)), Chunk::Init(init(9))]),
    ] {
        pair.inject(true, 0, packet(700, PORT, tag, &chunks));
    }
    assert!(pair.wire.is_empty());
    assert_eq!(pair.server.endpoint.discards().bad_init, 3);
}

#[test]
fn a_server_that_does_not_listen_refuses_at_once() {
    let config = AssociationConfig::default();
    let deaf = EndpointConfig::default().with(|c| c.port = PORT);
    let mut pair = Pair::between(1, (&config, EndpointConfig::default()), (&config, deaf), 1);
    pair.connect();
    pair.run_for(ms(100));
    assert_eq!(pair.client.events.len(), 1);
    assert_eq!(aborted_for(&pair.client.events), Some("Out of Resource cause"));
    assert_eq!(pair.client().state_name(), "CLOSED");
    assert_eq!(pair.server.endpoint.discards().refused, 1);
}

#[test]
fn a_port_that_is_nobodys_refuses_at_once() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let connect =
        Connect::new(vec![address(1, 0)], vec![address(2, 0)], PORT + 1, AssociationConfig::default());
    pair.client.id = Some(pair.client.endpoint.connect(pair.now, connect).expect("a sound request"));
    pair.run_for(ms(100));
    assert_eq!(pair.client.events.len(), 1);
    assert_eq!(aborted_for(&pair.client.events), Some("no cause given"));
}

#[test]
fn a_full_server_refuses_and_takes_the_next_when_one_has_gone() {
    let config = AssociationConfig::default();
    let small = EndpointConfig::default().with(|c| {
        c.port = PORT;
        c.listen = true;
        c.max_associations = 1;
    });
    let mut pair = Pair::between(1, (&config, EndpointConfig::default()), (&config, small), 1).settled();
    assert_eq!(answer_to(&mut pair, init(9)), Some((ChunkKind::ABORT, 9)));
    let id = pair.server.id.take().expect("accepted");
    pair.server.endpoint.release(pair.now, id);
    pair.pump();
    assert_eq!(answer_to(&mut pair, init(9)), Some((ChunkKind::INIT_ACK, 9)));
    assert!(pair.server.endpoint.association(id).is_none(), "an identifier is not used again");
}

#[test]
fn a_client_has_a_limit_too() {
    let config = AssociationConfig::default();
    let small = EndpointConfig::default().with(|c| c.max_associations = 1);
    let mut pair = Pair::between(1, (&config, small), (&config, EndpointConfig::default()), 1);
    pair.connect();
    let second = Connect::new(vec![address(1, 0)], vec![address(3, 0)], PORT, config);
    let refused = pair.client.endpoint.connect(pair.now, second);
    assert_eq!(refused, Err(ConnectError::TooManyAssociations { limit: 1 }));
}

#[test]
fn a_flood_of_inits_leaves_nothing_behind() {
    let config = AssociationConfig::default();
    let server = EndpointConfig::default().with(|c| {
        c.port = PORT;
        c.listen = true;
        c.max_associations = 1;
    });
    let mut pair = Pair::between(1, (&config, EndpointConfig::default()), (&config, server), 1);
    for number in 0..2_000_u32 {
        let init = packet((number % 60_000) as u16 + 1, PORT, 0, &[Chunk::Init(init(number + 1))]);
        let datagram = tresse_proto::Datagram {
            local: address(2, 0),
            remote: address(1, 0),
            encapsulation_port: None,
            ecn: tresse_proto::Ecn::NotEct,
            payload: init,
        };
        pair.server.endpoint.handle_datagram(pair.now, datagram);
    }
    assert_eq!(pair.server.endpoint.poll_timeout(), None, "nothing waits");
    assert_eq!(pair.server.endpoint.poll_event(), None);
    let mut buffer = Vec::new();
    let mut answers = 0;
    while pair.server.endpoint.poll_transmit(pair.now, 1, &mut buffer).is_some() {
        answers += 1;
    }
    assert!((1..=1000).contains(&answers), "a bounded number of answers, not {answers}");
    // The only place is still free.
    pair.connect();
    pair.run_for(ms(100));
    assert!(pair.client().is_established());
}

#[test]
fn an_unanswered_set_up_ends_after_its_last_repetition() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    pair.connect();
    pair.run_until(Duration::from_secs(1000), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::SetupTimeout)]);
    let sent: Vec<u64> = pair.wire.iter().map(|flight| flight.sent.as_nanos() / 1_000_000_000).collect();
    // RTO.Initial 1 s, doubling up to RTO.Max 60 s, eight repetitions (RFC 9260 §16).
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(pair.now.as_nanos(), 243_000_000_000);
    assert!(pair.wire.iter().all(|flight| flight.kinds() == [ChunkKind::INIT]));
    // Nothing more happens, and the peer may be tried again.
    pair.run_for(Duration::from_secs(1000));
    assert_eq!((pair.wire.len(), pair.client.events.len()), (9, 1));
    pair.network = Box::new(|_| Some(ms(10)));
    pair.client.id = None;
    pair.connect();
    pair.run_for(ms(100));
    assert!(pair.client().is_established());
}

#[test]
fn cookie_echo_has_repetitions_of_its_own() {
    let config = AssociationConfig::default().with(|c| c.max_init_retransmits = 2);
    let mut pair = Pair::new(1, &config);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::COOKIE_ECHO)).then_some(ms(10)));
    pair.connect();
    pair.run_until(Duration::from_secs(100), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::SetupTimeout)]);
    let echoes = pair.wire.iter().filter(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).count();
    assert_eq!((echoes, pair.now.as_nanos() / 1_000_000), (3, 7020));
}

#[test]
fn an_abort_during_the_set_up_ends_it() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::INIT_ACK)).then_some(ms(10)));
    pair.connect();
    pair.run_for(ms(50));
    let tag = pair.tag(false);
    let abort = Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Values(&[]) });
    pair.inject(false, 0, pair.packet_with_tag(false, tag ^ 1, &[abort]));
    assert_eq!(pair.client().state_name(), "COOKIE-WAIT", "not with a wrong tag");
    pair.inject(false, 0, pair.packet_with_tag(false, tag, &[abort]));
    assert!(matches!(pair.client.events[..], [Event::Closed(CloseReason::AbortedByPeer { .. })]));
}

#[test]
fn the_application_can_give_up_a_set_up() {
    for by_release in [false, true] {
        let mut pair = Pair::new(1, &AssociationConfig::default());
        pair.connect();
        pair.run_for(ms(5));
        let (now, id) = (pair.now, pair.client.id.expect("connecting"));
        if by_release {
            pair.client.endpoint.release(now, id);
            assert!(pair.client.endpoint.association(id).is_none());
        } else {
            pair.client().shutdown(now);
            assert_eq!(pair.client().state_name(), "CLOSED");
        }
        let before = pair.wire.len();
        pair.run_for(Duration::from_secs(10));
        // The INIT ACK that was on its way finds nobody.
        let of_client = pair.sent_since(before).iter().filter(|flight| flight.to_server);
        assert!(of_client.clone().all(|flight| flight.kinds() == [ChunkKind::ABORT]));
        let expected: &[Event] = if by_release { &[] } else { &[Event::Closed(CloseReason::Aborted)] };
        assert_eq!(pair.client.events, expected);
        assert!(pair.server.events.is_empty());
    }
}

#[test]
fn what_is_queued_of_a_released_association_is_nothing_to_the_one_in_its_place() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    for _ in 0..3 {
        pair.connect();
        let id = pair.client.id.take().expect("connecting");
        pair.client.endpoint.release(pair.now, id);
    }
    pair.connect();
    pair.run_for(ms(500));
    assert_eq!(pair.client().state_name(), "ESTABLISHED");
}

#[test]
fn connections_that_cannot_work_are_refused_with_a_reason() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let sound = Connect::new(vec![address(1, 0)], vec![address(2, 0)], PORT, AssociationConfig::default());
    let mut refused = |connect: Connect| {
        pair.client.endpoint.connect(pair.now, connect).expect_err("cannot work").to_string()
    };
    assert_eq!(refused(sound.clone().with(|c| c.local = vec![])), "no local address was given");
    assert_eq!(refused(sound.clone().with(|c| c.remote = vec![])), "no remote address was given");
    assert_eq!(refused(sound.clone().with(|c| c.remote_port = 0)), "the remote SCTP port must not be 0");
    let v6 = "fd00::2".parse().expect("an address");
    assert!(refused(sound.clone().with(|c| c.remote = vec![v6])).contains("give a local IPv6 address"));
    let config = AssociationConfig::default().with(|c| c.path_scheduler = "best".to_owned());
    assert!(refused(sound.clone().with(|c| c.config = config)).contains("path_scheduler"));
    let config = AssociationConfig::default().with(|c| c.sack_delay = ms(501));
    assert!(refused(sound.with(|c| c.config = config)).contains("at most 500ms"));
}
