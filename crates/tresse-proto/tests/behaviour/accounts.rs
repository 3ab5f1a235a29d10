//! Accounts of single messages, and of the end of an association: TSNs, errors of the peer, reasons, and
//! what was not delivered.

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{
    AssociationConfig, CauseCode, CloseReason, Event, Part, Reliability, SendOptions, StreamId, Tsn,
    Undelivered,
};
use tresse_wire::{Cause, Causes, Chunk, ChunkKind, ErrorChunk};

use crate::common::{Network, Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn all_lost() -> Network {
    Box::new(|_| None)
}

/// TSNs of the DATA that left from the client since `from`, with whether it asks for a report at once.
fn data_since(pair: &Pair, from: usize) -> Vec<(Tsn, bool)> {
    let sent = pair.sent_since(from).iter().filter(|flight| flight.to_server);
    let chunks = sent.flat_map(|flight| {
        let data = flight.chunks().into_iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some((data.tsn, data.flags.immediate)),
            Chunk::IData(data) => Some((data.tsn, data.flags.immediate)),
            _ => None,
        });
        data.collect::<Vec<_>>()
    });
    chunks.collect()
}

fn context(context: u64) -> SendOptions {
    SendOptions::default().with(|o| o.context = context)
}

fn give(pair: &mut Pair, options: SendOptions, number: u32, len: usize) {
    let now = pair.now;
    let message = content(options.stream.0, number, len);
    pair.client().send(now, options, message).expect("room in the send buffer");
    pair.pump();
}

fn given_up(event: &Event) -> Option<(u64, bool, Vec<u8>)> {
    match event {
        Event::Abandoned { context, sent, payload, .. } => {
            Some((*context, *sent, payload.clone().into_bytes().to_vec()))
        }
        _ => None,
    }
}

fn closed(events: &[Event]) -> &CloseReason {
    match events.last() {
        Some(Event::Closed(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// Messages as (context, whether sent, payload).
fn shown(messages: Vec<Undelivered>) -> Vec<(u64, bool, Vec<u8>)> {
    messages
        .into_iter()
        .map(|message| (message.context, message.sent, message.payload.into_bytes().to_vec()))
        .collect()
}

#[test]
fn a_message_says_by_which_tsn_it_came() {
    for interleaving in [false, true] {
        let config = AssociationConfig::default().with(|c| {
            c.interleaving = interleaving;
            c.mtu_discovery = false;
        });
        let mut pair = Pair::established(1, &config);
        let before = pair.wire.len();
        for (number, len) in [(1, 100), (2, 4000), (3, 100)] {
            pair.send(0, number, len);
            pair.run_for(ms(300));
        }
        let sent: Vec<Tsn> = data_since(&pair, before).iter().map(|&(tsn, _)| tsn).collect();
        assert_eq!(sent.len(), 5);
        let told: Vec<Tsn> = pair.server.received.iter().map(|message| message.tsn).collect();
        assert_eq!(told, [sent[0], sent[1], sent[4]], "that of its first chunk");
        assert_eq!(pair.server().cumulative_tsn(), sent[4]);
        pair.server.received.clear();
        let now = pair.now;
        pair.client().reset_association(now).expect("negotiated");
        pair.run_for(ms(500));
        let before = pair.wire.len();
        pair.send(0, 4, 100);
        pair.run_for(ms(300));
        assert_eq!(data_since(&pair, before)[0].0, pair.server.received[0].tsn, "numbered anew");
    }
}

#[test]
fn a_part_says_by_which_tsn_it_begins() {
    let config = AssociationConfig::default().with(|c| {
        c.partial_delivery_point = Size(2000);
        c.mtu_discovery = false;
    });
    let mut pair = Pair::established(1, &config);
    let before = pair.wire.len();
    pair.send(0, 1, 20_000);
    pair.run_for(ms(1000));
    let sent: Vec<Tsn> = data_since(&pair, before).iter().map(|&(tsn, _)| tsn).collect();
    let mut next = 0;
    for part in &pair.server.received {
        assert_eq!(part.tsn, sent[next], "{:?}", part.part);
        next += part.payload.pieces().len();
    }
    assert!(pair.server.received.len() > 1 && pair.server.received[0].part == Part::First);
    assert_eq!(next, sent.len());
}

#[test]
fn a_report_is_asked_for_with_the_end_of_a_message_that_wants_it() {
    let config = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::established(1, &config);
    pair.send(0, 1, 100);
    pair.run_for(ms(1000));
    let (start, before) = (pair.now, pair.wire.len());
    give(&mut pair, SendOptions::default().with(|o| o.immediate = true), 2, 100);
    pair.run_for(ms(1000));
    assert_eq!(data_since(&pair, before).iter().map(|chunk| chunk.1).collect::<Vec<_>>(), [true]);
    let report = pair.sent_since(before).iter().find(|flight| !flight.to_server).expect("a SACK");
    assert_eq!(report.sent - start, ms(10), "without the delay of a report");
    let before = pair.wire.len();
    give(&mut pair, SendOptions::default().with(|o| o.immediate = true), 3, 4000);
    pair.run_for(ms(1000));
    assert_eq!(
        data_since(&pair, before).iter().map(|chunk| chunk.1).collect::<Vec<_>>(),
        [false, false, true]
    );
}

#[test]
fn an_error_of_the_peer_is_told_with_its_causes() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let causes = [Cause::InvalidStream(StreamId(7)), Cause::OutOfResource];
    let error = Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) });
    let packet = pair.packet(false, &[error]);
    pair.inject(false, 0, packet);
    let mut written = Vec::new();
    Causes::Values(&causes).write(&mut written).expect("short");
    let expected = Event::PeerError { code: CauseCode::INVALID_STREAM, causes: written.into() };
    assert_eq!(pair.client.events, [expected]);
    assert!(pair.client().is_established());
}

