//! The event queue: what happens next, and when.
//!
//! Owns the order of events: by time in whole nanoseconds, and at one time by insertion, so that ties are never
//! decided by chance. Refuses to know what an event means.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tresse_proto::Instant;

/// Events by (time, insertion).
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    inserted: u64,
}

#[derive(Debug)]
struct Entry<E> {
    time: Instant,
    number: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue { heap: BinaryHeap::new(), inserted: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event.
    pub fn push(&mut self, time: Instant, event: E) {
        let number = self.inserted;
        self.inserted += 1;
        self.heap.push(Reverse(Entry { time, number, event }));
    }

    /// Takes the next event that is due at `end` or before.
    pub fn pop_until(&mut self, end: Instant) -> Option<(Instant, E)> {
        let Reverse(next) = self.heap.peek()?;
        if next.time > end {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.time, entry.event))
    }

    /// Events waiting.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (Instant, u64) {
        (self.time, self.number)
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
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn events_leave_by_time_and_ties_by_insertion() {
        let mut queue = EventQueue::default();
        for (time, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(at(time), event);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(at(10))).collect();
        assert_eq!(order, [(at(3), 'b'), (at(3), 'd'), (at(4), 'e'), (at(5), 'a'), (at(5), 'c')]);
    }

    #[test]
    fn nothing_leaves_before_its_time() {
        let mut queue = EventQueue::default();
        queue.push(at(7), ());
        assert_eq!(queue.pop_until(at(6)), None);
        assert_eq!(queue.pop_until(at(7)), Some((at(7), ())));
        assert!(queue.is_empty());
    }
}
