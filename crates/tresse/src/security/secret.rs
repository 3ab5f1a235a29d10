//! Two identities from one secret that both hosts have: that of the TLS client and that of the server.
//!
//! The secret is stretched by Argon2id (RFC 9106), so that guessing costs memory and time. HKDF (RFC 5869) expands the
//! result into the seed of one Ed25519 key for each role. Each side has the key of its role and pins the key of the
//! other role; the rest is as with independent keys. A side may have either role, so it has both keys.

use argon2::{Algorithm, Argon2, Params, Version};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};
use zeroize::Zeroizing;

use super::identity::{ED25519_SEED, Identity};
use super::identity_error::{IdentityError, SHORTEST_SECRET};

/// The identities of a side with the secret.
pub(super) struct Shared {
    pub(super) client: Identity,
    pub(super) server: Identity,
}

impl Shared {
    /// Derives the identities from `secret`.
    ///
    /// # Errors
    /// A secret of less than [`SHORTEST_SECRET`] bytes.
    pub(super) fn new(secret: &[u8]) -> Result<Self, IdentityError> {
        if secret.len() < SHORTEST_SECRET {
            return Err(IdentityError::ShortSecret);
        }
        let mut stretched = Zeroizing::new([0; 32]);
        let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(stretched.len()));
        let params = params.map_err(|_| IdentityError::ShortSecret)?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(secret, SALT, &mut *stretched)
            .map_err(|_| IdentityError::ShortSecret)?;
        let key = Prk::new_less_safe(HKDF_SHA256, &*stretched);
        Ok(Shared { client: derive(&key, b"client")?, server: derive(&key, b"server")? })
    }
}

fn derive(key: &Prk, role: &[u8]) -> Result<Identity, IdentityError> {
    let mut seed = Zeroizing::new([0; ED25519_SEED]);
    key.expand(&[LABEL, role], Seed)
        .and_then(|material| material.fill(&mut *seed))
        .map_err(|_| IdentityError::ShortSecret)?;
    Identity::of_seed(&seed)
}

/// Length of the output of HKDF.
struct Seed;

impl KeyType for Seed {
    fn len(&self) -> usize {
        ED25519_SEED
    }
}

/// Parameters of Argon2id that RFC 9106 §4 recommends where memory is scarce: 64 MiB, three passes, four lanes.
const MEMORY_KIB: u32 = 65_536;
const PASSES: u32 = 3;
const LANES: u32 = 4;
/// Fixed salt: two hosts that have only the secret in common cannot agree on another.
const SALT: &[u8] = b"tresse shared secret 1";
const LABEL: &[u8] = b"tresse shared secret 1, Ed25519 key of the TLS ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_gives_the_same_keys_everywhere_and_one_for_each_role() {
        let one = Shared::new(b"correct horse battery staple").expect("long enough");
        let again = Shared::new(b"correct horse battery staple").expect("long enough");
        let other = Shared::new(b"correct horse battery stable").expect("long enough");
        assert_eq!(one.client.fingerprint(), again.client.fingerprint());
        assert_eq!(one.server.fingerprint(), again.server.fingerprint());
        assert_ne!(one.client.fingerprint(), one.server.fingerprint());
        assert_ne!(one.client.fingerprint(), other.client.fingerprint());
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused() {
        assert_eq!(Shared::new(b"fifteen bytes..").err(), Some(IdentityError::ShortSecret));
    }
}
