//! Round-trip time and retransmission timeout of one path (RFC 9260 §6.3.1 to §6.3.3).

use std::time::Duration;

use tresse_policy::engine::nanos;

/// Initial value and bounds of every RTO.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct RtoRules {
    pub(super) initial: Duration,
    pub(super) min: Duration,
    pub(super) max: Duration,
}

/// The estimates of one path, in nanoseconds, which take half the memory of a `Duration`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rtt {
    srtt: u64,
    rttvar: u64,
    /// The RTO with its back-off.
    rto: u64,
    /// The shortest and the longest sample, in microseconds; see [`UNMEASURED`].
    range: (u32, u32),
}

/// The range before the first sample.
const UNMEASURED: (u32, u32) = (u32::MAX, 0);

impl Rtt {
    pub(super) fn new(rules: &RtoRules) -> Self {
        Rtt { srtt: 0, rttvar: 0, rto: nanos(rules.initial), range: UNMEASURED }
    }

    /// Applies a sample, of a chunk that was sent once. It also ends the back-off of the RTO.
    pub(super) fn on_sample(&mut self, sample: Duration, rules: &RtoRules) {
        let (srtt, rttvar) = match self.srtt() {
            None => (sample, sample / 2),
            // RTO.Alpha is 1/8 and RTO.Beta 1/4; the new RTTVAR is computed from the old SRTT.
            Some(srtt) => ((srtt * 7 + sample) / 8, (self.rttvar() * 3 + srtt.abs_diff(sample)) / 4),
        };
        let rto = (srtt + rttvar.max(GRANULARITY) * 4).clamp(rules.min, rules.max);
        let micros = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX);
        let (shortest, longest) = self.range;
        self.range = (shortest.min(micros), longest.max(micros));
        (self.srtt, self.rttvar, self.rto) = (nanos(srtt), nanos(rttvar), nanos(rto));
    }

    /// Applies other bounds, or another initial value if there was no sample yet.
    pub(super) fn rebound(&mut self, rules: &RtoRules) {
        self.rto = match self.srtt() {
            None => nanos(rules.initial),
            Some(_) => self.rto.clamp(nanos(rules.min), nanos(rules.max)),
        };
    }

    /// Doubles the RTO after a timeout (RFC 9260 §6.3.3 E2).
    pub(super) fn back_off(&mut self, rules: &RtoRules) {
        self.rto = self.rto.saturating_mul(2).min(nanos(rules.max));
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        (self.range != UNMEASURED).then_some(Duration::from_nanos(self.srtt))
    }

    pub(super) fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar)
    }

    /// Returns the shortest and the longest sample so far; zero before the first.
    pub(super) fn range(&self) -> (Duration, Duration) {
        let micros = |time: u32| Duration::from_micros(u64::from(time));
        match self.range {
            UNMEASURED => (Duration::ZERO, Duration::ZERO),
            (shortest, longest) => (micros(shortest), micros(longest)),
        }
    }

    pub(super) fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto)
    }
}

/// Granularity of the clock, which is used in place of a variation of zero (RFC 9260 §6.3.1 C3): drivers' timers are about this
/// coarse. A smaller variation is treated like zero.
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const RULES: RtoRules = RtoRules { initial: ms(3000), min: ms(1), max: ms(60_000) };

    #[test]
    fn follows_the_worked_example() {
        let mut rtt = Rtt::new(&RULES);
        assert_eq!((rtt.srtt(), rtt.rto()), (None, ms(3000)));
        rtt.on_sample(ms(100), &RULES);
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(100)), ms(50), ms(300)));
        // rttvar = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; srtt = 7/8 * 100 + 1/8 * 180 = 110.
        rtt.on_sample(ms(180), &RULES);
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(110)), Duration::from_micros(57_500)));
        assert_eq!(rtt.rto(), ms(340));
        // rttvar = 3/4 * 57.5 + 1/4 * |110 - 70| = 53.125; srtt = 7/8 * 110 + 1/8 * 70 = 105.
        rtt.on_sample(ms(70), &RULES);
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(105)), Duration::from_micros(53_125)));
        assert_eq!(rtt.rto(), Duration::from_micros(317_500));
    }

    #[test]
    fn the_timeout_stays_within_its_bounds() {
        let rules = RtoRules { min: ms(1000), ..RULES };
        let mut rtt = Rtt::new(&rules);
        rtt.on_sample(ms(20), &rules);
        assert_eq!(rtt.rto(), ms(1000));
        rtt.on_sample(ms(400_000), &rules);
        assert_eq!(rtt.rto(), ms(60_000));
        let mut steady = Rtt::new(&RULES);
        for _ in 0..100 {
            steady.on_sample(ms(20), &RULES);
        }
        assert_eq!(steady.rto(), ms(24), "no variation: four ticks above the average");
    }

    #[test]
    fn back_off_doubles_up_to_the_bound_and_ends_with_a_sample() {
        let rules = RtoRules { min: ms(1000), ..RULES };
        let mut rtt = Rtt::new(&rules);
        rtt.on_sample(ms(20), &rules);
        let seen: Vec<u64> = (0..7)
            .map(|_| {
                rtt.back_off(&rules);
                rtt.rto().as_secs()
            })
            .collect();
        assert_eq!(seen, [2, 4, 8, 16, 32, 60, 60]);
        rtt.on_sample(ms(20), &rules);
        assert_eq!(rtt.rto(), ms(1000));
    }
}
