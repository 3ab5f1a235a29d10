//! Numbers that wrap around, and the plain identifiers beside them.
//!
//! Owns serial number arithmetic (RFC 1982 as RFC 9260 §1.6 uses it). The serial types are deliberately not
//! `Ord`: "before" is not transitive on a circle, so sorting by it or keeping it in an ordered map would be
//! wrong.

use std::fmt;
use std::ops::Add;

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// The number after this one, modulo the width.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// The number before this one, modulo the width.
            #[inline]
            #[must_use]
            pub const fn prev(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// Returns whether this number comes earlier than `other`. Exactly half the circle apart is undefined in
            /// RFC 1982 and counts here as neither before nor after.
            #[inline]
            pub const fn is_before(self, other: Self) -> bool {
                other.0.wrapping_sub(self.0).cast_signed() > 0
            }

            /// Returns whether this number comes later than `other`; see [`Self::is_before`].
            #[inline]
            pub const fn is_after(self, other: Self) -> bool {
                other.is_before(self)
            }

            /// Number of steps from `earlier` to this number, going forward.
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
    /// Transmission Sequence Number: one for each DATA or I-DATA chunk of a direction (RFC 9260 §1.6).
    Tsn, u32
}
serial! {
    /// Stream Sequence Number: one for each ordered message of a stream (RFC 9260 §1.6).
    Ssn, u16
}
serial! {
    /// Message Identifier: one for each message of a stream and order under interleaving (RFC 8260 §2.1).
    Mid, u32
}
serial! {
    /// Fragment Sequence Number within one interleaved message; the first fragment is 0 (RFC 8260 §2.1).
    Fsn, u32
}

impl Tsn {
    /// The TSN `steps` later.
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

/// Stream Identifier of one direction; a plain number, so it has an order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct StreamId(pub u16);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Payload Protocol Identifier: the application's own, carried big-endian and never interpreted (RFC 9260
/// §3.3.1).
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
