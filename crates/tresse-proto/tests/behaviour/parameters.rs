//! Parameters of INIT and INIT ACK: addresses, and to whom they are told; unknown parameters; the lifetime of
//! a cookie; the adaptation layer.

use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::{AssociationConfig, Connect, Datagram, Ecn, Endpoint, EndpointConfig, Event, Instant};
use tresse_wire::{Cause, ChecksumRule, Chunk, ChunkKind, Init, List, Packet, Param, UnrecognisedParam};

use crate::common::{PORT, Pair, echo, init, packet};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn parse(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().expect("an address")).collect()
}

/// The addresses that an INIT or INIT ACK lists.
fn listed(init: &Init<'_>) -> Vec<IpAddr> {
    let addresses = init.params.iter().flatten().filter_map(|param| match param {
        Param::Address(address) => Some(address),
        _ => None,
    });
    addresses.collect()
}

/// The addresses that an INIT lists between these addresses, and the types that it says it understands.
fn told_by_init(config: AssociationConfig, local: &[&str], remote: &[&str]) -> (Vec<IpAddr>, Vec<u16>) {
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), config.clone(), [1; 32]).expect("sound settings");
    let (local, remote) = (parse(local), parse(remote));
    let connect = Connect::new(local, remote, PORT, config);
    endpoint.connect(Instant::ZERO, connect).expect("a sound request");
    let mut buffer = Vec::new();
    endpoint.poll_transmit(Instant::ZERO, 1, &mut buffer).expect("an INIT");
    let packet = Packet::parse(&buffer, ChecksumRule::Verify).expect("a packet");
    let Some(Ok(Chunk::Init(init))) = packet.chunks().next() else { panic!("no INIT") };
    let types = init.params.iter().flatten().find_map(|param| match param {
        Param::SupportedAddressTypes(types) => Some(types.iter().collect()),
        _ => None,
    });
    (listed(&init), types.unwrap_or_default())
}

/// The addresses that a server with addresses of every kind lists to an INIT between these.
fn told_by_init_ack(
    config: AssociationConfig,
    local: &str,
    remote: &str,
    params: &[Param<'_>],
) -> Vec<IpAddr> {
    let listen = EndpointConfig::listening(PORT);
    let mut endpoint = Endpoint::new(listen, config, [1; 32]).expect("sound settings");
    endpoint.set_local_addresses(parse(&EVERY_SCOPE));
    let datagram = Datagram {
        local: local.parse().expect("an address"),
        remote: remote.parse().expect("an address"),
        encapsulation_port: None,
        ecn: Ecn::NotEct,
        payload: packet(700, PORT, 0, &[Chunk::Init(init(9, params))]),
    };
    endpoint.handle_datagram(Instant::ZERO, datagram);
    let mut buffer = Vec::new();
    endpoint.poll_transmit(Instant::ZERO, 1, &mut buffer).expect("an answer");
    let packet = Packet::parse(&buffer, ChecksumRule::Verify).expect("a packet");
    let Some(Ok(Chunk::InitAck(init))) = packet.chunks().next() else { panic!("no INIT ACK") };
    listed(&init)
}

const EVERY_SCOPE: [&str; 6] =
    ["127.0.0.1", "192.168.0.1", "203.0.113.1", "fe80::1", "fd00::1", "2001:db8::1"];

#[test]
fn addresses_are_told_only_to_whom_they_mean_something() {
    let told = |remote: &[&str]| told_by_init(AssociationConfig::default(), &EVERY_SCOPE, remote).0;
    let global = parse(&["203.0.113.1", "2001:db8::1"]);
    let private = parse(&["192.168.0.1", "203.0.113.1", "fd00::1", "2001:db8::1"]);
    assert_eq!(told(&["198.51.100.7"]), global);
    assert_eq!(told(&["2001:db8::7"]), global);
    assert_eq!(told(&["192.168.0.7"]), private);
    assert_eq!(told(&["198.51.100.7", "10.0.0.7"]), private, "the nearest decides");
    assert_eq!(told(&["127.0.0.7"]), parse(&EVERY_SCOPE));
    let open = AssociationConfig::default().with(|c| c.address_scopes = false);
    assert_eq!(told_by_init(open.clone(), &EVERY_SCOPE, &["198.51.100.7"]).0, parse(&EVERY_SCOPE));

    let answered =
        |config: &AssociationConfig, local, remote| told_by_init_ack(config.clone(), local, remote, &[]);
    let config = AssociationConfig::default();
    assert_eq!(answered(&config, "203.0.113.1", "198.51.100.7"), global);
    assert_eq!(answered(&config, "192.168.0.1", "192.168.0.7"), private);
    // Where the peer sent its INIT to, it knows already.
    assert_eq!(
        answered(&config, "192.168.0.1", "198.51.100.7"),
        parse(&["192.168.0.1", "203.0.113.1", "2001:db8::1"])
    );
    assert_eq!(answered(&open, "203.0.113.1", "198.51.100.7"), parse(&EVERY_SCOPE));
}

#[test]
fn a_lone_or_private_source_is_not_listed_behind_a_nat() {
    let told = |local: &[&str], remote: &[&str]| told_by_init(AssociationConfig::default(), local, remote).0;
    assert_eq!(told(&["192.168.0.1"], &["198.51.100.7"]), parse(&[]));
    assert_eq!(told(&["192.168.0.1", "192.168.1.1"], &["198.51.100.7"]), parse(&[]));
    // No global address reaches an IPv4 peer here, so the private one is used, and the other told.
    let mixed = ["192.168.0.1", "2001:db8::1"];
    assert_eq!(told(&mixed, &["198.51.100.7"]), parse(&mixed));
    let config = AssociationConfig::default().with(|c| c.list_addresses = false);
    assert_eq!(told_by_init(config.clone(), &["10.0.0.1", "10.0.1.1"], &["10.0.0.2"]).0, parse(&[]));
    assert_eq!(told_by_init_ack(config, "203.0.113.1", "198.51.100.7", &[]), parse(&[]));
}

#[test]
fn only_types_of_addresses_that_the_peer_understands_are_listed() {
    let types = |local: &[&str], remote| told_by_init(AssociationConfig::default(), local, &[remote]).1;
    assert_eq!(types(&["10.0.0.1", "10.0.1.1"], "10.0.0.2"), [5]);
    assert_eq!(types(&["fd00::1", "fd00:1::1"], "fd00::2"), [6]);
    assert_eq!(types(&["fd00::1"], "fd00::2"), [] as [u16; 0], "a lone address says it by itself");
    assert_eq!(types(&["fd00::1", "10.0.0.1"], "10.0.0.2"), [5, 6]);
    let answered = |types: &[u16]| {
        let params = [Param::SupportedAddressTypes(List::Values(types))];
        told_by_init_ack(AssociationConfig::default(), "203.0.113.1", "198.51.100.7", &params)
    };
    assert_eq!(answered(&[5]), parse(&[]), "only the one that the packet comes from is left");
    assert_eq!(answered(&[5, 6]), parse(&["203.0.113.1", "2001:db8::1"]));
    assert_eq!(answered(&[6]), parse(&["203.0.113.1", "2001:db8::1"]));
}

#[test]
fn what_a_peer_lists_of_its_own_host_or_network_is_not_believed_from_afar() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let params =
        [Param::Address("127.0.0.1".parse().expect("one")), Param::Address("10.0.7.1".parse().expect("one"))];
    pair.inject(true, 0, packet(700, PORT, 0, &[Chunk::Init(init(9, &params))]));
    let echo = echo(&pair.wire[0].bytes);
    pair.inject(true, 0, echo);
    let now = pair.now;
    let remotes: Vec<IpAddr> = pair.server().path_stats(now).iter().map(|path| path.remote).collect();
    assert_eq!(
        remotes,
        parse(&["10.0.0.1", "10.0.7.1"]),
        "a loopback address would lead to the server itself"
    );
}

