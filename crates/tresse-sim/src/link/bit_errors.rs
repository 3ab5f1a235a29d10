//! Bit errors: the positions of a packet's bits that are flipped on the wire.
//!
//! This module knows only the length of a packet; the caller has the bytes and flips them. The frame and the IP header
//! count as parts of the packet, because their bits are flipped, too.

use crate::ip::IPV4_HEADER_LEN;
use crate::seed::{Generator, unit_interval};

/// Damage to a packet by bit errors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Damage {
    None,
    /// The frame or the IP header is damaged: the next checksum check drops the packet.
    Header,
    /// Only bits behind the IP header are flipped; [`BitErrors::flips`] returns them.
    Payload,
}

/// Generator of independent bit errors. The random numbers are those of good bits up to the next bad one, so packets
/// without errors need none.
#[derive(Debug)]
pub(super) struct BitErrors {
    rate: f64,
    /// Bytes at the start of an IP packet that have no errors; if above 0, the frame before them has none either.
    spared: u32,
    generator: Generator,
    good_bits: u64,
    flips: Vec<u32>,
}

impl BitErrors {
    /// Each bit behind the first `spared` bytes is flipped with probability `rate`, above 0 and at most 1.
    pub(super) fn new(rate: f64, spared: u32, generator: Generator) -> Self {
        let mut errors = BitErrors { rate, spared, generator, good_bits: 0, flips: Vec::new() };
        errors.good_bits = errors.gap();
        errors
    }

    /// Determines the damage of an IP packet of `bytes` bytes behind `framing` bytes of frame.
    pub(super) fn pass(&mut self, bytes: u32, framing: u32) -> Damage {
        let header = 8 * (u64::from(framing) + IPV4_HEADER_LEN as u64);
        let skipped = if self.spared == 0 { 0 } else { 8 * (u64::from(framing) + u64::from(self.spared)) };
        let bits = (8 * (u64::from(framing) + u64::from(bytes))).saturating_sub(skipped);
        let mut damage = Damage::None;
        self.flips.clear();
        while self.good_bits < bits {
            match (self.good_bits + skipped).checked_sub(header) {
                None => damage = Damage::Header,
                Some(at) if damage != Damage::Header => {
                    damage = Damage::Payload;
                    self.flips.push(at as u32);
                }
                Some(_) => {}
            }
            self.good_bits = self.good_bits.saturating_add(1).saturating_add(self.gap());
        }
        self.good_bits -= bits;
        damage
    }

    /// Returns the flipped bits of the last packet in order, counted from the end of its IP header.
    pub(super) fn flips(&self) -> &[u32] {
        &self.flips
    }

    /// Returns the good bits before the next bad one, geometrically distributed. The logarithms are those of libm,
    /// because the standard library's logarithms differ between machines in the last bit.
    fn gap(&mut self) -> u64 {
        let above_zero = 1.0 - unit_interval(&mut self.generator);
        (libm::log(above_zero) / libm::log1p(-self.rate)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn generator() -> Generator {
        Seed(1).generator("bit errors")
    }

    #[test]
    fn bits_are_hit_at_their_rate() {
        let mut errors = BitErrors::new(1e-5, 0, generator());
        let (mut flips, mut damaged, mut headers) = (0, 0, 0);
        for _ in 0..100_000 {
            match errors.pass(1500, 7) {
                Damage::None => assert!(errors.flips().is_empty()),
                Damage::Header => headers += 1,
                Damage::Payload => {
                    damaged += 1;
                    flips += errors.flips().len();
                    assert!(errors.flips().is_sorted());
                    assert!(errors.flips().iter().all(|bit| *bit < 1480 * 8));
                }
            }
        }
        // 216 bits of frame and header, 11,840 bits behind them: of n bits, at least one is flipped in 1 - (1 - 1e-5)^n of the packets.
        // Expected: 216 with deviation 15, and 11,149 with deviation 100.
        assert!((140..290).contains(&headers), "{headers}");
        assert!((10_700..11_600).contains(&damaged), "{damaged}");
        // A damaged packet has 1.06 flipped bits in the mean.
        let mean = flips as f64 / f64::from(damaged);
        assert!((mean - 1.06).abs() < 0.015, "{mean}");
    }

    #[test]
    fn certain_errors_hit_every_bit() {
        let mut errors = BitErrors::new(1.0, 0, generator());
        assert_eq!(errors.pass(1500, 0), Damage::Header);
        let mut rare = BitErrors::new(1e-300, 0, generator());
        assert_eq!(rare.pass(1500, 0), Damage::None);
    }

    #[test]
    fn nothing_is_hit_before_the_end_of_what_is_spared() {
        let mut errors = BitErrors::new(1.0, 48, generator());
        assert_eq!(errors.pass(50, 7), Damage::Payload);
        assert_eq!(errors.flips(), (28 * 8..30 * 8).collect::<Vec<u32>>());
        assert_eq!(errors.pass(48, 7), Damage::None, "all of it is spared");
        assert_eq!(errors.pass(40, 7), Damage::None, "and more than that");
        let mut partly = BitErrors::new(1.0, 10, generator());
        assert_eq!(partly.pass(1500, 7), Damage::Header, "half of the IP header is not spared");
    }
}
