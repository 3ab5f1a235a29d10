//! Hash of everything that was sent: two runs with the same hash sent the same packets at the same times.
//!
//! It is stable across machines and releases of the standard library. It is not cryptographic: it detects accidental
//! differences only.

use tresse_proto::Instant;

use crate::link::PacketFate;
use crate::route::LinkId;

/// Place of the SCTP checksum in a packet. It does not count, because most simulated packets have no checksum.
const CHECKSUM: std::ops::Range<usize> = 8..12;
/// Bytes of a packet that count: the common header, and the headers of the first chunks.
const HEADERS: usize = 60;

/// A running hash over packet events.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        TraceHash(0x243f_6a88_85a3_08d3)
    }
}

impl TraceHash {
    /// Adds a packet that was passed to `link`, and the link's decision on it.
    pub(crate) fn add(&mut self, now: Instant, link: LinkId, packet: &[u8], verdict: PacketFate) {
        let fate = match verdict {
            PacketFate::Arrives(at) => at.as_nanos(),
            PacketFate::Altered { at, damaged, twice, marked } => {
                self.mix(u64::from(marked) << 2 | u64::from(damaged) << 1 | u64::from(twice));
                at.as_nanos()
            }
            PacketFate::Dropped(cause) => u64::MAX - cause as u64,
            PacketFate::Waits => u64::MAX / 2,
        };
        self.mix(now.as_nanos());
        self.mix(fate);
        self.mix((u64::from(link.0) << 32) | packet.len() as u64);
        match packet.first_chunk::<HEADERS>() {
            // Most packets are long enough. With a constant length there is no bounds check for each word.
            Some(headers) => self.mix_headers(headers),
            None => self.mix_headers(packet),
        }
    }

    /// Returns the hash so far.
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// Adds up to [`HEADERS`] bytes from the start of a packet.
    #[inline(always)]
    fn mix_headers(&mut self, packet: &[u8]) {
        let (head, rest) = packet.split_at(CHECKSUM.start.min(packet.len()));
        self.mix_bytes(head);
        self.mix_bytes(rest.get(CHECKSUM.len()..).unwrap_or_default());
    }

    #[inline(always)]
    fn mix_bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            self.mix(word);
        }
        for byte in words.remainder() {
            self.mix(u64::from(*byte));
        }
    }

    /// Adds a word: XORs the two halves of a 64 × 64 bit product, so that each bit affects all others.
    fn mix(&mut self, word: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ word) * u128::from(ODD) + u128::from(word);
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ ODD.rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Cause;

    fn hash(now: u64, link: u16, packet: &[u8], verdict: PacketFate) -> u64 {
        let mut hash = TraceHash::default();
        hash.add(Instant::from_nanos(now), LinkId(link), packet, verdict);
        hash.value()
    }

    #[test]
    fn everything_but_the_checksum_counts() {
        let packet: Vec<u8> = (0..100).collect();
        let arrives = PacketFate::Arrives(Instant::from_nanos(9));
        let reference = hash(1, 2, &packet, arrives);
        assert_eq!(hash(1, 2, &packet, arrives), reference);
        let with = |at: usize| {
            let mut packet = packet.clone();
            packet[at] ^= 1;
            hash(1, 2, &packet, arrives)
        };
        for at in [0, 7, 12, 13, 19, 40, HEADERS - 1] {
            assert_ne!(with(at), reference, "byte {at}");
        }
        for at in CHECKSUM {
            assert_eq!(with(at), reference, "byte {at}");
        }
        assert_ne!(hash(2, 2, &packet, arrives), reference);
        assert_ne!(hash(1, 3, &packet, arrives), reference);
        assert_ne!(hash(1, 2, &packet[..99], arrives), reference);
        assert_ne!(hash(1, 2, &packet, PacketFate::Dropped(Cause::Loss)), reference);
        assert_ne!(hash(1, 2, &[], arrives), hash(1, 2, &[0; 11], arrives));
    }
}
