//! FORWARD TSN: agreed on, sent, lost, repeated, old.

use std::time::Duration;

use tresse_proto::{CloseReason, Direction, Event, Reliability, SendOptions, StreamId, Streams};
use tresse_wire::{Cause, Chunk, ChunkKind, ForwardTsn, IForwardTsn, List, SkippedStream, Tsn};

use super::*;
use crate::common::aborted_for;

#[test]
fn unordered_messages_are_skipped_without_naming_their_stream() {
    let mut pair = established(&[]);
    lose_data(&mut pair, &[1]);
    let before = pair.wire.len();
    for number in 0..6 {
        let options = on(3, Reliability::Retransmissions(0)).with(|o| o.unordered = true);
        offer(&mut pair, options, number, LEN).expect("room");
    }
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.server.numbers_on(3), [0, 2, 3, 4, 5]);
    let named = pair.sent_since(before).iter().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
        Chunk::ForwardTsn(forward) => Some(forward.streams.len()),
        _ => None,
    });
    assert_eq!(named.collect::<Vec<_>>(), [0]);
    assert_at_rest(&mut pair);
}

#[test]
fn a_forward_tsn_is_repeated_until_it_is_acknowledged() {
    for (lost, answers) in [(1, false), (3, false), (1, true), (2, true)] {
        let mut pair = established(&[]);
        let (mut data, mut left) = (0, lost);
        pair.network = Box::new(move |flight| {
            data += usize::from(flight.to_server && flight.has_data());
            // The last message, so that nothing acknowledges later data, and then FORWARD-TSNs or their SACKs.
            let hit = if flight.to_server && flight.has_data() {
                data == 4
            } else if left > 0 && data >= 4 {
                let forward = flight.carries(ChunkKind::FORWARD_TSN);
                let answer = flight.carries(ChunkKind::SACK) || flight.carries(ChunkKind::NR_SACK);
                let hit = if answers { answer } else { forward };
                left -= i32::from(hit);
                hit
            } else {
                false
            };
            (!hit).then_some(ms(10))
        });
        let before = pair.wire.len();
        for number in 0..4 {
            offer(&mut pair, on(1, Reliability::Retransmissions(0)), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(30));
        assert_eq!(pair.server.numbers_on(1), [0, 1, 2]);
        assert_eq!(abandoned(&mut pair).iter().filter(|&&(number, _)| number == 3).count(), 1);
        if !answers {
            assert!(forwards(pair.sent_since(before)) > lost as usize);
        }
        offer(&mut pair, SendOptions::on(StreamId(1)), 4, LEN).expect("room");
        pair.run_for(ms(500));
        assert_eq!(pair.server.numbers_on(1), [0, 1, 2, 4]);
        assert_at_rest(&mut pair);
    }
}

#[test]
fn a_lossy_path_stays_in_use_while_its_forward_tsns_are_answered() {
    // Every message is lost, one at a time, and every FORWARD-TSN arrives: nobody is dead.
    let mut pair = established(&[("heartbeat_interval", "0s")]);
    pair.network = Box::new(|flight| (!(flight.to_server && flight.has_data())).then_some(ms(10)));
    for number in 0..20 {
        offer(&mut pair, on(1, Reliability::Retransmissions(0)), number, LEN).expect("room");
        pair.run_for(Duration::from_secs(130));
    }
    assert_eq!(abandoned(&mut pair).len(), 20);
    assert!(pair.client().is_established());
    assert!(!pair.client.events.iter().any(|event| matches!(event, Event::PathChanged { .. })));
}

#[test]
fn more_streams_than_a_packet_names_are_skipped_one_packet_after_another() {
    let mut pair = established(&[("outbound_streams", "1000")]);
    pair.network = Box::new(|flight| (!(flight.to_server && flight.has_data())).then_some(ms(10)));
    let before = pair.wire.len();
    for stream in 0..1000 {
        let now = pair.now;
        let options = on(stream, Reliability::Retransmissions(0));
        pair.client().send(now, options, content(stream, 0, 40)).expect("room");
    }
    pair.run_for(Duration::from_secs(2));
    pair.network = Box::new(|_| Some(ms(10)));
    for stream in 0..1000 {
        let now = pair.now;
        pair.client().send(now, SendOptions::on(StreamId(stream)), content(stream, 1, 40)).expect("room");
    }
    pair.run_for(Duration::from_secs(10));
    assert!((0..1000).all(|stream| pair.server.numbers_on(stream).last() == Some(&1)));
    let lists = pair.sent_since(before).iter().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
        Chunk::ForwardTsn(forward) => Some(forward.streams.len()),
        _ => None,
    });
    let lists: Vec<usize> = lists.collect();
    assert!(lists.len() >= 3 && lists.iter().all(|&len| len <= 365), "{lists:?}");
    let total = pair.client.events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).count();
    let received = pair.server.received.len();
    assert_eq!(total + received, 2000);
    assert_at_rest(&mut pair);
}

