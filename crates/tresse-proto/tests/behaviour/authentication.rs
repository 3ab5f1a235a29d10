//! Authenticated chunks (RFC 4895) between two endpoints: what is agreed, what is discarded, keys that change.

use std::time::Duration;

use tresse_proto::{AssociationConfig, CloseReason, EndpointConfig, Event, KeyError, SendOptions};
use tresse_wire::{Auth, Cause, Chunk, ChunkKind, Param};

use crate::common::{Flight, PORT, Pair, aborted_for, content};

fn config(authenticated: &str) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.set("authenticated_chunks", authenticated).expect("chunk types");
    config
}

fn off() -> AssociationConfig {
    AssociationConfig::default().with(|c| c.authentication = false)
}

/// Sends `count` messages of 3000 bytes from the client, and waits until the server has them.
fn transfer(pair: &mut Pair, first: u32, count: u32) {
    for number in first..first + count {
        pair.send(0, number, 3000);
    }
    let all = (first + count) as usize;
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == all);
    assert_eq!(pair.server.numbers_on(0), (0..first + count).collect::<Vec<_>>());
}

/// Whether each chunk of `kind` follows an AUTH in its packet; there are some.
fn all_authenticated(flights: &[Flight], kind: ChunkKind) -> bool {
    let mut with = flights.iter().filter(|flight| flight.carries(kind)).peekable();
    assert!(with.peek().is_some(), "no {kind}");
    with.all(|flight| {
        let kinds = flight.kinds();
        let position = |wanted| kinds.iter().position(|&kind| kind == wanted);
        position(ChunkKind::AUTH).is_some_and(|auth| position(kind).is_some_and(|chunk| auth < chunk))
    })
}

/// The chunks of the first packet with `kind`.
fn params_of<'a>(pair: &'a Pair, kind: ChunkKind) -> Vec<Param<'a>> {
    let flight = pair.wire.iter().find(|flight| flight.carries(kind)).expect("one was sent");
    match flight.chunks()[0] {
        Chunk::Init(init) | Chunk::InitAck(init) => init.params.iter().flatten().collect(),
        _ => Vec::new(),
    }
}

#[test]
fn offers_are_made_and_answered() {
    let mut pair = Pair::established(1, &config("data"));
    for kind in [ChunkKind::INIT, ChunkKind::INIT_ACK] {
        let params = params_of(&pair, kind);
        assert!(params.iter().any(|param| matches!(param, Param::Random(bytes) if bytes.len() == 32)));
        assert!(params.iter().any(|param| matches!(param, Param::Chunks([0, ..]))), "{params:?}");
        assert!(params.iter().any(
            |param| matches!(param, Param::HmacAlgorithms(ids) if ids.iter().collect::<Vec<_>>() == [3, 1])
        ));
    }
    let wanted = [ChunkKind::DATA, ChunkKind::ASCONF_ACK, ChunkKind::ASCONF];
    assert_eq!(pair.client().authenticated_for_peer(), wanted);
    assert_eq!(pair.server().authenticated_for_peer(), wanted);
}

#[test]
fn nothing_is_offered_to_who_offers_nothing() {
    let pair = Pair::unlike(1, &off(), &AssociationConfig::default(), 1).settled();
    let params = params_of(&pair, ChunkKind::INIT_ACK);
    assert!(!params.iter().any(|param| matches!(param, Param::Random(_))));
    assert!(params.iter().any(
        |param| matches!(param, Param::SupportedExtensions(kinds) if !kinds.contains(&ChunkKind::AUTH.0))
    ));
}

#[test]
fn data_and_reports_are_authenticated_for_who_wants_them_so() {
    for hash in ["sha256", "sha1"] {
        let mut server = config("data,sack,nr_sack");
        server.set("authentication_hash", hash).expect("a hash");
        let mut pair = Pair::unlike(2, &config("nr_sack"), &server, 1).settled();
        let before = pair.wire.len();
        transfer(&mut pair, 0, 200);
        let (client, server): (Vec<Flight>, Vec<Flight>) =
            pair.sent_since(before).iter().cloned().partition(|flight| flight.to_server);
        assert!(all_authenticated(&client, ChunkKind::DATA));
        assert!(all_authenticated(&server, ChunkKind::NR_SACK));
        let now = pair.now;
        for discards in [pair.client().stats(now), pair.server().stats(now)].map(|stats| stats.expect("open"))
        {
            assert_eq!(discards.discards.total(), 0, "{:?}", discards.discards);
        }
    }
}

#[test]
fn chunks_that_must_be_authenticated_are_discarded_otherwise() {
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &config("abort,data"), 1).settled();
    let abort =
        Chunk::Abort(tresse_wire::Abort { tag_reflected: false, causes: tresse_wire::Causes::Values(&[]) });
    let forged = pair.packet(true, &[abort]);
    pair.inject(true, 0, forged);
    // One that would end the association even if it is only badly made.
    let mut empty = pair.packet(true, &[Chunk::CookieAck]).to_vec();
    empty.extend([0, 3, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    tresse_wire::seal(&mut empty);
    pair.inject(true, 0, empty.into());
    assert!(pair.server().is_established());
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.unauthenticated_chunk, 2);
    pair.client().abort(now, "that is enough");
    pair.run_for(Duration::from_millis(100));
    assert_eq!(aborted_for(&pair.server.events), Some("User-Initiated Abort: that is enough"));
}

