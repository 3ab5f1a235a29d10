//! Orders that stream schedulers produce, if they are driven as by the core.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::schedule::path::tests::view;

/// Queues of message lengths, and a scheduler that gets the events on them.
struct Core<S> {
    scheduler: S,
    queues: BTreeMap<StreamId, VecDeque<usize>>,
    open: Option<StreamId>,
    interleaved: bool,
}

impl Backlog for BTreeMap<StreamId, VecDeque<usize>> {
    fn unsent_bytes(&self, stream: StreamId) -> usize {
        self.get(&stream).map_or(0, |queue| queue.iter().sum())
    }

    fn messages(&self, stream: StreamId) -> usize {
        self.get(&stream).map_or(0, VecDeque::len)
    }

    fn head_bytes(&self, stream: StreamId) -> usize {
        self.get(&stream).and_then(|queue| queue.front()).copied().unwrap_or(0)
    }
}

impl<S: StreamScheduler> Core<S> {
    fn new(scheduler: S) -> Self {
        Core { scheduler, queues: BTreeMap::new(), open: None, interleaved: false }
    }

    fn interleaved(scheduler: S) -> Self {
        Core { interleaved: true, ..Core::new(scheduler) }
    }

    fn queue(&mut self, messages: &[(u16, usize)]) {
        for &(stream, bytes) in messages {
            let stream = StreamId(stream);
            let queue = self.queues.entry(stream).or_default();
            let was_idle = queue.is_empty();
            queue.push_back(bytes);
            self.scheduler.on_queued(Queued { stream, bytes, was_idle, at: Instant::ZERO });
        }
    }

    /// Takes at most `limit` bytes of one message; a message that was begun is continued first.
    fn take(&mut self, limit: usize) -> Option<u16> {
        let stream = match self.open {
            Some(stream) => stream,
            None => {
                let stream = self.scheduler.next(&view(0), &self.queues)?;
                assert_eq!(self.scheduler.next(&view(0), &self.queues), Some(stream), "not repeatable");
                stream
            }
        };
        let queue = self.queues.get_mut(&stream).expect("a scheduler names streams that were queued on");
        let head = queue.front_mut().expect("a scheduler names streams with data");
        let bytes = limit.min(*head);
        *head -= bytes;
        let message_done = *head == 0;
        if message_done {
            queue.pop_front();
        }
        let turn_over = message_done || self.interleaved;
        self.open = (!turn_over).then_some(stream);
        let stream_empty = queue.is_empty();
        self.scheduler.on_taken(Taken { stream, bytes, message_done, turn_over, stream_empty });
        Some(stream.0)
    }

    fn withdraw(&mut self, stream: StreamId, ahead: usize) {
        let queue = self.queues.get_mut(&stream).unwrap();
        let bytes = queue.remove(ahead).unwrap();
        let stream_empty = queue.is_empty();
        self.scheduler.on_removed(Removed { stream, bytes, ahead, stream_empty });
    }

    fn drain(&mut self) -> Vec<u16> {
        let order = std::iter::from_fn(|| self.take(1452)).collect();
        assert!(self.scheduler.is_empty());
        order
    }
}

#[test]
fn first_come_keeps_the_order_of_the_application() {
    let mut core = Core::new(FirstCome::default());
    core.queue(&[(3, 10), (1, 10), (1, 10), (3, 10), (0, 10)]);
    assert_eq!(core.drain(), [3, 1, 1, 3, 0]);
}

#[test]
fn first_come_forgets_the_message_that_was_withdrawn() {
    let mut core = Core::new(FirstCome::default());
    core.queue(&[(1, 10), (2, 10), (1, 10), (1, 10), (3, 10)]);
    core.withdraw(StreamId(1), 1);
    assert_eq!(core.drain(), [1, 2, 1, 3]);
    core.queue(&[(1, 10), (2, 10)]);
    core.withdraw(StreamId(1), 0);
    assert_eq!(core.drain(), [2]);
}

#[test]
fn round_robin_takes_a_message_of_each_stream_in_turn() {
    let mut core = Core::new(RoundRobin::default());
    core.queue(&[(5, 10), (5, 10), (5, 10), (0, 10), (0, 10), (9, 10)]);
    assert_eq!(core.drain(), [0, 5, 9, 0, 5, 5]);
}

#[test]
fn round_robin_goes_on_after_the_stream_that_sent_last() {
    let mut core = Core::new(RoundRobin::default());
    core.queue(&[(4, 10), (7, 10)]);
    assert_eq!(core.take(1452), Some(4));
    core.queue(&[(4, 10), (2, 10)]);
    assert_eq!(core.drain(), [7, 2, 4]);
    core.queue(&[(65_535, 10), (65_535, 10), (0, 10)]);
    assert_eq!(core.drain(), [65_535, 0, 65_535]);
}

#[test]
fn round_robin_forgets_a_stream_whose_last_message_was_withdrawn() {
    let mut core = Core::new(RoundRobin::default());
    core.queue(&[(1, 10), (2, 10), (2, 10)]);
    core.withdraw(StreamId(2), 0);
    core.withdraw(StreamId(1), 0);
    assert_eq!(core.drain(), [2]);
}

