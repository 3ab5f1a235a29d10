//! Messages longer than the receive buffer, and messages in parts (RFC 9260 §6.9).

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, Joiner, Part, SendOptions, StreamId};
use tresse_wire::DATA_HEADER_LEN;

use crate::common::{Dice, Pair, content};

fn receiver(buffer: usize, point: usize) -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.receive_buffer = Size(buffer);
        c.partial_delivery_point = Size(point);
    })
}

/// The parts in which messages of these lengths arrive on stream 0, each with its length.
fn parts(pair: &mut Pair, lengths: &[usize]) -> Vec<(Part, usize)> {
    for (number, &len) in lengths.iter().enumerate() {
        pair.send(0, number as u32, len);
    }
    let mut joiner = Joiner::default();
    let (mut parts, mut whole) = (Vec::new(), 0);
    pair.run_until(Duration::from_secs(60), |pair| {
        for part in pair.server.received.drain(..) {
            parts.push((part.part, part.payload.len()));
            if let Some(message) = joiner.join(part) {
                assert_eq!(message.payload.into_bytes(), content(0, whole as u32, lengths[whole]));
                whole += 1;
            }
        }
        whole == lengths.len()
    });
    parts
}

#[test]
fn a_message_longer_than_the_receive_buffer_arrives_in_parts() {
    for buffer in [1_500, 4_000, 20_000, 90_000] {
        let mut pair = Pair::unlike(2, &AssociationConfig::default(), &receiver(buffer, 0), 1).settled();
        let start = pair.now;
        let len = buffer * 10;
        let parts = parts(&mut pair, &[len, 100]);
        let (last, rest) = parts.split_last().expect("parts");
        assert_eq!(*last, (Part::Whole, 100));
        assert_eq!((rest[0].0, rest[rest.len() - 1].0), (Part::First, Part::Last), "buffer of {buffer}");
        assert!(rest[1..rest.len() - 1].iter().all(|(part, _)| *part == Part::Middle));
        // Only the first full buffer costs a chunk; afterwards parts leave as they come.
        if buffer >= 20_000 {
            assert!(pair.now.since(start) < Duration::from_secs(3), "{:?}", pair.now.since(start));
        }
        let now = pair.now;
        let stats = pair.server().stats(now).expect("open");
        assert_eq!((stats.messages_received, stats.bytes_received), (2, len as u64 + 100));
    }
}

#[test]
fn messages_that_the_receive_buffer_holds_arrive_whole() {
    // 50,000 bytes of user data are in 35 full chunks, or a few more.
    let buffer = 50_000 + 50 * DATA_HEADER_LEN;
    let mut pair = Pair::unlike(2, &AssociationConfig::default(), &receiver(buffer, 0), 1).settled();
    let parts = parts(&mut pair, &[50_000, 100, 49_999, 20_000, 50_000]);
    assert!(parts.iter().all(|(part, _)| *part == Part::Whole), "{parts:?}");
}

#[test]
fn from_the_point_on_a_message_arrives_in_parts() {
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &receiver(1 << 20, 10_000), 1).settled();
    let parts = parts(&mut pair, &[9_000, 100_000]);
    assert_eq!(parts[0], (Part::Whole, 9_000));
    assert_eq!(parts[1].0, Part::First);
    assert!((10_000..12_000).contains(&parts[1].1), "{parts:?}");
    assert_eq!(parts[parts.len() - 1].0, Part::Last);
}

#[test]
fn a_reader_that_sleeps_finds_everything_that_the_buffer_held() {
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &receiver(20_000, 0), 1).settled();
    pair.server.reads = false;
    pair.send(0, 0, 100_000);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.server.events, [tresse_proto::Event::Readable], "there is something to take");
    pair.server.reads = true;
    let mut joiner = Joiner::default();
    pair.run_until(Duration::from_secs(60), |pair| {
        pair.server.received.drain(..).any(|part| {
            joiner.join(part).is_some_and(|whole| whole.payload.into_bytes() == content(0, 0, 100_000))
        })
    });
}

#[test]
fn long_messages_of_several_streams_cross_rough_paths_into_a_small_buffer() {
    for (seed, interleaving) in (1..=6).zip([false, true].into_iter().cycle()) {
        let sender = AssociationConfig::default().with(|c| {
            c.interleaving = interleaving;
            c.stream_scheduler = "round_robin".to_owned();
        });
        let receiver = receiver(25_000, 0).with(|c| c.interleaving = interleaving);
        let mut pair = Pair::unlike(2, &sender, &receiver, seed).settled();
        let mut dice = Dice::new(seed.into());
        pair.network = Box::new(move |flight| {
            let delay = Duration::from_millis(10 + 10 * u64::from(flight.path()) + dice.below(5));
            (!dice.hits(0.02)).then_some(delay)
        });
        let now = pair.now;
        for (stream, unordered) in [(0, false), (1, false), (2, true), (3, true)] {
            let options = SendOptions::on(StreamId(stream)).with(|o| o.unordered = unordered);
            for number in 0..4 {
                pair.client().send(now, options, content(stream, number, 40_000)).expect("room");
            }
        }
        let mut joiner = Joiner::default();
        let mut whole = Vec::new();
        pair.run_until(Duration::from_secs(300), |pair| {
            whole.extend(pair.server.received.drain(..).filter_map(|part| joiner.join(part)));
            whole.len() == 16
        });
        pair.server.received = whole;
        for stream in 0..4 {
            let mut numbers = pair.server.numbers_on(stream);
            if stream >= 2 {
                numbers.sort_unstable();
            }
            assert_eq!(numbers, [0, 1, 2, 3], "seed {seed}, stream {stream}");
        }
    }
}
