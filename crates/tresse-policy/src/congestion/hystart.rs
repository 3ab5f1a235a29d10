//! HyStart++ (RFC 9406): leaves the first slow start of a path when its round trips become longer, before its queue is full.
//!
//! Once the shortest round trip of a round is longer than that of the round before by an eighth (4 to 16 ms), the
//! window grows a quarter as fast for five rounds: conservative slow start. If round trips become shorter meanwhile,
//! there was no queue, and slow start continues; otherwise the window stays where it is, and congestion avoidance
//! begins.
//!
//! Only measurements made while the congestion window is the limit count. If a buffer or a scheduler is the limit, the
//! window does not grow and fills no queue: round trips that become longer then belong to a path that has changed.
//! Slow start continues, and the earlier measurements are discarded, once the window is the limit again: it may still be
//! far below the capacity, and congestion avoidance would need seconds to reach it.
//!
//! It applies to the first slow start only (RFC 9406 §4.3): later ones end at the threshold that a loss has left. The
//! threshold does not distinguish the first slow start from later ones, because it begins at the peer's receive window
//! and not at infinity (RFC 9260 §7.2.1).

use std::time::Duration;

use crate::time::Instant;

/// The first slow start of one path.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub(super) struct HyStart {
    /// Beginning of the round.
    began: Option<Instant>,
    /// The shortest round trip of this round while the window was the limit, and the number of measurements.
    shortest: Option<Duration>,
    samples: u32,
    /// The shortest round trip of the round before.
    before: Option<Duration>,
    /// State of conservative slow start, if the path is in it.
    conservative: Option<Conservative>,
    /// True once the first slow start has ended, by this algorithm or by a loss.
    over: bool,
}

/// Conservative slow start, which checks that a queue has begun to grow.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Conservative {
    /// Round-trip time with which conservative slow start began.
    baseline: Duration,
    /// Number of completed rounds.
    rounds: u32,
}

impl HyStart {
    /// Takes the round trip `rtt` of the newest chunk that a SACK acknowledged; `limits` is true if the window is the
    /// limit. Returns whether slow start ends.
    pub(super) fn on_round_trip(&mut self, now: Instant, rtt: Duration, limits: bool) -> bool {
        if self.over {
            return false;
        }
        let began = *self.began.get_or_insert(now);
        // Data that was sent after the beginning of the round has been acknowledged.
        if now.since(began) >= rtt && self.end_round(now) {
            self.end();
            return true;
        }
        if !limits {
            return false;
        }
        self.samples += 1;
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        if self.samples >= ENOUGH_SAMPLES {
            self.judge(shortest);
        }
        false
    }

    /// Returns the part of `bytes` by which the window may grow.
    pub(super) fn growth(&self, bytes: usize) -> usize {
        if self.conservative.is_some() { bytes / SLOWER } else { bytes }
    }

    /// Returns whether the path has left its first slow start.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Ends the first slow start: HyStart++ does not apply to later ones.
    pub(super) fn end(&mut self) {
        *self = HyStart { over: true, ..HyStart::default() };
    }

    /// Discards the measurements after an idle time: they do not apply to later round trips.
    pub(super) fn pause(&mut self) {
        *self = HyStart { over: self.over, ..HyStart::default() };
    }

    /// Ends a round, and returns whether it was the last one of conservative slow start.
    fn end_round(&mut self, now: Instant) -> bool {
        if self.samples == 0 {
            *self = HyStart { began: Some(now), ..HyStart::default() };
            return false;
        }
        let over = self.conservative.as_mut().is_some_and(|conservative| {
            conservative.rounds += 1;
            conservative.rounds >= CONSERVATIVE_ROUNDS
        });
        let (shortest, conservative) = (self.shortest, self.conservative);
        *self = HyStart { began: Some(now), before: shortest, conservative, ..HyStart::default() };
        over
    }

    /// Compares this round with the one before or, in conservative slow start, with the baseline.
    fn judge(&mut self, shortest: Duration) {
        if let Some(conservative) = self.conservative {
            if shortest < conservative.baseline {
                self.conservative = None;
            }
        } else if let Some(before) = self.before {
            let longer = (before / LONGER_BY).clamp(LEAST_LONGER, MOST_LONGER);
            if shortest >= before + longer {
                self.conservative = Some(Conservative { baseline: shortest, rounds: 0 });
            }
        }
    }
}

