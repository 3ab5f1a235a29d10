//! Packets of an association under the schedulers, seen from the network.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tresse_proto::{AssociationConfig, SendError, SendOptions, StreamId};
use tresse_wire::{ChecksumRule, Chunk, Packet};

use crate::common::{Pair, content};

/// Stream and whether a message begins, of every DATA or I-DATA chunk of a packet.
pub(super) type Chunks = Vec<(u16, bool)>;

/// A pair that notes what carries data in every packet to the server.
pub(super) fn observed(paths: u8, scheduler: &str, config: &str) -> (Pair, Rc<RefCell<Vec<Chunks>>>) {
    observed_with(
        paths,
        &AssociationConfig::default().with(|c| {
            c.stream_scheduler = scheduler.to_owned();
            c.stream_scheduler_config = config.to_owned();
        }),
    )
}

/// The same with settings of one's own.
pub(super) fn observed_with(paths: u8, config: &AssociationConfig) -> (Pair, Rc<RefCell<Vec<Chunks>>>) {
    let mut pair = Pair::established(paths, config);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let notes = seen.clone();
    pair.network = Box::new(move |flight| {
        let packet = Packet::parse(&flight.bytes, ChecksumRule::Verify).expect("own packets are sound");
        let chunks: Chunks = packet
            .chunks()
            .flatten()
            .filter_map(|chunk| match chunk {
                Chunk::Data(data) => Some((data.stream.0, data.flags.beginning)),
                Chunk::IData(data) => Some((data.stream.0, data.flags.beginning)),
                _ => None,
            })
            .collect();
        if flight.to_server && !chunks.is_empty() {
            notes.borrow_mut().push(chunks);
        }
        Some(Duration::from_millis(10))
    });
    (pair, seen)
}

/// Queues `count` messages on each stream before anything may leave.
pub(super) fn queue(pair: &mut Pair, streams: &[u16], count: u32, len: usize) {
    let now = pair.now;
    for number in 0..count {
        for &stream in streams {
            let sent =
                pair.client().send(now, SendOptions::on(StreamId(stream)), content(stream, number, len));
            assert!(!matches!(sent, Err(SendError::Full { .. })), "the test queues too much");
            sent.expect("accepted");
        }
    }
}

pub(super) fn finish(pair: &mut Pair, streams: &[u16], count: u32) {
    let all = streams.len() * count as usize;
    pair.run_until(Duration::from_secs(120), |pair| pair.server.received.len() == all);
    for &stream in streams {
        assert_eq!(pair.server.numbers_on(stream), (0..count).collect::<Vec<_>>(), "stream {stream}");
    }
}

#[test]
fn every_scheduler_delivers_everything_in_order() {
    let names =
        ["first_come", "round_robin", "round_robin_packet", "priority", "fair_bandwidth", "weighted_fair"];
    for name in names {
        for len in [100, 1_400, 5_000] {
            let (mut pair, _) = observed(2, name, "");
            queue(&mut pair, &[0, 3, 9], 40, len);
            finish(&mut pair, &[0, 3, 9], 40);
        }
    }
}

#[test]
fn priority_sends_nothing_lower_while_something_higher_waits() {
    let (mut pair, seen) = observed(1, "priority", "1=5,2=9");
    queue(&mut pair, &[2, 1, 0], 60, 700);
    // More of the highest while the lower ones are on their way.
    pair.run_until(Duration::from_secs(10), |_| {
        seen.borrow().iter().flatten().any(|&(stream, _)| stream == 2)
    });
    let before = seen.borrow().len();
    let now = pair.now;
    for number in 60..80 {
        pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number, 700)).expect("room");
    }
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 200);
    let order: Vec<u16> = seen.borrow().iter().flatten().map(|&(stream, _)| stream).collect();
    let first: usize = seen.borrow()[..before].iter().map(Vec::len).sum();
    assert!(order[..first].is_sorted(), "0 before 1 before 2: {order:?}");
    assert!(order[first..].is_sorted(), "0 passes what is left of 2: {order:?}");
    assert_eq!(order[first..].iter().filter(|&&stream| stream == 0).count(), 20);
}

#[test]
fn a_message_once_begun_is_finished_before_a_higher_one() {
    let (mut pair, seen) = observed(1, "priority", "1=5");
    queue(&mut pair, &[1], 1, 60_000);
    pair.pump();
    queue(&mut pair, &[0], 1, 100);
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 2);
    let order: Vec<(u16, bool)> = seen.borrow().concat();
    assert_eq!(order.last(), Some(&(0, true)));
    assert_eq!(order.iter().filter(|(_, begins)| *begins).count(), 2);
}

#[test]
fn round_robin_packet_sends_packets_of_one_stream_only() {
    for len in [100, 900, 2_000] {
        let (mut pair, seen) = observed(2, "round_robin_packet", "");
        queue(&mut pair, &[0, 1, 2, 3], 50, len);
        finish(&mut pair, &[0, 1, 2, 3], 50);
        for packet in seen.borrow().iter() {
            assert!(packet.iter().all(|(stream, _)| *stream == packet[0].0), "{packet:?}");
        }
        let first: Vec<u16> = seen.borrow().iter().map(|packet| packet[0].0).collect();
        // A message that begins at the end of a packet takes the next one along.
        let early = &first[..first.len().min(40)];
        assert!((0..4).all(|stream| early.contains(&stream)), "all in turn: {first:?}");
    }
}

#[test]
fn weights_divide_what_the_network_takes() {
    let (mut pair, seen) = observed(2, "weighted_fair", "0=3");
    queue(&mut pair, &[0, 1], 300, 1_000);
    finish(&mut pair, &[0, 1], 300);
    let order: Vec<u16> = seen.borrow().iter().flatten().map(|&(stream, _)| stream).collect();
    let heavy = order[..200].iter().filter(|&&stream| stream == 0).count();
    assert!((148..=152).contains(&heavy), "{heavy} of the first 200 messages");
}