#[test]
fn a_side_that_lists_no_address_is_known_by_the_one_it_sends_from() {
    let silent = AssociationConfig::default().with(|c| c.list_addresses = false);
    let talkative = AssociationConfig::default();
    for (client, server, paths) in [(&silent, &talkative, 2), (&talkative, &silent, 2), (&silent, &silent, 1)]
    {
        let mut pair = Pair::unlike(2, client, server, 1);
        pair.connect();
        pair.run_for(ms(3000));
        let now = pair.now;
        let seen = [pair.client().path_stats(now), pair.server().path_stats(now)];
        // One side of every path is the only address that the silent side has for the other.
        assert_eq!(seen.each_ref().map(Vec::len), [paths, paths]);
        let silent_side =
            |paths: &[tresse_proto::PathStats]| paths.iter().all(|path| path.local == paths[0].local);
        assert_eq!(
            (silent_side(&seen[0]), silent_side(&seen[1])),
            (!client.list_addresses, !server.list_addresses)
        );
        for number in 0..20 {
            pair.send(0, number, 3000);
        }
        pair.run_until(ms(10_000), |pair| pair.server.received.len() == 20);
        assert_eq!(pair.client.endpoint.discards().total() + pair.server.endpoint.discards().total(), 0);
    }
}

#[test]
fn each_side_hears_of_the_others_adaptation_layer() {
    let client = AssociationConfig::default().with(|c| c.adaptation = Some(0));
    let server = AssociationConfig::default().with(|c| c.adaptation = Some(0xffff_ffff));
    let mut pair = Pair::unlike(1, &client, &server, 1);
    pair.connect();
    pair.run_for(ms(100));
    assert_eq!(pair.client.events[1..], [Event::PeerAdaptation { code: 0xffff_ffff }]);
    assert_eq!(pair.server.events[1..], [Event::PeerAdaptation { code: 0 }]);
    let pair = Pair::new(1, &AssociationConfig::default()).settled();
    assert!(pair.wire.iter().all(|flight| !flight.dissect().contains("Adaptation")));
}

