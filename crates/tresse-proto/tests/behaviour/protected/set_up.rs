//! Negotiation of protection; no user data leaves before it can be protected.

use tresse_proto::{CloseReason, PathState, SendOptions, StreamId};
use tresse_wire::{
    Abort, CauseCode, Causes, ChecksumRule, Chunk, Init, Packet, PacketWriter, Param, Params, Seal,
};

use super::*;
use crate::common::content;

/// The user data that left in the clear: only the key management's.
fn clear_data(pair: &Pair) -> Vec<u32> {
    let chunks = pair.wire.iter().flat_map(Flight::chunks);
    chunks
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.ppid.0),
            Chunk::IData(data) => Some(match data.ppid_or_fsn {
                tresse_wire::PpidOrFsn::Ppid(ppid) => ppid.0,
                tresse_wire::PpidOrFsn::Fsn(_) => 0,
            }),
            _ => None,
        })
        .collect()
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

#[test]
fn both_roles_and_both_initiators_come_to_protection() {
    for (client, server, role_of_client) in [
        (KeyRole::Client, KeyRole::Server, Some(Role::Client)),
        (KeyRole::Server, KeyRole::Client, Some(Role::Server)),
        (KeyRole::Any, KeyRole::Client, Some(Role::Server)),
        (KeyRole::Server, KeyRole::Any, Some(Role::Server)),
        (KeyRole::Any, KeyRole::Any, None),
    ] {
        for interleaving in [false, true] {
            let config = |role| of_role(role).with(|c| c.interleaving = interleaving);
            let mut pair = Pair::unlike(2, &config(client), &config(server), 1);
            pair.connect();
            // Before the association is there, and before it has keys.
            let (now, options) = (pair.now, SendOptions::on(StreamId(0)));
            pair.client().send(now, options, content(0, 0, 3000)).expect("room");
            pair.run_until(ms(5_000), is_protected);
            let first = role(&pair.client.events).expect("agreed");
            assert_eq!(role_of_client.unwrap_or(first), first);
            assert_eq!(role(&pair.server.events), Some(first.other()));
            transfer(&mut pair, 1, 100);
            assert!(
                clear_data(&pair).iter().all(|ppid| [4242, 4243].contains(ppid)),
                "{:?}",
                clear_data(&pair)
            );
            let (client, server) = (agreed(&pair.client.events), agreed(&pair.server.events));
            let (client, server) = (client.expect("agreed"), server.expect("agreed"));
            assert_eq!(client.own_parameter, server.peer_parameter);
            assert_eq!(client.peer_parameter, server.own_parameter);
            let stats = newest(&mut pair);
            assert_eq!(stats.map(|stats| (stats.failed, stats.replayed)), [(0, 0); 2]);
            assert!(stats.iter().all(|stats| stats.sealed > 20 && stats.opened > 20), "{stats:?}");
        }
    }
}

#[test]
fn protection_takes_two_round_trips_beyond_the_set_up() {
    let mut pair = Pair::unlike(1, &of_role(KeyRole::Client), &of_role(KeyRole::Server), 1);
    pair.connect();
    pair.run_until(ms(1_000), is_protected);
    // 20 ms each: INIT, COOKIE ECHO, and what the keys take without TLS, one.
    assert!(pair.now.as_nanos() <= 60_000_000, "{:?}\n{}", pair.now, pair.log.join("\n"));
}

#[test]
fn both_may_set_up_at_once() {
    for lost in [None, Some(ChunkKind::INIT), Some(ChunkKind::COOKIE_ECHO), Some(ChunkKind::DATA)] {
        let mut pair = Pair::crossing_with(2, lost, 3, &required());
        pair.connect();
        pair.run_until(ms(30_000), is_protected);
        assert_eq!(role(&pair.client.events).map(Role::other), role(&pair.server.events));
        transfer(&mut pair, 0, 20);
    }
}

