//! Bundling, packet sizes, and several packets for one call.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, SendOptions, StreamId, Transmit};
use tresse_wire::{Chunk, ChunkKind};

use crate::common::{Pair, address, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Queues messages of `len` bytes at the client without polling for packets.
fn queue(pair: &mut Pair, count: u32, len: usize) {
    let now = pair.now;
    for number in 0..count {
        pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number, len)).expect("room");
    }
}

fn data_lengths(pair: &Pair, from: usize) -> Vec<Vec<usize>> {
    let packets = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.has_data());
    packets
        .map(|flight| {
            let lengths = flight.chunks().into_iter().filter_map(|chunk| match chunk {
                Chunk::Data(data) => Some(data.payload.len()),
                _ => None,
            });
            lengths.collect()
        })
        .collect()
}

/// Packets have their full size from the first one on.
fn full_sized() -> AssociationConfig {
    AssociationConfig::default().with(|c| c.mtu_discovery = false)
}

#[test]
fn small_messages_share_packets() {
    let mut pair = Pair::established(1, &full_sized());
    let before = pair.wire.len();
    queue(&mut pair, 36, 64);
    pair.run_for(ms(100));
    // 1,480 bytes of IP payload: 12 of common header and 18 chunks of 16 + 64 bytes are 1,452.
    assert_eq!(data_lengths(&pair, before), [vec![64; 18], vec![64; 18]]);
    assert_eq!(pair.server.received.len(), 36);
}

#[test]
fn padding_counts() {
    let mut pair = Pair::established(1, &full_sized());
    let before = pair.wire.len();
    // 61 bytes take 64: no more of them fit than of those with 64.
    queue(&mut pair, 20, 61);
    pair.run_for(ms(100));
    assert_eq!(data_lengths(&pair, before), [vec![61; 18], vec![61; 2]]);
}

#[test]
fn full_chunks_fill_the_mtu_exactly() {
    for (mtu, full) in [(1500, 1452), (576, 528), (9000, 8952), (1501, 1452), (1504, 1456)] {
        let config = full_sized().with(|c| c.mtu = Size(mtu));
        let mut pair = Pair::established(1, &config);
        let before = pair.wire.len();
        queue(&mut pair, 1, 10 * full);
        pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 1);
        let lengths = data_lengths(&pair, before).concat();
        assert_eq!(lengths, vec![full; 10], "MTU {mtu}");
    }
}

#[test]
fn a_long_message_fills_the_packets_that_short_ones_left_open() {
    let mut pair = Pair::established(1, &full_sized());
    let before = pair.wire.len();
    let now = pair.now;
    for (number, len) in [1000, 3000, 20].into_iter().enumerate() {
        pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number as u32, len)).expect("room");
    }
    pair.run_for(ms(500));
    // After 1,000 bytes and a second chunk header 436 bytes are left: the long message begins there.
    assert_eq!(data_lengths(&pair, before), [vec![1000, 436], vec![1452], vec![1112, 20]]);
    assert_eq!(pair.server.numbers_on(0), [0, 1, 2]);
}

#[test]
fn several_packets_at_once_are_equal_segments_for_one_destination() {
    let config = full_sized().with(|c| {
        c.initial_window = Size(100_000);
        c.pacing = false;
        // Packets of two paths alternate, so no two of them can leave together.
        c.path_scheduler = "round_robin".to_owned();
    });
    for (paths, most) in [(1, 1), (1, 2), (1, 3), (1, 10), (1, 64), (2, 10)] {
        let mut pair = Pair::established(paths, &config);
        let now = pair.now;
        for (number, len) in (0..).zip([1452, 1452, 1452, 100, 1452, 700, 1452, 1452, 3000, 9000, 50, 1452]) {
            let message = content(0, number, len);
            pair.client().send(now, SendOptions::on(StreamId(0)), message).expect("room");
        }
        let mut buffer = Vec::new();
        let mut runs = Vec::new();
        while let Some(transmit) = pair.client.endpoint.poll_transmit(now, most, &mut buffer) {
            assert_eq!(transmit.size, buffer.len(), "appended to an empty buffer");
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let count = transmit.size.div_ceil(segment);
            assert!(count <= most && (count == 1) == transmit.segment_size.is_none());
            runs.push(count);
            for packet in buffer.chunks(segment) {
                assert!(packet.len() <= 1480);
                let line = tresse_wire::dissect(packet);
                assert!(line.contains("DATA tsn") && !line.contains("checksum"), "{line}");
                deliver(&mut pair, &transmit, packet);
            }
            buffer.clear();
        }
        pair.pump();
        assert!(runs.iter().sum::<usize>() >= 15, "{runs:?}");
        assert_eq!(runs.iter().any(|&run| run > 1), paths == 1 && most > 1, "{runs:?}");
        assert_eq!(pair.server.numbers_on(0), (0..12).collect::<Vec<_>>(), "{most} at once");
    }
}

