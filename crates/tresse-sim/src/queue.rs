//! Event queue: the next events and their times.
//!
//! Owns the order of events: by time in whole nanoseconds, and at one time by insertion, so that ties are never random.
//! Independent of the type of the events.
//!
//! Most events of a source come in order: a link delivers its packets one after the other. Such a source has a lane.
//! Only the first event of each lane is in the heap, so the heap stays as small as the topology, however many packets
//! are on their way. The order of events is the same with and without lanes.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use tresse_proto::Instant;

/// Events by (time, insertion).
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    lanes: Vec<Lane<E>>,
    inserted: u64,
}

/// The events of one source, oldest first. Its first event is in the heap, the others are here.
#[derive(Debug)]
struct Lane<E> {
    waiting: VecDeque<Entry<E>>,
    /// Time of the last event that was added in order while an earlier one was in the queue.
    last: Option<Instant>,
}

#[derive(Debug)]
struct Entry<E> {
    time: Instant,
    number: u64,
    /// The lane whose first event this is, if it has a lane.
    lane: Option<u16>,
    event: E,
}

impl<E> EventQueue<E> {
    /// An empty queue for `lanes` sources whose events come in order, numbered from 0 on.
    pub fn new(lanes: u16) -> Self {
        let lane = |_| Lane { waiting: VecDeque::new(), last: None };
        EventQueue { heap: BinaryHeap::new(), lanes: (0..lanes).map(lane).collect(), inserted: 0 }
    }

    /// Adds an event.
    pub fn push(&mut self, time: Instant, event: E) {
        let entry = self.entry(time, None, event);
        self.heap.push(Reverse(entry));
    }

    /// Adds an event of the source `lane`. An event that comes out of order is still sorted in.
    pub fn push_in_lane(&mut self, lane: u16, time: Instant, event: E) {
        match self.lanes.get_mut(usize::from(lane)).map(|found| &mut found.last) {
            // The lane's first event is in the heap, and this one comes after all events of the lane.
            Some(Some(last)) if *last <= time => {
                *last = time;
                let entry = self.entry(time, Some(lane), event);
                self.lanes[usize::from(lane)].waiting.push_back(entry);
            }
            Some(last @ None) => {
                *last = Some(time);
                let entry = self.entry(time, Some(lane), event);
                self.heap.push(Reverse(entry));
            }
            _ => self.push(time, event),
        }
    }

    /// Removes and returns the next event that is due at `end` or before.
    pub fn pop_until(&mut self, end: Instant) -> Option<(Instant, E)> {
        let mut next = self.heap.peek_mut()?;
        if next.0.time > end {
            return None;
        }
        let follower = next.0.lane.and_then(|lane| {
            let lane = &mut self.lanes[usize::from(lane)];
            let follower = lane.waiting.pop_front();
            if follower.is_none() {
                lane.last = None;
            }
            follower
        });
        let Reverse(entry) = match follower {
            Some(follower) => std::mem::replace(&mut *next, Reverse(follower)),
            None => PeekMut::pop(next),
        };
        Some((entry.time, entry.event))
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.time)
    }

    fn entry(&mut self, time: Instant, lane: Option<u16>, event: E) -> Entry<E> {
        let number = self.inserted;
        self.inserted += 1;
        Entry { time, number, lane, event }
    }

    /// Returns the number of events in the queue.
    pub fn len(&self) -> usize {
        self.heap.len() + self.lanes.iter().map(|lane| lane.waiting.len()).sum::<usize>()
    }

    /// Returns whether no event is left.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Entry<E> {
    /// Returns time and number in one integer, which is compared without a branch.
    fn key(&self) -> u128 {
        u128::from(self.time.as_nanos()) << 64 | u128::from(self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn events_leave_by_time_and_ties_by_insertion() {
        let mut queue = EventQueue::new(0);
        for (time, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(at(time), event);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(at(10))).collect();
        assert_eq!(order, [(at(3), 'b'), (at(3), 'd'), (at(4), 'e'), (at(5), 'a'), (at(5), 'c')]);
    }

    #[test]
    fn lanes_change_nothing_in_the_order() {
        // Three sources, one of which is out of order; times repeat often.
        let mut generator = crate::seed::Seed(1).generator("lanes");
        let (mut with, mut without) = (EventQueue::new(3), EventQueue::new(0));
        let mut last = [0; 3];
        for event in 0..10_000 {
            let lane = (generator.next_u32() % 3) as usize;
            let step = u64::from(generator.next_u32() % 3);
            last[lane] = if lane == 2 { last[lane] / 2 + 7 * step } else { last[lane] + step };
            with.push_in_lane(lane as u16, at(last[lane]), event);
            without.push(at(last[lane]), event);
            if generator.next_u32().is_multiple_of(4) {
                let end = at(last[0]);
                assert_eq!(with.pop_until(end), without.pop_until(end));
            }
            assert_eq!(with.len(), without.len());
        }
        while let Some(event) = without.pop_until(Instant::FAR_FUTURE) {
            assert_eq!(with.pop_until(Instant::FAR_FUTURE), Some(event));
        }
        assert!(with.is_empty());
    }

    #[test]
    fn nothing_leaves_before_its_time() {
        let mut queue = EventQueue::new(0);
        queue.push(at(7), ());
        assert_eq!(queue.pop_until(at(6)), None);
        assert_eq!(queue.next_time(), Some(at(7)));
        assert_eq!(queue.pop_until(at(7)), Some((at(7), ())));
        assert!(queue.is_empty());
    }
}
