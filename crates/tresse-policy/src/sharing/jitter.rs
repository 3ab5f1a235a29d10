//! RTT variation (jitter) of a path that the sender's own data in flight does not cause.
//!
//! Its causes are radio links that retransmit or alternate, and busy hosts. A round trip longer than the minimum indicates
//! a queue only as far as jitter does not explain it. An increase that ends in the next round, although no fewer bytes
//! were in flight, is jitter; an increase that stays is a queue.

use std::time::Duration;

/// The jitter of one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Jitter {
    /// The shortest round trip of the last round, and the most bytes in flight then.
    last: Option<(Duration, usize)>,
    /// Difference between the shortest round trips of the last two rounds, unless the flight explains it.
    step: Option<Step>,
    /// Mean over all rounds of the smaller of two consecutive steps that undo each other.
    mean: Duration,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Step {
    up: bool,
    by: Duration,
}

impl Jitter {
    /// Ends a round whose shortest round trip was `rtt`, with at most `peak` bytes in flight.
    pub(super) fn on_round(&mut self, rtt: Duration, peak: usize) {
        let Some((before, flight)) = self.last.replace((rtt, peak)) else { return };
        let explained = if rtt > before { peak > flight } else { rtt < before && peak < flight };
        let step = Step { up: rtt > before, by: rtt.abs_diff(before) };
        let former = self.step.replace(step).filter(|_| !explained);
        if explained {
            self.step = None;
        }
        if let Some(former) = former {
            let undone = if former.up == step.up { Duration::ZERO } else { former.by.min(step.by) };
            self.mean = (self.mean * (MEMORY - 1) + undone) / MEMORY;
        }
    }

    /// Returns the time by which a round trip may exceed the shortest one without a queue.
    pub(super) fn allowance(&self) -> Duration {
        self.mean * MEANS
    }
}

/// Rounds in the moving mean.
const MEMORY: u32 = 8;
/// Number of means in the allowance: three times the mean difference of two rounds. If rounds vary independently, the
/// mean of two steps that undo each other is half of that difference.
const MEANS: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Allowance after rounds with these round trips, in milliseconds, and packets in flight.
    fn allowance(rounds: impl IntoIterator<Item = (u64, usize)>) -> u64 {
        let mut jitter = Jitter::default();
        for (millis, peak) in rounds {
            jitter.on_round(Duration::from_millis(millis), peak);
        }
        jitter.allowance().as_millis() as u64
    }

    #[test]
    fn a_steady_path_is_allowed_nothing() {
        assert_eq!(allowance([(50, 10); 50]), 0);
    }

    #[test]
    fn a_path_that_varies_is_allowed_about_what_it_varies_by() {
        let varying = [0, 4, 1, 3, 0, 2, 4, 0, 3, 1];
        let allowed = allowance(varying.iter().cycle().take(100).map(|more| (50 + more, 10)));
        assert!((4..=12).contains(&allowed), "{allowed}");
    }

    #[test]
    fn a_queue_that_grows_or_stays_is_no_jitter() {
        assert_eq!(allowance((0..40).map(|round| (50 + 2 * round, 10))), 0, "somebody else fills it");
        assert_eq!(allowance([(50, 10); 20].into_iter().chain([(90, 10); 20])), 0);
    }

    #[test]
    fn what_the_flight_explains_is_no_jitter() {
        let ours = [(50, 10), (60, 20)];
        assert_eq!(allowance(ours.into_iter().cycle().take(100)), 0);
    }
}
