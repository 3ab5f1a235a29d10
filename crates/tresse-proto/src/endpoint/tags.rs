//! Slots of associations by this side's verification tag. This side chooses its tags at random, so an attacker cannot cause
//! collisions, and a multiplication is a sufficient hash.
#![expect(clippy::disallowed_types, reason = "entries are found by their key alone, never in their order")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::slots::Slot;

/// Slots by tag.
pub(super) type TagTable = HashMap<u32, Slot, BuildHasherDefault<TagHash>>;

/// Hash of one random tag.
#[derive(Default)]
pub(super) struct TagHash(u64);

impl Hasher for TagHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, tag: u32) {
        self.0 = (self.0 ^ u64::from(tag)).wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Spreads 32 bits over 64, because the table uses the highest and the lowest bits (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
