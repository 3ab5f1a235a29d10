//! Fair queues without a core: weights, service owed, and streams that leave.

use super::*;
use crate::time::Instant;

/// Streams that always have another message of 100 bytes.
struct Saturated;

impl Backlog for Saturated {
    fn unsent_bytes(&self, _stream: StreamId) -> usize {
        200
    }
    fn messages(&self, _stream: StreamId) -> usize {
        2
    }
    fn head_bytes(&self, _stream: StreamId) -> usize {
        100
    }
}

fn queue(weights: &[u16]) -> FairQueue {
    let mut queue = FairQueue::default();
    for (&weight, stream) in weights.iter().zip((0..).map(StreamId)) {
        queue.set_weight(stream, weight);
        let at = Instant::ZERO;
        queue.on_queued(Queued { stream, bytes: 100, was_idle: true, at });
    }
    queue
}

fn serve(queue: &mut FairQueue) -> Option<u16> {
    let stream = queue.next(&Saturated)?;
    queue.on_taken(Taken { stream, bytes: 100, message_done: true, turn_over: true, stream_empty: false });
    Some(stream.0)
}

#[test]
fn the_order_goes_on_when_virtual_time_is_set_back() {
    let weights = [1, 3, 40_000];
    let (mut early, mut late) = (queue(&weights), FairQueue::default());
    late.now = ERA - (5_000 << UNIT_BITS) / 40_004;
    for (&weight, stream) in weights.iter().zip((0..).map(StreamId)) {
        late.set_weight(stream, weight);
        let at = Instant::ZERO;
        late.on_queued(Queued { stream, bytes: 100, was_idle: true, at });
    }
    let served: Vec<_> = (0..200_000).map(|_| serve(&mut late)).collect();
    assert!(late.now < ERA / 2, "an era ended");
    let count = |served: &[Option<u16>], stream| served.iter().filter(|&&one| one == Some(stream)).count();
    let expected: Vec<_> = (0..200_000).map(|_| serve(&mut early)).collect();
    for stream in 0..3 {
        assert!(count(&served, stream).abs_diff(count(&expected, stream)) <= 1, "stream {stream}");
    }
}

fn turn(queue: &mut FairQueue, streams: usize, turns: usize) -> Vec<usize> {
    let mut served = vec![0; streams];
    for _ in 0..turns {
        served[usize::from(serve(queue).expect("all have data"))] += 1;
    }
    served
}

fn withdraw_all(queue: &mut FairQueue, stream: u16) {
    queue.on_removed(Removed { stream: StreamId(stream), bytes: 200, ahead: 0, stream_empty: true });
}

fn entries(queue: &FairQueue) -> usize {
    let flows = queue.flows.iter().filter(|(_, flow)| flow.entered != 0);
    flows.count()
}

#[test]
fn a_weight_counts_soon_though_the_stream_was_far_ahead_at_its_old_one() {
    let mut queue = queue(&[1, 1_000, 1_000]);
    let served = turn(&mut queue, 3, 3_000);
    assert!((1..=2).contains(&served[0]), "{served:?}");
    queue.set_weight(StreamId(0), 1_000);
    turn(&mut queue, 3, PATIENCE + 4);
    let served = turn(&mut queue, 3, 3_000);
    assert!(served.iter().all(|count| count.abs_diff(1_000) <= 2), "{served:?}");
}

#[test]
fn a_stream_is_as_many_bytes_ahead_or_behind_with_its_new_weight() {
    assert_eq!(reweighed(1_000, 900, 1, 10), 910);
    assert_eq!(reweighed(910, 900, 10, 1), 1_000);
    assert_eq!(reweighed(860, 900, 1, 4), 890);
    assert_eq!(reweighed(0, ERA, 1, u16::MAX), ERA - ERA / 65_535, "long ago");
    assert_eq!(reweighed(800, 900, 10, 1), 0, "before time began");
}

#[test]
fn a_stream_that_is_heavier_when_it_returns_is_as_many_bytes_ahead_as_it_was() {
    let mut queue = queue(&[1, 1_000]);
    while queue.next(&Saturated) != Some(StreamId(0)) {
        serve(&mut queue);
    }
    let stream = StreamId(0);
    // All data of the stream: a message as long as a thousand others.
    queue.on_taken(Taken { stream, bytes: 100_000, message_done: true, turn_over: true, stream_empty: true });
    assert_eq!(serve(&mut queue), Some(1));
    queue.set_weight(stream, 1_000);
    queue.on_queued(Queued { stream, bytes: 100, was_idle: true, at: Instant::ZERO });
    let served = turn(&mut queue, 2, 3_000);
    // At equal weights, one stream has had its share of the first 2,000 messages already: the other sends these, then both send.
    assert!(served[0].abs_diff(500) <= 2 && served[1].abs_diff(2_500) <= 2, "{served:?}");
}

#[test]
fn a_stream_without_data_leaves_the_order_within_a_round() {
    let mut queue = queue(&[1; 5]);
    turn(&mut queue, 5, 50);
    withdraw_all(&mut queue, 1);
    withdraw_all(&mut queue, 4);
    assert_eq!((queue.active, queue.weights, entries(&queue)), (3, 3, 5));
    let served = turn(&mut queue, 5, PATIENCE + 6);
    assert_eq!((served[1], served[4]), (0, 0));
    assert_eq!((entries(&queue), queue.noted), (3, 0));
    for stream in [0, 2, 3] {
        withdraw_all(&mut queue, stream);
    }
    assert!(queue.is_empty());
    assert_eq!(serve(&mut queue), None);
    assert_eq!((entries(&queue), queue.noted), (0, 0));
}

#[test]
fn a_stream_that_returns_before_it_left_the_order_has_one_entry() {
    let mut queue = queue(&[1, 1]);
    for _ in 0..1_000 {
        withdraw_all(&mut queue, 1);
        let at = Instant::ZERO;
        let stream = StreamId(1);
        queue.on_queued(Queued { stream, bytes: 100, was_idle: true, at });
    }
    let served = turn(&mut queue, 2, 1_000);
    assert_eq!(served, [500, 500]);
}

#[test]
fn what_a_stream_sends_out_of_turn_is_charged() {
    let mut queue = queue(&[1, 1]);
    let mut served = turn(&mut queue, 2, 100);
    for _ in 0..50 {
        // Continuation of a message.
        queue.on_taken(Taken {
            stream: StreamId(0),
            bytes: 100,
            message_done: false,
            turn_over: false,
            stream_empty: false,
        });
        served[0] += 1;
    }
    let later = turn(&mut queue, 2, 250);
    assert!((served[0] + later[0]).abs_diff(served[1] + later[1]) <= 2, "{served:?} {later:?}");
}

#[test]
fn weights_may_change_all_the_time() {
    let mut queue = queue(&[1, 1, 1]);
    for turn in 0..10_000 {
        queue.set_weight(StreamId(turn % 2), 1 + turn % 7);
        if turn % 3 == 0 {
            assert!(serve(&mut queue).is_some());
        }
    }
    queue.set_weight(StreamId(0), 1);
    queue.set_weight(StreamId(1), 1);
    let served = turn(&mut queue, 3, 3_000);
    assert!(served.iter().all(|&count| (900..1_200).contains(&count)), "{served:?}");
}
