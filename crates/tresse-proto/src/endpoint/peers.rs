//! Slots of associations by an address and the port of their peer. Other hosts choose these, so the table hashes them with a
//! secret: an attacker cannot cause collisions.
#![expect(clippy::disallowed_types, reason = "entries are found by their key alone, never in their order")]

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

use super::slots::Slot;

/// Slots by address and port.
pub(super) type PeerTable = HashMap<(IpAddr, u16), Slot, KeyedHash>;

/// SipHash-1-3 with a secret of the endpoint.
#[derive(Clone, Debug)]
pub(super) struct KeyedHash {
    secret: [u64; 2],
}

/// Creates an empty table.
pub(super) fn table(secret: [u64; 2]) -> PeerTable {
    PeerTable::with_hasher(KeyedHash { secret })
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.secret[0], self.secret[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_the_secret_and_on_the_key() {
        let hash = |secret, port: u16| KeyedHash { secret }.hash_one((IpAddr::from([10, 0, 0, 1]), port));
        assert_eq!(hash([1, 2], 7), hash([1, 2], 7));
        let others = [hash([1, 3], 7), hash([0, 2], 7), hash([1, 2], 8)];
        assert!(!others.contains(&hash([1, 2], 7)));
    }
}