#[test]
fn the_loss_of_any_packet_of_the_set_up_is_made_good() {
    let mut seen = 0;
    for lost in 0..16 {
        let mut pair = Pair::unlike(1, &required(), &required(), 5);
        pair.network = Box::new(move |flight| (flight.number != lost).then_some(ms(10)));
        pair.connect();
        pair.run_until(ms(60_000), is_protected);
        seen = seen.max(pair.wire.len());
        transfer(&mut pair, 0, 5);
    }
    assert!((8..16).contains(&seen), "all packets of the set-up were among those lost, and it takes {seen}");
}

#[test]
fn who_requires_it_takes_no_less() {
    let off = AssociationConfig::default();
    let tls = AssociationConfig::default().with(|c| c.encryption = Encryption::Require);
    for (client, server, cause) in [
        (required(), off.clone(), CauseCode::MISSING_DTLS_CHUNK),
        (off, required(), CauseCode::MISSING_DTLS_CHUNK),
        (required(), tls, CauseCode::NO_COMMON_KEY_MANAGEMENT),
        (of_role(KeyRole::Client), of_role(KeyRole::Client), CauseCode::INCOMPATIBLE_KEY_ROLES),
        (of_role(KeyRole::Server), of_role(KeyRole::Server), CauseCode::INCOMPATIBLE_KEY_ROLES),
    ] {
        let mut pair = Pair::unlike(1, &client, &server, 1);
        pair.connect();
        pair.run_for(ms(1_000));
        assert!(closed(&pair.client.events).is_some(), "{:?}", pair.client.events);
        assert!(pair.server.events.is_empty(), "{:?}", pair.server.events);
        let aborts = pair.wire.iter().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
            Chunk::Abort(abort) => abort.causes.iter().flatten().next().map(|cause| cause.code()),
            _ => None,
        });
        assert_eq!(aborts.collect::<Vec<_>>(), [cause]);
    }
}

#[test]
fn an_offer_is_taken_up_or_goes_on_in_the_clear() {
    let offers = required().with(|c| c.encryption = Encryption::Offer);
    let off = AssociationConfig::default();
    for (client, server, expected) in [
        (offers.clone(), offers.clone(), true),
        (offers.clone(), required(), true),
        (required(), offers.clone(), true),
        (offers.clone(), off.clone(), false),
        (off, offers, false),
    ] {
        let mut pair = Pair::unlike(1, &client, &server, 1).settled();
        pair.run_for(ms(1_000));
        assert_eq!(pair.client().protection_stats().is_some(), expected);
        assert_eq!(pair.server().protection_stats().is_some(), expected);
        let before = pair.wire.len();
        transfer(&mut pair, 0, 10);
        assert_eq!(in_records(pair.sent_since(before)), expected);
        // In the clear authentication is agreed as ever; never both.
        let now = pair.now;
        assert_eq!(pair.client().set_shared_key(1, b"one").is_ok(), !expected);
        pair.client()
            .add_address(now, crate::common::address(1, 1))
            .expect("either way protects the request");
    }
}

/// From tie breaker, flags and methods to what takes their place, if anything.
type Change = Box<dyn Fn(u32, u8, &[u8]) -> Option<(u32, u8, Vec<u8>)>>;

/// An INIT or INIT ACK with its parameter about keys changed on the way, or left out.
fn tampered(bytes: &[u8], change: &Change) -> bytes::Bytes {
    let packet = Packet::parse(bytes, ChecksumRule::Verify).expect("a packet");
    let chunk = packet.chunks().next().expect("a chunk").expect("a sound one");
    let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { return bytes.to_vec().into() };
    let mut kept = None;
    let mut params: Vec<Param<'_>> = Vec::new();
    for param in init.params.iter().flatten() {
        match param {
            Param::DtlsKeyManagement { tie_breaker, flags, methods } => {
                kept = change(tie_breaker, flags, methods);
            }
            param => params.push(param),
        }
    }
    if let Some((tie_breaker, flags, methods)) = &kept {
        params.push(Param::DtlsKeyManagement { tie_breaker: *tie_breaker, flags: *flags, methods });
    }
    let init = Init { params: Params::Values(&params), ..init };
    let chunk = if matches!(chunk, Chunk::Init(_)) { Chunk::Init(init) } else { Chunk::InitAck(init) };
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, packet.header, 65_535);
    writer.push(&chunk).expect("as much room as before");
    writer.finish(Seal::Crc32c);
    out.into()
}