fn unknown(kind: u16, whole: &[u8]) -> Param<'_> {
    Param::Unrecognised(UnrecognisedParam { kind: kind.into(), whole })
}

/// RFC 9260 §3.2.1: the report travels with the COOKIE ECHO, whole parameters with their padding.
#[test]
fn what_is_not_understood_of_an_init_ack_is_reported_behind_the_cookie_echo() {
    let reported = [0xc0, 0xee, 0, 7, 1, 2, 3];
    let skipped = [0x80, 0xee, 0, 4];
    let last = [0x40, 0xee, 0, 4];
    let unheeded = [0xc0, 0xef, 0, 4];
    let params = [
        unknown(0xc0ee, &reported),
        unknown(0x80ee, &skipped),
        Param::Padding(&[0; 5]),
        Param::StateCookie(b"cookie"),
        // After this one nothing is read.
        unknown(0x40ee, &last),
        unknown(0xc0ef, &unheeded),
    ];
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    pair.connect();
    pair.pump();
    let tag = pair.tag(false);
    pair.inject(false, 0, pair.packet_with_tag(false, tag, &[Chunk::InitAck(init(9, &params))]));
    pair.run_for(ms(1500));
    for flight in &pair.wire[1..] {
        let chunks = flight.chunks();
        let [Chunk::CookieEcho(echo), Chunk::Error(error)] = chunks[..] else {
            panic!("{}", flight.dissect())
        };
        assert_eq!(echo.cookie, b"cookie");
        let causes: Vec<Cause<'_>> = error.causes.iter().flatten().collect();
        assert_eq!(
            causes,
            [Cause::UnrecognisedParameters(&[0xc0, 0xee, 0, 7, 1, 2, 3, 0, 0x40, 0xee, 0, 4])]
        );
    }
    assert_eq!(pair.wire.len(), 3, "INIT, and COOKIE ECHO twice");
}

#[test]
fn a_cookie_behind_a_parameter_that_stops_reading_is_not_seen() {
    let stop = [0x00, 0xee, 0, 4];
    let params = [unknown(0x00ee, &stop), Param::StateCookie(b"cookie")];
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    pair.connect();
    pair.pump();
    let tag = pair.tag(false);
    pair.inject(false, 0, pair.packet_with_tag(false, tag, &[Chunk::InitAck(init(9, &params))]));
    assert!(pair.wire[1].dissect().contains("Missing Mandatory Parameter"), "{}", pair.wire[1].dissect());
}

#[test]
fn a_flood_of_unknown_parameters_is_reported_in_part() {
    let unknowns: Vec<[u8; 8]> = (0..200).map(|number| [0xc0, number as u8, 0, 8, 0, 0, 0, 0]).collect();
    let mut params: Vec<Param<'_>> = unknowns
        .iter()
        .filter(|whole| ![0, 1, 2, 3, 4, 5, 6].contains(&whole[1]))
        .map(|whole| unknown(u16::from_be_bytes([whole[0], whole[1]]), whole))
        .collect();
    params.push(Param::StateCookie(b"cookie"));
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    pair.connect();
    pair.pump();
    let tag = pair.tag(false);
    pair.inject(false, 0, pair.packet_with_tag(false, tag, &[Chunk::InitAck(init(9, &params))]));
    assert!((200..400).contains(&pair.wire[1].bytes.len()), "{}", pair.wire[1].bytes.len());
}

/// RFC 9260 §5.2.6: a round trip and a second more; the server grants what it likes.
#[test]
fn a_cookie_that_came_too_late_makes_the_next_one_live_longer() {
    for (limit, succeeds) in [(ms(10_000), true), (ms(10), false)] {
        let config = AssociationConfig::default().with(|c| c.max_init_retransmits = 2);
        let server = EndpointConfig::listening(PORT);
        let server = server.with(|c| {
            c.cookie_lifetime = ms(5);
            c.cookie_extension = limit;
        });
        let mut pair = Pair::between(1, (&config, EndpointConfig::default()), (&config, server), 1);
        pair.connect();
        pair.run_for(ms(10_000));
        assert_eq!(pair.client().is_established(), succeeds, "{limit:?}");
        let inits: Vec<Option<u32>> = pair
            .wire
            .iter()
            .flat_map(|flight| {
                flight.chunks().into_iter().find_map(|chunk| match chunk {
                    Chunk::Init(init) => Some(init.params.iter().flatten().find_map(|param| match param {
                        Param::CookiePreservative(millis) => Some(millis),
                        _ => None,
                    })),
                    _ => None,
                })
            })
            .collect();
        assert_eq!(inits[..2], [None, Some(1020)]);
        assert_eq!(inits.len(), if succeeds { 2 } else { 3 });
        let errors = pair.wire.iter().filter(|flight| flight.carries(ChunkKind::ERROR)).count();
        assert_eq!(errors as u64, pair.server.endpoint.discards().stale_cookie);
    }
}