#[test]
fn a_wrong_hmac_takes_the_rest_of_its_packet_along() {
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &config("data"), 1).settled();
    let flipped = std::cell::Cell::new(0);
    pair.network = Box::new(move |flight| {
        // The first packet with data is lost, and comes damaged instead: see below.
        let hit = flight.to_server && flight.has_data() && flipped.replace(flipped.get() + 1) == 0;
        (!hit).then_some(Duration::from_millis(10))
    });
    pair.send(0, 0, 1000);
    let mut damaged = pair.wire.last().expect("it was sent").bytes.to_vec();
    *damaged.last_mut().expect("data") ^= 1;
    damaged[8..12].fill(0);
    tresse_wire::seal(&mut damaged);
    pair.inject(true, 0, damaged.into());
    assert!(pair.server.received.is_empty());
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.bad_auth, 1);
    pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 1);
    assert_eq!(pair.server.numbers_on(0), [0]);
}

#[test]
fn a_hash_that_was_not_offered_is_reported() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let before = pair.wire.len();
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 2, hmac: &[0; 16] });
    let packet = pair.packet(true, &[auth, Chunk::ShutdownAck]);
    pair.inject(true, 0, packet);
    let answer = &pair.sent_since(before)[0];
    let chunks = answer.chunks();
    let [Chunk::Error(error)] = &chunks[..] else { panic!("{}", answer.dissect()) };
    assert_eq!(error.causes.iter().flatten().collect::<Vec<_>>(), [Cause::UnsupportedHmac(2)]);
    let now = pair.now;
    let discards = pair.server().stats(now).expect("open").discards;
    assert_eq!((discards.bad_auth, discards.total()), (1, 1), "and what followed it went unread");
}

#[test]
fn auth_that_was_not_agreed_ends_the_reading_of_its_packet() {
    let mut pair = Pair::established(1, &off());
    let before = pair.wire.len();
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 1, hmac: &[0; 20] });
    let abort =
        Chunk::Abort(tresse_wire::Abort { tag_reflected: false, causes: tresse_wire::Causes::Values(&[]) });
    let packet = pair.packet(true, &[auth, abort]);
    pair.inject(true, 0, packet);
    assert!(pair.server().is_established() && pair.wire.len() == before);
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.unexpected_chunk, 1);
}

#[test]
fn a_peer_without_authentication_is_refused_where_chunks_must_be_authenticated() {
    let mut pair = Pair::unlike(1, &off(), &config("data"), 1);
    pair.connect();
    pair.run_for(Duration::from_millis(100));
    assert!(matches!(&pair.client.events[..], [Event::Closed(CloseReason::AbortedByPeer { .. })]));
    assert_eq!(pair.server.endpoint.discards().bad_init, 1);
    let mut pair = Pair::unlike(1, &config("data"), &off(), 1);
    pair.connect();
    pair.run_for(Duration::from_millis(100));
    assert!(matches!(&pair.client.events[..], [Event::Closed(CloseReason::PeerFault(_))]));
    assert!(pair.server.events.is_empty());
}

/// Both endpoints know key 1, the client perhaps by another secret.
fn with_keys(secret: &[u8], config: &AssociationConfig) -> Pair {
    let listening = EndpointConfig::listening(PORT);
    let mut pair = Pair::between(2, (config, EndpointConfig::default()), (config, listening), 1);
    for (side, secret) in [(&mut pair.client, secret), (&mut pair.server, &b"open sesame"[..])] {
        side.endpoint.set_shared_key(1, secret);
        side.endpoint.use_shared_key(1).expect("it was just set");
        side.endpoint.remove_shared_key(0).expect("it is not in use");
    }
    pair
}

#[test]
fn only_who_knows_the_key_gets_in_where_cookies_must_be_authenticated() {
    let config = config("cookie_echo,cookie_ack,data");
    let mut pair = with_keys(b"open sesame", &config).settled();
    assert!(all_authenticated(&pair.wire, ChunkKind::COOKIE_ECHO));
    assert!(all_authenticated(&pair.wire, ChunkKind::COOKIE_ACK));
    transfer(&mut pair, 0, 20);

    let mut pair = with_keys(b"open barley", &config);
    pair.connect();
    pair.run_for(Duration::from_secs(10));
    assert!(pair.server.events.is_empty() && !pair.client().is_established());
    assert!(pair.server.endpoint.discards().bad_auth > 1);
    pair.run_until(Duration::from_secs(600), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::SetupTimeout)]);
}

#[test]
fn each_packet_of_an_authenticated_handshake_may_be_lost() {
    for kind in [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::COOKIE_ECHO, ChunkKind::COOKIE_ACK] {
        let mut pair = with_keys(b"open sesame", &config("cookie_echo,cookie_ack"));
        pair.lose(kind, 1);
        pair.connect();
        pair.run_for(Duration::from_secs(5));
        assert!(pair.client().is_established() && pair.server().is_established(), "{kind}");
    }
}

