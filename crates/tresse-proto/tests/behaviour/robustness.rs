//! Whatever arrives: nothing panics, nothing grows without bound, and an association either goes on or ends
//! with a reason.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, Datagram, Ecn, Event, Instant, Ppid, SendOptions, Ssn, StreamId, Tsn};
use tresse_wire::{
    Abort, Causes, Chunk, ChunkKind, CookieEcho, Data, DataFlags, ErrorChunk, GapBlock, Heartbeat, Init,
    List, NrSack, Params, Sack, Shutdown,
};

use crate::common::{Dice, Flight, PORT, Pair, address, content, packet};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Whether both sides are still open; if not, each that is closed has said why.
fn goes_on(pair: &mut Pair) -> bool {
    let (client, server) = (pair.client().state_name(), pair.server().state_name());
    for (state, side) in [(client, &pair.client), (server, &pair.server)] {
        let closed = side.events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        assert_eq!(closed, usize::from(state == "CLOSED"), "{state}: {:?}", side.events);
    }
    client == "ESTABLISHED" && server == "ESTABLISHED"
}

/// What an association holds stays within its buffers.
fn check_bounds(pair: &mut Pair) {
    let now = pair.now;
    let stats = [pair.client().stats(now), pair.server().stats(now)];
    for stats in stats.iter().flatten() {
        assert!(stats.send_buffer_used <= 1 << 20 && stats.receive_buffer_used <= 2 << 20, "{stats:?}");
    }
}

/// A packet of random valid chunks, whose numbers are near those in use.
fn random_chunks(dice: &mut Dice, pair: &Pair, to_server: bool) -> Bytes {
    let near = |dice: &mut Dice, tsn: Tsn| Tsn(tsn.0.wrapping_add(dice.below(40) as u32).wrapping_sub(10));
    let mut tsns = [Tsn(0), Tsn(0)];
    for chunk in pair.wire[..2].iter().flat_map(|flight| flight.chunks()) {
        match chunk {
            Chunk::Init(init) => tsns[0] = init.initial_tsn,
            Chunk::InitAck(init) => tsns[1] = init.initial_tsn,
            _ => {}
        }
    }
    let [theirs, ours] = if to_server { tsns } else { [tsns[1], tsns[0]] };
    let payload = vec![7; 1 + dice.below(1000) as usize];
    let body: Vec<u8> = (0..dice.below(40)).map(|_| dice.below(256) as u8).collect();
    let block = |dice: &mut Dice| {
        let start = 1 + dice.below(12) as u16;
        GapBlock { start, end: start + dice.below(6) as u16 }
    };
    let gaps: Vec<GapBlock> = (0..dice.below(4)).map(|_| block(dice)).collect();
    let more: Vec<GapBlock> = (0..dice.below(4)).map(|_| block(dice)).collect();
    let duplicates = vec![near(dice, ours); dice.below(3) as usize];
    let a_rwnd = [0, 1, 1500, 100_000, u32::MAX][dice.below(5) as usize];
    let flags = DataFlags {
        immediate: dice.hits(0.2),
        unordered: dice.hits(0.3),
        beginning: dice.hits(0.7),
        ending: dice.hits(0.7),
    };
    let unknown = [0x3e_u8, 0x7e, 0xbe, 0xfe][dice.below(4) as usize];
    let unknown = [unknown, dice.below(256) as u8, 0, 4 + 4, 1, 2, 3, 4];
    let mut chunks = Vec::new();
    for _ in 0..=dice.below(3) {
        chunks.push(match dice.below(40) {
            0..14 => Chunk::Data(Data {
                tsn: near(dice, theirs),
                stream: StreamId(dice.below(12) as u16),
                ssn: Ssn(dice.below(4) as u16),
                ppid: Ppid(0),
                flags,
                payload: &payload,
            }),
            14..22 => Chunk::Sack(Sack {
                flags: dice.below(256) as u8,
                cumulative_tsn: near(dice, ours),
                a_rwnd,
                gaps: List::Values(&gaps),
                duplicates: List::Values(&duplicates),
            }),
            22..30 => Chunk::NrSack(NrSack {
                flags: dice.below(256) as u8,
                cumulative_tsn: near(dice, ours),
                a_rwnd,
                renegable: List::Values(&gaps),
                non_renegable: List::Values(&more),
                duplicates: List::Values(&duplicates),
            }),
            30 => Chunk::Heartbeat(Heartbeat { body: &body }),
            31 => Chunk::HeartbeatAck(Heartbeat { body: &body }),
            32 => Chunk::Error(ErrorChunk { causes: Causes::Wire(&body) }),
            33 => Chunk::CookieAck,
            34 => Chunk::CookieEcho(CookieEcho { cookie: &body }),
            35 => Chunk::Init(Init {
                initiate_tag: 5,
                a_rwnd,
                outbound_streams: 1,
                inbound_streams: 1,
                initial_tsn: theirs,
                params: Params::Wire(&body),
            }),
            36 if dice.hits(0.1) => Chunk::Shutdown(Shutdown { cumulative_tsn: near(dice, ours) }),
            37 if dice.hits(0.1) => Chunk::ShutdownAck,
            38 if dice.hits(0.05) => {
                Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Wire(&body) })
            }
            _ => Chunk::parse(&unknown).expect("any type can be read"),
        });
    }
    pair.packet(to_server, &chunks)
}