/// Withdraws all messages waiting on stream 1, then queues new ones on it.
fn forgets_and_takes_again<S: StreamScheduler>(scheduler: S) {
    let mut core = Core::new(scheduler);
    core.queue(&[(1, 10), (2, 10), (2, 10), (1, 10)]);
    core.withdraw(StreamId(1), 0);
    core.withdraw(StreamId(1), 0);
    assert_eq!(core.drain(), [2, 2]);
    core.scheduler.on_packet_end();
    core.queue(&[(1, 10)]);
    assert_eq!(core.drain(), [1]);
}

#[test]
fn every_scheduler_forgets_a_stream_of_which_everything_was_withdrawn() {
    forgets_and_takes_again(FirstCome::default());
    forgets_and_takes_again(RoundRobin::default());
    forgets_and_takes_again(RoundRobinPacket::default());
    forgets_and_takes_again(Priority::default());
    forgets_and_takes_again(FairBandwidth::default());
    forgets_and_takes_again(WeightedFair::default());
}

#[test]
fn a_waiting_stream_that_gets_another_priority_waits_in_one_place_only() {
    let mut core = Core::new(Priority::default());
    core.queue(&[(1, 10), (2, 10), (3, 10), (2, 10)]);
    core.scheduler.set_value(StreamId(2), 7).expect("any priority");
    assert_eq!(core.take(1452), Some(1));
    core.scheduler.set_value(StreamId(3), 7).expect("any priority");
    core.scheduler.set_value(StreamId(2), 0).expect("any priority");
    assert_eq!(core.drain(), [2, 2, 3]);
}

#[test]
fn a_message_in_several_packets_is_one_turn() {
    let messages = [(1, 3000), (2, 3000), (1, 10)];
    let mut turns = Core::new(RoundRobin::default());
    turns.queue(&messages);
    assert_eq!(turns.drain(), [1, 1, 1, 2, 2, 2, 1]);
    let mut arrival = Core::new(FirstCome::default());
    arrival.queue(&messages);
    assert_eq!(arrival.drain(), [1, 1, 1, 2, 2, 2, 1]);
}

/// Sends packets of 1452 bytes, each filled as the core fills it, and returns the streams of each.
fn packets(core: &mut Core<RoundRobinPacket>) -> Vec<Vec<u16>> {
    let mut packets = Vec::new();
    while !core.queues.values().all(VecDeque::is_empty) {
        let (mut packet, mut room) = (Vec::new(), 1452);
        while room > 0
            && let Some(stream) = core.open.or_else(|| core.scheduler.next(&view(0), &core.queues))
            && let waiting = core.queues.unsent_bytes(stream)
            && core.take(room).is_some()
        {
            packet.push(stream.0);
            room -= waiting - core.queues.unsent_bytes(stream);
        }
        core.scheduler.on_packet_end();
        assert!(!packet.is_empty(), "nothing is sent, and data waits");
        packets.push(packet);
    }
    packets
}

#[test]
fn the_rest_of_a_message_ends_the_turn_of_a_stream_by_packet() {
    let mut core = Core::new(RoundRobinPacket::default());
    core.queue(&[(1, 2000), (1, 2000), (1, 2000), (2, 100), (2, 100), (3, 2000)]);
    let alone = [1, 1].as_slice();
    assert_eq!(packets(&mut core), [&[1][..], &[1], &[2, 2], &[3], &[3], &[1], alone, &[1]]);
}

#[test]
fn interleaved_each_fragment_is_one_turn_unless_messages_are_served_in_order() {
    let messages = [(1, 3000), (2, 3000), (1, 10)];
    let mut turns = Core::interleaved(RoundRobin::default());
    turns.queue(&messages);
    assert_eq!(turns.drain(), [1, 2, 1, 2, 1, 2, 1]);
    let mut arrival = Core::interleaved(FirstCome::default());
    arrival.queue(&messages);
    assert_eq!(arrival.drain(), [1, 1, 1, 2, 2, 2, 1]);
    let mut equals = Core::interleaved(Priority::default());
    equals.queue(&messages);
    assert_eq!(equals.drain(), [1, 2, 1, 2, 1, 2, 1], "equals take turns");
}

#[test]
fn interleaved_a_higher_message_does_not_wait_for_a_lower_one() {
    for (interleaved, order) in [(true, [5, 0, 5, 5]), (false, [5, 5, 5, 0])] {
        let mut core = Core::new(Priority::default());
        core.interleaved = interleaved;
        core.scheduler.set_value(StreamId(5), 9).expect("any priority");
        core.queue(&[(5, 4000)]);
        let first = core.take(1452).expect("data");
        core.queue(&[(0, 10)]);
        assert_eq!([vec![first], core.drain()].concat(), order);
    }
}

#[test]
fn values_are_refused_where_there_are_none() {
    let mut scheduler = RoundRobin::default();
    assert!(scheduler.set_value(StreamId(0), 1).is_err());
    assert_eq!(scheduler.value(StreamId(0)), None);
}
