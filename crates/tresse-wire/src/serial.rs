//! Sequence numbers that wrap around, and identifiers without arithmetic.
//!
//! Owns serial number arithmetic (RFC 1982, as RFC 9260 §1.6 uses it). The serial types are deliberately not `Ord`:
//! "before" is not transitive modulo the number space, so sorting by it or using it in an ordered map would be wrong.

use std::fmt;
use std::ops::Add;

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// Returns the number after this one, which wraps around.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// Returns the number before this one, which wraps around.
            #[inline]
            #[must_use]
            pub const fn prev(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// Returns whether this number comes before `other`. RFC 1982 leaves the order of numbers half the number
            /// space apart undefined; here neither is before or after the other.
            #[inline]
            pub const fn is_before(self, other: Self) -> bool {
                other.0.wrapping_sub(self.0).cast_signed() > 0
            }

            /// Returns whether this number comes after `other`; see [`Self::is_before`].
            #[inline]
            pub const fn is_after(self, other: Self) -> bool {
                other.is_before(self)
            }

            /// Returns the number of increments from `earlier` to this number.
            #[inline]
            pub const fn distance_from(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

serial! {
    /// Transmission Sequence Number, which numbers the DATA or I-DATA chunks of one direction (RFC 9260 §1.6).
    Tsn, u32
}
serial! {
    /// Stream Sequence Number, which numbers the ordered messages of a stream (RFC 9260 §1.6).
    Ssn, u16
}
serial! {
    /// Message Identifier with interleaving, which numbers the ordered and the unordered messages of a stream separately (RFC 8260 §2.1).
    Mid, u32
}
serial! {
    /// Fragment Sequence Number within one message with interleaving; the first fragment has 0 (RFC 8260 §2.1).
    Fsn, u32
}

impl Tsn {
    /// Returns the TSN `steps` after this one.
    #[inline]
    #[must_use]
    pub const fn advance(self, steps: u32) -> Self {
        Self(self.0.wrapping_add(steps))
    }
}

impl Add<u32> for Tsn {
    type Output = Self;

    #[inline]
    fn add(self, steps: u32) -> Self {
        self.advance(steps)
    }
}

/// Stream Identifier of one direction; it does not wrap around, so it has an order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct StreamId(pub u16);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Payload Protocol Identifier, which the application chooses; stored in network byte order and never interpreted (RFC
/// 9260 §3.3.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct Ppid(pub u32);

impl fmt::Display for Ppid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        assert!(Tsn(u32::MAX).is_before(Tsn(0)));
        assert!(Tsn(0).is_after(Tsn(u32::MAX)));
        assert!(Ssn(65_535).is_before(Ssn(0)));
        assert!(!Ssn(3).is_before(Ssn(3)));
        assert!(!Ssn(3).is_after(Ssn(3)));
    }

    #[test]
    fn half_a_circle_is_neither_before_nor_after() {
        for (a, b) in [(Tsn(0), Tsn(1 << 31)), (Tsn(1 << 31), Tsn(0)), (Tsn(7), Tsn(7 + (1 << 31)))] {
            assert!(!a.is_before(b) && !a.is_after(b), "{a:?} {b:?}");
        }
        assert!(!Ssn(0).is_before(Ssn(1 << 15)) && !Ssn(0).is_after(Ssn(1 << 15)));
        assert!(Tsn(0).is_before(Tsn((1 << 31) - 1)));
        assert!(Tsn(0).is_after(Tsn((1 << 31) + 1)));
    }

    #[test]
    fn steps_and_distances_wrap() {
        assert_eq!(Tsn(u32::MAX).next(), Tsn(0));
        assert_eq!(Tsn(0).prev(), Tsn(u32::MAX));
        assert_eq!(Tsn(u32::MAX - 1) + 3, Tsn(1));
        assert_eq!(Tsn(1).distance_from(Tsn(u32::MAX)), 2);
        assert_eq!(Ssn(65_535).next(), Ssn(0));
        assert_eq!(Mid(0).distance_from(Mid(1)), u32::MAX);
        assert_eq!(Fsn(4).next(), Fsn(5));
    }
}
