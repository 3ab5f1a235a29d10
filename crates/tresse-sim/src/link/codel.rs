//! Controlled delay (RFC 8289): the queue drops packets from its head, or marks them, if packets have waited longer
//! than the target for longer than the interval.
//!
//! The decision on a packet depends on the packets behind it, and so is made when its turn comes. So this queue keeps
//! its packets until they depart. It is independent of the link's rate: the link calls it when the transmitter is free.

use std::collections::VecDeque;
use std::time::Duration;

use tresse_proto::Instant;

use super::LinkPacket;
use super::queue::{Occupancy, QueueLimit};

/// The parameters of a CoDel queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CoDelSpec {
    /// Acceptable standing wait (TARGET).
    pub target: Duration,
    /// Time for which the wait must have been above the target before the first drop (INTERVAL), about the longest
    /// usual round trip.
    pub interval: Duration,
    /// True to mark in place of dropping, if the hosts support ECN.
    pub ecn: bool,
}

impl Default for CoDelSpec {
    /// RFC 8289 §4.3 and §4.4.
    fn default() -> Self {
        CoDelSpec { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// Packets that left the queue at one transmission opportunity.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct CoDelOutcome {
    /// Packets dropped from the head.
    pub(super) dropped: u32,
    /// Length in bytes of the packet to transmit, which was behind them.
    pub(super) next: Option<u32>,
    /// True if this packet gets a mark.
    pub(super) marked: bool,
}

/// The waiting packets, and the state of RFC 8289 §5.3.
#[derive(Debug)]
pub(super) struct CoDel {
    spec: CoDelSpec,
    waiting: VecDeque<Waiting>,
    pub(super) occupancy: Occupancy,
    /// Length of the largest packet so far: a queue that holds no more than that is not standing.
    largest: u32,
    /// Time at which the wait will have been above the target for an interval, if it stays there.
    first_above: Option<Instant>,
    /// Dropping goes on; time of the next drop, and number of drops since dropping began.
    dropping: bool,
    drop_next: Instant,
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    bytes: u32,
    markable: bool,
}

impl CoDel {
    pub(super) fn new(spec: CoDelSpec, limit: QueueLimit) -> Self {
        CoDel {
            spec,
            waiting: VecDeque::new(),
            occupancy: Occupancy::new(limit),
            largest: 0,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Queues a packet; returns false if the limit does not admit it.
    pub(super) fn push(&mut self, now: Instant, packet: LinkPacket) -> bool {
        let LinkPacket { bytes, markable, .. } = packet;
        self.largest = self.largest.max(bytes);
        if !self.occupancy.admits(bytes) {
            return false;
        }
        self.occupancy.enter(now, bytes);
        self.waiting.push_back(Waiting { since: now, bytes, markable });
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes the packet that the transmitter, free at `now`, is to send next, and the packets dropped before it.
    pub(super) fn serve(&mut self, now: Instant) -> CoDelOutcome {
        let (mut dropped, mut marked) = (0, false);
        let (mut next, mut too_late) = self.take(now);
        if self.dropping {
            self.dropping = too_late;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                marked = self.marks(&next);
                if !marked {
                    dropped += 1;
                    (next, too_late) = self.take(now);
                    self.dropping = too_late;
                }
                if too_late {
                    self.drop_next = self.after(self.drop_next);
                }
                if marked {
                    break;
                }
            }
        } else if too_late {
            marked = self.marks(&next);
            if !marked {
                dropped += 1;
                (next, _) = self.take(now);
            }
            self.begin_dropping(now);
        }
        CoDelOutcome { dropped, next: next.map(|head| head.bytes), marked }
    }

    /// Returns whether `head` is marked in place of being dropped.
    fn marks(&self, head: &Option<Waiting>) -> bool {
        self.spec.ecn && head.as_ref().is_some_and(|head| head.markable)
    }

    /// Begins dropping. If dropping ended not long ago, the rate begins near the one that controlled the queue then (RFC 8289 §5.5).
    fn begin_dropping(&mut self, now: Instant) {
        self.dropping = true;
        let before = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.spec.interval.saturating_mul(16);
        self.count = if before > 1 && recent { before } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }

    /// Removes the head of the queue. Returns it, and whether the wait has been above the target for an interval.
    fn take(&mut self, now: Instant) -> (Option<Waiting>, bool) {
        let Some(head) = self.waiting.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.occupancy.leave(now, head.bytes);
        let standing = self.occupancy.bytes() > u64::from(self.largest);
        if now.since(head.since) < self.spec.target || !standing {
            self.first_above = None;
            return (Some(head), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.spec.interval);
        (Some(head), now >= first_above)
    }

    /// Returns the time of the next drop: the interval is divided by the square root of the number of drops (RFC 8289 §3.3).
    fn after(&self, drop: Instant) -> Instant {
        drop + Duration::from_nanos(
            (self.spec.interval.as_nanos() as f64 / f64::from(self.count).sqrt()) as u64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn queue() -> CoDel {
        CoDel::new(CoDelSpec::default(), QueueLimit::Packets(1000))
    }

    #[test]
    fn short_waits_and_short_queues_are_left_alone() {
        let mut queue = queue();
        for ms in 0..1000 {
            queue.push(at(ms), LinkPacket::from(1500));
            queue.push(at(ms), LinkPacket::from(1500));
            let served = [queue.serve(at(ms + 4)), queue.serve(at(ms + 4))];
            assert_eq!(
                served,
                [CoDelOutcome { dropped: 0, next: Some(1500), marked: false }; 2],
                "below the target"
            );
        }
        for ms in (2000..3000).step_by(50) {
            queue.push(at(ms), LinkPacket::from(1500));
            queue.push(at(ms), LinkPacket::from(1500));
            let served = [queue.serve(at(ms + 49)), queue.serve(at(ms + 49))];
            assert_eq!(
                served,
                [CoDelOutcome { dropped: 0, next: Some(1500), marked: false }; 2],
                "not more than a packet behind"
            );
        }
    }

    /// One packet per millisecond arrives and leaves, with a standing queue of 20.
    #[test]
    fn a_standing_queue_is_dropped_by_the_control_law() {
        let mut queue = queue();
        for _ in 0..40 {
            queue.push(at(0), LinkPacket::from(1500));
        }
        let mut drops = Vec::new();
        for ms in 10..600 {
            queue.push(at(ms), LinkPacket::from(1500));
            let served = queue.serve(at(ms));
            drops.extend((0..served.dropped).map(|_| ms));
        }
        // The wait is above 5 ms at 10 ms, and still so 100 ms later: the first drop. Then 100, 70.7, 57.7, 50,
        // 44.7, 40.8 ms pass, each served at the next millisecond.
        assert_eq!(drops, [110, 210, 281, 339, 389, 434, 474, 512, 548, 581]);
    }

    /// The same queue with packets that may be marked: marks at the same times, and all packets arrive.
    #[test]
    fn marks_come_when_drops_would_have_come() {
        let spec = CoDelSpec { ecn: true, ..CoDelSpec::default() };
        let mut queue = CoDel::new(spec, QueueLimit::Packets(1000));
        let packet = LinkPacket { markable: true, ..LinkPacket::from(1500) };
        for _ in 0..40 {
            queue.push(at(0), packet);
        }
        let mut marks = Vec::new();
        for ms in 10..600 {
            queue.push(at(ms), packet);
            let served = queue.serve(at(ms));
            assert_eq!((served.dropped, served.next), (0, Some(1500)));
            marks.extend(served.marked.then_some(ms));
        }
        assert_eq!(marks, [110, 210, 281, 339, 389, 434, 474, 512, 548, 581]);
    }

    #[test]
    fn dropping_ends_when_the_wait_is_short_and_begins_again_where_it_was() {
        let mut queue = queue();
        let mut ms = 0;
        let mut stand = |queue: &mut CoDel, until: u64| {
            let mut dropped = 0;
            for _ in 0..40 {
                queue.push(at(ms), LinkPacket::from(1500));
            }
            while ms < until {
                ms += 1;
                queue.push(at(ms), LinkPacket::from(1500));
                dropped += queue.serve(at(ms)).dropped;
            }
            while !queue.is_empty() {
                queue.serve(at(ms));
            }
            queue.serve(at(ms));
            dropped
        };
        let first = stand(&mut queue, 400);
        assert!(!queue.dropping);
        let count = queue.count;
        assert!(first >= 5 && count >= 5, "{first}, {count}");
        let again = stand(&mut queue, 600);
        // From the beginning, 200 ms would suffice for one drop only.
        assert!(again > 1, "{again}");
    }

    #[test]
    fn the_limit_holds_as_well() {
        let mut queue = CoDel::new(CoDelSpec::default(), QueueLimit::Packets(2));
        assert_eq!([(); 3].map(|()| queue.push(at(0), LinkPacket::from(1500))), [true, true, false]);
    }
}
