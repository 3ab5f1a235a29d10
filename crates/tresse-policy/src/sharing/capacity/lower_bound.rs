//! Lower bound of a path's bandwidth-delay product, by the rate at which its own queues drain.
//!
//! If a buffer blocks a path, there may be no estimate of its capacity. But a packet that waited in a queue arrives one
//! transmission time after the packet ahead of it, even if little is sent. Bytes that were in flight without a queue
//! are a lower bound, too.

use std::time::Duration;

use crate::sharing::view::PathReport;
use crate::time::{Instant, nanos};

/// The bound of one path. Bytes are those of DATA chunks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LowerBound {
    bytes: usize,
    /// Time of the last acknowledgement of data of the path.
    last_acked: Instant,
    /// Sums over packets that waited in a queue: their bytes, and the nanoseconds by which they arrived after the packets ahead.
    queued: (usize, u64),
    burst: Option<Burst>,
}

/// Packets that left at one instant and are being timed.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Burst {
    sent_at: Instant,
    /// Bytes in flight then, without the last packet.
    ahead: usize,
    /// The longest round trip of these packets, in nanoseconds; zero before the first acknowledgement.
    longest: u64,
}

impl LowerBound {
    /// Returns the bound of a path without measurements.
    pub(super) fn new() -> Self {
        LowerBound { bytes: usize::MAX, last_acked: Instant::ZERO, queued: (0, 0), burst: None }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A packet of at most `pmdcs` bytes was sent, and `flight` are in flight now. One burst at a time is timed.
    pub(super) fn on_sent(&mut self, now: Instant, flight: usize, pmdcs: usize) {
        let ahead = flight.saturating_sub(pmdcs);
        match &mut self.burst {
            Some(burst) if burst.sent_at == now => burst.ahead = ahead,
            None if ahead > 0 => self.burst = Some(Burst { sent_at: now, ahead, longest: 0 }),
            _ => {}
        }
    }

    /// Bytes were acknowledged on a path with the minimum round trip `min_rtt` and the estimate `bdp`.
    pub(super) fn on_sack(&mut self, now: Instant, report: &PathReport, min_rtt: Duration, bdp: usize) {
        let last_acked = std::mem::replace(&mut self.last_acked, now);
        let Some(rtt) = report.rtt.filter(|_| !min_rtt.is_zero()) else { return };
        let (rtt, min_rtt) = (nanos(rtt), nanos(min_rtt));
        let since = nanos(now.since(last_acked));
        let waited = rtt.saturating_sub(min_rtt);
        // If a packet waited no longer than since the last SACK, it may have arrived before that SACK and waited for a delayed SACK.
        if waited > min_rtt / NO_WAIT && since < waited / 4 * 3 {
            self.queued.0 += report.acked;
            self.queued.1 += since;
            if self.queued.0 >= SAMPLE_PACKETS * report.pmdcs {
                self.on_sample(min_rtt, bdp);
            }
        }
        self.time_burst(now, rtt, min_rtt);
    }

    /// Takes a sample of the bound: the rate at which a queue drains, times the minimum round trip.
    fn on_sample(&mut self, min_rtt: u64, bdp: usize) {
        let (bytes, time) = std::mem::take(&mut self.queued);
        let held = if time == 0 { bdp } else { (bytes as f64 * (min_rtt as f64 / time as f64)) as usize };
        let before = self.bytes.min(bdp);
        self.bytes = before - before / MEMORY + held.min(bdp) / MEMORY;
    }

    /// Raises the bound to the bytes in flight when a burst left, if the burst took no longer than without a queue.
    fn time_burst(&mut self, now: Instant, rtt: u64, min_rtt: u64) {
        let Some(burst) = &mut self.burst else { return };
        let age = nanos(now.since(burst.sent_at));
        if rtt == age {
            burst.longest = rtt;
        } else if rtt < age {
            // The acknowledged packet left after the burst: the burst will get no more measurements.
            if burst.longest > 0 && burst.longest <= min_rtt + min_rtt / NO_WAIT {
                self.bytes = self.bytes.max(burst.ahead);
            }
            self.burst = None;
        }
    }
}

/// A round trip that exceeds the minimum by less than this part of it met no queue.
const NO_WAIT: u64 = 8;
/// Full packets that waited in a queue for one sample.
const SAMPLE_PACKETS: usize = 4;
/// Divisor of the weight of a sample: the bound moves half of the distance.
const MEMORY: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathId;

