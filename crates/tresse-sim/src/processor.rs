//! Processor of a host on which packets cost time: its queue, and the time at which it is free.
//!
//! Independent of the type of packets, and of what the host does with them.

use std::collections::VecDeque;
use std::time::Duration;

use tresse_proto::Instant;

/// Queue of work: received packets, and packets to send, in alternation.
#[derive(Debug)]
pub(crate) struct Processor<P> {
    packet_time: Duration,
    free_at: Instant,
    worked: Duration,
    waiting: VecDeque<P>,
    /// True if the next turn is that of a packet to send, if there is one: neither direction starves the other.
    sends: bool,
}

/// Next task of a processor that is free.
pub(crate) enum Task<P> {
    /// Process this received packet.
    Receive(P),
    /// Send a packet, if there is one.
    Send,
}

impl<P> Processor<P> {
    /// A processor that works for `packet_time` on each packet, above zero.
    pub(crate) fn new(packet_time: Duration) -> Self {
        let (free_at, worked) = (Instant::ZERO, Duration::ZERO);
        Processor { packet_time, free_at, worked, waiting: VecDeque::new(), sends: false }
    }

    /// Queues a received packet.
    pub(crate) fn push(&mut self, packet: P) {
        self.waiting.push_back(packet);
    }

    /// Returns the time at which the processor is free, if that is after `now`.
    pub(crate) fn busy_until(&self, now: Instant) -> Option<Instant> {
        Some(self.free_at).filter(|free_at| *free_at > now)
    }

    /// Returns the next task of the processor, which must be free.
    pub(crate) fn next(&mut self) -> Task<P> {
        self.sends = !self.sends;
        if self.sends {
            return Task::Send;
        }
        self.waiting.pop_front().map_or(Task::Send, Task::Receive)
    }

    /// Returns whether received packets wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds the work for one more packet, at `now`.
    pub(crate) fn work(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now) + self.packet_time;
        self.worked += self.packet_time;
    }

    /// Returns the time that the processor has worked until `now`.
    pub(crate) fn worked(&self, now: Instant) -> Duration {
        self.worked.saturating_sub(self.free_at.since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_their_turns_and_work_adds_up() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut processor = Processor::new(Duration::from_millis(10));
        (1..=2).for_each(|packet| processor.push(packet));
        let mut next = || match processor.next() {
            Task::Send => 0,
            Task::Receive(packet) => packet,
        };
        assert_eq!([next(), next(), next(), next(), next(), next()], [0, 1, 0, 2, 0, 0]);
        assert_eq!(processor.busy_until(at(5)), None);
        processor.work(at(5));
        assert_eq!(processor.busy_until(at(5)), Some(at(15)));
        let worked = [at(5), at(9), at(15), at(20)].map(|now| processor.worked(now).as_millis());
        assert_eq!(worked, [0, 4, 10, 10]);
    }
}
