//! I-DATA (RFC 8260): when it is spoken, what is refused, and that nothing is lost by it.

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, CloseReason, Event, SendOptions, StreamId};
use tresse_wire::{Chunk, ChunkKind, Data, DataFlags, IData, Mid, Param, Ppid, PpidOrFsn, Ssn, Tsn};

use crate::common::{Dice, Pair, aborted_for, content};

fn interleaving(offered: bool) -> AssociationConfig {
    AssociationConfig::default().with(|c| c.interleaving = offered)
}

fn listed(pair: &Pair, kind: ChunkKind) -> bool {
    pair.wire.iter().filter(|flight| flight.carries(kind)).flat_map(|flight| flight.chunks()).any(|chunk| {
        let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { return false };
        init.params.iter().flatten().any(
            |param| matches!(param, Param::SupportedExtensions(kinds) if kinds.contains(&ChunkKind::I_DATA.0)),
        )
    })
}

#[test]
fn i_data_is_spoken_when_both_offer_it_and_data_otherwise() {
    for (client, server) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pair = Pair::unlike(1, &interleaving(client), &interleaving(server), 1).settled();
        assert_eq!((listed(&pair, ChunkKind::INIT), listed(&pair, ChunkKind::INIT_ACK)), (client, server));
        let before = pair.wire.len();
        pair.send(2, 0, 5_000);
        let now = pair.now;
        pair.server().send(now, SendOptions::on(StreamId(1)), content(1, 0, 5_000)).expect("room");
        pair.run_for(Duration::from_secs(1));
        assert_eq!((pair.server.numbers_on(2), pair.client.numbers_on(1)), (vec![0], vec![0]));
        let both = client && server;
        let (spoken, other) =
            if both { (ChunkKind::I_DATA, ChunkKind::DATA) } else { (ChunkKind::DATA, ChunkKind::I_DATA) };
        for to_server in [true, false] {
            let sent: Vec<_> =
                pair.sent_since(before).iter().filter(|flight| flight.to_server == to_server).collect();
            assert!(sent.iter().any(|flight| flight.carries(spoken)), "{client} {server}");
            assert!(!sent.iter().any(|flight| flight.carries(other)), "{client} {server}");
        }
    }
}

#[test]
fn full_packets_stay_as_large_as_they_were() {
    let payload = |interleaved: bool| {
        let mut pair = Pair::established(1, &interleaving(interleaved));
        pair.send(0, 0, 60_000);
        pair.run_for(Duration::from_secs(1));
        let largest = pair.wire.iter().map(|flight| flight.bytes.len()).max().expect("packets");
        let payloads = pair.wire.iter().flat_map(|flight| flight.chunks()).filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.payload.len()),
            Chunk::IData(data) => Some(data.payload.len()),
            _ => None,
        });
        let payload = payloads.max().expect("data");
        (largest, payload)
    };
    assert_eq!(payload(false), (1480, 1452));
    assert_eq!(payload(true), (1480, 1448));
}

#[test]
fn the_chunk_that_was_not_agreed_on_ends_the_association() {
    for agreed in [true, false] {
        let mut pair = Pair::established(1, &interleaving(agreed));
        let tsn = pair
            .wire
            .iter()
            .flat_map(|flight| flight.chunks())
            .find_map(|chunk| match chunk {
                Chunk::Init(init) => Some(init.initial_tsn),
                _ => None,
            })
            .expect("an INIT");
        let (stream, flags, payload) = (StreamId(0), DataFlags::WHOLE, &b"x"[..]);
        let ppid = Ppid(0);
        let chunk = if agreed {
            Chunk::Data(Data { tsn, stream, ssn: Ssn(0), ppid, flags, payload })
        } else {
            Chunk::IData(IData {
                tsn,
                stream,
                mid: Mid(0),
                ppid_or_fsn: PpidOrFsn::Ppid(ppid),
                flags,
                payload,
            })
        };
        let packet = pair.packet(true, &[chunk]);
        pair.inject(true, 0, packet);
        let fault = if agreed {
            "DATA although I-DATA was agreed on"
        } else {
            "I-DATA although it was not agreed on"
        };
        assert_eq!(pair.server.events, [Event::Closed(CloseReason::PeerFault(fault))]);
        pair.run_for(Duration::from_secs(1));
        let told = format!("Protocol Violation: {fault}");
        assert_eq!(aborted_for(&pair.client.events), Some(told.as_str()));
    }
}

