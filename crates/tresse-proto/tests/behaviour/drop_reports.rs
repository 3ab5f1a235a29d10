//! Packets that arrive damaged are reported, and what they carried goes again without a smaller window (PKTDROP,
//! draft-stewart-sctp-pktdrprep).

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::AssociationConfig;
use tresse_proto::config::Size;
use tresse_wire::{Chunk, ChunkKind, PacketDrop};

use crate::common::{Flight, Pair};

const M: usize = 1452;
/// Bit positions in a packet: of its header, and of the user data of its first DATA chunk.
const SOURCE_PORT: usize = 3;
const DESTINATION_PORT: usize = 20;
const TAG: usize = 40;
const USER_DATA: usize = 8 * 100;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A window of twenty packets, and no limit to bursts.
fn wide() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.initial_window = Size(20 * M);
        c.max_burst = 0;
    })
}

fn without() -> AssociationConfig {
    wide().with(|c| c.drop_reports = false)
}

fn flip(bytes: &Bytes, bit: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 0x80 >> (bit % 8);
    bytes.into()
}

fn stray(pair: &mut Pair) -> u64 {
    let now = pair.now;
    pair.client().stats(now).expect("open").discards.stray_drop_report
}

fn reports(pair: &Pair) -> Vec<&Flight> {
    pair.wire.iter().filter(|flight| flight.carries(ChunkKind::PACKET_DROP)).collect()
}

/// Sends twelve full chunks of which the third comes with `bit` flipped, just before those that follow.
fn damaged_third(config: &AssociationConfig, server: &AssociationConfig, bit: usize) -> Pair {
    let mut pair = Pair::unlike(1, config, server, 1).settled();
    let mut packets = 0;
    pair.network = Box::new(move |flight| {
        packets += u32::from(flight.has_data());
        (!(flight.has_data() && packets == 3)).then_some(ms(10))
    });
    let from = pair.wire.len();
    pair.send(0, 1, 12 * M);
    let third =
        pair.sent_since(from).iter().filter(|flight| flight.has_data()).nth(2).expect("twelve were sent");
    let damaged = flip(&third.bytes.clone(), bit);
    pair.run_for(Duration::from_micros(9_900));
    pair.inject(true, 0, damaged);
    pair
}

#[test]
fn what_a_damaged_packet_carried_goes_again_without_a_smaller_window() {
    let mut pair = damaged_third(&wide(), &wide(), USER_DATA);
    let before = pair.path(0).cwnd;
    pair.run_until(ms(100), |pair| pair.server.received.len() == 1);
    let path = pair.path(0);
    assert_eq!((path.drop_reports, path.chunks_resent, path.fast_retransmits, path.timeouts), (1, 1, 0, 0));
    assert!(path.cwnd >= before, "{} after {before}", path.cwnd);
    assert_eq!((stray(&mut pair), pair.server.endpoint.discards().bad_checksum), (0, 1));
    // Two round trips, not a timeout; and the report quotes no more than it takes to be believed.
    let [report] = reports(&pair)[..] else { panic!("one report") };
    assert!(report.bytes.len() < 150, "{}", report.dissect());
    pair.run_for(ms(3000));
    assert_eq!(pair.path(0).timeouts, 0);
}

#[test]
fn without_an_agreement_the_window_pays_for_damage() {
    for (client, server) in [(wide(), without()), (without(), wide()), (without(), without())] {
        let mut pair = damaged_third(&client, &server, USER_DATA);
        let before = pair.path(0).cwnd;
        pair.run_until(ms(3000), |pair| pair.server.received.len() == 1);
        let path = pair.path(0);
        assert_eq!((path.drop_reports, path.fast_retransmits), (0, 1));
        assert!(path.cwnd < before && reports(&pair).is_empty());
    }
}

#[test]
fn nobody_hears_of_a_packet_whose_header_is_damaged() {
    for bit in [SOURCE_PORT, DESTINATION_PORT, TAG] {
        let mut pair = damaged_third(&wide(), &wide(), bit);
        pair.run_until(ms(3000), |pair| pair.server.received.len() == 1);
        assert!(reports(&pair).is_empty());
        assert_eq!(pair.path(0).fast_retransmits, 1);
        assert_eq!(pair.server.endpoint.discards().bad_checksum, 1);
    }
}

#[test]
fn the_same_report_counts_once() {
    let mut pair = damaged_third(&wide(), &wide(), USER_DATA);
    let report = reports(&pair)[0].bytes.clone();
    pair.run_for(Duration::from_micros(10_050));
    assert_eq!(pair.path(0).chunks_resent, 1);
    pair.inject(false, 0, report.clone());
    pair.inject(false, 0, report);
    assert_eq!((pair.path(0).chunks_resent, stray(&mut pair)), (1, 2));
}

/// A report of the first packet in flight, changed by `change`, moves nothing.
fn refused(change: impl FnOnce(&mut PacketDrop<'static>, &mut Vec<u8>)) {
    let mut pair = Pair::established(1, &wide());
    pair.network = Box::new(|_| None);
    pair.send(0, 1, 3 * M);
    pair.run_for(ms(30));
    let sent = pair.wire.iter().find(|flight| flight.has_data()).expect("data left").bytes[..92].to_vec();
    let report = |drop: PacketDrop<'_>, packet: &[u8], pair: &mut Pair| {
        let bytes = pair.packet(false, &[Chunk::PacketDrop(PacketDrop { packet, ..drop })]);
        pair.inject(false, 0, bytes);
    };
    let sound = PacketDrop {
        middlebox: false,
        bad_checksum: true,
        truncated: true,
        bandwidth: 1 << 20,
        queue_size: 0,
        truncated_len: 1480,
        packet: &[],
    };
    let (mut changed, mut packet) = (sound, sent.clone());
    change(&mut changed, &mut packet);
    report(changed, &packet, &mut pair);
    assert_eq!((pair.path(0).drop_reports, stray(&mut pair)), (0, 1));
    report(sound, &sent, &mut pair);
    assert_eq!((pair.path(0).drop_reports, stray(&mut pair)), (1, 1), "as it was, it is believed");
}

