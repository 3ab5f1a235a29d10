//! Messages that the application gives before the association is set up (RFC 9260 §5.1): they leave behind COOKIE ECHO,
//! whatever becomes of it, and come out once.

use std::time::Duration;

use tresse_proto::{AssociationConfig, Event, Reliability, SendError, SendOptions, StreamId};
use tresse_wire::{Chunk, ChunkKind};

use crate::common::{Flight, Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client in COOKIE-WAIT that has given messages of `len` bytes on stream 0, numbered from 0.
fn waiting(paths: u8, config: &AssociationConfig, messages: u32, len: usize) -> Pair {
    let mut pair = Pair::new(paths, config);
    give(&mut pair, messages, len);
    pair
}

fn give(pair: &mut Pair, messages: u32, len: usize) {
    pair.connect();
    for number in 0..messages {
        pair.send(0, number, len);
    }
}

/// Lets everything arrive, and then everything else happen that may.
fn finish(pair: &mut Pair, messages: u32) {
    let expected: Vec<u32> = (0..messages).collect();
    pair.run_until(Duration::from_secs(200), |pair| pair.server.numbers_on(0).len() == expected.len());
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.server.numbers_on(0), expected, "{}", pair.log.join("\n"));
    assert_eq!(pair.client().send_queue().used, 0, "all of it acknowledged");
    let now = pair.now;
    let stats = pair.client().stats(now).expect("an association");
    assert_eq!((stats.messages_sent, stats.flight), (u64::from(messages), 0));
}

fn kinds(flight: &Flight) -> Vec<ChunkKind> {
    flight.kinds()
}

fn cookies(pair: &Pair) -> Vec<&Flight> {
    pair.wire.iter().filter(|flight| flight.carries(ChunkKind::COOKIE_ECHO)).collect()
}

/// TSNs of the DATA in a packet, counted from that of the first DATA of the client.
fn tsns(pair: &Pair, flight: &Flight) -> Vec<u32> {
    let of = |flight: &Flight| -> Vec<u32> {
        let tsn = |chunk: Chunk<'_>| match chunk {
            Chunk::Data(data) => Some(data.tsn.0),
            _ => None,
        };
        flight.chunks().into_iter().filter_map(tsn).collect()
    };
    let first = pair.wire.iter().filter(|flight| flight.to_server).flat_map(of).next().expect("DATA");
    of(flight).into_iter().map(|tsn| tsn.wrapping_sub(first)).collect()
}

#[test]
fn what_was_given_before_leaves_with_the_cookie_and_is_there_a_round_trip_earlier() {
    let mut pair = waiting(1, &AssociationConfig::default(), 3, 100);
    assert_eq!(pair.client().send_queue().unsent, 300);
    pair.run_until(ms(100), |pair| pair.server.received.len() == 3);
    assert_eq!(pair.now.as_nanos(), 30_000_000, "three times one way");
    pair.run_for(ms(100));
    let packets: Vec<_> = pair.wire.iter().map(kinds).collect();
    let data = ChunkKind::DATA;
    assert_eq!(packets[2], [ChunkKind::COOKIE_ECHO, data, data, data]);
    assert_eq!(packets[3], [ChunkKind::COOKIE_ACK, ChunkKind::NR_SACK]);
    finish(&mut pair, 3);
}

#[test]
fn what_does_not_fit_waits_for_the_cookie_ack() {
    let mut pair = waiting(1, &AssociationConfig::default(), 30, 700);
    pair.run_for(ms(39));
    assert_eq!(cookies(&pair).len(), 1);
    let sent = pair.wire.iter().filter(|flight| flight.carries(ChunkKind::DATA)).count();
    assert_eq!(sent, 1, "nothing but the packet of the cookie");
    assert!(cookies(&pair)[0].bytes.len() <= 1500);
    finish(&mut pair, 30);
}

#[test]
fn a_message_longer_than_the_cookie_leaves_room_for_begins_behind_it_or_follows() {
    for len in [900, 1300, 1400, 5000, 60_000] {
        let mut pair = waiting(2, &AssociationConfig::default(), 2, len);
        finish(&mut pair, 2);
        assert!(cookies(&pair).iter().all(|flight| flight.bytes.len() <= 1500), "{len}");
    }
}