#[test]
fn i_data_without_user_data_ends_the_association() {
    let mut pair = Pair::established(1, &interleaving(true));
    let empty = IData {
        tsn: Tsn(1),
        stream: StreamId(0),
        mid: Mid(0),
        ppid_or_fsn: PpidOrFsn::Ppid(Ppid(0)),
        flags: DataFlags::WHOLE,
        payload: &[],
    };
    let packet = pair.packet(true, &[Chunk::IData(empty)]);
    pair.inject(true, 0, packet);
    assert_eq!(pair.server.events, [Event::Closed(CloseReason::PeerFault("DATA without user data"))]);
}

/// Two paths that lose, delay and reorder.
fn rough(pair: &mut Pair, seed: u64) {
    let mut dice = Dice::new(seed);
    pair.network = Box::new(move |flight| {
        let jitter = dice.below(8);
        let delay = if flight.path() == 0 { 10 } else { 25 };
        (!dice.hits(0.03)).then_some(Duration::from_millis(delay + jitter))
    });
}

#[test]
fn nothing_is_lost_doubled_or_out_of_order_over_rough_paths() {
    let schedulers = ["first_come", "round_robin", "priority", "weighted_fair"];
    for (seed, nr_sack) in (1..=8).zip(["everything", "delivered"].into_iter().cycle()) {
        let mut config = interleaving(true);
        config.stream_scheduler = schedulers[seed as usize % schedulers.len()].to_owned();
        config.set("nr_sack", nr_sack).expect("a known value");
        let mut pair = Pair::with_seed(2, &config, seed as u8).settled();
        rough(&mut pair, seed);
        let mut dice = Dice::new(seed + 100);
        let mut next = [0u32; 8];
        for _ in 0..120 {
            let stream = dice.below(4) as u16;
            let unordered = dice.hits(0.3);
            let len = if dice.hits(0.2) { 30_000 } else { 10 + dice.below(2_000) as usize };
            let place = usize::from(stream) + if unordered { 4 } else { 0 };
            let options = SendOptions::on(StreamId(stream)).with(|o| o.unordered = unordered);
            let now = pair.now;
            pair.client().send(now, options, content(stream, next[place], len)).expect("room");
            next[place] += 1;
        }
        pair.run_until(Duration::from_secs(300), |pair| pair.server.received.len() == 120);
        let got = std::mem::take(&mut pair.server.received);
        for unordered in [false, true] {
            pair.server.received =
                got.iter().filter(|message| message.unordered == unordered).cloned().collect();
            for stream in 0..4 {
                let mut numbers = pair.server.numbers_on(stream);
                if unordered {
                    numbers.sort_unstable();
                }
                let count = next[usize::from(stream) + if unordered { 4 } else { 0 }];
                assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "seed {seed}, stream {stream}");
            }
        }
    }
}

#[test]
fn half_messages_that_fill_the_receive_buffer_do_not_stop_the_transfer() {
    let sender = interleaving(true).with(|c| c.stream_scheduler = "round_robin".to_owned());
    let receiver = interleaving(true).with(|c| c.receive_buffer = Size(30_000));
    let mut pair = Pair::unlike(2, &sender, &receiver, 1).settled();
    for stream in 0..8 {
        pair.send(stream, 0, 20_000);
    }
    let mut joiner = tresse_proto::Joiner::default();
    let mut whole = Vec::new();
    let start = pair.now;
    pair.run_until(Duration::from_secs(60), |pair| {
        whole.extend(pair.server.received.drain(..).filter_map(|part| joiner.join(part)));
        whole.len() == 8
    });
    for message in whole {
        assert_eq!(message.payload.into_bytes(), content(message.stream.0, 0, 20_000));
    }
    assert!(pair.now.since(start) < Duration::from_secs(3), "it never waits for a timer to back off");
}
