//! Random draws from a seed: numbers, choices, sizes of any order of magnitude.

use std::time::Duration;

use rand_core::Rng;
use tresse_sim::seed::{Generator, Seed, unit_interval};

/// A random generator.
pub(super) struct Dice(Generator);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice::about("script", seed)
    }

    /// Returns a generator for `what`, independent of the generators for other things.
    pub(super) fn about(what: &str, seed: u64) -> Self {
        Dice(Seed(seed).generator(what))
    }

    /// Returns true with probability `share`.
    pub(super) fn hits(&mut self, share: f64) -> bool {
        unit_interval(&mut self.0) < share
    }

    /// Returns a number from `low` to `high`, uniformly distributed.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// Returns a number from `low` (not 0) to `high`; each order of magnitude is equally likely.
    pub(super) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let span = (high as f64 / low as f64).ln();
        ((low as f64 * (unit_interval(&mut self.0) * span).exp()) as u64).clamp(low, high)
    }

    /// Returns a number of milliseconds as [`magnitude`](Self::magnitude) does.
    pub(super) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.magnitude(low, high))
    }

    /// Returns a probability up to `high`, in steps of 0.001 so that scripts are easy to read.
    pub(super) fn share(&mut self, high: f64) -> f64 {
        (unit_interval(&mut self.0) * high * 1000.0).ceil() / 1000.0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.between(0, from.len() as u64 - 1) as usize]
    }
}