fn deliver(pair: &mut Pair, transmit: &Transmit, packet: &[u8]) {
    let datagram = tresse_proto::Datagram {
        local: transmit.remote,
        remote: transmit.local,
        encapsulation_port: transmit.encapsulation_port,
        ecn: tresse_proto::Ecn::NotEct,
        payload: Bytes::copy_from_slice(packet),
    };
    pair.server.endpoint.handle_datagram(pair.now, datagram);
}

#[test]
fn a_long_control_chunk_is_not_lost_behind_a_short_packet() {
    let mut pair = Pair::established(1, &full_sized());
    for len in [100, 1_400] {
        let mut body = Vec::new();
        tresse_wire::heartbeat_info_tlv(&vec![7; len], &mut body);
        let payload = pair.packet(true, &[Chunk::Heartbeat(tresse_wire::Heartbeat { body: &body })]);
        let (local, remote) = (address(2, 0), address(1, 0));
        let datagram = tresse_proto::Datagram {
            local,
            remote,
            encapsulation_port: None,
            ecn: tresse_proto::Ecn::NotEct,
            payload,
        };
        pair.server.endpoint.handle_datagram(pair.now, datagram);
    }
    let mut answers = Vec::new();
    let mut buffer = Vec::new();
    while let Some(transmit) = pair.server.endpoint.poll_transmit(pair.now, 8, &mut buffer) {
        let packets = buffer.chunks(transmit.segment_size.unwrap_or(transmit.size));
        answers.extend(packets.map(<[u8]>::len));
        buffer.clear();
    }
    assert_eq!(answers, [12 + 8 + 100, 12 + 8 + 1_400]);
}

#[test]
fn packets_are_appended_to_what_the_buffer_holds() {
    let mut pair = Pair::established(1, &full_sized());
    queue(&mut pair, 2, 1452);
    let mut buffer = b"before".to_vec();
    let transmit = pair.client.endpoint.poll_transmit(pair.now, 8, &mut buffer).expect("two packets");
    assert_eq!((&buffer[..6], buffer.len()), (&b"before"[..], 6 + transmit.size));
    assert_eq!((transmit.size, transmit.segment_size), (2 * 1480, Some(1480)));
}

#[test]
fn a_burst_is_limited_until_the_next_acknowledgement() {
    let config = full_sized().with(|c| {
        c.initial_window = Size(100_000);
        c.pacing = false;
    });
    for (max_burst, expected) in [(4, 4), (1, 1), (0, 20)] {
        let mut pair = Pair::established(1, &config.clone().with(|c| c.max_burst = max_burst));
        let before = pair.wire.len();
        queue(&mut pair, 1, 20 * 1452);
        pair.pump();
        assert_eq!(data_lengths(&pair, before).len(), expected, "Max.Burst {max_burst}");
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 1);
    }
}

#[test]
fn what_a_burst_leaves_follows_at_the_pace_before_any_acknowledgement() {
    let config = full_sized().with(|c| c.initial_window = Size(100_000));
    let mut pair = Pair::established(1, &config);
    let before = pair.wire.len();
    queue(&mut pair, 1, 20 * 1452);
    let begun = pair.now;
    pair.pump();
    assert_eq!(data_lengths(&pair, before).len(), 10);
    let mut seen = 10;
    while seen < 20 {
        let due = pair.client.endpoint.poll_timeout().expect("what is held wakes output");
        assert!(due.since(begun) < Duration::from_millis(20), "no later than half a round trip");
        pair.now = due;
        pair.client.endpoint.handle_timeout(due);
        pair.pump();
        let sent = data_lengths(&pair, before).len();
        assert!(sent <= seen + 10, "{seen} and then {sent}");
        seen = sent;
    }
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 1);
}

#[test]
fn in_both_directions_at_once_sacks_ride_with_data() {
    let mut pair = Pair::established(1, &full_sized());
    let now = pair.now;
    for number in 0..100 {
        pair.client().send(now, SendOptions::default(), content(0, number, 3000)).expect("room");
        pair.server().send(now, SendOptions::default(), content(0, number, 3000)).expect("room");
    }
    pair.run_until(Duration::from_secs(20), |pair| {
        pair.client.received.len() == 100 && pair.server.received.len() == 100
    });
    // `Pair` checks the order within every packet; here there were such packets to check.
    let both = |flight: &&crate::common::Flight| flight.carries(ChunkKind::NR_SACK) && flight.has_data();
    let bundled = pair.wire.iter().filter(both).count();
    assert!(bundled > 30, "{bundled} of {}", pair.wire.len());
}
