//! Recent delivery rate of a path while it was busy, and its recent loss rate.
//!
//! Both are for schedulers and reports; no protocol rule depends on them.

use std::time::Duration;

use tresse_policy::Instant;

/// Rate and loss of one path, as SACKs show them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Estimate {
    /// Delivery rate in bit/s; 0 before the first measurement.
    rate: u64,
    /// Start of the present interval. It is `None` from when the path was idle until the next acknowledgement, so that neither
    /// idle time nor the first round trip lowers the rate.
    since: Option<Instant>,
    /// Bytes acknowledged in the interval.
    bytes: usize,
    /// Bytes acknowledged; halved from time to time, together with `lost`.
    acked: u64,
    lost: u64,
    /// Loss rate that the application set, in parts per million; it takes precedence over the estimate.
    given: Option<u32>,
}

impl Estimate {
    pub(super) const NEW: Self = Estimate { rate: 0, since: None, bytes: 0, acked: 0, lost: 0, given: None };

    /// Begins anew, because data is sent after nothing was in flight.
    pub(super) fn on_busy(&mut self) {
        self.since = None;
    }

    /// Counts `acked` bytes as acknowledged and `lost` bytes as lost. An interval lasts a round-trip time.
    pub(super) fn on_sack(&mut self, now: Instant, acked: usize, lost: usize, srtt: Option<Duration>) {
        self.count(acked, lost);
        let Some(since) = self.since else {
            self.since = Some(now);
            self.bytes = 0;
            return;
        };
        self.bytes += acked;
        let interval = now - since;
        if interval.is_zero() || srtt.is_none_or(|srtt| interval < srtt) {
            return;
        }
        let sample = (self.bytes as f64 * 8.0 / interval.as_secs_f64()) as u64;
        self.rate = if self.rate == 0 { sample } else { self.rate - self.rate / 4 + sample / 4 };
        self.since = Some(now);
        self.bytes = 0;
    }

    /// Counts `bytes` in flight as lost.
    pub(super) fn on_lost(&mut self, bytes: usize) {
        self.count(0, bytes);
    }

    /// Returns the delivery rate of DATA chunks in bit/s; 0 if it is not known yet.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Sets the loss rate, from 0 to 1; `None` returns to the estimate.
    pub(super) fn set_loss(&mut self, share: Option<f64>) {
        self.given = share.map(|share| (share.clamp(0.0, 1.0) * MILLION) as u32);
    }

    /// Returns the loss rate that was set, or the lost share of the bytes sent recently, from 0 to 1.
    pub(super) fn loss(&self) -> f64 {
        if let Some(given) = self.given {
            return f64::from(given) / MILLION;
        }
        // This is called for every packet, and mostly nothing was lost.
        if self.lost == 0 { 0.0 } else { self.lost as f64 / (self.acked + self.lost) as f64 }
    }

    fn count(&mut self, acked: usize, lost: usize) {
        self.acked += acked as u64;
        self.lost += lost as u64;
        if self.acked + self.lost > LOSS_MEMORY {
            self.acked /= 2;
            self.lost /= 2;
        }
    }
}

const MILLION: f64 = 1e6;
/// Bytes that the loss rate covers at most, and half of them at least: some hundred full packets.
const LOSS_MEMORY: u64 = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_rate_is_that_of_whole_round_trips() {
        let srtt = Some(Duration::from_millis(20));
        let mut estimate = Estimate::NEW;
        estimate.on_busy();
        estimate.on_sack(at(20), 2904, 0, srtt);
        estimate.on_sack(at(30), 12_500, 0, srtt);
        assert_eq!(estimate.rate(), 0, "not a round-trip time yet");
        estimate.on_sack(at(40), 12_500, 0, srtt);
        assert_eq!(estimate.rate(), 10_000_000, "25,000 bytes in 20 ms");
        estimate.on_sack(at(60), 50_000, 0, srtt);
        assert_eq!(estimate.rate(), 12_500_000, "a quarter of the way to 20 Mbit/s");
    }

    #[test]
    fn idleness_does_not_lower_the_rate() {
        let srtt = Some(Duration::from_millis(20));
        let mut estimate = Estimate::NEW;
        estimate.on_sack(at(20), 1452, 0, srtt);
        estimate.on_sack(at(40), 25_000, 0, srtt);
        estimate.on_busy();
        estimate.on_sack(at(5000), 1452, 0, srtt);
        assert_eq!(estimate.rate(), 10_000_000);
    }

    #[test]
    fn a_loss_rate_that_was_told_goes_before_the_estimate() {
        let mut estimate = Estimate::NEW;
        estimate.on_sack(at(0), 3000, 1000, None);
        estimate.set_loss(Some(0.01));
        assert_eq!(estimate.loss(), 0.01);
        estimate.set_loss(Some(7.0));
        assert_eq!(estimate.loss(), 1.0);
        estimate.set_loss(None);
        assert_eq!(estimate.loss(), 0.25);
    }

    #[test]
    fn loss_is_a_share_of_what_was_sent_lately() {
        let mut estimate = Estimate::NEW;
        assert_eq!(estimate.loss(), 0.0);
        estimate.on_sack(at(0), 3000, 1000, None);
        assert_eq!(estimate.loss(), 0.25);
        estimate.on_lost(4000);
        assert_eq!(estimate.loss(), 0.625);
        for _ in 0..1000 {
            estimate.on_sack(at(0), 14_520, 0, None);
        }
        assert!(estimate.loss() < 0.001, "old losses are forgotten: {}", estimate.loss());
    }
}