#[test]
fn a_cookie_that_is_lost_takes_its_data_along_again() {
    for (paths, losses) in [(1, 1), (2, 1), (2, 3)] {
        let mut pair = waiting(paths, &AssociationConfig::default(), 2, 100);
        pair.lose(ChunkKind::COOKIE_ECHO, losses);
        pair.run_until(ms(9000), |pair| pair.server.received.len() == 2);
        let waited = ((1 << losses) - 1) * 1000;
        assert_eq!(pair.now.as_nanos() / 1_000_000, waited + 30, "T1 decides alone");
        let echoes = cookies(&pair);
        assert_eq!(echoes.len(), losses + 1);
        for (number, echo) in echoes.iter().enumerate() {
            assert_eq!(tsns(&pair, echo), [0, 1]);
            assert_eq!(usize::from(echo.path()), number % usize::from(paths), "in turn");
        }
        finish(&mut pair, 2);
        let now = pair.now;
        let stats = pair.client().path_stats(now);
        assert_eq!(stats.iter().map(|path| path.timeouts).sum::<u64>(), 0, "T3 had no part in it");
        assert_eq!(stats.iter().map(|path| path.chunks_resent).sum::<u64>(), 2 * losses as u64);
    }
}

#[test]
fn a_cookie_ack_that_is_lost_brings_no_message_twice() {
    for losses in 1..=3 {
        let mut pair = waiting(2, &AssociationConfig::default(), 5, 200);
        pair.lose(ChunkKind::COOKIE_ACK, losses);
        finish(&mut pair, 5);
        let now = pair.now;
        assert!(pair.server().stats(now).expect("an association").duplicates > 0);
    }
}

#[test]
fn a_loss_in_the_set_up_costs_the_window_what_a_timeout_does() {
    let cwnd = |losses: usize| {
        let mut pair = waiting(1, &AssociationConfig::default(), 2, 100);
        pair.lose(ChunkKind::COOKIE_ECHO, losses);
        pair.run_until(ms(9000), |pair| pair.client().is_established());
        pair.path(0).cwnd
    };
    assert!(cwnd(0) > 2 * 1500, "{}", cwnd(0));
    // One packet, and what the acknowledgement beside the COOKIE ACK adds to it.
    assert!(cwnd(1) < 2 * 1500, "{}", cwnd(1));
}

#[test]
fn a_stale_cookie_keeps_the_messages() {
    let mut pair = waiting(1, &AssociationConfig::default(), 3, 300);
    pair.network = Box::new(|flight| {
        let late = flight.carries(ChunkKind::COOKIE_ECHO) && flight.sent.as_secs_f64() < 50.0;
        Some(if late { Duration::from_secs(61) } else { ms(10) })
    });
    pair.run_until(Duration::from_secs(120), |pair| pair.client().is_established());
    assert_eq!(pair.server.endpoint.discards().stale_cookie, 1);
    finish(&mut pair, 3);
}

#[test]
fn set_ups_that_cross_deliver_what_both_sides_gave_before() {
    let lost = [
        None,
        Some(ChunkKind::INIT),
        Some(ChunkKind::INIT_ACK),
        Some(ChunkKind::COOKIE_ECHO),
        Some(ChunkKind::COOKIE_ACK),
    ];
    for (paths, lost, seed) in lost
        .into_iter()
        .flat_map(|lost| [(1, lost, 3), (2, lost, 4)])
        .flat_map(|case| [case, (case.0, case.1, 5)])
    {
        let mut pair = Pair::crossing(paths, lost, seed);
        let now = pair.now;
        for number in 0..4 {
            let message = content(0, number, 400);
            pair.server().send(now, SendOptions::default(), message).expect("room");
        }
        give(&mut pair, 4, 400);
        finish(&mut pair, 4);
        assert_eq!(pair.client.numbers_on(0), [0, 1, 2, 3], "{lost:?}\n{}", pair.log.join("\n"));
        assert_eq!(pair.server().send_queue().used, 0);
    }
}

#[test]
fn a_message_for_a_stream_that_the_peer_does_not_agree_to_is_told_as_given_up() {
    let client = AssociationConfig::default();
    let server = AssociationConfig::default().with(|c| c.inbound_streams = 2);
    let mut pair = Pair::unlike(1, &client, &server, 1);
    pair.connect();
    let now = pair.now;
    for (number, stream) in [0, 5, 1].into_iter().enumerate() {
        let options = SendOptions::on(StreamId(stream)).with(|o| {
            o.context = 70 + number as u64;
            o.unordered = true;
        });
        pair.client().send(now, options, content(stream, number as u32, 50)).expect("not known yet");
    }
    pair.run_for(ms(500));
    assert_eq!((pair.server.numbers_on(0), pair.server.numbers_on(1)), (vec![0], vec![2]));
    let given_up = pair.client.events.iter().filter_map(|event| match event {
        Event::Abandoned { stream, context, unordered, bytes, sent, .. } => {
            Some((stream.0, *context, *unordered, *bytes, *sent))
        }
        _ => None,
    });
    assert_eq!(given_up.collect::<Vec<_>>(), [(5, 71, true, 50, false)]);
    assert_eq!(pair.client().stats(now).expect("an association").messages_sent, 3);
}

