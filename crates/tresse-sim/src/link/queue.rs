//! Queue in front of a transmitter, limited in packets or in bytes.
//!
//! A first-in first-out queue before a transmitter whose rate is known in advance needs no event for each departure:
//! when a packet is queued, the start of its transmission is known. The queue keeps these starts until they have
//! passed. It is independent of rate and delay: the link calculates these starts.

use std::collections::VecDeque;
use std::fmt;

use tresse_proto::{Instant, units};

/// Limit of a queue. The packet in transmission is not in the queue and does not count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Packets of any size.
    Packets(u32),
    /// Bytes of IP packets.
    Bytes(u64),
}

impl QueueLimit {
    /// The largest limit in packets that [`QueueLimit::parse`] accepts.
    pub const MAX_PACKETS: u32 = 1_000_000;
    /// The largest limit in bytes that [`QueueLimit::parse`] accepts.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// Reads "100 packets" or a size such as "64KiB".
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = number.trim().parse().ok()?;
            return (packets <= Self::MAX_PACKETS).then_some(QueueLimit::Packets(packets));
        }
        let bytes = units::parse_size(text).ok()?;
        (bytes <= Self::MAX_BYTES).then_some(QueueLimit::Bytes(bytes))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(packets) => write!(f, "{packets} packets"),
            QueueLimit::Bytes(bytes) => f.write_str(&units::format_size(*bytes)),
        }
    }
}

/// Occupancy of a queue: at present, at most, and over time.
#[derive(Debug)]
pub(super) struct Occupancy {
    limit: QueueLimit,
    packets: usize,
    bytes: u64,
    longest: usize,
    /// Integral of the length over time, in packet-nanoseconds, up to `integrated_to`.
    packet_nanos: u128,
    integrated_to: Instant,
}

impl Occupancy {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Occupancy { limit, packets: 0, bytes: 0, longest: 0, packet_nanos: 0, integrated_to: Instant::ZERO }
    }

    /// Returns whether a packet of `bytes` may wait.
    pub(super) fn admits(&self, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Packets(packets) => self.packets < packets as usize,
            QueueLimit::Bytes(limit) => self.bytes + u64::from(bytes) <= limit,
        }
    }

    /// Adds a packet of `bytes` bytes that begins to wait at `now`.
    pub(super) fn enter(&mut self, now: Instant, bytes: u32) {
        self.integrate(now);
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.longest = self.longest.max(self.packets);
    }

    /// Removes a packet that waited until `now`.
    pub(super) fn leave(&mut self, now: Instant, bytes: u32) {
        self.integrate(now);
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }

    /// Returns the number of waiting packets.
    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Returns the bytes of waiting packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the integral of the length up to the last [`Occupancy::integrate`], in packet-nanoseconds.
    pub(super) fn packet_nanos(&self) -> u128 {
        self.packet_nanos
    }

    /// Returns the most packets that waited since the last call. The count begins again with the present length.
    pub(super) fn take_longest(&mut self) -> usize {
        std::mem::replace(&mut self.longest, self.packets)
    }

    /// Adds the present length to the integral for the time until `to`.
    pub(super) fn integrate(&mut self, to: Instant) {
        let passed = to.as_nanos().saturating_sub(self.integrated_to.as_nanos());
        self.packet_nanos += u128::from(passed) * self.packets as u128;
        self.integrated_to = self.integrated_to.max(to);
    }
}

/// The waiting packets, oldest first, in a queue that transmits all of them.
#[derive(Debug)]
pub(super) struct Fifo {
    waiting: VecDeque<Waiting>,
    pub(super) occupancy: Occupancy,
    /// Time at which the last packet left, if no packet waits.
    idle_since: Instant,
}

#[derive(Debug)]
struct Waiting {
    /// Time at which the transmission of the packet starts, and its wait ends.
    starts: Instant,
    bytes: u32,
}

impl Fifo {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Fifo { waiting: VecDeque::new(), occupancy: Occupancy::new(limit), idle_since: Instant::ZERO }
    }

    /// Removes the packets whose transmission has started by `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(head) = self.waiting.front() {
            if head.starts > now {
                break;
            }
            self.occupancy.leave(head.starts, head.bytes);
            self.idle_since = head.starts;
            self.waiting.pop_front();
        }
    }

    /// Queues an admitted packet at `now`. Its transmission starts at `starts`, after all others.
    pub(super) fn push(&mut self, now: Instant, starts: Instant, bytes: u32) {
        self.waiting.push_back(Waiting { starts, bytes });
        self.occupancy.enter(now, bytes);
    }

    /// Returns the time at which the last packet left, if no packet waits.
    pub(super) fn idle_since(&self) -> Instant {
        self.idle_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn limits_have_a_text_form() {
        assert_eq!(QueueLimit::parse("100 packets"), Some(QueueLimit::Packets(100)));
        assert_eq!(QueueLimit::parse("1 packet"), Some(QueueLimit::Packets(1)));
        assert_eq!(QueueLimit::parse("64KiB"), Some(QueueLimit::Bytes(65_536)));
        for text in ["100", "packets", "-1 packets", "1.5 packets", "9999999999 packets", "2GiB", ""] {
            assert_eq!(QueueLimit::parse(text), None, "{text}");
        }
        for limit in [QueueLimit::Packets(7), QueueLimit::Bytes(1500)] {
            assert_eq!(QueueLimit::parse(&limit.to_string()), Some(limit));
        }
    }

    #[test]
    fn packets_wait_until_their_transmission_starts() {
        let mut queue = Fifo::new(QueueLimit::Packets(2));
        queue.push(at(0), at(10), 1500);
        queue.push(at(0), at(20), 1500);
        assert!(!queue.occupancy.admits(40), "two wait, and two may");
        queue.advance(at(10));
        assert_eq!(queue.occupancy.packets(), 1);
        assert!(queue.occupancy.admits(40));
        queue.advance(at(100));
        assert_eq!((queue.occupancy.packets(), queue.idle_since()), (0, at(20)));
        // Two waited for 10 ns, then one for 10 ns.
        assert_eq!(queue.occupancy.packet_nanos(), 30);
        assert_eq!((queue.occupancy.take_longest(), queue.occupancy.take_longest()), (2, 0));
    }

    #[test]
    fn a_byte_limit_counts_bytes() {
        let mut queue = Fifo::new(QueueLimit::Bytes(3000));
        queue.push(at(0), at(10), 1500);
        assert!(queue.occupancy.admits(1500));
        assert!(!queue.occupancy.admits(1501));
    }
}