#[test]
fn whoever_changes_an_offer_on_its_way_gets_no_association_that_carries_data() {
    for kind in [ChunkKind::INIT, ChunkKind::INIT_ACK] {
        let changes: [(&str, Change); 4] = [
            ("left out", Box::new(|_, _, _| None)),
            ("another tie breaker", Box::new(|tie, flags, methods| Some((tie ^ 1, flags, methods.to_vec())))),
            (
                "a bit without a meaning",
                Box::new(|tie, flags, methods| Some((tie, flags | 0x80, methods.to_vec()))),
            ),
            ("a method more", Box::new(|tie, flags, methods| Some((tie, flags, [methods, &[7]].concat())))),
        ];
        for (what, change) in changes {
            let mut pair = Pair::unlike(1, &required(), &required(), 1);
            pair.tamper =
                Some(Box::new(move |flight| flight.carries(kind).then(|| tampered(&flight.bytes, &change))));
            pair.connect();
            let (now, options) = (pair.now, SendOptions::on(StreamId(0)));
            pair.client().send(now, options, content(0, 0, 3000)).expect("room");
            pair.run_for(ms(20_000));
            assert!(pair.server.received.is_empty(), "{what} in {kind}");
            assert!(!clear_data(&pair).contains(&0), "{what} in {kind}");
        }
    }
}

/// The tie breakers of the parameters about keys in chunks of a kind.
fn tie_breaker(pair: &Pair, kind: ChunkKind) -> Option<u32> {
    pair.wire.iter().filter(|flight| flight.carries(kind)).flat_map(Flight::chunks).find_map(|chunk| {
        let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { return None };
        init.params.iter().flatten().find_map(|param| match param {
            Param::DtlsKeyManagement { tie_breaker, .. } => Some(tie_breaker),
            _ => None,
        })
    })
}

/// Nobody can say then who begins (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1), whichever side notices.
#[test]
fn equal_tie_breakers_end_the_set_up_with_their_cause() {
    let mut drawn = Pair::unlike(1, &required(), &required(), 1);
    drawn.connect();
    for (changed, other) in [(ChunkKind::INIT, ChunkKind::INIT_ACK), (ChunkKind::INIT_ACK, ChunkKind::INIT)] {
        // The same seed draws the same again.
        let same = tie_breaker_of(&mut drawn, other);
        let change: Change = Box::new(move |_, flags, methods| Some((same, flags, methods.to_vec())));
        let mut pair = Pair::unlike(1, &required(), &required(), 1);
        pair.tamper =
            Some(Box::new(move |flight| flight.carries(changed).then(|| tampered(&flight.bytes, &change))));
        pair.connect();
        pair.run_for(ms(1_000));
        assert!(closed(&pair.client.events).is_some(), "{changed}: {:?}", pair.client.events);
        assert!(pair.server.events.is_empty(), "{changed}: {:?}", pair.server.events);
        let causes = pair.wire.iter().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
            Chunk::Abort(abort) => abort.causes.iter().flatten().next().map(|cause| cause.code()),
            _ => None,
        });
        assert_eq!(causes.collect::<Vec<_>>(), [CauseCode::TIE_BREAKER_COLLISION], "{changed}");
    }
}

fn tie_breaker_of(pair: &mut Pair, kind: ChunkKind) -> u32 {
    pair.run_until(ms(5_000), is_protected);
    tie_breaker(pair, kind).expect("an offer")
}

#[test]
fn one_side_without_keys_never_sends_what_the_application_gave() {
    let mut pair = Pair::unlike(1, &required(), &required(), 1);
    pair.server.manages_keys = false;
    pair.connect();
    pair.run_for(ms(1_000));
    let (now, options) = (pair.now, SendOptions::on(StreamId(0)));
    pair.client().send(now, options, content(0, 0, 3000)).expect("room in the send buffer");
    pair.server().send(now, options, content(0, 0, 3000)).expect("room in the send buffer");
    pair.run_for(ms(60_000));
    assert!(pair.server.received.is_empty() && pair.client.received.is_empty());
    assert!(clear_data(&pair).iter().all(|ppid| *ppid == 4243));
    // Heartbeats go on, and so does the wait.
    assert!(closed(&pair.client.events).is_none());
    let now = pair.now;
    let refused = pair.client().add_address(now, crate::common::address(1, 1));
    assert!(refused.is_err(), "addresses change when they can be protected");
    let all = tresse_proto::Streams::All;
    assert!(pair.client().reset_streams(now, all, tresse_proto::Direction::Outbound).is_err());
}

