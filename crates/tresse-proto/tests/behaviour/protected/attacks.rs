//! Forged packets into a protected association: nothing of them is believed, and nothing ends.

use tresse_proto::{StreamId, Tsn};
use tresse_wire::{
    Abort, Causes, Chunk, Data, DataFlags, Dtls, ErrorChunk, Heartbeat, List, Ppid, Sack, Shutdown, Ssn,
};

use super::*;
use crate::common::{echo, init, packet};

fn unprotected(pair: &mut Pair) -> u64 {
    let now = pair.now;
    pair.server().stats(now).expect("open").discards.unprotected
}

fn unopened(pair: &mut Pair) -> u64 {
    let now = pair.now;
    pair.server().stats(now).expect("open").discards.unopened
}

#[test]
fn whatever_comes_in_the_clear_is_discarded() {
    let mut pair = protected(2, &required());
    transfer(&mut pair, 0, 10);
    let received = pair.server.received.len();
    let data = Data {
        tsn: Tsn(1),
        stream: StreamId(0),
        ssn: Ssn(10),
        ppid: Ppid(4242),
        flags: DataFlags::WHOLE,
        payload: b"forged",
    };
    let none = List::Values(&[]);
    let sack =
        Sack { flags: 0, cumulative_tsn: Tsn(1), a_rwnd: 0, gaps: none, duplicates: List::Values(&[]) };
    let chunks = [
        Chunk::Abort(Abort { tag_reflected: false, causes: Causes::default() }),
        Chunk::Error(ErrorChunk { causes: Causes::default() }),
        Chunk::Data(data),
        Chunk::Sack(sack),
        Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(1) }),
        Chunk::ShutdownAck,
        Chunk::ShutdownComplete { tag_reflected: false },
        Chunk::CookieAck,
        Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] }),
    ];
    for (count, chunk) in chunks.into_iter().enumerate() {
        let before = pair.wire.len();
        let forged = pair.packet(true, &[chunk]);
        pair.inject(true, 0, forged);
        assert_eq!(unprotected(&mut pair), count as u64 + 1, "{chunk:?}");
        assert!(pair.sent_since(before).is_empty(), "{chunk:?} is answered");
    }
    assert_eq!(pair.server.received.len(), received);
    transfer(&mut pair, 10, 10);
}

#[test]
fn tags_of_the_peer_end_nothing() {
    let mut pair = protected(1, &required());
    let tag = pair.tag(false);
    for chunk in [
        Chunk::Abort(Abort { tag_reflected: true, causes: Causes::default() }),
        Chunk::ShutdownComplete { tag_reflected: true },
    ] {
        let forged = pair.packet_with_tag(true, tag, &[chunk]);
        pair.inject(true, 0, forged);
    }
    assert_eq!(unprotected(&mut pair), 2);
    transfer(&mut pair, 0, 10);
}

#[test]
fn nobody_restarts_it() {
    let mut pair = protected(1, &required());
    transfer(&mut pair, 0, 5);
    let (client, server) = (pair.client.endpoint.port(), pair.server.endpoint.port());
    let old: Vec<_> =
        pair.wire.iter().filter(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).cloned().collect();
    // With the same offer as before, and with none.
    let offer = pair.wire[0].chunks()[0];
    let Chunk::Init(first) = offer else { panic!("no INIT") };
    let params: Vec<_> = first.params.iter().flatten().collect();
    let forged = packet(client, server, 0, &[Chunk::Init(init(77, &params))]);
    let before = pair.wire.len();
    pair.inject(true, 0, forged);
    let answers: Vec<_> = pair.sent_since(before).to_vec();
    assert_eq!(answers.iter().map(Flight::kinds).collect::<Vec<_>>(), [[ChunkKind::INIT_ACK]]);
    pair.inject(true, 0, echo(&answers[0].bytes));
    for flight in old {
        pair.inject(true, 0, flight.bytes);
    }
    let discards = pair.server.endpoint.discards().unprotected + unprotected(&mut pair);
    assert_eq!(discards, 2, "the new cookie and the old one");
    assert!(!pair.server.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
    transfer(&mut pair, 5, 10);
}

#[test]
fn every_bit_of_a_record_is_covered() {
    let mut pair = protected(1, &required());
    let before = pair.wire.len();
    pair.send(0, 0, 40);
    pair.run_for(ms(300));
    let sent = pair.sent_since(before).iter().find(|flight| flight.to_server).expect("a record").clone();
    let received = pair.server.received.len();
    let genuine = match sent.chunks()[0] {
        Chunk::Dtls(Dtls { record, .. }) => record.to_vec(),
        ref chunk => panic!("{chunk:?}"),
    };
    let already = unopened(&mut pair);
    for bit in 0..genuine.len() * 8 {
        let mut record = genuine.clone();
        record[bit / 8] ^= 1 << (bit % 8);
        let forged = pair.packet(true, &[Chunk::Dtls(Dtls { restart: false, record: &record })]);
        pair.inject(true, 0, forged);
    }
    // And the record itself, again, and as one for a restart.
    for restart in [false, true] {
        let again = pair.packet(true, &[Chunk::Dtls(Dtls { restart, record: &genuine })]);
        pair.inject(true, 0, again);
    }
    assert_eq!(unopened(&mut pair) - already, genuine.len() as u64 * 8 + 2);
    assert_eq!(pair.server.received.len(), received);
    assert_eq!(newest(&mut pair)[1].replayed, 1);
    transfer(&mut pair, 1, 20);
}

#[test]
fn records_of_strangers_are_not_answered() {
    let mut pair = protected(1, &required());
    let record = [0x28; 40];
    for tag in [1, 99] {
        let before = pair.wire.len();
        let stray = pair.packet_with_tag(true, tag, &[Chunk::Dtls(Dtls { restart: false, record: &record })]);
        pair.inject(true, 0, stray);
        assert!(pair.sent_since(before).is_empty());
    }
    assert_eq!(pair.server.endpoint.discards().out_of_the_blue, 2);
}

#[test]
fn user_data_forged_before_there_are_keys_is_noticed() {
    // Somebody on the path adds a message in the clear, in the name of the client, far ahead of what it sends.
    let mut pair = Pair::unlike(1, &of_role(KeyRole::Client), &of_role(KeyRole::Server), 1);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::DATA)).then_some(ms(10)));
    pair.connect();
    pair.run_for(ms(100));
    let tsn = pair.wire.iter().flat_map(Flight::chunks).find_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    });
    let forged = Data {
        tsn: Tsn(tsn.expect("the client's first key message").0 + 3),
        stream: StreamId(0),
        ssn: Ssn(3),
        ppid: Ppid(4243),
        flags: DataFlags::WHOLE,
        payload: &[1],
    };
    let forged = pair.packet(true, &[Chunk::Data(forged)]);
    pair.inject(true, 0, forged);
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(ms(5_000));
    let fault = |event: &Event| matches!(event, Event::Closed(tresse_proto::CloseReason::PeerFault(_)));
    assert!(pair.server.events.iter().any(fault), "{:?}", pair.server.events);
}
