//! Receiving half of a connection: data that has arrived, and its acknowledgement (RFC 9293 §3.8.6, RFC 5681 §4.2, RFC
//! 2018).
//!
//! Numbers are offsets from the peer's SYN, which has number 0. The application reads at once, so the window never shrinks.

use std::time::Duration;

use tresse_proto::Instant;

/// Receiving side of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    /// Number before which everything has arrived.
    next: u64,
    /// Ranges of data that arrived out of order. They neither touch nor overlap; the range that grew last is the first.
    beyond: Vec<(u64, u64)>,
    /// End of the peer's data, once its FIN is known: the number of the FIN.
    fin: Option<u64>,
    /// Number of segments in order whose acknowledgement is delayed.
    unacknowledged: u32,
    acknowledge_at: Option<Instant>,
}

impl Receiver {
    /// Takes a segment that occupies `[start, start + length)`, SYN and FIN included, and lies inside the window.
    pub(super) fn on_segment(&mut self, now: Instant, start: u64, length: u64, fin: bool) {
        let end = start + length;
        if fin && length > 0 {
            self.fin = Some(end - 1);
        }
        let in_order = start <= self.next && end > self.next && self.beyond.is_empty();
        if length == 0 {
            return;
        }
        if start <= self.next {
            self.next = self.next.max(end);
        } else {
            self.keep(start, end);
        }
        while let Some(position) = self.beyond.iter().position(|(start, _)| *start <= self.next) {
            let (_, end) = self.beyond.remove(position);
            self.next = self.next.max(end);
        }
        self.unacknowledged += 1;
        // Every second segment, data out of order, and data that fills a gap are acknowledged at once.
        if in_order && self.unacknowledged < 2 && !fin {
            self.acknowledge_at.get_or_insert(now + ACK_DELAY);
        } else {
            self.acknowledge_at = Some(now);
        }
    }

    /// Returns the number before which everything has arrived.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the ranges that arrived out of order, newest first.
    pub(super) fn beyond(&self) -> &[(u64, u64)] {
        &self.beyond
    }

    /// Returns the bytes of payload that the application has received.
    pub(super) fn delivered(&self) -> u64 {
        let payload_end = self.fin.map_or(self.next, |fin| self.next.min(fin));
        payload_end.saturating_sub(1)
    }

    /// Returns whether all data of the peer, and its FIN, have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Returns the time at which an acknowledgement is due, if one is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.acknowledge_at
    }

    /// Notes that an acknowledgement is sent.
    pub(super) fn on_acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.acknowledge_at = None;
    }

    /// Puts a range before the others, joined with the ranges that it touches.
    fn keep(&mut self, mut start: u64, mut end: u64) {
        self.beyond.retain(|(first, behind)| {
            let apart = *behind < start || end < *first;
            if !apart {
                (start, end) = (start.min(*first), end.max(*behind));
            }
            apart
        });
        self.beyond.insert(0, (start, end));
    }
}

/// Time that an acknowledgement may wait for a second segment; RFC 5681 allows up to 500 ms.
const ACK_DELAY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn every_second_segment_is_acknowledged_at_once() {
        let mut receiver = Receiver::default();
        receiver.on_segment(at(0), 0, 1, false);
        assert_eq!(receiver.due(), Some(at(200)));
        receiver.on_segment(at(10), 1, 1460, false);
        assert_eq!(receiver.due(), Some(at(10)));
        receiver.on_acknowledged();
        assert_eq!((receiver.due(), receiver.next(), receiver.delivered()), (None, 1461, 1460));
    }

    #[test]
    fn what_is_out_of_order_is_told_newest_first_and_joined() {
        let mut receiver = Receiver::default();
        for start in [100, 300, 500] {
            receiver.on_segment(at(1), start, 100, false);
            assert_eq!(receiver.due(), Some(at(1)));
        }
        assert_eq!(receiver.beyond(), [(500, 600), (300, 400), (100, 200)]);
        receiver.on_segment(at(2), 200, 100, false);
        assert_eq!(receiver.beyond(), [(100, 400), (500, 600)]);
        receiver.on_segment(at(3), 0, 100, false);
        assert_eq!((receiver.next(), receiver.beyond()), (400, &[(500, 600)][..]));
        receiver.on_segment(at(3), 0, 600, false);
        assert_eq!((receiver.next(), receiver.beyond()), (600, &[][..]));
    }

    #[test]
    fn the_end_is_reached_when_nothing_before_it_is_missing() {
        let mut receiver = Receiver::default();
        receiver.on_segment(at(0), 0, 1, false);
        receiver.on_segment(at(0), 11, 11, true);
        assert!(!receiver.is_complete());
        receiver.on_segment(at(0), 1, 10, false);
        assert!(receiver.is_complete());
        assert_eq!(receiver.delivered(), 20, "neither SYN nor FIN count");
    }
}
