//! Messages through two endpoints: whole and in fragments, in order within their stream, over clean and
//! lossy networks, on one path and on several.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use common::{Dice, Pair, content};
use tresse_proto::config::{BufferSplit, NrSack, Size, StreamMap};
use tresse_proto::{AssociationConfig, SendError, SendOptions, StreamId};
use tresse_wire::Chunk;

fn presets() -> Vec<(&'static str, AssociationConfig)> {
    ["cmt", "rfc9260", "pfldnet2010"]
        .map(|name| (name, AssociationConfig::preset(name).expect("a preset")))
        .into()
}

/// Sends `count` messages of varying lengths over several streams and waits for all of them.
fn exchange(pair: &mut Pair, count: u32, streams: u16, longest: usize) {
    let mut next = 0;
    pair.run_until(Duration::from_secs(600), |pair| {
        while next < count {
            let stream = (next % u32::from(streams)) as u16;
            let len = 4 + (next as usize * 7919) % longest;
            let now = pair.now;
            let options = SendOptions::on(StreamId(stream));
            match pair.client().send(now, options, content(stream, next, len)) {
                Ok(()) => next += 1,
                Err(SendError::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        pair.pump();
        pair.server.received.len() == count as usize
    });
    for stream in 0..streams {
        let expected: Vec<u32> =
            (0..count).filter(|number| number % u32::from(streams) == u32::from(stream)).collect();
        assert_eq!(pair.server.numbers_on(stream), expected, "stream {stream}");
    }
}

#[test]
fn small_and_large_messages_arrive_in_order() {
    for (name, config) in presets() {
        for paths in [1, 2, 3] {
            println!("{name}, {paths} paths");
            let mut pair = Pair::established(paths, &config);
            exchange(&mut pair, 300, 5, 20_000);
        }
    }
}

#[test]
fn losses_duplicates_and_reordering_lose_nothing() {
    for (name, config) in presets() {
        for seed in 0..12 {
            println!("{name}, seed {seed}");
            let mut pair = Pair::with_seed(2, &config, seed);
            let mut dice = Dice::new(u64::from(seed) + 1);
            pair.network = Box::new(move |flight| {
                let jitter = dice.below(20);
                let delay = if flight.path() == 0 { 10 } else { 40 };
                (!dice.hits(0.05)).then(|| Duration::from_millis(delay + jitter))
            });
            pair.connect();
            pair.run_until(Duration::from_secs(60), |pair| pair.client().is_established());
            exchange(&mut pair, 200, 3, 6_000);
        }
    }
}

#[test]
fn unordered_messages_all_arrive() {
    let config = AssociationConfig::default();
    let mut pair = Pair::established(2, &config);
    let mut dice = Dice::new(3);
    pair.network = Box::new(move |_| (!dice.hits(0.1)).then(|| Duration::from_millis(5 + dice.below(50))));
    for number in 0..100 {
        let now = pair.now;
        let options = SendOptions::on(StreamId(1)).with(|o| o.unordered = true);
        pair.client().send(now, options, content(1, number, 3_000)).expect("room");
    }
    pair.run_until(Duration::from_secs(120), |pair| pair.server.received.len() == 100);
    let mut numbers = pair.server.numbers_on(1);
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    assert!(pair.server.received.iter().all(|message| message.unordered));
}

#[test]
fn every_buffer_split_and_sack_kind_completes_over_small_buffers() {
    for split in BufferSplit::ALL {
        for nr_sack in NrSack::ALL {
            let config = AssociationConfig::default().with(|c| {
                c.buffer_split = *split;
                c.nr_sack = *nr_sack;
                c.send_buffer = Size(16_384);
                c.receive_buffer = Size(16_384);
            });
            let mut pair = Pair::established(2, &config);
            let mut dice = Dice::new(5);
            pair.network = Box::new(move |flight| {
                (!dice.hits(0.02)).then(|| Duration::from_millis(if flight.path() == 0 { 5 } else { 60 }))
            });
            println!("{split:?} {nr_sack:?}");
            exchange(&mut pair, 200, 2, 3_000);
        }
    }
}

#[test]
fn a_fixed_map_keeps_each_stream_on_its_path() {
    let config = AssociationConfig::default().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    let mut pair = Pair::established(2, &config);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let notes = seen.clone();
    pair.network = Box::new(move |flight| {
        for chunk in flight.chunks() {
            if let Chunk::Data(data) = chunk {
                notes.borrow_mut().push((u16::from(flight.path()), data.stream.0));
            }
        }
        Some(Duration::from_millis(10))
    });
    exchange(&mut pair, 100, 2, 1_000);
    assert!(seen.borrow().iter().all(|(path, stream)| path == stream), "{seen:?}");
    assert!(
        [0, 1].iter().all(|stream| seen.borrow().iter().filter(|(_, other)| other == stream).count() >= 50)
    );
}

#[test]
fn one_path_at_a_time_carries_the_streams_of_all_paths() {
    let config = AssociationConfig::preset("rfc9260")
        .expect("a preset")
        .with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    let mut pair = Pair::established(2, &config);
    exchange(&mut pair, 40, 2, 1_000);
    pair.client().set_primary(tresse_proto::PathId(1)).expect("there are two");
    let before = pair.server.received.len();
    pair.send(0, 40, 100);
    pair.send(1, 41, 100);
    pair.run_until(Duration::from_secs(5), |pair| pair.server.received.len() == before + 2);
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_reason() {
    let config = AssociationConfig::default().with(|c| c.send_buffer = Size(10_000));
    let mut pair = Pair::established(1, &config);
    let now = pair.now;
    let mut send =
        |stream, len| pair.client().send(now, SendOptions::on(StreamId(stream)), Bytes::from(vec![1; len]));
    assert_eq!(send(0, 0), Err(SendError::Empty));
    assert_eq!(send(10, 1), Err(SendError::NoSuchStream { stream: StreamId(10), count: 10 }));
    assert_eq!(send(0, 10_001), Err(SendError::TooLong { len: 10_001, limit: 10_000 }));
    assert_eq!(send(0, 9_000), Ok(()));
    assert_eq!(send(0, 2_000), Err(SendError::Full { free: 1_000 }));
    pair.run_until(Duration::from_secs(5), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [tresse_proto::Event::Writable]);
}
