//! Conditions of changing addresses: both sides want it, and every request is authenticated (RFC 5061 §4.1, §6).

use super::*;

use tresse_proto::{AddressError, CloseReason, PathId};

fn without(switch: &str) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.set(switch, "false").expect("a switch");
    config
}

#[test]
fn addresses_are_changed_only_where_both_want_it() {
    for switch in ["dynamic_addresses", "authentication"] {
        for (client, server) in
            [(without(switch), AssociationConfig::default()), (AssociationConfig::default(), without(switch))]
        {
            let mut pair = Pair::unlike(2, &client, &server, 1).settled();
            let now = pair.now;
            let refusal = pair.client().add_address(now, address(1, 2));
            assert_eq!(refusal, Err(AddressError::NotAgreed), "{switch}");
            assert_eq!(pair.server().remove_address(now, address(2, 0)), Err(AddressError::NotAgreed));
        }
    }
}

#[test]
fn both_chunks_are_listed_and_wanted_authenticated() {
    let pair = pair(1);
    for kind in [ChunkKind::INIT, ChunkKind::INIT_ACK] {
        let flight = pair.wire.iter().find(|flight| flight.carries(kind)).expect("a handshake");
        let chunks = flight.chunks();
        let (Chunk::Init(init) | Chunk::InitAck(init)) = &chunks[0] else { panic!("no offer") };
        let both = |kinds: &[u8]| {
            [ChunkKind::ASCONF, ChunkKind::ASCONF_ACK].iter().all(|kind| kinds.contains(&kind.0))
        };
        let params: Vec<Param<'_>> = init.params.iter().flatten().collect();
        assert!(params.iter().any(|param| matches!(param, Param::SupportedExtensions(kinds) if both(kinds))));
        assert!(params.iter().any(|param| matches!(param, Param::Chunks(kinds) if both(kinds))));
    }
}

#[test]
fn a_request_without_authentication_changes_nothing() {
    let mut pair = pair(2);
    let add = [Param::AddAddress { correlation: 0, address: address(1, 5) }];
    let serial = first_serial(&pair);
    let asconf = Chunk::Asconf(Asconf { serial, address: address(1, 0), params: Params::Values(&add) });
    let abort =
        Chunk::Abort(tresse_wire::Abort { tag_reflected: false, causes: tresse_wire::Causes::Values(&[]) });
    let packet = pair.packet(true, &[asconf, abort]);
    let before = pair.wire.len();
    pair.inject(true, 0, packet.clone());
    pair.inject(true, 6, packet);
    assert!(pair.sent_since(before).is_empty());
    assert!(pair.server().is_established(), "the rest of the packet is dropped with it (RFC 5061 §5.2 D5)");
    assert!(heard(&pair).is_empty());
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.unauthenticated_chunk, 2);
}

#[test]
fn every_request_and_answer_follows_auth() {
    let pair = with_third_path();
    for (to_server, kind) in [
        (true, ChunkKind::ASCONF),
        (false, ChunkKind::ASCONF_ACK),
        (false, ChunkKind::ASCONF),
        (true, ChunkKind::ASCONF_ACK),
    ] {
        let sent = with_kind(&pair, to_server, kind);
        assert!(!sent.is_empty());
        assert!(sent.iter().all(|flight| flight.kinds()[0] == ChunkKind::AUTH), "{kind}");
    }
}

#[test]
fn who_would_change_addresses_without_authentication_is_refused() {
    let mut pair = pair(1);
    let extensions = [ChunkKind::ASCONF.0, ChunkKind::ASCONF_ACK.0];
    let params = [Param::SupportedExtensions(&extensions)];
    let init = crate::common::init(7, &params);
    let before = pair.wire.len();
    let packet = crate::common::packet(4000, crate::common::PORT, 0, &[Chunk::Init(init)]);
    pair.inject(true, 3, packet);
    let answer = pair.sent_since(before).first().expect("an answer");
    assert_eq!(answer.kinds(), [ChunkKind::ABORT], "RFC 5061 §4.2.7");
    let chunks = answer.chunks();
    let Chunk::Abort(abort) = chunks[0] else { panic!("no ABORT") };
    let why = tresse_wire::Cause::ProtocolViolation(b"dynamic addresses without authentication");
    assert_eq!(abort.causes.iter().flatten().collect::<Vec<_>>(), [why]);
}

#[test]
fn requests_are_for_associations_that_are_open() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.connect();
    let now = pair.now;
    let early = pair.client().add_address(now, address(1, 2));
    assert!(matches!(early, Err(AddressError::NotOpen { .. })), "{early:?}");
    let mut pair = self::pair(2);
    let now = pair.now;
    pair.client().abort(now, "that is enough");
    let late = pair.client().add_address(now, address(1, 2)).expect_err("it is over");
    assert_eq!(late.to_string(), "the association is CLOSED: its addresses stay as they are");
}

#[test]
fn a_request_under_way_does_not_keep_an_association_from_ending() {
    let mut pair = pair(2);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::ASCONF_ACK)).then_some(ms(10)));
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(3));
    for side in [&pair.client, &pair.server] {
        assert_eq!(side.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    }
}

#[test]
fn a_peer_that_restarts_knows_nothing_of_what_was_asked() {
    let mut pair = with_third_path();
    let now = pair.now;
    pair.server().remove_address(now, address(2, 1)).expect("an address of it");
    pair.restart_client();
    pair.connect();
    pair.run_for(Duration::from_secs(5));
    assert!(pair.server.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
    assert!(pair.client().is_established());
    // Numbers begin anew on both sides, and requests are understood.
    let now = pair.now;
    pair.client().add_address(now, address(1, 4)).expect("a new address");
    pair.server().set_peer_primary(now, address(2, 0)).expect("an address of it");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(told(&pair), [(address(1, 4), AddressChange::Add, AddressOutcome::Done)]);
    let done = Event::OwnAddress {
        address: address(2, 0),
        change: AddressChange::Prefer,
        outcome: AddressOutcome::Done,
    };
    assert!(pair.server.events.contains(&done));
    send(&mut pair, 0, 50);
    run_until_received(&mut pair, 50);
    assert_eq!(stats(&mut pair)[1][0].id, PathId(0));
}