#[test]
fn the_reason_of_an_abort_is_the_applications_own() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    let reason = [0xff, 0, 1, 0x80];
    pair.client().abort(now, reason);
    pair.run_for(ms(50));
    assert_eq!(closed(&pair.client.events).code(), CauseCode::USER_ABORT);
    let CloseReason::AbortedByPeer { code, causes, .. } = closed(&pair.server.events) else { panic!() };
    assert_eq!(*code, CauseCode::USER_ABORT);
    assert_eq!(causes[..], [0, 12, 0, 8, 0xff, 0, 1, 0x80]);
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.client().abort(now, "é".repeat(1000));
    pair.run_for(ms(50));
    let CloseReason::AbortedByPeer { causes, .. } = closed(&pair.server.events) else { panic!() };
    assert_eq!(causes[4..], *"é".repeat(240).as_bytes(), "480 bytes, in whole characters");
}

#[test]
fn an_end_that_nobody_gave_a_cause_for_has_none() {
    let config = AssociationConfig::default().with(|c| c.association_max_retrans = 1);
    let mut pair = Pair::established(1, &config);
    pair.network = all_lost();
    pair.send(0, 1, 100);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(closed(&pair.client.events), &CloseReason::PathsLost);
    assert_eq!(closed(&pair.client.events).code(), CauseCode(0));
    let fault = CloseReason::PeerFault("for instance");
    assert_eq!(fault.code(), CauseCode::PROTOCOL_VIOLATION);
}

#[test]
fn what_is_given_up_comes_back() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.network = all_lost();
    let short = |context| {
        SendOptions::default().with(|o| {
            o.reliability = Reliability::Lifetime(ms(300));
            o.context = context;
        })
    };
    give(&mut pair, short(1), 1, 100);
    let window = pair.path(0).cwnd;
    give(&mut pair, SendOptions::default(), 2, 2 * window);
    give(&mut pair, short(3), 3, 200);
    pair.run_for(ms(3000));
    let given_up: Vec<_> = pair.client.events.iter().filter_map(given_up).collect();
    let expected = [(3, false, content(0, 3, 200).to_vec()), (1, true, content(0, 1, 100).to_vec())];
    assert_eq!(given_up, expected);
}