#[test]
fn nobody_but_the_key_management_sends_its_messages() {
    let mut pair = protected(1, &required());
    let now = pair.now;
    for ppid in [4242, 4243] {
        let options = SendOptions::on(StreamId(0)).with(|o| o.ppid = tresse_wire::Ppid(ppid));
        let refused = pair.client().send(now, options, content(0, 0, 10));
        assert_eq!(refused, Err(tresse_proto::SendError::ReservedPpid));
        let elsewhere = options.with(|o| o.stream = StreamId(1));
        pair.client().send(now, elsewhere, content(1, 0, 10)).expect("another stream is the application's");
    }
    pair.run_for(ms(300));
    assert_eq!(pair.server.received.len(), 2);
}

/// A HEARTBEAT of the first round trips, or its answer, may arrive in the clear at a side that takes nothing but DTLS chunks by
/// then.
#[test]
fn a_path_whose_heartbeat_was_refused_for_want_of_protection_is_asked_again_at_once() {
    let mut pair = Pair::new(2, &required());
    pair.network = Box::new(|flight| Some(ms(if flight.path() == 1 { 25 } else { 10 })));
    pair.connect();
    pair.run_for(ms(400));
    assert!(is_protected(&mut pair), "{}", pair.log.join("\n"));
    let now = pair.now;
    let mut refused = 0;
    for server in [false, true] {
        let association = if server { pair.server() } else { pair.client() };
        refused += association.stats(now).expect("open").discards.unprotected;
        let states: Vec<_> = association.path_stats(now).iter().map(|path| path.state).collect();
        assert_eq!(states, [PathState::Active; 2], "at the server: {server}");
    }
    assert!(refused > 0, "{}", pair.log.join("\n"));
}

/// A pair whose server takes nothing but DTLS chunks, and whose client has not heard of it and has no keys to send with.
fn client_without_keys() -> Pair {
    let mut pair = Pair::unlike(1, &of_role(KeyRole::Client), &of_role(KeyRole::Server), 1);
    pair.network =
        Box::new(|flight| (flight.to_server || !flight.carries(ChunkKind::DTLS)).then_some(ms(10)));
    pair.connect();
    pair.run_for(ms(100));
    assert!(pair.server().protection_stats().expect("agreed").required);
    assert!(!pair.client().protection_stats().expect("agreed").required);
    pair
}

#[test]
fn a_client_without_keys_can_still_abort() {
    let mut pair = client_without_keys();
    let now = pair.now;
    pair.client().abort(now, "enough");
    pair.run_for(ms(20));
    let reason = closed(&pair.server.events);
    assert!(matches!(reason, Some(CloseReason::AbortedByPeer { .. })), "{reason:?}");
}

#[test]
fn nothing_but_an_abort_is_taken_in_the_clear_from_a_peer_without_keys() {
    let mut pair = client_without_keys();
    let abort = |tag_reflected| Chunk::Abort(Abort { tag_reflected, causes: Causes::default() });
    let reflected = pair.packet_with_tag(true, pair.tag(false), &[abort(true)]);
    let others = [
        pair.packet(true, &[Chunk::CookieAck, abort(false)]),
        pair.packet(true, &[abort(false), Chunk::CookieAck]),
        pair.packet(true, &[Chunk::ShutdownAck]),
        pair.packet_with_tag(true, 1, &[abort(false)]),
        reflected,
    ];
    for (count, forged) in others.into_iter().enumerate() {
        pair.inject(true, 0, forged);
        assert!(closed(&pair.server.events).is_none(), "packet {count}");
    }
}
