//! Lateness of the packets of an emulation: the error of its delays.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Histogram of the lateness of packets.
pub(super) struct Lateness {
    microseconds: Histogram<u32>,
}

/// Percentiles of the lateness, in milliseconds.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub(super) struct LatenessReport {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
}

impl Lateness {
    pub(super) fn new() -> Result<Self, String> {
        let microseconds = Histogram::new_with_max(LONGEST, DIGITS).map_err(|error| error.to_string())?;
        Ok(Lateness { microseconds })
    }

    /// Counts a packet that was sent `late` after it came out of its link.
    pub(super) fn add(&mut self, late: Duration) {
        self.microseconds.saturating_record(late.as_micros() as u64);
    }

    /// Returns the percentiles; `None` before the first packet.
    pub(super) fn report(&self) -> Option<LatenessReport> {
        let at = |quantile| self.microseconds.value_at_quantile(quantile) as f64 / 1e3;
        let max_ms = self.microseconds.max() as f64 / 1e3;
        (!self.microseconds.is_empty()).then(|| LatenessReport {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms,
        })
    }
}

/// Largest value in microseconds; larger values count as this one.
const LONGEST: u64 = 60_000_000;
const DIGITS: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_counted() {
        let mut lateness = Lateness::new().expect("bounds that it takes");
        assert_eq!(lateness.report(), None);
        for count in 1..=1000 {
            lateness.add(Duration::from_millis(count));
        }
        let LatenessReport { p50_ms, p99_ms, p999_ms, max_ms } = lateness.report().expect("some");
        for (got, expected) in [(p50_ms, 500.0), (p99_ms, 990.0), (p999_ms, 999.0), (max_ms, 1000.0)] {
            assert!((got / expected - 1.0_f64).abs() < 0.01, "{got} for {expected}");
        }
        lateness.add(Duration::from_secs(3600));
        assert!(lateness.report().is_some_and(|late| (late.max_ms / 6e4 - 1.0).abs() < 0.01));
    }
}