#[test]
fn what_was_not_delivered_comes_back_after_the_end() {
    for interleaving in [false, true] {
        let config = AssociationConfig::default().with(|c| {
            c.interleaving = interleaving;
            c.mtu_discovery = false;
            c.association_max_retrans = 1;
        });
        let mut pair = Pair::established(1, &config);
        give(&mut pair, context(1), 1, 100);
        pair.run_for(ms(1000));
        pair.network = all_lost();
        let window = pair.path(0).cwnd;
        give(&mut pair, context(2), 2, 100);
        give(&mut pair, context(3), 3, 2 * window);
        give(&mut pair, context(4), 4, 300);
        give(&mut pair, SendOptions::on(StreamId(5)).with(|o| o.unordered = true), 5, 50);
        assert_eq!(pair.client().undelivered(), [], "it goes on");
        pair.run_for(Duration::from_secs(60));
        assert_eq!(closed(&pair.client.events), &CloseReason::PathsLost);
        let bytes = |stream, number, len| content(stream, number, len).to_vec();
        let mut left = shown(pair.client().undelivered());
        left.sort_by_key(|message| message.0);
        let expected = [
            (0, interleaving, bytes(5, 5, 50)),
            (2, true, bytes(0, 2, 100)),
            (3, true, bytes(0, 3, 2 * window)),
            (4, false, bytes(0, 4, 300)),
        ];
        assert_eq!(left.len(), expected.len());
        for (left, expected) in left.iter().zip(&expected) {
            let sent = left.1 == expected.1 || left.0 == 0;
            assert!(left.0 == expected.0 && sent && left.2 == expected.2, "message {}", expected.0);
        }
    }
}

#[test]
fn a_graceful_end_leaves_nothing_behind() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    give(&mut pair, context(1), 1, 5000);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(1000));
    assert_eq!(closed(&pair.client.events), &CloseReason::Graceful);
    assert_eq!(pair.client().undelivered(), []);
}

#[test]
fn what_an_acknowledgement_has_not_reached_of_a_message_comes_back() {
    let config = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::established(1, &config);
    pair.lose(ChunkKind::DATA, 1);
    give(&mut pair, context(7), 1, 2904);
    pair.run_for(ms(30));
    let now = pair.now;
    pair.client().abort(now, "enough");
    let left = shown(pair.client().undelivered());
    assert_eq!(left, [(7, true, content(0, 1, 2904)[..1452].to_vec())], "the first of two chunks");
}

/// Whatever the policy, and whether or not it has an effect with this peer.
#[test]
fn a_context_comes_back_from_a_peer_without_partial_reliability() {
    let plain = AssociationConfig::default().with(|c| c.partial_reliability = false);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &plain, 1).settled();
    pair.network = all_lost();
    let policies = [
        Reliability::Full,
        Reliability::Lifetime(Duration::from_secs(60)),
        Reliability::Retransmissions(1),
        Reliability::Priority(1),
    ];
    for (number, policy) in (1..).zip(policies) {
        give(&mut pair, context(number.into()).with(|o| o.reliability = policy), number, 100);
    }
    let now = pair.now;
    pair.client().abort(now, "enough");
    let left = shown(pair.client().undelivered());
    assert_eq!(
        left.iter().map(|message| (message.0, message.1)).collect::<Vec<_>>(),
        [(1, true), (2, true), (3, true), (4, true)]
    );
}

#[test]
fn messages_of_a_set_up_that_fails_come_back() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.network = all_lost();
    pair.connect();
    give(&mut pair, context(9), 1, 100);
    let now = pair.now;
    pair.client().abort(now, "enough");
    assert_eq!(shown(pair.client().undelivered()), [(9, false, content(0, 1, 100).to_vec())]);
}
