//! Tail loss probes of one path (TLP, RFC 8985 §7): when the end of what was sent should have been answered, the last of
//! it goes again, so that the answer shows what is missing. Only T3 would, otherwise, and much later.
//!
//! One probe for each flight: until something sent on the path is acknowledged, T3 is next.

use std::time::Duration;

use tresse_policy::Instant;

/// When a path is to be probed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TailProbe {
    due: Option<Instant>,
    /// The path has been probed since it answered last.
    spent: bool,
}

/// The smoothed one, once measured, and its variation.
pub(super) type RoundTrip = (Option<Duration>, Duration);

impl TailProbe {
    pub(super) const NEW: Self = TailProbe { due: None, spent: false };

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Data was sent, or some was acknowledged and more is in flight: something should be answered within two round trips,
    /// or `late`, where the peer may hold back its report for a second packet. A probe puts off T3, which expires at `t3`;
    /// one that would come no sooner is left to it.
    pub(super) fn arm(&mut self, now: Instant, (srtt, rttvar): RoundTrip, late: bool, t3: Option<Instant>) {
        let Some(srtt) = srtt.filter(|_| !self.spent) else { return };
        let delay = if late { SACK_DELAY } else { Duration::ZERO };
        let due = now + (srtt * 2).max(srtt + rttvar * 4).max(LEAST) + delay;
        // What is sent meanwhile puts nothing off.
        let due = self.due.map_or(due, |before| before.min(due));
        self.due = Some(due).filter(|&due| t3.is_none_or(|t3| due < t3));
    }

    /// Something sent on the path was acknowledged.
    pub(super) fn on_answered(&mut self) {
        self.spent = false;
    }

    /// Nothing is in flight, or what is missing is known.
    pub(super) fn disarm(&mut self) {
        self.due = None;
    }

    /// The probe is to be sent.
    pub(super) fn on_due(&mut self) {
        self.due = None;
        self.spent = true;
    }
}

/// As long as peers usually wait for a second packet before they report (RFC 9260 §6.2).
const SACK_DELAY: Duration = Duration::from_millis(200);
/// Peers and timers take that long to wake.
const LEAST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    #[test]
    fn a_probe_is_due_after_two_round_trips_or_what_they_vary_by() {
        let due = |srtt, rttvar, t3| {
            let mut tail = TailProbe::NEW;
            tail.arm(at(100), (srtt, rttvar), false, t3);
            tail.due()
        };
        assert_eq!(due(Some(ms(50)), ms(5), Some(at(1100))), Some(at(200)));
        assert_eq!(due(Some(ms(50)), ms(25), Some(at(1100))), Some(at(250)));
        assert_eq!(due(Some(ms(1)), ms(0), Some(at(1100))), Some(at(110)));
        assert_eq!(due(Some(ms(600)), ms(5), Some(at(1100))), None, "T3 comes first");
        assert_eq!(due(None, ms(0), Some(at(1100))), None);
    }

    #[test]
    fn a_packet_that_may_wait_for_a_second_one_is_probed_later_until_there_is_one() {
        let round_trip = (Some(ms(50)), ms(0));
        let mut tail = TailProbe::NEW;
        tail.arm(at(100), round_trip, true, None);
        assert_eq!(tail.due(), Some(at(400)));
        tail.arm(at(110), round_trip, false, None);
        assert_eq!(tail.due(), Some(at(210)));
        tail.arm(at(120), round_trip, false, None);
        assert_eq!(tail.due(), Some(at(210)), "what is sent meanwhile puts nothing off");
    }

    #[test]
    fn there_is_one_until_the_path_answers() {
        let mut tail = TailProbe::NEW;
        let arm = |tail: &mut TailProbe| tail.arm(at(100), (Some(ms(50)), ms(0)), false, None);
        arm(&mut tail);
        tail.on_due();
        arm(&mut tail);
        assert_eq!(tail.due(), None);
        tail.on_answered();
        arm(&mut tail);
        assert_eq!(tail.due(), Some(at(200)));
        tail.disarm();
        assert_eq!(tail.due(), None);
    }
}
