//! Delays of messages: a bounded sample, spread evenly over the time, and its percentiles.

use super::message::Delay;

/// Delays in nanoseconds, between two clocks that may differ.
#[derive(Default)]
pub(super) struct Delays {
    kept: Vec<i64>,
    /// One delay of 2^`every` is kept.
    every: u32,
    seen: u64,
    /// The longest of all delays, kept or not.
    longest: Option<i64>,
}

impl Delays {
    pub(super) fn add(&mut self, nanos: i64) {
        self.longest = self.longest.max(Some(nanos));
        if self.seen.is_multiple_of(1 << self.every) {
            if self.kept.len() == MOST {
                let mut position = 0;
                self.kept.retain(|_| {
                    position += 1;
                    position % 2 == 1
                });
                self.every += 1;
            }
            if self.seen.is_multiple_of(1 << self.every) {
                self.kept.push(nanos);
            }
        }
        self.seen += 1;
    }

    /// Returns the percentiles; `None` before the first delay.
    pub(super) fn read(&self) -> Option<Delay> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        // The smallest delay that `percent` of a hundred do not exceed (nearest rank).
        let at = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1));
        let millis = |percent| at(percent).map(|nanos| *nanos as f64 / 1e6);
        Some(Delay {
            p50_ms: millis(50)?,
            p95_ms: millis(95)?,
            p99_ms: millis(99)?,
            max_ms: self.longest? as f64 / 1e6,
            error_ms: 0.0,
        })
    }
}

/// Most delays that are kept.
const MOST: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_an_even_sample() {
        let mut delays = Delays::default();
        assert_eq!(delays.read(), None);
        for count in 1..=1_000_000 {
            delays.add(count * 1_000_000);
        }
        assert!(delays.kept.len() <= MOST && delays.kept.len() >= MOST / 2);
        let delay = delays.read().expect("some");
        for (got, expected) in [(delay.p50_ms, 5e5), (delay.p99_ms, 9.9e5), (delay.max_ms, 1e6)] {
            assert!((got / expected - 1.0).abs() < 1e-3, "{delay:?}");
        }
    }

    #[test]
    fn the_longest_delay_is_reported_although_it_is_not_kept() {
        let mut delays = Delays::default();
        for count in 0..4 * MOST {
            delays.add(if count == MOST + 1 { 9_000_000 } else { 1_000_000 });
        }
        assert!(!delays.kept.contains(&9_000_000));
        assert_eq!(delays.read().map(|delay| delay.max_ms), Some(9.0));
    }

    #[test]
    fn few_are_all_kept() {
        let mut delays = Delays::default();
        (1..=4).for_each(|count| delays.add(count * 1_000_000));
        let delay = delays.read().expect("four");
        assert_eq!((delay.p50_ms, delay.p95_ms, delay.max_ms), (2.0, 4.0, 4.0));
        let corrected = delay.corrected(-1.0, 0.5);
        assert_eq!((corrected.p50_ms, corrected.error_ms), (3.0, 0.5));
    }
}
