//! Round-trip times and the retransmission timeout (RFC 6298).

use std::time::Duration;

/// Estimate of the round-trip time, and the timeout that follows from it.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    least: Duration,
    /// Smoothed round trip and its variation, after the first sample.
    smoothed: Option<(Duration, Duration)>,
    timeout: Duration,
}

impl RoundTrip {
    /// An estimate without a sample; the timeout is never below `least`.
    pub(super) fn new(least: Duration) -> Self {
        RoundTrip { least, smoothed: None, timeout: INITIAL.max(least) }
    }

    /// Takes the round trip of a segment that was sent only once.
    pub(super) fn on_sample(&mut self, sample: Duration) {
        let (smoothed, variation) = match self.smoothed {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                ((smoothed * 7 + sample) / 8, (variation * 3 + smoothed.abs_diff(sample)) / 4)
            }
        };
        self.smoothed = Some((smoothed, variation));
        self.timeout = (smoothed + variation * 4).clamp(self.least, LONGEST);
    }

    /// Doubles the timeout after an expiration (§5.5), until the next sample.
    pub(super) fn back_off(&mut self) {
        self.timeout = (self.timeout * 2).min(LONGEST);
    }

    /// Returns the retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

const INITIAL: Duration = Duration::from_secs(1);
/// The lowest maximum of the RTO that RFC 6298 §2.5 allows.
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_samples_and_doubles_without() {
        let ms = Duration::from_millis;
        let mut round_trip = RoundTrip::new(ms(200));
        assert_eq!(round_trip.timeout(), ms(1000));
        round_trip.on_sample(ms(100));
        assert_eq!(round_trip.timeout(), ms(100 + 4 * 50));
        round_trip.on_sample(ms(100));
        assert_eq!(round_trip.timeout(), ms(250), "100 ms and four times 37.5 ms");
        for _ in 0..20 {
            round_trip.on_sample(ms(100));
        }
        assert_eq!(round_trip.timeout(), ms(200), "the least");
        round_trip.back_off();
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), ms(800));
        for _ in 0..20 {
            round_trip.back_off();
        }
        assert_eq!(round_trip.timeout(), LONGEST);
    }
}