/// `N_RTT_SAMPLE`: number of measurements below which a round does not count (RFC 9406 §4.3, as all that follow).
const ENOUGH_SAMPLES: u32 = 8;
/// `MIN_RTT_DIVISOR`, `MIN_RTT_THRESH` and `MAX_RTT_THRESH`: a round trip that is longer than the last round's by this
/// part of it, within these bounds, has met a queue.
const LONGER_BY: u32 = 8;
const LEAST_LONGER: Duration = Duration::from_millis(4);
const MOST_LONGER: Duration = Duration::from_millis(16);
/// `CSS_GROWTH_DIVISOR`.
const SLOWER: usize = 4;
/// `CSS_ROUNDS`, including the round in which conservative slow start begins.
const CONSERVATIVE_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays rounds of 200 ms, each with `samples` SACKs of the round trip that is given for it, in ms. Returns the
    /// rounds in which the window grew slowly, and the round after which slow start was over.
    fn play(samples: u64, rounds: &[u64]) -> (Vec<usize>, Option<usize>) {
        play_limited(samples, &rounds.iter().map(|millis| (*millis, true)).collect::<Vec<_>>())
    }

    /// As `play`; the second field of a round is true if the window is the limit in it.
    fn play_limited(samples: u64, rounds: &[(u64, bool)]) -> (Vec<usize>, Option<usize>) {
        let mut start = HyStart::default();
        let mut slow = Vec::new();
        for (round, (millis, limits)) in rounds.iter().enumerate() {
            for sample in 0..samples {
                // The first SACK of a round acknowledges a packet sent when the round before began.
                let now = Instant::ZERO + Duration::from_millis(200 * round as u64 + sample);
                if start.on_round_trip(now, Duration::from_millis(*millis), *limits) {
                    return (slow, Some(round - 1));
                }
            }
            if start.growth(4) < 4 {
                slow.push(round);
            }
        }
        (slow, None)
    }

    #[test]
    fn five_rounds_with_a_queue_end_slow_start() {
        // An eighth of 100 ms longer.
        assert_eq!(play(8, &[100, 100, 113, 113, 120, 130, 140, 150, 160]), (vec![2, 3, 4, 5, 6], Some(6)));
        assert_eq!(play(8, &[100, 112, 112, 112, 112, 112, 112, 112]), (vec![], None), "not an eighth");
    }

    #[test]
    fn short_round_trips_count_as_longer_from_four_and_long_ones_from_sixteen_milliseconds_on() {
        assert_eq!(play(8, &[4, 7]).0, []);
        assert_eq!(play(8, &[4, 8]).0, [1]);
        assert_eq!(play(8, &[180, 195]).0, []);
        assert_eq!(play(8, &[180, 196]).0, [1]);
    }

    #[test]
    fn round_trips_that_become_shorter_again_were_no_queue() {
        assert_eq!(play(8, &[100, 120, 125, 119, 119, 119, 119, 119]), (vec![1, 2], None));
    }

    /// A scheduler gives the path little data, and its delay grows. That is no queue, neither then nor when the path gets more data.
    #[test]
    fn round_trips_that_the_window_does_not_limit_say_nothing() {
        let grows = [(20, false), (20, false), (90, false), (90, false), (90, true), (90, true), (90, true)];
        assert_eq!(play_limited(20, &grows), (vec![], None));
        let before = [(20, true), (20, true), (90, false), (90, false), (90, true), (90, true), (90, true)];
        assert_eq!(play_limited(20, &before), (vec![], None), "a baseline of before is none");
        let then_a_queue = [(90, false), (90, true), (90, true), (102, true), (110, true)];
        assert_eq!(play_limited(20, &then_a_queue), (vec![3, 4], None));
    }

    #[test]
    fn a_round_that_the_window_does_not_limit_ends_slow_growth() {
        let rounds = [(100, true), (120, true), (125, true), (125, false), (125, true), (125, true)];
        assert_eq!(play_limited(8, &rounds), (vec![1, 2, 3], None));
    }

    #[test]
    fn few_round_trips_say_nothing() {
        assert_eq!(play(7, &[100, 120, 140, 160, 180, 199]), (vec![], None));
    }

    #[test]
    fn the_shortest_round_trip_of_a_round_counts() {
        let mut start = HyStart::default();
        for (millis, rtt) in
            (0..8).map(|sample| (sample, 100)).chain((0..7).map(|sample| (200 + sample, 150)))
        {
            start.on_round_trip(
                Instant::ZERO + Duration::from_millis(millis),
                Duration::from_millis(rtt),
                true,
            );
        }
        start.on_round_trip(Instant::ZERO + Duration::from_millis(208), Duration::from_millis(104), true);
        assert_eq!(start.growth(4), 4);
    }
}