#[test]
fn random_valid_chunks() {
    let mut survivors = 0;
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let config = if seed % 3 == 0 {
            AssociationConfig::preset("rfc9260").expect("a preset")
        } else {
            AssociationConfig::default()
        };
        let mut pair = Pair::established(2, &config);
        for round in 0..60 {
            let now = pair.now;
            let _ = pair.client().send(now, SendOptions::on(StreamId(round % 10)), content(0, 0, 2500));
            let to_server = dice.hits(0.5);
            let path = dice.below(2) as u8;
            let bytes = random_chunks(&mut dice, &pair, to_server);
            pair.inject(to_server, path, bytes);
            pair.run_for(ms(dice.below(100)));
            check_bounds(&mut pair);
        }
        pair.run_for(Duration::from_secs(400));
        survivors += u32::from(goes_on(&mut pair));
    }
    println!("{survivors} associations went on");
}

#[test]
fn acknowledgements_of_nothing_and_noise_leave_a_transfer_unharmed() {
    // Everything that a peer in its senses could also send late, twice or by mistake.
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let mut pair = Pair::established(2, &AssociationConfig::default());
        for number in 0..200 {
            pair.send(0, number, 1500);
            // Copies of old packets of either side, on either path.
            let old = pair.wire[dice.below(pair.wire.len() as u64) as usize].clone();
            pair.inject(old.to_server, dice.below(2) as u8, old.bytes);
            // Random bytes, with a right checksum at times.
            let mut noise: Vec<u8> = (0..dice.below(200)).map(|_| dice.below(256) as u8).collect();
            if noise.len() >= 12 && dice.hits(0.5) {
                tresse_wire::seal(&mut noise);
            }
            pair.inject(dice.hits(0.5), dice.below(2) as u8, noise.into());
            pair.run_for(ms(dice.below(20)));
        }
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 200);
        assert_eq!(pair.server.numbers_on(0), (0..200).collect::<Vec<_>>());
        assert!(goes_on(&mut pair), "seed {seed}: {:?} {:?}", pair.client.events, pair.server.events);
    }
}

#[test]
fn mutated_packets_of_the_association_itself() {
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let mut pair = Pair::established(2, &AssociationConfig::default());
        // What is unknown now is reported whole.
        pair.may_fragment = true;
        for number in 0..40 {
            let now = pair.now;
            let _ = pair.client().send(now, SendOptions::default(), content(0, number, 2000));
            let _ = pair.server().send(now, SendOptions::default(), content(0, number, 300));
            pair.run_for(ms(dice.below(30)));
            let old = pair.wire[dice.below(pair.wire.len() as u64) as usize].clone();
            let mut bytes = old.bytes.to_vec();
            for _ in 0..=dice.below(3) {
                // Mostly behind the common header, so that the packet still finds its association.
                let position = if dice.hits(0.9) { 12 + dice.below(40) } else { dice.below(1400) };
                if let Some(byte) = bytes.get_mut(position as usize) {
                    *byte = dice.below(256) as u8;
                }
            }
            if dice.hits(0.3) {
                bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize);
            }
            if bytes.len() >= 12 {
                tresse_wire::seal(&mut bytes);
            }
            pair.inject(old.to_server, dice.below(2) as u8, bytes.into());
            check_bounds(&mut pair);
        }
        pair.run_for(Duration::from_secs(300));
        goes_on(&mut pair);
    }
}

#[test]
fn mutated_packets_of_the_handshake() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut pair = Pair::with_seed(2, &AssociationConfig::default(), seed as u8);
        let mut mutate = Dice::new(seed + 1000);
        pair.network = Box::new(move |_| Some(ms(10)));
        pair.connect();
        for _ in 0..20 {
            pair.run_for(ms(dice.below(15)));
            let Some(last) = pair.wire.last().cloned() else { continue };
            let mut bytes = last.bytes.to_vec();
            for _ in 0..=mutate.below(4) {
                let position = mutate.below(bytes.len() as u64) as usize;
                bytes[position] = mutate.below(256) as u8;
            }
            if mutate.hits(0.8) {
                tresse_wire::seal(&mut bytes);
            }
            pair.inject(last.to_server, 0, bytes.into());
        }
        pair.run_for(Duration::from_secs(300));
        let state = pair.client().state_name();
        assert!(["ESTABLISHED", "CLOSED"].contains(&state), "seed {seed}: {state}");
        assert_eq!(
            state == "CLOSED",
            pair.client.events.iter().any(|event| matches!(event, Event::Closed(_)))
        );
    }
}

