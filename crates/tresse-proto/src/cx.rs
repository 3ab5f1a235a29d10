//! What every handler is given besides its own subject: the time and the source of randomness.

use rand_chacha::ChaCha12Rng;
use tresse_policy::Instant;

/// Time and randomness, handed down from the endpoint's caller.
pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    pub(crate) rng: &'a mut ChaCha12Rng,
}
