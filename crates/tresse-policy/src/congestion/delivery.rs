//! Delivery rate over a round trip, losses and shortest round-trip time of one path, from its SACKs.
//!
//! A sample of the rate begins with the last SACK that arrived before the newest acknowledged packet was sent: the bytes
//! delivered since then, divided by the time since then. That is a little more than a round trip. So packets need not
//! store the bytes delivered when they were sent, as in draft-ietf-ccwg-bbr §4.5.2, and a peer that acknowledges many
//! packets at once does not make a path look faster.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;

/// Bytes of DATA chunks that one path has delivered and lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    /// Bytes delivered since the path was added.
    delivered: u64,
    /// Bytes lost since data was last acknowledged.
    lost: usize,
    shortest: Option<Duration>,
    /// Bytes per second over the last round trip; 0 before the first measurement.
    rate: u64,
    /// Times of SACKs of the last round trip, each with the bytes delivered by then.
    log: VecDeque<(Instant, u64)>,
}

impl Delivery {
    /// Takes a SACK that acknowledged `acked` bytes and reported `lost` bytes as lost. `rtt` is the round trip of the
    /// newest acknowledged chunk, if known. Nothing is in flight any more if `idle`.
    pub(super) fn on_sack(
        &mut self,
        now: Instant,
        (acked, lost): (usize, usize),
        rtt: Option<Duration>,
        idle: bool,
    ) {
        self.lost = self.lost.saturating_add(lost);
        if acked == 0 {
            return;
        }
        let before = self.delivered;
        self.delivered = self.delivered.saturating_add(acked as u64);
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
            while self.log.get(1).is_some_and(|(at, _)| now.since(*at) >= rtt) {
                self.log.pop_front();
            }
            // If the oldest SACK in the log arrived after the packet was sent, it counts as if it had arrived at that time.
            let (interval, delivered) = self
                .log
                .front()
                .map_or((rtt, before), |(at, delivered)| (now.since(*at).max(rtt), *delivered));
            self.rate = ((self.delivered - delivered) as f64 / interval.as_secs_f64()) as u64;
            let step = rtt / LOGGED_PER_ROUND;
            if self.log.is_empty() || self.log.back().is_some_and(|(at, _)| now.since(*at) >= step) {
                self.log.push_back((now, self.delivered));
            }
            if self.log.len() > MOST_LOGGED {
                self.log.pop_front();
            }
        }
        if idle {
            self.log.clear();
        }
    }

    /// Takes the bytes lost since data was last acknowledged.
    pub(super) fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// Returns the shortest round trip.
    pub(super) fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// Returns the delivery rate in bytes per second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }
}

/// SACKs of a round trip that are logged.
const LOGGED_PER_ROUND: u32 = 16;
/// Most SACKs that are logged, where round trips have become much shorter.
const MOST_LOGGED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_rate_is_what_a_round_trip_delivered() {
        let mut delivery = Delivery::default();
        for millis in 50..200 {
            delivery.on_sack(at(millis), (1250, 0), Some(RTT), false);
        }
        let error = (delivery.rate() as f64 / 1_250_000.0 - 1.0).abs();
        assert!(error < 0.03, "{}", delivery.rate());
        assert_eq!(delivery.shortest(), Some(RTT));
    }

    #[test]
    fn many_packets_acknowledged_at_once_are_no_faster_path() {
        let mut delivery = Delivery::default();
        for step in 1..40 {
            // Ten packets each 10 ms; the newest of them was sent 50 ms before.
            delivery.on_sack(at(40 + 10 * step), (12_500, 0), Some(RTT), false);
            if step > 6 {
                let error = (delivery.rate() as f64 / 1_250_000.0 - 1.0).abs();
                assert!(error < 0.2, "{}", delivery.rate());
            }
        }
    }

    #[test]
    fn idleness_is_no_part_of_a_sample() {
        let mut delivery = Delivery::default();
        delivery.on_sack(at(50), (12_500, 0), Some(RTT), true);
        delivery.on_sack(at(60_000), (62_500, 0), Some(RTT), true);
        assert_eq!(delivery.rate(), 1_250_000);
    }

    #[test]
    fn what_was_lost_is_told_once() {
        let mut delivery = Delivery::default();
        delivery.on_sack(at(50), (0, 1250), None, false);
        delivery.on_sack(at(51), (1250, 1250), Some(RTT), false);
        assert_eq!((delivery.take_lost(), delivery.take_lost()), (2500, 0));
    }

    #[test]
    fn the_log_is_bounded_where_round_trips_shrink() {
        let mut delivery = Delivery::default();
        for micros in 0..100_000 {
            let now = Instant::ZERO + Duration::from_micros(100_000 + micros);
            let rtt = if micros < 10 { Duration::from_millis(90) } else { Duration::from_micros(16) };
            delivery.on_sack(now, (1250, 0), Some(rtt), false);
            assert!(delivery.log.len() <= MOST_LOGGED);
        }
    }
}
