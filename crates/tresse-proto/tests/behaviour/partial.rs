//! Messages that need not arrive (RFC 3758, RFC 7496): each policy, each place of a loss, and what both
//! sides know in the end.

use std::time::Duration;

use tresse_proto::{
    Abandoned, AssociationConfig, CloseReason, Event, Reliability, SendError, SendOptions, StreamId,
};
use tresse_wire::{Cause, Chunk, ChunkKind, ForwardTsn, List, SkippedStream, Tsn};

use crate::common::{Dice, Flight, Pair, content};

/// What most messages of these tests carry: one to a packet.
const LEN: usize = 1000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Windows so large that whatever is queued leaves at once.
fn config(settings: &[(&str, &str)]) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    let at_once = [("initial_window", "200KiB"), ("max_burst", "0"), ("mtu_discovery", "false")];
    for (name, value) in at_once.iter().chain(settings) {
        config.set(name, value).expect("a sound setting");
    }
    config
}

fn established(settings: &[(&str, &str)]) -> Pair {
    Pair::established(1, &config(settings))
}

/// Queues a message at the client; its number is its context.
fn offer(pair: &mut Pair, options: SendOptions, number: u32, len: usize) -> Result<(), SendError> {
    let now = pair.now;
    let options = SendOptions { context: number.into(), ..options };
    let outcome = pair.client().send(now, options, content(options.stream.0, number, len));
    pair.pump();
    outcome
}

fn on(stream: u16, reliability: Reliability) -> SendOptions {
    SendOptions { reliability, ..SendOptions::on(StreamId(stream)) }
}

/// What the client was told to have given up: number and whether some of it was sent.
fn abandoned(pair: &mut Pair) -> Vec<(u64, bool)> {
    pair.pump();
    let told = pair.client.events.iter().filter_map(|event| match event {
        Event::Abandoned { context, sent, .. } => Some((*context, *sent)),
        _ => None,
    });
    told.collect()
}

/// Loses packets to the server with DATA, by their number from now on.
fn lose_data(pair: &mut Pair, positions: &[usize]) {
    let (positions, mut position) = (positions.to_vec(), 0);
    pair.network = Box::new(move |flight| {
        let counts = flight.to_server && flight.has_data();
        position += usize::from(counts);
        (!counts || !positions.contains(&(position - 1))).then_some(ms(10))
    });
}

/// How often each TSN was sent to the server.
fn copies(flights: &[Flight]) -> Vec<(Tsn, usize)> {
    let mut copies: Vec<(Tsn, usize)> = Vec::new();
    for chunk in flights.iter().filter(|flight| flight.to_server).flat_map(Flight::chunks) {
        if let Chunk::Data(data) = chunk {
            match copies.iter_mut().find(|(tsn, _)| *tsn == data.tsn) {
                Some((_, count)) => *count += 1,
                None => copies.push((data.tsn, 1)),
            }
        }
    }
    copies
}

fn forwards(flights: &[Flight]) -> usize {
    flights.iter().filter(|flight| flight.to_server && flight.carries(ChunkKind::FORWARD_TSN)).count()
}

/// Nothing is left of what was sent, and no timer but those of heartbeats runs.
fn assert_at_rest(pair: &mut Pair) {
    let now = pair.now;
    let stats = pair.client().stats(now).expect("established");
    assert_eq!((stats.send_buffer_used, stats.unsent, stats.flight), (0, 0, 0), "{}", pair.log.join("\n"));
    let own = pair.server().stats(now).expect("established");
    assert_eq!(own.receive_buffer_used, 0);
    let timeouts = |pair: &mut Pair| -> u64 {
        let now = pair.now;
        pair.client().path_stats(now).iter().map(|path| path.timeouts).sum()
    };
    let (before, packets) = (timeouts(pair), pair.wire.len());
    pair.run_for(Duration::from_secs(20));
    assert_eq!(timeouts(pair), before, "T3 ran on for nothing\n{}", pair.log.join("\n"));
    assert!(!pair.sent_since(packets).iter().any(|flight| flight.has_data()));
}

