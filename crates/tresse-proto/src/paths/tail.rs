//! Tail loss probes of one path (TLP, RFC 8985 §7): if the last chunk sent is not acknowledged in time, it is retransmitted, so
//! that the SACK shows the missing chunks. Otherwise only T3 would detect them, much later.
//!
//! Further intervals without an acknowledgement are counted until a chunk of the path is acknowledged or T3 expires. If other
//! paths are acknowledged meanwhile, the path is suspected to have failed.

use std::time::Duration;

use tresse_policy::Instant;
use tresse_policy::engine::nanos;

/// The timer of the tail loss probe, and the intervals without an acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TailProbe {
    due: Option<Instant>,
    /// True if the peer may delay the SACK that the timer waits for.
    late: bool,
    /// Number of consecutive intervals in which no acknowledgement came in time.
    silences: u8,
    /// PTO when the first of these intervals ended, in microseconds. Late SACKs increase the round-trip times measured since.
    first_timeout: u32,
}

/// Action after an interval without an acknowledgement.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// The first interval: the last chunk is retransmitted as a probe.
    First,
    /// A further interval: the probe was not acknowledged, either.
    Again,
}

/// The smoothed round-trip time, once measured, and its variation.
pub(super) type RoundTrip = (Option<Duration>, Duration);

impl TailProbe {
    pub(super) const NEW: Self = TailProbe { due: None, late: false, silences: 0, first_timeout: 0 };

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Arms the timer, because data was sent, or some was acknowledged and more is in flight. With `late`, the peer may delay
    /// its SACK for a second packet. The probe leaves no later than T3 expires, at `t3`, and postpones it (RFC 8985 §7.2):
    /// over a long path the RTO has hardly any margin above the round trip, and a lost SACK alone would cost the window.
    pub(super) fn arm(&mut self, now: Instant, round_trip: RoundTrip, late: bool, t3: Option<Instant>) {
        let Some(timeout) = timeout(round_trip).filter(|_| self.silences == 0) else { return };
        let delay = if late { SACK_DELAY } else { Duration::ZERO };
        let due = now + timeout + delay;
        let sooner = [self.due, t3].into_iter().flatten().fold(due, Instant::min);
        (self.due, self.late) = (Some(sooner), late);
    }

    /// Returns whether the timer is armed already for data that is sent now. That data postpones nothing, and brings the probe
    /// forward only if the peer no longer delays its SACK.
    pub(super) fn stands(&self, late: bool) -> bool {
        self.due.is_some() && (late || !self.late)
    }

    /// Returns whether an acknowledgement that took this long does not count as an answer: SACKs were late, and this one shows
    /// an old state of the path.
    pub(super) fn is_stale(&self, taken: Option<Duration>) -> bool {
        self.silences > 0 && taken > Some(Duration::from_micros(self.first_timeout.into()))
    }

    /// A SACK arrived that shows nothing newer of the path. If the probe was not acknowledged, either, the next check is due
    /// now: it shows whether other paths are acknowledged.
    pub(super) fn on_stale(&mut self, now: Instant) {
        if self.silences > 1 {
            self.due = self.due.map(|due| due.min(now));
        }
    }

    /// Returns whether the path did not acknowledge in time.
    pub(super) fn is_silent(&self) -> bool {
        self.silences > 0
    }

    /// Resets the count, because a chunk sent on the path was acknowledged.
    pub(super) fn on_answered(&mut self) {
        self.silences = 0;
    }

    /// Stops the timer, because nothing is in flight, or the missing chunks are known.
    pub(super) fn disarm(&mut self) {
        self.due = None;
    }

    /// Counts an interval that ended without an acknowledgement.
    pub(super) fn on_due(&mut self, now: Instant, round_trip: RoundTrip) -> Silence {
        let again = self.silences > 0;
        self.silences = self.silences.saturating_add(1);
        let timeout = timeout(round_trip);
        if !again {
            let micros = timeout.unwrap_or_default().as_micros();
            self.first_timeout = u32::try_from(micros).unwrap_or(u32::MAX);
        }
        self.due = timeout.filter(|_| self.silences < MOST_SILENCES).map(|timeout| now + timeout);
        if again { Silence::Again } else { Silence::First }
    }
}

