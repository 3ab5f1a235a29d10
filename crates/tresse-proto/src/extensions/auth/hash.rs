//! The two keyed hashes of RFC 4895 §3.3: HMAC-SHA-1 and HMAC-SHA-256 (RFC 2104).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use sha1::Sha1;
use sha2::Sha256;

/// Hash algorithm, as HMAC-ALGO and AUTH identify it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    /// Length of the longest HMAC, in bytes.
    pub(super) const LONGEST: usize = 32;

    /// Returns its HMAC identifier.
    pub(super) const fn id(self) -> u16 {
        match self {
            Hash::Sha1 => 1,
            Hash::Sha256 => 3,
        }
    }

    pub(super) fn of_id(id: u16) -> Option<Self> {
        [Hash::Sha1, Hash::Sha256].into_iter().find(|hash| hash.id() == id)
    }

    /// Returns the length of its HMAC, in bytes.
    pub(super) const fn len(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha256 => 32,
        }
    }
}

/// An HMAC.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Digest {
    bytes: [u8; Hash::LONGEST],
    len: usize,
}

impl Digest {
    /// Returns its bytes: as many as the hash has.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn of(value: &[u8]) -> Self {
        let mut bytes = [0; Hash::LONGEST];
        bytes[..value.len()].copy_from_slice(value);
        Digest { bytes, len: value.len() }
    }
}

/// A keyed hash in progress.
#[derive(Clone)]
pub(super) enum Mac {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl Mac {
    pub(super) fn new(hash: Hash, key: &[u8]) -> Self {
        const ANY_KEY: &str = "HMAC takes keys of any length";
        match hash {
            Hash::Sha1 => Mac::Sha1(Hmac::new_from_slice(key).expect(ANY_KEY)),
            Hash::Sha256 => Mac::Sha256(Hmac::new_from_slice(key).expect(ANY_KEY)),
        }
    }

    pub(super) fn hash(&self) -> Hash {
        match self {
            Mac::Sha1(_) => Hash::Sha1,
            Mac::Sha256(_) => Hash::Sha256,
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Mac::Sha1(mac) => mac.update(bytes),
            Mac::Sha256(mac) => mac.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Digest {
        match self {
            Mac::Sha1(mac) => Digest::of(&mac.finalize().into_bytes()),
            Mac::Sha256(mac) => Digest::of(&mac.finalize().into_bytes()),
        }
    }

    /// Returns whether the HMAC equals `expected`, in constant time.
    pub(super) fn is(self, expected: &[u8]) -> bool {
        match self {
            Mac::Sha1(mac) => mac.verify_slice(expected).is_ok(),
            Mac::Sha256(mac) => mac.verify_slice(expected).is_ok(),
        }
    }
}

impl fmt::Debug for Mac {
    /// Does not print the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.hash())
    }
}