#[test]
fn a_message_that_is_lost_once_too_often_is_skipped_wherever_it_stands() {
    for position in 0..10 {
        let mut pair = established(&[]);
        lose_data(&mut pair, &[position]);
        let before = pair.wire.len();
        for number in 0..10 {
            offer(&mut pair, on(1, Reliability::Retransmissions(0)), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(3));
        let others: Vec<u32> = (0..10).filter(|&number| number as usize != position).collect();
        assert_eq!(pair.server.numbers_on(1), others);
        assert_eq!(abandoned(&mut pair), [(position as u64, true)]);
        assert!(copies(pair.sent_since(before)).iter().all(|&(_, count)| count == 1), "nothing went again");
        assert_at_rest(&mut pair);
        let stats = pair.client().abandoned_on(StreamId(1));
        assert_eq!(stats.retransmissions, Abandoned { unsent: 0, sent: 1 });
        assert_eq!(stats.total(), stats.retransmissions);
    }
}

#[test]
fn a_limit_of_retransmissions_counts_every_sign_of_loss() {
    for (lost, arrives) in [(2, true), (3, false)] {
        let mut pair = established(&[]);
        let mut seen = None;
        let mut left = lost;
        pair.network = Box::new(move |flight| {
            // The first message of these, each time it comes by.
            let first = flight.chunks().iter().find_map(|chunk| match chunk {
                Chunk::Data(data) if flight.to_server => Some(data.tsn),
                _ => None,
            });
            let hit = first.is_some() && *seen.get_or_insert(first) == first && left > 0;
            left -= i32::from(hit);
            (!hit).then_some(ms(10))
        });
        let before = pair.wire.len();
        for number in 0..8 {
            offer(&mut pair, on(0, Reliability::Retransmissions(2)), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(20));
        assert_eq!(copies(pair.sent_since(before))[0].1, 3);
        assert_eq!(pair.server.numbers_on(0).contains(&0), arrives);
        assert_eq!(abandoned(&mut pair).len(), usize::from(!arrives));
        assert_at_rest(&mut pair);
    }
}

#[test]
fn a_lifetime_ends_what_would_be_sent_again_and_nothing_else() {
    // Three missing reports are in after some 20 ms.
    for (lifetime, arrives) in [(ms(5), false), (ms(500), true)] {
        let mut pair = established(&[]);
        lose_data(&mut pair, &[2]);
        for number in 0..10 {
            offer(&mut pair, on(1, Reliability::Lifetime(lifetime)), number, LEN).expect("room");
        }
        pair.run_for(Duration::from_secs(3));
        let expected: Vec<u32> = (0..10).filter(|&number| arrives || number != 2).collect();
        assert_eq!(pair.server.numbers_on(1), expected, "what arrives in time is late for nobody");
        assert_eq!(abandoned(&mut pair).len(), usize::from(!arrives));
        assert_at_rest(&mut pair);
    }
}

#[test]
fn a_lifetime_is_looked_at_again_when_a_lost_chunk_finds_a_window() {
    // Everything is lost, so that after T3 the window holds one packet at a time.
    let mut pair = established(&[]);
    lose_data(&mut pair, &[0, 1, 2, 3]);
    for number in 0..4 {
        offer(&mut pair, on(1, Reliability::Lifetime(ms(1010))), number, 1452).expect("room");
    }
    pair.run_for(Duration::from_secs(10));
    let told = abandoned(&mut pair);
    assert_eq!(pair.server.numbers_on(1), [0], "only one went again in time");
    assert_eq!(told.iter().map(|&(number, _)| number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_at_rest(&mut pair);
}

#[test]
fn what_expires_before_it_is_sent_never_is_and_makes_room_at_once() {
    for peer_speaks in [true, false] {
        let client = config(&[("send_buffer", "34000B")]);
        let server = config(&[
            ("receive_buffer", "8000B"),
            ("partial_reliability", if peer_speaks { "true" } else { "false" }),
        ]);
        let mut pair = Pair::unlike(1, &client, &server, 1).settled();
        pair.server.reads = false;
        for number in 0..8 {
            offer(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
        }
        pair.run_for(ms(500));
        let start = pair.now;
        for number in 8..38 {
            offer(&mut pair, on(1, Reliability::Lifetime(ms(100))), number, LEN).expect("room");
        }
        let refused = offer(&mut pair, SendOptions::on(StreamId(0)), 99, 5000);
        assert!(matches!(refused, Err(SendError::Full { .. })));
        let before = pair.wire.len();
        pair.run_until(ms(200), |pair| pair.client.events.contains(&Event::Writable));
        assert_eq!(pair.now.since(start), ms(100), "the lifetime itself says when");
        pair.server.reads = true;
        pair.run_for(Duration::from_secs(20));
        let told = abandoned(&mut pair);
        // One of them probed the closed window; only a peer that speaks FORWARD-TSN lets it be given up.
        let unsent = told.iter().filter(|(_, sent)| !sent).count();
        assert_eq!((unsent, told.len() - unsent), (29, usize::from(peer_speaks)));
        assert_eq!(pair.server.numbers_on(1).len(), usize::from(!peer_speaks));
        let forwards = forwards(pair.sent_since(before));
        assert_eq!(forwards > 0, peer_speaks, "what had no TSN needs none to be skipped");
        assert_at_rest(&mut pair);
    }
}

#[test]
fn all_of_a_message_is_given_up_when_one_fragment_is() {
    for position in 0..6 {
        for unordered in [false, true] {
            let mut pair = established(&[]);
            offer(&mut pair, SendOptions::on(StreamId(1)), 0, LEN).expect("room");
            pair.run_for(ms(300));
            lose_data(&mut pair, &[position]);
            let options = SendOptions { unordered, ..on(1, Reliability::Retransmissions(0)) };
            offer(&mut pair, options, 1, 6 * 1400).expect("room");
            for number in 2..8 {
                offer(&mut pair, SendOptions::on(StreamId(1)), number, LEN).expect("room");
            }
            pair.run_for(Duration::from_secs(5));
            assert_eq!(pair.server.numbers_on(1), [0, 2, 3, 4, 5, 6, 7], "fragment {position}");
            assert_eq!(abandoned(&mut pair), [(1, true)]);
            assert_at_rest(&mut pair);
        }
    }
}

#[test]
fn a_message_given_up_in_the_middle_is_not_sent_to_its_end() {
    for unordered in [false, true] {
        // A window of three packets, and none of them arrives.
        let mut pair = established(&[("initial_window", "4500B")]);
        lose_data(&mut pair, &[0, 1, 2, 3]);
        let before = pair.wire.len();
        let options = SendOptions { unordered, ..on(1, Reliability::Retransmissions(0)) };
        offer(&mut pair, options, 0, 50_000).expect("room");
        offer(&mut pair, SendOptions::on(StreamId(1)), 1, LEN).expect("room");
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.server.numbers_on(1), [1]);
        assert_eq!(abandoned(&mut pair), [(0, true)]);
        let data = copies(pair.sent_since(before));
        assert!(data.len() < 8, "{} chunks of a message that was given up", data.len());
        let (next, last) = (data[data.len() - 1].0, data[data.len() - 2].0);
        assert_eq!(next.0.wrapping_sub(last.0), 2, "a TSN stands for the end that was never sent");
        assert_at_rest(&mut pair);
    }
}

#[test]
fn a_lifetime_ends_a_message_of_which_every_part_sent_has_arrived() {
    // The peer takes some of it and then no more.
    let mut pair = Pair::unlike(1, &config(&[]), &config(&[("receive_buffer", "8000B")]), 1).settled();
    pair.server.reads = false;
    for number in 0..3 {
        offer(&mut pair, SendOptions::on(StreamId(0)), number, 2000).expect("room");
    }
    offer(&mut pair, on(1, Reliability::Lifetime(ms(400))), 3, 6000).expect("room");
    offer(&mut pair, SendOptions::on(StreamId(1)), 4, 2000).expect("room");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(abandoned(&mut pair), [(3, true)]);
    pair.server.reads = true;
    pair.run_for(Duration::from_secs(30));
    assert_eq!((pair.server.numbers_on(0), pair.server.numbers_on(1)), (vec![0, 1, 2], vec![4]));
    assert_at_rest(&mut pair);
}

#[test]
fn unordered_messages_are_skipped_without_naming_their_stream() {
    let mut pair = established(&[]);
    lose_data(&mut pair, &[1]);
    let before = pair.wire.len();
    for number in 0..6 {
        let options = SendOptions { unordered: true, ..on(3, Reliability::Retransmissions(0)) };
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
fn a_shutdown_goes_on_when_the_last_message_expires_unsent() {
    let mut pair = Pair::unlike(1, &config(&[]), &config(&[("receive_buffer", "3000B")]), 1).settled();
    pair.server.reads = false;
    for number in 0..2 {
        offer(&mut pair, SendOptions::on(StreamId(0)), number, 1452).expect("room");
    }
    pair.run_for(ms(500));
    for number in 2..12 {
        offer(&mut pair, on(1, Reliability::Lifetime(ms(300))), number, LEN).expect("room");
    }
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
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
    let mut pair = established(&[("partial_reliability", "false")]);
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
fn a_more_important_message_takes_the_place_of_the_least_important_that_wait() {
    let (client, server) = (config(&[("send_buffer", "10000B")]), config(&[("receive_buffer", "12000B")]));
    let mut pair = Pair::unlike(1, &client, &server, 1).settled();
    pair.server.reads = false;
    for number in 0..9 {
        offer(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
    }
    pair.run_for(ms(500));
    // Three messages fill the peer's buffer and the next probes its window; a reliable one fills the own buffer.
    let priorities = [9, 9, 5, 9, 1, 9, 5, 5, 9, 0];
    for (number, priority) in (0..).zip(priorities) {
        offer(&mut pair, on(1, Reliability::Priority(priority)), number, LEN).expect("room");
    }
    pair.run_for(ms(500));
    offer(&mut pair, SendOptions::on(StreamId(2)), 0, 3 * LEN).expect("room");
    assert_eq!(abandoned(&mut pair), []);

    offer(&mut pair, on(1, Reliability::Priority(5)), 20, 3 * LEN).expect("room made");
    assert_eq!(abandoned(&mut pair), [(5, false), (8, false), (3, true)]);

    let mut refused = |reliability, len| {
        let outcome = offer(&mut pair, on(1, reliability), 99, len);
        assert!(matches!(outcome, Err(SendError::Full { .. })), "{outcome:?}");
        assert_eq!(abandoned(&mut pair).len(), 3, "nobody goes in vain");
    };
    refused(Reliability::Priority(5), LEN);
    refused(Reliability::Priority(4), 5 * LEN + 1);
    refused(Reliability::Retransmissions(3), LEN);
    refused(Reliability::Lifetime(ms(1000)), LEN);

    offer(&mut pair, SendOptions::on(StreamId(1)), 24, 5 * LEN).expect("room made");
    assert_eq!(abandoned(&mut pair)[3..], [(6, false), (7, false), (20, false)]);
    pair.server.reads = true;
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.server.numbers_on(1), [0, 1, 2, 4, 9, 24]);
    assert_eq!(pair.client().abandoned_on(StreamId(1)).priority, Abandoned { unsent: 5, sent: 1 });
    assert_at_rest(&mut pair);
}

#[test]
fn what_was_sent_goes_last_and_only_when_waiting_messages_do_not_suffice() {
    // Nothing arrives: what was sent stays in the buffer.
    let mut pair = established(&[("send_buffer", "10000B"), ("initial_window", "6000B")]);
    pair.network = Box::new(|flight| (!(flight.to_server && flight.has_data())).then_some(ms(10)));
    for number in 0..10 {
        offer(&mut pair, on(1, Reliability::Priority(3)), number, LEN).expect("room");
    }
    offer(&mut pair, on(1, Reliability::Priority(2)), 10, 8000).expect("room made");
    let evicted = abandoned(&mut pair);
    let unsent = evicted.iter().take_while(|(_, sent)| !sent).count();
    assert!(unsent > 0 && unsent < evicted.len(), "{evicted:?}");
    assert!(evicted[unsent..].iter().all(|&(_, sent)| sent), "{evicted:?}");
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(Duration::from_secs(20));
    let kept: Vec<u32> =
        (0..11).filter(|&number| !evicted.iter().any(|&(gone, _)| gone == u64::from(number))).collect();
    assert_eq!(pair.server.numbers_on(1), kept);
    assert_at_rest(&mut pair);
}

/// Random messages under every policy, over networks that lose up to a fifth of all packets. A message is
/// delivered once and in the order of its stream, or reported as given up once. Both only when it was sent:
/// then its acknowledgement was under way or lost when it was given up.
#[test]
fn every_message_is_delivered_once_or_reported_as_given_up() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let paths = 1 + dice.below(2) as u8;
        let config = config(&[
            ("send_buffer", "60000B"),
            ("receive_buffer", "30000B"),
            ("heartbeat_interval", "1s"),
            ("association_max_retrans", "100"),
            ("path_max_retrans", "100"),
            ("rto_max", "2s"),
        ]);
        let mut pair = Pair::with_seed(paths, &config, seed as u8).settled();
        let (loss, mut network) = (dice.below(20) as f64 / 100.0, Dice::new(seed + 1000));
        pair.network = Box::new(move |_| {
            let delay = 10 + network.below(5);
            (!network.hits(loss)).then_some(ms(delay))
        });
        let mut accepted = Vec::new();
        for number in 0..150 {
            let reliability = match dice.below(4) {
                0 => Reliability::Full,
                1 => Reliability::Lifetime(ms(dice.below(300))),
                2 => Reliability::Retransmissions(dice.below(3) as u32),
                _ => Reliability::Priority(dice.below(4) as u32),
            };
            let stream = dice.below(4) as u16;
            let options = SendOptions { unordered: stream == 3, ..on(stream, reliability) };
            let len = if dice.hits(0.2) { 3000 + dice.below(9000) } else { 10 + dice.below(1400) };
            if offer(&mut pair, options, number, len as usize).is_ok() {
                accepted.push((number, stream, reliability));
            }
            pair.run_for(ms(dice.below(20)));
        }
        pair.run_for(Duration::from_secs(120));
        let told = abandoned(&mut pair);
        for &(number, stream, reliability) in &accepted {
            let reports = told.iter().filter(|&&(gone, _)| gone == u64::from(number)).collect::<Vec<_>>();
            let copies = pair.server.numbers_on(stream).iter().filter(|&&came| came == number).count();
            let sent = reports.first().is_some_and(|&&(_, sent)| sent);
            assert!(copies <= 1 && reports.len() <= 1, "seed {seed}: message {number} twice");
            assert!(copies + reports.len() == 1 || sent, "seed {seed}: message {number} {reliability:?}");
            assert!(reports.is_empty() || reliability != Reliability::Full);
        }
        for stream in 0..3 {
            assert!(pair.server.numbers_on(stream).is_sorted(), "seed {seed}: order of stream {stream}");
        }
        assert_at_rest(&mut pair);
    }
}