#[test]
fn both_sides_may_open_at_once_with_authentication() {
    let config = config("data,cookie_echo");
    let mut pair = Pair::new(1, &config);
    pair.connect();
    let listener = tresse_proto::Connect::new(
        vec![crate::common::address(2, 0)],
        vec![crate::common::address(1, 0)],
        pair.client.endpoint.port(),
        config,
    );
    let now = pair.now;
    pair.server.id = Some(pair.server.endpoint.connect(now, listener).expect("a sound request"));
    pair.run_until(Duration::from_secs(10), |pair| {
        pair.client().is_established() && pair.server().is_established()
    });
    transfer(&mut pair, 0, 20);
}

#[test]
fn the_key_changes_in_mid_transfer_without_a_gap() {
    // Heartbeats come through where data does not, and end each back-off: five seconds are to be few timeouts.
    let patient = config("data").with(|c| c.rto_min = Duration::from_secs(1));
    let mut pair = Pair::established(2, &patient);
    transfer(&mut pair, 0, 50);
    for number in 50..100 {
        pair.send(0, number, 3000);
    }
    pair.server().set_shared_key(9, b"new").expect("agreed");
    pair.client().set_shared_key(9, b"new").expect("agreed");
    pair.client().use_shared_key(9).expect("it was just set");
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 100);
    assert!(pair.server.events.contains(&Event::PeerKeyChanged { number: 9 }));
    assert!(!pair.client.events.iter().any(|event| matches!(event, Event::PeerKeyChanged { .. })));
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.bad_auth, 0);
    // Now the old one can go; a key that only one side has brings nothing through.
    pair.server().use_shared_key(9).expect("it was set");
    pair.server().remove_shared_key(0).expect("not in use");
    pair.client().set_shared_key(3, b"mine alone").expect("agreed");
    pair.client().use_shared_key(3).expect("it was just set");
    pair.send(0, 100, 1000);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.server.received.len(), 100);
    pair.client().use_shared_key(9).expect("it was set");
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 101);
}

#[test]
fn keys_need_an_association_that_authenticates() {
    let mut pair = Pair::established(1, &off());
    assert_eq!(pair.client().set_shared_key(1, b"in vain"), Err(KeyError::NotAgreed));
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    pair.client().set_shared_key(1, b"early").expect("before set-up is early enough");
    assert!(matches!(pair.client().use_shared_key(2), Err(KeyError::Unknown { number: 2, .. })));
    assert_eq!(pair.client().remove_shared_key(0), Err(KeyError::Active { number: 0 }));
    assert_eq!(pair.client().deactivate_shared_key(0), Err(KeyError::Active { number: 0 }));
    assert!(matches!(pair.client().deactivate_shared_key(2), Err(KeyError::Unknown { number: 2, .. })));
}

#[test]
fn a_deactivated_key_is_not_used_again_but_the_peer_may_use_it() {
    let mut pair = Pair::established(1, &config("data"));
    pair.client().set_shared_key(1, b"one").expect("agreed");
    pair.server().set_shared_key(1, b"one").expect("agreed");
    pair.client().deactivate_shared_key(1).expect("not in use");
    assert_eq!(pair.client().use_shared_key(1), Err(KeyError::Deactivated { number: 1 }));
    pair.server().use_shared_key(1).expect("only the client deactivated it");
    let now = pair.now;
    pair.server().send(now, SendOptions::default(), content(0, 0, 100)).expect("room");
    pair.run_until(Duration::from_secs(60), |pair| pair.client.received.len() == 1);
    pair.client().set_shared_key(1, b"one").expect("agreed");
    pair.client().use_shared_key(1).expect("it was set anew");
    // Removal forgets that the key was deactivated.
    pair.client().deactivate_shared_key(0).expect("not in use");
    pair.client().remove_shared_key(0).expect("not in use");
    assert!(matches!(pair.client().use_shared_key(0), Err(KeyError::Unknown { number: 0, .. })));
}

#[test]
fn a_peer_that_restarts_agrees_on_new_keys() {
    let config = config("data");
    let mut pair = Pair::established(1, &config);
    transfer(&mut pair, 0, 5);
    let port = pair.client.endpoint.port();
    let endpoint = EndpointConfig::default().with(|c| c.port = port);
    let mut fresh =
        tresse_proto::Endpoint::new(endpoint, config.clone(), [99; 32]).expect("the settings are consistent");
    fresh.set_local_addresses(vec![crate::common::address(1, 0)]);
    pair.client.endpoint = fresh;
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
    pair.server.received.clear();
    transfer(&mut pair, 0, 5);
}

#[test]
fn a_peer_that_restarts_signs_its_cookie_with_the_new_keys() {
    let config = config("cookie_echo,data");
    let mut pair = Pair::established(1, &config);
    pair.restart_client();
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
    assert!(pair.client().is_established());
    transfer(&mut pair, 0, 5);
}