#[test]
fn a_shutdown_does_not_wait_for_what_was_given_up() {
    let mut pair = established(&[]);
    lose_data(&mut pair, &[0, 1, 2]);
    for number in 0..3 {
        offer(&mut pair, on(1, Reliability::Retransmissions(0)), number, LEN).expect("room");
    }
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(abandoned(&mut pair).len(), 3);
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    assert_eq!(pair.server.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
}

#[test]
fn without_the_peers_consent_everything_that_was_sent_is_delivered() {
    for (of_client, of_server) in [("true", "false"), ("false", "true")] {
        let client = config(&[("partial_reliability", of_client)]);
        let server = config(&[("partial_reliability", of_server)]);
        let mut pair = Pair::unlike(1, &client, &server, 1).settled();
        lose_data(&mut pair, &[0, 2, 5]);
        let policies =
            [Reliability::Retransmissions(0), Reliability::Priority(7), Reliability::Lifetime(ms(5))];
        for number in 0..9 {
            let policy = policies[number as usize % 3];
            offer(&mut pair, on(1, policy), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.server.numbers_on(1), (0..9).collect::<Vec<_>>());
        assert_eq!(abandoned(&mut pair), []);
        assert!(!pair.wire.iter().any(|flight| flight.carries(ChunkKind::FORWARD_TSN)));
        assert_at_rest(&mut pair);
    }
}

#[test]
fn a_forward_tsn_that_was_not_agreed_on_is_reported_as_unrecognised() {
    for interleaving in ["true", "false"] {
        is_unrecognised(interleaving);
    }
}

fn is_unrecognised(interleaving: &str) {
    let mut pair = established(&[("partial_reliability", "false"), ("interleaving", interleaving)]);
    let before = pair.wire.len();
    let streams = [SkippedStream::default()];
    let forward = ForwardTsn { cumulative_tsn: Tsn(7), streams: List::Values(&streams) };
    let packet = pair.packet(true, &[Chunk::ForwardTsn(forward)]);
    pair.inject(true, 0, packet);
    let answers = pair.sent_since(before).iter().flat_map(Flight::chunks);
    let reported: Vec<u8> = answers
        .filter_map(|chunk| match chunk {
            Chunk::Error(error) => match error.causes.iter().flatten().next() {
                Some(Cause::UnrecognisedChunk(whole)) => Some(whole[0]),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(reported, [ChunkKind::FORWARD_TSN.0]);
}

#[test]
fn the_forward_tsn_of_the_other_kind_of_data_ends_the_association() {
    let forward = Chunk::ForwardTsn(ForwardTsn { cumulative_tsn: Tsn(7), streams: List::Values(&[]) });
    let i_forward = Chunk::IForwardTsn(IForwardTsn { cumulative_tsn: Tsn(7), messages: List::Values(&[]) });
    for (interleaving, chunk, fault) in [
        ("true", &forward, "FORWARD TSN although I-DATA was agreed on"),
        ("false", &i_forward, "I-FORWARD-TSN although I-DATA was not agreed on"),
    ] {
        let mut pair = established(&[("interleaving", interleaving)]);
        let packet = pair.packet(true, std::slice::from_ref(chunk));
        pair.inject(true, 0, packet);
        assert_eq!(pair.server.events, [Event::Closed(CloseReason::PeerFault(fault))]);
        pair.run_for(ms(1000));
        let cause = format!("Protocol Violation: {fault}");
        assert_eq!(aborted_for(&pair.client.events), Some(cause.as_str()));
    }
}

#[test]
fn an_old_forward_tsn_is_answered_with_a_sack() {
    let mut pair = established(&[]);
    pair.send(0, 0, LEN);
    pair.run_for(ms(500));
    let tsn = copies(&pair.wire)[0].0;
    for old in [tsn, Tsn(tsn.0.wrapping_sub(1000))] {
        let before = pair.wire.len();
        let forward = ForwardTsn { cumulative_tsn: old, streams: List::Values(&[]) };
        let packet = pair.packet(true, &[Chunk::ForwardTsn(forward)]);
        pair.inject(true, 0, packet);
        let sacks = pair.sent_since(before).iter().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
            Chunk::NrSack(sack) => Some(sack.cumulative_tsn),
            _ => None,
        });
        assert_eq!(sacks.collect::<Vec<_>>(), [tsn]);
    }
}

#[test]
fn a_stream_that_lost_messages_can_begin_anew() {
    for unordered in [false, true] {
        let mut pair = established(&[]);
        lose_data(&mut pair, &[1, 3]);
        for number in 0..4 {
            let options = on(1, Reliability::Retransmissions(0)).with(|o| o.unordered = unordered);
            offer(&mut pair, options, number, LEN).expect("room");
        }
        let now = pair.now;
        let streams = Streams::These([StreamId(1)].into());
        pair.client().reset_streams(now, streams, Direction::Outbound).expect("free to ask");
        // They wait for the new numbers, and one of them for longer than it may.
        offer(&mut pair, on(1, Reliability::Lifetime(ms(1))), 4, LEN).expect("room");
        offer(&mut pair, on(1, Reliability::Lifetime(ms(60_000))), 5, LEN).expect("room");
        pair.run_for(Duration::from_secs(10));
        assert_eq!(abandoned(&mut pair), [(4, false), (1, true), (3, true)]);
        assert_eq!(pair.server.numbers_on(1), [0, 2, 5]);
        assert_eq!(pair.server.received.last().map(|message| message.ssn.0), Some(0));
        assert_at_rest(&mut pair);
    }
}

/// RFC 9260 §5.4: nothing but heartbeats and their answers.
#[test]
fn a_path_that_is_not_confirmed_carries_no_forward_tsn() {
    let message = |pair: &mut Pair, priority| {
        let (now, options) = (pair.now, on(1, Reliability::Priority(priority)));
        pair.server().send(now, options, content(1, 1, 1500)).expect("room, or it is made");
    };
    let begin = || {
        let mut pair = Pair::new(2, &config(&[("send_buffer", "2000B")]));
        // The server hears nothing from the client's second address.
        pair.network = Box::new(|flight| (flight.path() == 0 && !flight.has_data()).then_some(ms(10)));
        pair.connect();
        pair.run_for(ms(500));
        message(&mut pair, 7);
        pair.pump();
        let before = pair.wire.len();
        (pair, before)
    };
    let (mut same, before) = begin();
    same.run_for(Duration::from_secs(10));
    let probe = |flight: &&Flight| flight.path() == 1 && !flight.to_server;
    let due = same.sent_since(before).iter().find(probe).expect("path 1 is asked again").sent;

    let (mut pair, _) = begin();
    pair.run_for(due - pair.now - Duration::from_nanos(1));
    let before = pair.wire.len();
    pair.now = due;
    message(&mut pair, 1);
    pair.server.endpoint.handle_timeout(due);
    pair.pump();
    let kinds: Vec<_> = pair.sent_since(before).iter().map(|sent| (sent.path(), sent.kinds())).collect();
    assert_eq!(kinds[0], (1, vec![ChunkKind::HEARTBEAT]), "{kinds:?}");
    assert!(kinds.contains(&(0, vec![ChunkKind::FORWARD_TSN, ChunkKind::DATA])), "{kinds:?}");
}

/// More than half of all SSNs are abandoned at once: the stream goes on behind them.
#[test]
fn a_stream_goes_on_after_more_abandoned_messages_than_half_of_its_numbers() {
    for interleaving in ["false", "true"] {
        let settings = [
            ("initial_window", "2MiB"),
            ("receive_buffer", "4MiB"),
            ("pacing", "false"),
            ("interleaving", interleaving),
        ];
        let mut pair = established(&settings);
        pair.network = Box::new(|flight| (!(flight.to_server && flight.has_data())).then_some(ms(10)));
        let now = pair.now;
        for number in 0..40_000_u32 {
            let options = on(1, Reliability::Lifetime(ms(100)));
            pair.client().send(now, options, content(1, number, 4)).expect("room");
        }
        pair.pump();
        let sent = pair.path(0).chunks_sent;
        assert!(sent > 32_768, "{sent} chunks sent");
        pair.run_for(Duration::from_secs(10));
        pair.network = Box::new(|_| Some(ms(10)));
        pair.run_for(Duration::from_secs(5));
        for number in 0..5 {
            offer(&mut pair, SendOptions::on(StreamId(1)), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.server.numbers_on(1), [0, 1, 2, 3, 4], "interleaving {interleaving}");
    }
}

/// Messages longer than the window are abandoned every few milliseconds, and one FORWARD TSN follows another sooner than its
/// acknowledgement comes.
#[test]
fn forward_tsns_that_overlap_are_acknowledged_one_by_one() {
    let mut pair = Pair::established(1, &AssociationConfig::default().with(|c| c.mtu_discovery = false));
    for number in 0..1000 {
        offer(&mut pair, on(1, Reliability::Lifetime(ms(5))), number, 60_000).expect("room");
        pair.run_for(ms(5));
    }
    assert!(abandoned(&mut pair).len() > 990, "{}", abandoned(&mut pair).len());
    assert_eq!(pair.path(0).timeouts, 0);
    assert!(!pair.client.events.iter().any(|event| matches!(event, Event::PathChanged { .. })));
}