#[test]
fn what_cannot_be_taken_before_is_refused_at_once() {
    let config = AssociationConfig::default().with(|c| c.send_buffer = tresse_proto::config::Size(1000));
    let mut pair = Pair::new(1, &config);
    pair.connect();
    let now = pair.now;
    let mut send = |stream: u16, len: usize| {
        let message = vec![7; len].into();
        pair.client().send(now, SendOptions::on(StreamId(stream)), message)
    };
    assert_eq!(send(0, 0), Err(SendError::Empty));
    assert_eq!(send(10, 5), Err(SendError::NoSuchStream { stream: StreamId(10), count: 10 }));
    assert_eq!(send(0, 1001), Err(SendError::TooLong { len: 1001, limit: 1000 }));
    assert_eq!(send(0, 900), Ok(()));
    assert_eq!(send(0, 200), Err(SendError::Full { free: 100 }));
    pair.run_for(ms(500));
    assert!(pair.client.events.contains(&Event::Writable), "{:?}", pair.client.events);
    let off = AssociationConfig::default().with(|c| c.data_with_cookie = false);
    let mut pair = Pair::new(1, &off);
    pair.connect();
    let refused = pair.client().send(now, SendOptions::default(), content(0, 0, 10));
    assert_eq!(refused, Err(SendError::NotOpen { state: "COOKIE-WAIT" }));
}

#[test]
fn a_shutdown_during_the_set_up_waits_for_the_messages() {
    for losses in 0..=2 {
        let mut pair = waiting(1, &AssociationConfig::default(), 10, 700);
        pair.lose(ChunkKind::COOKIE_ECHO, losses);
        let now = pair.now;
        pair.client().shutdown(now);
        let refused = pair.client().send(now, SendOptions::default(), content(0, 10, 10));
        assert_eq!(refused, Err(SendError::NotOpen { state: "COOKIE-WAIT" }));
        pair.run_for(Duration::from_secs(30));
        assert_eq!(pair.server.numbers_on(0), (0..10).collect::<Vec<_>>());
        let graceful = Event::Closed(tresse_proto::CloseReason::Graceful);
        assert!(pair.client.events.contains(&graceful), "{:?}", pair.client.events);
    }
}

#[test]
fn messages_given_after_init_ack_follow_too() {
    // The COOKIE ACK is slow: there is time to give something in COOKIE-ECHOED, with and without an association ahead.
    for before in [0, 2] {
        let mut pair = waiting(1, &AssociationConfig::default(), before, 100);
        pair.run_for(ms(25));
        assert_eq!(pair.client().state_name(), "COOKIE-ECHOED");
        for number in before..before + 3 {
            pair.send(0, number, 100);
        }
        finish(&mut pair, before + 3);
    }
}

#[test]
fn a_message_whose_lifetime_ends_during_the_set_up_is_given_up() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    let now = pair.now;
    let brief = SendOptions::default().with(|o| o.reliability = Reliability::Lifetime(ms(5)));
    pair.client().send(now, brief, content(0, 9, 10)).expect("room");
    pair.send(0, 0, 10);
    pair.run_for(ms(500));
    assert_eq!(pair.server.numbers_on(0), [0]);
    let given_up = |event: &Event| matches!(event, Event::Abandoned { sent: false, .. });
    assert_eq!(pair.client.events.iter().filter(|event| given_up(event)).count(), 1);
}

#[test]
fn what_must_be_authenticated_is_so_behind_the_cookie_too() {
    for chunks in ["data", "cookie_echo", "data,sack,nr_sack,cookie_echo"] {
        let mut config = AssociationConfig::default();
        config.set("authenticated_chunks", chunks).expect("known");
        let mut pair = waiting(1, &config, 3, 100);
        pair.lose(ChunkKind::COOKIE_ECHO, 1);
        finish(&mut pair, 3);
        let echoes = cookies(&pair);
        assert!(echoes.iter().all(|echo| echo.carries(ChunkKind::AUTH) && echo.carries(ChunkKind::DATA)));
        assert_eq!(pair.server.endpoint.discards().total(), 0);
    }
}
