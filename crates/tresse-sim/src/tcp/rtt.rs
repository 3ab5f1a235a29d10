//! Round-trip times and the retransmission timeout (RFC 6298).

use std::time::Duration;

/// Estimate of the round-trip time, and the timeout that follows from it.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    least: Duration,
    /// Smoothed time and its variation, after the first sample.
    smoothed: Option<(Duration, Duration)>,
    timeout: Duration,
}

impl RoundTrip {
    /// Estimate without a sample; the timeout is never below `least`.
    pub(super) fn new(least: Duration) -> Self {
        RoundTrip { least, smoothed: None, timeout: INITIAL.max(least) }
    }

    /// A segment that was sent once took this long to be acknowledged.
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

    /// The timer expired: wait twice as long (§5.5), until the next sample.
    pub(super) fn back_off(&mut self) {
        self.timeout = (self.timeout * 2).min(LONGEST);
    }

    /// Retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

const INITIAL: Duration = Duration::from_secs(1);
/// The least upper bound that RFC 6298 §2.5 allows.
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