#[test]
fn a_flood_of_heartbeats_is_answered_in_bounds() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let before = pair.wire.len();
    let heartbeat = pair.packet(true, &[Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] }); 90]);
    for _ in 0..100 {
        // Without a chance to answer in between.
        let datagram = tresse_proto::Datagram {
            local: crate::common::address(2, 0),
            remote: crate::common::address(1, 0),
            encapsulation_port: None,
            ecn: tresse_proto::Ecn::NotEct,
            payload: heartbeat.clone(),
        };
        pair.server.endpoint.handle_datagram(pair.now, datagram);
    }
    pair.pump();
    let sent: usize = pair.sent_since(before).iter().map(|flight| flight.bytes.len()).sum();
    assert!(sent <= heartbeat.len() * 2, "{sent} bytes for {}", 100 * heartbeat.len());
    assert!(pair.server().is_established());
}

#[test]
fn a_heartbeat_longer_than_a_packet_is_answered_alone_in_ip_fragments() {
    let small = AssociationConfig::default().with(|c| c.mtu = Size(576));
    let mut pair = Pair::unlike(1, &small, &small, 1).settled();
    pair.may_fragment = true;
    let before = pair.wire.len();
    let mut body = vec![0; 1200];
    body[..4].copy_from_slice(&[0, 1, 4, 176]);
    let (now, heartbeat) = (pair.now, Chunk::Heartbeat(Heartbeat { body: &body }));
    let large = pair.packet(true, &[heartbeat, Chunk::Heartbeat(Heartbeat { body: &body[..600] })]);
    pair.server().send(now, SendOptions::default(), content(0, 1, 5000)).expect("room");
    pair.inject(true, 0, large);
    pair.run_for(ms(500));
    assert_eq!(pair.client.numbers_on(0), [1]);
    let (answers, others): (Vec<&Flight>, Vec<&Flight>) =
        pair.sent_since(before).iter().partition(|flight| flight.bytes.len() > 556);
    assert!(others.len() > 10);
    let answers: Vec<_> =
        answers.iter().map(|flight| (flight.chunks(), flight.transmit.may_fragment)).collect();
    let answer = |len| (vec![Chunk::HeartbeatAck(Heartbeat { body: &body[..len] })], true);
    assert_eq!(answers, [answer(1200), answer(600)]);
}

#[test]
fn tiny_chunks_cannot_fill_the_memory() {
    let config = AssociationConfig::default().with(|c| c.receive_buffer = Size(20_000));
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &config, 1).settled();
    pair.server.reads = false;
    let init = pair.wire[0].clone();
    let Some(Chunk::Init(init)) = init.chunks().into_iter().next() else { panic!("INIT comes first") };
    let flags = DataFlags { beginning: true, ending: true, ..DataFlags::default() };
    for number in 0..5000 {
        // Every second TSN is missing: nothing of it can be delivered in order, and each is a gap of its own.
        let data = Data {
            tsn: init.initial_tsn.advance(2 * number + 1),
            stream: StreamId(0),
            ssn: Ssn(2 * number as u16 + 1),
            ppid: Ppid(0),
            flags,
            payload: b"x",
        };
        pair.inject(true, 0, pair.packet(true, &[Chunk::Data(data)]));
    }
    let now = pair.now;
    let stats = pair.server().stats(now).expect("open");
    let chunks = stats.receive_buffer_used / 17;
    assert!(chunks <= 2 * 20_000 / 64, "{chunks} chunks");
    assert!(stats.discards.beyond_window > 4000);
}

#[test]
fn a_stranger_with_random_bytes_gets_nowhere() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let mut dice = Dice::new(9);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..dice.below(120)).map(|_| dice.below(256) as u8).collect();
        if bytes.len() >= 12 {
            let chunk = Bytes::copy_from_slice(&bytes[12..]);
            bytes = packet(700, crate::common::PORT, 0, &[]).to_vec();
            bytes.extend_from_slice(&chunk);
            tresse_wire::seal(&mut bytes);
        }
        pair.inject(true, 0, bytes.into());
    }
    assert!(pair.server.events.is_empty());
    assert_eq!(pair.server.endpoint.poll_timeout(), None);
}

#[test]
fn answers_beyond_what_may_wait_are_counted() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let heartbeats = vec![Chunk::Heartbeat(Heartbeat { body: b"" }); 100];
    let flood = pair.packet(true, &heartbeats);
    let before = pair.wire.len();
    pair.inject(true, 0, flood);
    let answers = pair.sent_since(before).iter().flat_map(Flight::kinds);
    let answered = answers.filter(|&kind| kind == ChunkKind::HEARTBEAT_ACK).count() as u64;
    let now = pair.now;
    let unsent = pair.server().stats(now).expect("open").discards.unsent_answer;
    assert!(unsent > 0, "a flood is answered in part");
    assert_eq!(answered + unsent, 100);

    let mut server = Pair::new(1, &AssociationConfig::default()).server.endpoint;
    for tag in 1..=300 {
        let payload = packet(700, PORT, 0, &[Chunk::Init(crate::common::init(tag, &[]))]);
        let (local, remote) = (address(2, 0), address(1, 0));
        let datagram = Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload };
        server.handle_datagram(Instant::ZERO, datagram);
    }
    let sent = std::iter::from_fn(|| server.poll_transmit(Instant::ZERO, 1, &mut Vec::new())).count() as u64;
    assert!(sent < 300, "strangers are answered in part");
    assert_eq!(sent + server.discards().unsent_answer, 300);
}
