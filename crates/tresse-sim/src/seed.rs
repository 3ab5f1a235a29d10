//! Seed of a run, and the random generators of its entities, each derived from the seed and the entity's name.
//!
//! No two entities share a generator, so an additional link or host does not change the random numbers of others.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// The generator of one entity.
pub type Generator = ChaCha8Rng;

/// The seed of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns 32 bytes for the entity `name`: SHA-256 over the seed and the name.
    pub fn bytes(self, name: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.0.to_le_bytes()).chain_update(name.as_bytes()).finalize().into()
    }

    /// Returns the generator of the entity `name`.
    pub fn generator(self, name: &str) -> Generator {
        Generator::from_seed(self.bytes(name))
    }
}

/// Draws a number uniformly from [0, 1), in steps of 2^-53.
pub fn unit_interval(generator: &mut Generator) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (generator.next_u64() >> 11) as f64 * STEP
}

/// Draws an exponentially distributed time with this mean.
pub(crate) fn exponential(mean: Duration, generator: &mut Generator) -> Duration {
    // 1 - u is in (0, 1].
    mean.mul_f64(-libm::log(1.0 - unit_interval(generator)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_draw_apart_and_repeatably() {
        let draw = |seed: u64, name: &str| Seed(seed).generator(name).next_u64();
        assert_eq!(draw(1, "link 0"), draw(1, "link 0"));
        assert_ne!(draw(1, "link 0"), draw(1, "link 1"));
        assert_ne!(draw(1, "link 0"), draw(2, "link 0"));
    }

    #[test]
    fn the_unit_interval_is_half_open_and_evenly_filled() {
        let mut generator = Seed(7).generator("test");
        let draws: Vec<f64> = (0..10_000).map(|_| unit_interval(&mut generator)).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // Standard error of the mean is 0.0029.
        assert!((mean - 0.5).abs() < 0.012, "{mean}");
    }
}