/// Returns the longest time that an acknowledgement takes (PTO), once a round trip was measured. RFC 8985 §7.2 uses two round
/// trips, for peers that delay SACKs. Here the last chunk requests its SACK at once (RFC 7053), so one round trip and four
/// times its variation suffice (RFC 9002 §6.2.1). The margin is at least half a round trip: there may be few samples yet.
fn timeout((srtt, rttvar): RoundTrip) -> Option<Duration> {
    srtt.map(|srtt| {
        // In nanoseconds: this is computed after every acknowledgement, and durations take divisions.
        let (srtt, variation) = (nanos(srtt), nanos(rttvar).saturating_mul(4));
        Duration::from_nanos(srtt.saturating_add(variation.max(srtt / 2))).max(LEAST)
    })
}

/// Usual delay of a SACK that waits for a second packet (RFC 9260 §6.2).
const SACK_DELAY: Duration = Duration::from_millis(200);
/// Number of intervals that are counted; T3 expires soon after.
const MOST_SILENCES: u8 = 4;
/// Least PTO: peers and timers take this long to wake up.
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
    fn a_probe_is_due_after_a_round_trip_and_a_half_or_what_they_vary_by() {
        let due = |srtt, rttvar, t3| {
            let mut tail = TailProbe::NEW;
            tail.arm(at(100), (srtt, rttvar), false, t3);
            tail.due()
        };
        assert_eq!(due(Some(ms(50)), ms(5), Some(at(1100))), Some(at(175)));
        assert_eq!(due(Some(ms(50)), ms(25), Some(at(1100))), Some(at(250)));
        assert_eq!(due(Some(ms(1)), ms(0), Some(at(1100))), Some(at(110)));
        assert_eq!(due(Some(ms(700)), ms(5), Some(at(1100))), Some(at(1100)), "it takes the place of T3");
        assert_eq!(due(None, ms(0), Some(at(1100))), None);
    }

    #[test]
    fn a_packet_that_may_wait_for_a_second_one_is_probed_later_until_there_is_one() {
        let round_trip = (Some(ms(50)), ms(0));
        let mut tail = TailProbe::NEW;
        tail.arm(at(100), round_trip, true, None);
        assert_eq!(tail.due(), Some(at(375)));
        tail.arm(at(110), round_trip, false, None);
        assert_eq!(tail.due(), Some(at(185)));
        tail.arm(at(120), round_trip, false, None);
        assert_eq!(tail.due(), Some(at(185)), "what is sent meanwhile puts nothing off");
    }

    #[test]
    fn an_answer_to_what_is_older_than_the_silence_does_not_break_it() {
        let round_trip = (Some(ms(50)), ms(0));
        let mut tail = TailProbe::NEW;
        tail.arm(at(100), round_trip, false, None);
        assert!(!tail.is_stale(Some(ms(200))) && !tail.is_silent());
        tail.on_due(at(175), round_trip);
        assert!(tail.is_stale(Some(ms(76))) && tail.is_silent());
        assert!(!tail.is_stale(Some(ms(75))) && !tail.is_stale(None));
        // The round-trip times measured since include a late acknowledgement; the bound stays that of the first interval.
        tail.on_due(at(250), (Some(ms(70)), ms(45)));
        assert!(tail.is_stale(Some(ms(76))));
    }

    #[test]
    fn a_path_whose_probe_was_not_answered_is_judged_when_others_speak() {
        let round_trip = (Some(ms(50)), ms(0));
        let mut tail = TailProbe::NEW;
        tail.arm(at(100), round_trip, false, None);
        tail.on_due(at(175), round_trip);
        tail.on_stale(at(180));
        assert_eq!(tail.due(), Some(at(250)), "its probe may be answered yet");
        tail.on_due(at(250), round_trip);
        tail.on_stale(at(260));
        assert_eq!(tail.due(), Some(at(260)));
    }

    #[test]
    fn silences_are_counted_until_the_path_answers() {
        let mut tail = TailProbe::NEW;
        let arm = |tail: &mut TailProbe| tail.arm(at(100), (Some(ms(50)), ms(0)), false, None);
        arm(&mut tail);
        for (due, silence) in [(175, Silence::First), (250, Silence::Again), (325, Silence::Again)] {
            assert_eq!(tail.due(), Some(at(due)));
            assert_eq!(tail.on_due(at(due), (Some(ms(50)), ms(0))), silence);
            arm(&mut tail);
        }
        tail.on_due(at(400), (Some(ms(50)), ms(0)));
        assert_eq!(tail.due(), None, "T3 is next");
        tail.on_answered();
        arm(&mut tail);
        assert_eq!(tail.due(), Some(at(175)));
        tail.disarm();
        assert_eq!(tail.due(), None);
    }
}
