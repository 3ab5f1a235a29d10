//! Packets without checksum, where both sides know that the layer below detects errors (RFC 9653).

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::AssociationConfig;
use tresse_wire::{Chunk, ChunkKind, CookieEcho, Heartbeat, Shutdown, Tsn};

use crate::common::{PORT, Pair, echo, packet};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config(zero_checksum: bool) -> AssociationConfig {
    AssociationConfig::default().with(|c| c.zero_checksum = zero_checksum)
}

fn transfer(pair: &mut Pair) {
    for number in 0..20 {
        pair.send(0, number, 3000);
    }
    pair.run_until(ms(10_000), |pair| pair.server.received.len() == 20);
}

/// The same packet with a checksum of zero.
fn without_checksum(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[8..12].fill(0);
    bytes.into()
}

/// Kinds of packets by their first chunk that left without checksum, and with one.
fn first_chunks(pair: &Pair, has_checksum: bool) -> Vec<ChunkKind> {
    let packets = pair.wire.iter().filter(|flight| flight.has_checksum() == has_checksum);
    let mut kinds: Vec<ChunkKind> = packets.map(|flight| flight.kinds()[0]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn both_sides_leave_checksums_out_when_both_want_to() {
    let mut pair = Pair::established(1, &config(true));
    transfer(&mut pair);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(500));
    // RFC 9653 §5.2: the set-up proves itself to somebody who keeps no state yet.
    assert_eq!(first_chunks(&pair, true), [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::COOKIE_ECHO]);
    let without = first_chunks(&pair, false);
    let expected = [ChunkKind::DATA, ChunkKind::NR_SACK, ChunkKind::COOKIE_ACK, ChunkKind::SHUTDOWN_COMPLETE];
    assert!(expected.iter().all(|kind| without.contains(kind)), "{without:?}");
    assert_eq!(pair.server.endpoint.discards().bad_checksum, 0);
}

#[test]
fn one_side_alone_changes_nothing() {
    for (client, server) in [(true, false), (false, true)] {
        let mut pair = Pair::unlike(1, &config(client), &config(server), 1);
        pair.connect();
        pair.run_for(ms(100));
        transfer(&mut pair);
        assert!(first_chunks(&pair, false).is_empty());
        // But whoever has offered it takes what it offered to take (§5.3).
        let heartbeat = Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] });
        let bare = without_checksum(&pair.packet(true, &[heartbeat]));
        pair.inject(true, 0, bare);
        assert_eq!(pair.server.endpoint.discards().bad_checksum, u64::from(!server));
    }
}

#[test]
fn inits_and_cookies_need_a_checksum() {
    let mut pair = Pair::established(1, &config(true));
    let before = pair.wire.len();
    let cookie = packet(700, PORT, 0xabcd, &[Chunk::CookieEcho(CookieEcho { cookie: &[1; 100] })]);
    let init = packet(700, PORT, 0, &[Chunk::Init(crate::common::init(9, &[]))]);
    for bytes in [&cookie, &init] {
        pair.inject(true, 0, without_checksum(bytes));
    }
    assert_eq!((pair.wire.len(), pair.server.endpoint.discards().bad_checksum), (before, 2));
    // Nor is any other wrong checksum good enough.
    let mut wrong = pair.packet(true, &[Chunk::CookieAck]).to_vec();
    wrong[8..12].copy_from_slice(&[0, 0, 0, 1]);
    pair.inject(true, 0, wrong.into());
    assert_eq!(pair.server.endpoint.discards().bad_checksum, 3);
    // Answers to strangers have one.
    pair.inject(true, 0, init);
    assert!(pair.wire.last().expect("answered").has_checksum());
}

#[test]
fn a_peer_that_was_forgotten_is_told_so_although_its_packets_lack_checksums() {
    for zero_checksum in [true, false] {
        let mut pair = Pair::established(1, &config(zero_checksum));
        let before = pair.wire.len();
        let data = packet(700, PORT, 0xabcd, &[Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(1) })]);
        pair.inject(true, 0, without_checksum(&data));
        assert_eq!(pair.wire.len() - before, usize::from(zero_checksum));
        if zero_checksum {
            let answer = pair.wire.last().expect("answered");
            assert!(answer.carries(ChunkKind::ABORT) && answer.has_checksum());
        }
    }
}

/// Another error detection method than the own one is none (§4).
#[test]
fn another_method_is_not_agreed() {
    let mut pair = Pair::new(1, &config(true));
    pair.network = Box::new(|_| None);
    let params = [tresse_wire::Param::ZeroChecksumAcceptable(2)];
    pair.inject(true, 0, packet(700, PORT, 0, &[Chunk::Init(crate::common::init(9, &params))]));
    let echo = echo(&pair.wire[0].bytes);
    pair.inject(true, 0, echo);
    let answer = pair.wire.last().expect("answered");
    assert!(answer.carries(ChunkKind::COOKIE_ACK) && answer.has_checksum());
}

/// RFC 9653 §5.2: a receiver that finds the association by the address in the ASCONF does not know yet what was negotiated.
#[test]
fn a_request_to_change_addresses_has_a_checksum() {
    let mut pair = Pair::established(1, &config(true));
    let now = pair.now;
    pair.client().add_address(now, crate::common::address(1, 1)).expect("a new address");
    pair.run_for(ms(500));
    let asconf = pair.wire.iter().find(|flight| flight.carries(ChunkKind::ASCONF)).expect("a request");
    assert!(asconf.has_checksum());
    let answer = pair.wire.iter().find(|flight| flight.carries(ChunkKind::ASCONF_ACK)).expect("an answer");
    assert!(!answer.has_checksum());
}
