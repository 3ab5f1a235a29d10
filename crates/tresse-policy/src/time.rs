//! Time of the core: nanoseconds since an origin that the driver chose.
//!
//! The core does not read a clock. A driver passes a non-decreasing `Instant` with every call; the simulator counts
//! virtual time, the socket driver counts from its start.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time, in nanoseconds since the driver's origin. Arithmetic saturates.
///
/// It is stored as these nanoseconds plus 1, so that an `Option<Instant>`, of which timers need many, has the same
/// size.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The driver's origin.
    pub const ZERO: Instant = Instant(NonZeroU64::MIN);
    /// A point that is never reached (584 years after the origin).
    pub const FAR_FUTURE: Instant = Instant(NonZeroU64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Instant::ZERO
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.as_nanos()).finish()
    }
}

/// Returns the earlier of two deadlines; `None` if there is neither.
pub fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    earliest([one, other])
}

/// Returns the earliest of some deadlines; `None` if there is none. It is called for every packet, so it has no branch
/// for each deadline.
pub fn earliest<const N: usize>(deadlines: [Option<Instant>; N]) -> Option<Instant> {
    // `None` is stored as 0 (see `Instant`). Less 1 it wraps, and becomes later than all others.
    let kept = |deadline: Option<Instant>| deadline.map_or(0, |at| at.0.get()).wrapping_sub(1);
    let earliest = deadlines.into_iter().map(kept).fold(u64::MAX, u64::min);
    NonZeroU64::new(earliest.wrapping_add(1)).map(Instant)
}

/// Returns a duration in whole nanoseconds, saturating at 584 years.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    fn sub(self, rhs: Instant) -> Duration {
        self.since(rhs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_does_not_run_takes_no_more_room() {
        assert_eq!(size_of::<Option<Instant>>(), size_of::<Instant>());
        assert_eq!((Instant::ZERO.as_nanos(), Instant::from_nanos(7).as_nanos()), (0, 7));
        assert_eq!(format!("{:?}", Instant::from_nanos(7)), "Instant(7)");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
        assert_eq!(Instant::from_nanos(5) - Instant::ZERO, Duration::from_nanos(5));
        assert_eq!(Instant::from_nanos(u64::MAX), Instant::FAR_FUTURE);
    }
}
