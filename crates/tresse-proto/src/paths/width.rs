//! How wide a path is: the bytes that it holds without a queue, as far as it has had one.
//!
//! What a path claims of a buffer that keeps it silent may never have been measured. But a packet that had to wait in a
//! queue arrives after the one ahead of it by just what the path's rate makes of it, however little is sent; and what
//! was in flight without a queue, the path does hold. Only an estimate for whoever asks whether a path is narrow: no
//! protocol rule depends on it.

use std::time::Duration;

use tresse_policy::Instant;
use tresse_policy::engine::nanos;

use super::pipe::Acked;

/// The width of one path. Bytes are user data.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Width {
    bytes: usize,
    /// When the path was last answered.
    answered: Instant,
    /// Of packets that had to wait: their bytes, and the nanoseconds by which they arrived after those ahead of them.
    queued: (usize, u64),
    burst: Option<Burst>,
}

/// What was in flight when the packets left that are being timed.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Burst {
    sent_at: Instant,
    /// But for the last packet.
    ahead: usize,
    /// The longest round trip of what left at that instant, in nanoseconds; zero before the first answer.
    longest: u64,
}

impl Width {
    /// Of a path that nothing is known of.
    pub(super) fn new() -> Self {
        Width { bytes: usize::MAX, answered: Instant::ZERO, queued: (0, 0), burst: None }
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

    /// Bytes were acknowledged on a path that takes `base` without a queue, and claims `claimed` bytes.
    pub(super) fn on_acked(&mut self, now: Instant, what: &Acked, base: Duration, claimed: usize) {
        let answered = std::mem::replace(&mut self.answered, now);
        let Some(rtt) = what.rtt.filter(|_| !base.is_zero()) else { return };
        let (rtt, base) = (nanos(rtt), nanos(base));
        let since = nanos(now.since(answered));
        let waited = rtt.saturating_sub(base);
        // What waited for no longer than since the last answer may have arrived with that, and waited for a delayed SACK.
        if waited > base / NO_WAIT && since < waited / 4 * 3 {
            self.queued.0 += what.bytes;
            self.queued.1 += since;
            if self.queued.0 >= SAMPLE * what.pmdcs {
                self.judge(base, claimed);
            }
        }
        self.time_burst(now, rtt, base);
    }

    /// As wide as the rate at which a queue drains makes it.
    fn judge(&mut self, base: u64, claimed: usize) {
        let (bytes, time) = std::mem::take(&mut self.queued);
        let held = if time == 0 { claimed } else { (bytes as f64 * (base as f64 / time as f64)) as usize };
        let before = self.bytes.min(claimed);
        self.bytes = before - before / MEMORY + held.min(claimed) / MEMORY;
    }

    /// What was in flight when a burst left that took no longer than without a queue, the path does hold.
    fn time_burst(&mut self, now: Instant, rtt: u64, base: u64) {
        let Some(burst) = &mut self.burst else { return };
        let age = nanos(now.since(burst.sent_at));
        if rtt == age {
            burst.longest = rtt;
        } else if rtt < age {
            // It left later: all that will be known of the burst is known.
            if burst.longest > 0 && burst.longest <= base + base / NO_WAIT {
                self.bytes = self.bytes.max(burst.ahead);
            }
            self.burst = None;
        }
    }
}

/// A round trip that is longer than without a queue by less than this part tells of none.
const NO_WAIT: u64 = 8;
/// So many full packets that had to wait are one measurement,
const SAMPLE: usize = 4;
/// and it counts for this part.
const MEMORY: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use tresse_policy::PathId;

    const PACKET: usize = 1000;
    const BASE: Duration = Duration::from_millis(20);
    const CLAIMED: usize = 12 * PACKET;

    fn ms(millis: usize) -> Duration {
        Duration::from_millis(millis as u64)
    }

    fn acked(packets: usize, flight: usize, rtt: Option<Duration>) -> Acked {
        let (bytes, flight) = (packets * PACKET, flight * PACKET);
        Acked { bytes, flight, total: 0, rtt, via: PathId(0), pmdcs: PACKET }
    }

    /// A path that carries a packet in `pace` milliseconds.
    struct Link {
        width: Width,
        now: Instant,
        pace: usize,
    }

    impl Link {
        fn new(pace: usize) -> Self {
            Link { width: Width::new(), now: Instant::ZERO, pace }
        }

        /// So many bursts of so many packets each, with pauses between; how many packets wide the path then seems.
        fn send(&mut self, bursts: usize, packets: usize) -> usize {
            for _ in 0..bursts {
                let start = self.now;
                for sent in 1..=packets {
                    self.width.on_sent(start, sent * PACKET, PACKET);
                }
                for position in 0..packets {
                    let rtt = BASE + ms(position * self.pace);
                    self.now = start + rtt;
                    self.width.on_acked(self.now, &acked(1, packets - position, Some(rtt)), BASE, CLAIMED);
                }
                self.now += ms(100);
                self.width.on_acked(self.now, &acked(1, 1, Some(BASE)), BASE, CLAIMED);
            }
            self.width.bytes().min(CLAIMED) / PACKET
        }
    }

    #[test]
    fn a_path_with_a_queue_is_as_wide_as_its_rate_makes_it() {
        assert_eq!(Link::new(5).send(40, 6), 4);
        assert_eq!(Link::new(4).send(40, 6), 5);
        assert_eq!(Link::new(10).send(40, 3), 2);
        assert_eq!(Link::new(1).send(40, 6), 12, "it may be wider than what it claims");
    }

    #[test]
    fn a_packet_that_waited_for_a_delayed_sack_tells_nothing() {
        let mut width = Width::new();
        for round in 1..=40 {
            let now = Instant::ZERO + ms(400 * round);
            width.on_acked(now, &acked(2, 3, Some(BASE)), BASE, CLAIMED);
            width.on_acked(now + ms(200), &acked(1, 1, Some(BASE + ms(200))), BASE, CLAIMED);
        }
        assert_eq!(width.bytes(), usize::MAX);
    }

    #[test]
    fn one_measurement_alone_makes_no_path_narrow() {
        assert_eq!(Link::new(20).send(1, 6), 6, "half way from what it claims");
    }

    #[test]
    fn a_path_whose_bursts_take_no_longer_is_as_wide_as_they_are() {
        let mut link = Link::new(10);
        assert_eq!(link.send(40, 4), 2);
        link.pace = 0;
        assert_eq!(link.send(1, 8), 7, "what was ahead of the last packet");
    }

    #[test]
    fn a_burst_that_was_lost_and_packets_that_were_not_timed_tell_nothing() {
        let mut width = Width::new();
        width.on_sent(Instant::ZERO, 3 * PACKET, PACKET);
        for (millis, rtt) in [(500, None), (1000, Some(BASE)), (1500, Some(BASE))] {
            width.on_acked(Instant::ZERO + ms(millis), &acked(1, 3, rtt), BASE, CLAIMED);
        }
        assert_eq!((width.bytes(), width.burst), (usize::MAX, None));
    }
}
