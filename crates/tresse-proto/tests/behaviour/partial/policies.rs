//! Abandoned messages: each policy, each place of a loss, whole messages and fragments.

use std::time::Duration;

use tresse_proto::{CloseReason, Event, Reliability, SendError, SendOptions, StreamId};
use tresse_wire::Chunk;

use super::*;

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
        assert_eq!((stats.retransmissions.unsent, stats.retransmissions.sent), (0, 1));
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
    let mut pair = established(&[("loss_detection", "rfc9260"), ("rto_min", "1s")]);
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
            ("receive_buffer", "8128B"),
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
            let options = on(1, Reliability::Retransmissions(0)).with(|o| o.unordered = unordered);
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
        let options = on(1, Reliability::Retransmissions(0)).with(|o| o.unordered = unordered);
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
fn a_more_important_message_takes_the_place_of_the_least_important_that_wait() {
    let (client, server) = (config(&[("send_buffer", "10000B")]), config(&[("receive_buffer", "12192B")]));
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
    let by_priority = pair.client().abandoned_on(StreamId(1)).priority;
    assert_eq!((by_priority.unsent, by_priority.sent), (5, 1));
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

/// RFC 7496 §3.1: not when others wait for it, either.
#[test]
fn what_may_not_be_sent_again_is_not_reinjected_on_a_path_that_is_faster() {
    let resent = |reliability| {
        let settings = config(&[("receive_buffer", "17424B"), ("path_scheduler", "round_robin")]);
        let mut pair = Pair::new(2, &settings);
        let slow = |flight: &Flight| flight.path() == 1 && flight.to_server;
        pair.network = Box::new(move |flight| Some(ms(if slow(flight) { 100 } else { 10 })));
        let mut pair = pair.settled();
        let before = pair.wire.len();
        for number in 0..64 {
            offer(&mut pair, on(1, reliability), number, 1452).expect("room");
            pair.run_for(ms(if number < 4 { 200 } else { 0 }));
        }
        pair.run_for(ms(2000));
        copies(pair.sent_since(before)).iter().filter(|&&(_, count)| count > 1).count()
    };
    assert!(resent(Reliability::Full) > 0, "others are");
    assert_eq!(resent(Reliability::Retransmissions(0)), 0);
    assert_eq!(resent(Reliability::Lifetime(ms(1))), 0);
}

#[test]
fn what_may_not_be_sent_again_is_given_up_with_the_path_that_falls_silent() {
    let mut pair = Pair::established(2, &config(&[("path_scheduler", "round_robin")]));
    for number in 0..40 {
        offer(&mut pair, on(1, Reliability::Full), number, LEN).expect("room");
    }
    pair.run_for(ms(500));
    let before = pair.wire.len();
    pair.network = Box::new(|flight| (flight.path() != 1).then_some(ms(10)));
    for number in 40..80 {
        offer(&mut pair, on(1, Reliability::Retransmissions(0)), number, LEN).expect("room");
        pair.run_for(ms(5));
    }
    pair.run_for(ms(100));
    let timeouts = pair.path(1).timeouts;
    assert_eq!(timeouts, 0, "T3 has not expired yet");
    let given_up = abandoned(&mut pair).len();
    assert!(given_up > 0, "{}", pair.log.join("\n"));
    assert!(copies(pair.sent_since(before)).iter().all(|&(_, count)| count == 1), "nothing went again");
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(1).len() + abandoned(&mut pair).len(), 80);
}