#[test]
fn a_report_is_believed_of_own_packets_damaged_at_the_peer_only() {
    refused(|drop, _| drop.middlebox = true);
    refused(|drop, _| drop.bad_checksum = false);
    refused(|_, packet| packet[4] ^= 1);
    refused(|_, packet| packet[0] ^= 1);
    refused(|_, packet| packet.truncate(11));
    // Not what was sent, nothing to prove it by, not sent at all.
    refused(|_, packet| packet[30..60].fill(0x5A));
    refused(|_, packet| packet.truncate(40));
    refused(|_, packet| packet[16] ^= 0x40);
}

#[test]
fn a_forged_report_with_a_wrong_tag_is_dropped_at_the_door() {
    let mut pair = Pair::established(1, &wide());
    let drop = PacketDrop {
        middlebox: false,
        bad_checksum: true,
        truncated: false,
        bandwidth: 0,
        queue_size: 0,
        truncated_len: 0,
        packet: &[0; 64],
    };
    let tag = pair.tag(false) ^ 1;
    let forged = pair.packet_with_tag(false, tag, &[Chunk::PacketDrop(drop)]);
    pair.inject(false, 0, forged);
    assert_eq!((stray(&mut pair), pair.client.endpoint.discards().wrong_tag), (0, 1));
}

#[test]
fn a_damaged_sack_leaves_anew() {
    let mut pair = Pair::established(1, &wide());
    pair.network = Box::new(|flight| flight.to_server.then_some(ms(10)));
    pair.send(0, 1, 2 * M);
    pair.run_for(ms(15));
    let sack =
        pair.wire.iter().rev().find(|flight| flight.carries(ChunkKind::NR_SACK)).expect("acknowledged");
    let damaged = flip(&sack.bytes.clone(), 8 * 17);
    pair.network = Box::new(|_| Some(ms(10)));
    let before = pair.wire.len();
    pair.inject(false, 0, damaged);
    pair.run_for(ms(25));
    let kinds: Vec<_> = pair.sent_since(before).iter().map(|flight| flight.kinds()[0]).collect();
    // With data acknowledged the search for larger packets begins.
    assert_eq!(kinds, [ChunkKind::PACKET_DROP, ChunkKind::NR_SACK, ChunkKind::HEARTBEAT]);
    assert_eq!(pair.path(0).flight, 0);
}

#[test]
fn what_could_be_answered_for_ever_is_not_reported() {
    let mut pair = damaged_third(&wide(), &wide(), USER_DATA);
    let report = flip(&reports(&pair)[0].bytes.clone(), 8 * 60);
    let before = pair.wire.len();
    pair.inject(false, 0, report);
    let abort = pair.packet(
        true,
        &[Chunk::Abort(tresse_wire::Abort {
            tag_reflected: false,
            causes: tresse_wire::Causes::Values(&[]),
        })],
    );
    pair.inject(true, 0, flip(&abort, 8 * 13));
    assert_eq!(pair.wire.len(), before, "{}", pair.log.join("\n"));
}

/// The last chunk of a full packet is quoted, as far as that goes behind AUTH and in a packet of any length.
#[test]
fn a_report_leaves_room_for_what_authenticates_it() {
    for (listed, mtu) in [("pktdrop", 1500), ("pktdrop,data", 1500), ("data", 1500), ("none", 1499)] {
        let mut config = wide();
        config.set("authenticated_chunks", listed).expect("chunk types");
        config.mtu_discovery = false;
        config.mtu = Size(mtu);
        let mut pair = Pair::established(1, &config);
        pair.network = Box::new(|_| None);
        let now = pair.now;
        let behind_auth = if listed.contains("data") { 40 } else { 0 };
        for (number, len) in [(0, 1364 - behind_auth), (1, 48)] {
            let options = tresse_proto::SendOptions::on(tresse_proto::StreamId(0));
            let sent = pair.client().send(now, options, crate::common::content(0, number, len));
            sent.expect("room in the send buffer");
        }
        let before = pair.wire.len();
        pair.pump();
        let packet = pair.sent_since(before)[0].clone();
        assert_eq!(packet.kinds().iter().filter(|&&kind| kind == ChunkKind::DATA).count(), 2);
        pair.network = Box::new(|_| Some(ms(10)));
        pair.run_for(ms(10));
        pair.inject(true, 0, flip(&packet.bytes, USER_DATA));
        let [report] = reports(&pair)[..] else { panic!("one report with {listed}, {mtu}") };
        assert!(report.bytes.len() > 1400, "{}", report.dissect());
    }
}

#[test]
fn every_chunk_of_a_damaged_packet_goes_again() {
    let mut pair = Pair::established(1, &wide());
    pair.network = Box::new(|_| None);
    let now = pair.now;
    for number in 0..15 {
        let sent = pair.client().send(
            now,
            tresse_proto::SendOptions::on(tresse_proto::StreamId(0)),
            crate::common::content(0, number, 50),
        );
        sent.expect("room in the send buffer");
    }
    let before = pair.wire.len();
    pair.pump();
    let packet = pair.sent_since(before)[0].clone();
    assert_eq!(packet.chunks().len(), 15, "{}", packet.dissect());
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(ms(10));
    pair.inject(true, 0, flip(&packet.bytes, USER_DATA));
    pair.run_until(ms(100), |pair| pair.server.received.len() == 15);
    assert_eq!(pair.path(0).drop_reports, 15);
}
