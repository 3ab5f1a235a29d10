//! Accumulated time by limit, for `LimitTimes`.

use std::time::Duration;

use tresse_policy::Instant;

use crate::collections::LazyBox;
use crate::interface::stats::{Limit, LimitTimes};

/// Accumulates the time during which each limit holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LimitClock {
    current: Limit,
    /// Time at which the driver left packets to its next poll, in microseconds after `since`, plus one; 0 if it left none.
    left: u32,
    since: Instant,
    times: LazyBox<LimitTimes>,
}

impl LimitClock {
    /// Starts to count under `limit`.
    pub(crate) fn new(now: Instant, limit: Limit) -> Self {
        LimitClock { current: limit, left: 0, since: now, times: LazyBox::default() }
    }

    /// Notes that `limit` holds from `now` on.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, limit: Limit) {
        self.left = 0;
        if limit != self.current {
            self.turn_to(now, limit);
        }
    }

    /// Notes that pacing released data at `due`, and the driver polled later: from `due` until now the host was the limit.
    pub(crate) fn note_late(&mut self, due: Option<Instant>) {
        let paced = matches!(self.current, Limit::Pacing | Limit::CongestionWindow | Limit::Host);
        if let Some(due) = due.filter(|_| paced) {
            self.note(due.max(self.since), Limit::Host);
        }
    }

    /// Notes that the driver takes packets at `now`, and leaves others if there are `more`. Returns the time since which
    /// packets have waited for this poll: the driver left them at its last poll, and no limit was noted since.
    pub(crate) fn on_departure(&mut self, now: Instant, more: bool) -> Option<Instant> {
        let left = std::mem::take(&mut self.left).checked_sub(1);
        let since = left.map(|micros| self.since + Duration::from_micros(micros.into()));
        let since = since.filter(|&since| since < now);
        if let Some(since) = since {
            self.note_held(since);
        }
        if more {
            // A time that does not fit four bytes is not kept.
            self.left = u32::try_from((now - self.since).as_micros() + 1).unwrap_or(0);
        }
        since
    }

    /// Notes that the packet that leaves now could have left at `since`: the host was the limit in between.
    pub(crate) fn note_held(&mut self, since: Instant) {
        self.note(since.max(self.since), Limit::Host);
    }

    fn turn_to(&mut self, now: Instant, limit: Limit) {
        let held = now - self.since;
        // The first limit mostly holds for no time, and an idle association stays under the second: it allocates nothing.
        if !held.is_zero() {
            self.times.add(self.current, held);
        }
        self.current = limit;
        self.since = self.since.max(now);
    }

    /// The time spent under each limit until `now`.
    pub(crate) fn times(&self, now: Instant) -> LimitTimes {
        let mut times = *self.times;
        times.add(self.current, now - self.since);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn every_instant_is_counted_under_one_limit() {
        let mut clock = LimitClock::new(at(10), Limit::Application);
        clock.note(at(20), Limit::Application);
        clock.note(at(40), Limit::CongestionWindow);
        clock.note(at(45), Limit::SendBuffer);
        clock.note(at(60), Limit::CongestionWindow);
        let times = clock.times(at(100));
        assert_eq!(times.of(Limit::Application), Duration::from_millis(30));
        assert_eq!(times.of(Limit::CongestionWindow), Duration::from_millis(45));
        assert_eq!(times.of(Limit::SendBuffer), Duration::from_millis(15));
        assert_eq!(times.of(Limit::Nothing), Duration::ZERO);
    }

    #[test]
    fn what_pacing_let_go_and_the_driver_sent_later_waited_for_the_host() {
        let mut clock = LimitClock::new(at(0), Limit::Pacing);
        clock.note_late(None);
        clock.note_late(Some(at(4)));
        clock.note(at(9), Limit::Pacing);
        clock.note(at(12), Limit::Application);
        clock.note_late(Some(at(13)));
        let times = clock.times(at(20));
        let held = [Limit::Pacing, Limit::Host, Limit::Application].map(|limit| times.of(limit).as_millis());
        assert_eq!(held, [7, 5, 8], "a late pace is nobody's limit where the application was");
    }
}
