//! Low-water marks: an application hears when a stream's queue has run low, and feeds each stream what it can use.

use std::time::Duration;

use tresse_proto::config::{Size, StreamMap};
use tresse_proto::{
    AssociationConfig, Event, Instant, Reliability, ScheduleError, SendError, SendOptions, StreamId,
};

use crate::common::{Flight, Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The streams of which the client has heard since this was last asked, with what waited.
fn heard(pair: &mut Pair) -> Vec<(u16, usize)> {
    pair.pump();
    let events = std::mem::take(&mut pair.client.events);
    let low = events.into_iter().filter_map(|event| match event {
        Event::LowWater { stream, unsent } => Some((stream.0, unsent)),
        _ => None,
    });
    low.collect()
}

#[test]
fn a_mark_is_told_at_once_and_then_each_time_that_the_queue_runs_low() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let (fed, other) = (StreamId(3), StreamId(4));
    pair.client().set_low_water(fed, Some(2_000)).expect("negotiated");
    assert_eq!(heard(&mut pair), [(3, 0)], "nothing waits yet");
    for round in 0..3 {
        let now = pair.now;
        for number in 0..40 {
            pair.client()
                .send(now, SendOptions::on(fed), content(3, 40 * round + number, 1_000))
                .expect("room");
            pair.client().send(now, SendOptions::on(other), content(4, number, 1_000)).expect("room");
        }
        pair.run_for(ms(500));
        let heard = heard(&mut pair);
        assert!(matches!(heard[..], [(3, unsent)] if unsent <= 2_000), "once: {heard:?}");
    }
    pair.client().set_low_water(fed, None).expect("negotiated");
    pair.send(3, 120, 50_000);
    pair.run_for(ms(500));
    assert_eq!(heard(&mut pair), [], "nobody wants to know any more");
}

#[test]
fn what_never_exceeded_its_mark_is_not_told_again() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.client().set_low_water(StreamId(0), Some(10_000)).expect("negotiated");
    assert_eq!(heard(&mut pair), [(0, 0)]);
    pair.send(0, 0, 10_000);
    pair.run_for(ms(500));
    assert_eq!(heard(&mut pair), []);
    let absent = pair.client().set_low_water(StreamId(10), Some(1));
    assert_eq!(absent, Err(ScheduleError::NoSuchStream(StreamId(10))));
}

#[test]
fn a_message_that_expires_lowers_the_queue_too() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.client().set_low_water(StreamId(5), Some(0)).expect("negotiated");
    assert_eq!(heard(&mut pair), [(5, 0)]);
    // Stream 0 keeps the association busy for longer than stream 5's message lives.
    pair.network = Box::new(|_| None);
    let now = pair.now;
    pair.client().send(now, SendOptions::on(StreamId(0)), content(0, 0, 100_000)).expect("room");
    let options = SendOptions::on(StreamId(5)).with(|o| o.reliability = Reliability::Lifetime(ms(50)));
    pair.client().send(now, options, content(5, 0, 1_000)).expect("room");
    pair.run_for(ms(40));
    assert_eq!(heard(&mut pair), []);
    pair.run_for(ms(5_000));
    assert_eq!(heard(&mut pair), [(5, 0)]);
}

#[test]
fn a_mark_outlives_a_restart_of_the_peer() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    pair.server().set_low_water(StreamId(1), Some(100)).expect("negotiated");
    pair.network = Box::new(|_| None);
    pair.server().send(now, SendOptions::on(StreamId(1)), content(1, 0, 100_000)).expect("room");
    pair.pump();
    pair.server.events.clear();
    pair.network = Box::new(|_| Some(ms(10)));
    pair.restart_client();
    pair.connect();
    pair.run_for(ms(500));
    let low = Event::LowWater { stream: StreamId(1), unsent: 0 };
    assert_eq!(pair.server.events.iter().filter(|event| **event == low).count(), 1, "the old queue is gone");
    assert!(pair.server.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
}

/// A link that takes `bytes_a_second`, with a queue of 100 ms and 10 ms to the other end.
fn link(bytes_a_second: u64) -> impl FnMut(&Flight) -> Option<Duration> {
    let mut free_at = Instant::ZERO;
    move |flight| {
        let begins = free_at.max(flight.sent);
        if begins.since(flight.sent) > ms(100) {
            return None;
        }
        free_at = begins + Duration::from_nanos(flight.bytes.len() as u64 * 1_000_000_000 / bytes_a_second);
        Some(free_at.since(flight.sent) + ms(10))
    }
}

/// Gives a message of 1,000 bytes to a stream; tells whether the send buffer had room.
fn give(pair: &mut Pair, stream: u16, number: &mut u32) -> bool {
    let now = pair.now;
    let sent = pair.client().send(now, SendOptions::on(StreamId(stream)), content(stream, *number, 1_000));
    *number += u32::from(sent.is_ok());
    !matches!(sent, Err(SendError::Full { .. }))
}

/// Messages that arrive in ten seconds over a fast and a slow path, each with a stream of its own, from an
/// application that gives to the streams in turn, or to each as it runs low.
fn arrived(by_mark: bool) -> [usize; 2] {
    const MARK: usize = 16_000;
    let config = AssociationConfig::default().with(|c| {
        c.stream_map = StreamMap::Fixed(vec![0, 1]);
        c.send_buffer = Size(200_000);
    });
    let mut pair = Pair::established(2, &config);
    let (mut fast, mut slow) = (link(1_000_000), link(50_000));
    pair.network = Box::new(move |flight| match (flight.to_server, flight.path()) {
        (false, _) => Some(ms(10)),
        (true, 0) => fast(flight),
        (true, _) => slow(flight),
    });
    let mut numbers = [0; 2];
    let mut turn = 0;
    if by_mark {
        for stream in 0..2 {
            pair.client().set_low_water(StreamId(stream), Some(MARK)).expect("negotiated");
        }
    }
    for _ in 0..10_000 {
        let low = heard(&mut pair);
        if by_mark {
            for (stream, _) in low {
                let number = &mut numbers[usize::from(stream)];
                while pair.client().unsent_on(StreamId(stream)) <= MARK && give(&mut pair, stream, number) {}
            }
        } else {
            while give(&mut pair, turn, &mut numbers[usize::from(turn)]) {
                turn = 1 - turn;
            }
        }
        pair.run_for(ms(1));
    }
    [0, 1].map(|stream| pair.server.numbers_on(stream).len())
}

#[test]
fn an_application_that_feeds_each_stream_what_it_can_use_keeps_both_paths_busy() {
    let ([fast, slow], [fast_in_turn, slow_in_turn]) = (arrived(true), arrived(false));
    assert!(fast > 2 * fast_in_turn, "{fast} against {fast_in_turn} messages on the fast path");
    assert!(10 * slow >= 9 * slow_in_turn, "{slow} against {slow_in_turn} messages on the slow path");
}
