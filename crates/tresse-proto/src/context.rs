//! Context of a handler: the present time and the source of randomness.

use rand_chacha::ChaCha12Rng;
use tresse_policy::Instant;

/// Time and randomness, as the caller of the endpoint provides them.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) rng: &'a mut ChaCha12Rng,
}