    const PACKET: usize = 1000;
    const MIN_RTT: Duration = Duration::from_millis(20);
    const BDP: usize = 12 * PACKET;

    fn ms(millis: usize) -> Duration {
        Duration::from_millis(millis as u64)
    }

    fn report(packets: usize, flight: usize, rtt: Option<Duration>) -> PathReport {
        let (acked, flight) = (packets * PACKET, flight * PACKET);
        PathReport { acked, flight, rtt, return_path: PathId(0), pmdcs: PACKET }
    }

    /// A path that carries a packet in `pace` milliseconds.
    struct Link {
        bound: LowerBound,
        now: Instant,
        pace: usize,
    }

    impl Link {
        fn new(pace: usize) -> Self {
            Link { bound: LowerBound::new(), now: Instant::ZERO, pace }
        }

        /// Sends so many bursts of so many packets each, with pauses between. Returns the bound afterwards, in packets.
        fn send(&mut self, bursts: usize, packets: usize) -> usize {
            for _ in 0..bursts {
                let start = self.now;
                for sent in 1..=packets {
                    self.bound.on_sent(start, sent * PACKET, PACKET);
                }
                for position in 0..packets {
                    let rtt = MIN_RTT + ms(position * self.pace);
                    self.now = start + rtt;
                    self.bound.on_sack(self.now, &report(1, packets - position, Some(rtt)), MIN_RTT, BDP);
                }
                self.now += ms(100);
                self.bound.on_sack(self.now, &report(1, 1, Some(MIN_RTT)), MIN_RTT, BDP);
            }
            self.bound.bytes().min(BDP) / PACKET
        }
    }

    #[test]
    fn the_bound_of_a_path_with_a_queue_is_what_its_rate_fills() {
        assert_eq!(Link::new(5).send(40, 6), 4);
        assert_eq!(Link::new(4).send(40, 6), 5);
        assert_eq!(Link::new(10).send(40, 3), 2);
        assert_eq!(Link::new(1).send(40, 6), 12, "it may hold more than the estimate");
    }

    #[test]
    fn a_packet_that_waited_for_a_delayed_sack_tells_nothing() {
        let mut bound = LowerBound::new();
        for round in 1..=40 {
            let now = Instant::ZERO + ms(400 * round);
            bound.on_sack(now, &report(2, 3, Some(MIN_RTT)), MIN_RTT, BDP);
            bound.on_sack(now + ms(200), &report(1, 1, Some(MIN_RTT + ms(200))), MIN_RTT, BDP);
        }
        assert_eq!(bound.bytes(), usize::MAX);
    }

    #[test]
    fn one_sample_alone_halves_the_distance() {
        assert_eq!(Link::new(20).send(1, 6), 6, "half way from the estimate");
    }

    #[test]
    fn a_path_whose_bursts_take_no_longer_holds_them() {
        let mut link = Link::new(10);
        assert_eq!(link.send(40, 4), 2);
        link.pace = 0;
        assert_eq!(link.send(1, 8), 7, "what was ahead of the last packet");
    }

    #[test]
    fn a_burst_that_was_lost_and_packets_that_were_not_timed_tell_nothing() {
        let mut bound = LowerBound::new();
        bound.on_sent(Instant::ZERO, 3 * PACKET, PACKET);
        for (millis, rtt) in [(500, None), (1000, Some(MIN_RTT)), (1500, Some(MIN_RTT))] {
            bound.on_sack(Instant::ZERO + ms(millis), &report(1, 3, rtt), MIN_RTT, BDP);
        }
        assert_eq!((bound.bytes(), bound.burst), (usize::MAX, None));
    }
}
