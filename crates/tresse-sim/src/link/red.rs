//! Random Early Detection: drops, or marks, by the average length of the queue, before it is full.
//!
//! Owns the average and the decision. Independent of the rate of the link and of the queue itself: the number of
//! waiting packets, and the time since which there are none, are arguments. The parameters and the hard limit are those
//! of the model behind "On the Use of Concurrent Multipath Transfer over Asymmetric Paths" (2010); the algorithm is
//! that of Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), which averages the
//! length in packets.

use tresse_proto::Instant;

use crate::seed::{Generator, unit_interval};

/// The parameters of a RED queue.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct RedSpec {
    /// Weight of the present length in the average, w_q; above 0, at most 1.
    pub weight: f64,
    /// Average, in packets, below which no packet is dropped early.
    pub min_threshold: u32,
    /// Average, in packets, from which on every packet is dropped; also the most packets that may wait at any time.
    /// Above `min_threshold`.
    pub max_threshold: u32,
    /// Probability of a drop when the average reaches `max_threshold`, max_p.
    pub max_probability: f64,
    /// Packets per second by which the average ages while no packet waits; 1/s in the paper of 1993.
    pub idle_rate: f64,
    /// True to spread the drops evenly by counting the packets since the last drop, as in the paper of 1993. Otherwise
    /// drops are independent, and come in clusters.
    pub uniform_drops: bool,
    /// True to mark in place of early drops below `max_threshold`, if the hosts support ECN (RFC 3168 §7).
    pub ecn: bool,
}

impl Default for RedSpec {
    /// The bottlenecks of the papers of 2010. Their model did not count packets between drops until 2013.
    fn default() -> Self {
        RedSpec {
            weight: 0.002,
            min_threshold: 20,
            max_threshold: 80,
            max_probability: 0.02,
            idle_rate: 150.0,
            uniform_drops: false,
            ecn: false,
        }
    }
}

/// Decision of RED on a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum RedDecision {
    /// The packet may wait.
    Admit,
    /// The packet may wait, and is marked because of the average.
    Mark,
    /// The packet is dropped because of the average.
    DropEarly,
    /// The packet is dropped because `max_threshold` packets are waiting.
    DropFull,
}

/// State of a RED queue.
#[derive(Debug)]
pub(super) struct Red {
    spec: RedSpec,
    generator: Generator,
    average: f64,
    /// Packets since the last drop, while the average is between the thresholds.
    since_drop: Option<u32>,
}

impl Red {
    pub(super) fn new(spec: RedSpec, generator: Generator) -> Self {
        Red { spec, generator, average: 0.0, since_drop: None }
    }

    /// Decides on a packet that would wait behind `waiting` others. If there are none, `idle_since` is the time at
    /// which the last packet left.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        waiting: usize,
        idle_since: Instant,
        markable: bool,
    ) -> RedDecision {
        self.update_average(now, waiting, idle_since);
        let signals = self.signals();
        // If the average is at its limit, marks were not enough (RFC 3168 §7).
        let marks = self.spec.ecn && markable && self.average < f64::from(self.spec.max_threshold);
        if signals && !marks {
            return RedDecision::DropEarly;
        }
        if waiting >= self.spec.max_threshold as usize {
            self.since_drop = self.since_drop.map(|_| 0);
            return RedDecision::DropFull;
        }
        if signals { RedDecision::Mark } else { RedDecision::Admit }
    }

    fn update_average(&mut self, now: Instant, waiting: usize, idle_since: Instant) {
        let RedSpec { weight, idle_rate, .. } = self.spec;
        if waiting > 0 {
            self.average += weight * (waiting as f64 - self.average);
        } else {
            let could_have_come = now.since(idle_since).as_secs_f64() * idle_rate;
            // libm, because the standard library's powers differ between machines in the last bit.
            self.average *= libm::pow(1.0 - weight, could_have_come);
        }
    }

    /// Returns whether RED marks or drops the packet to signal congestion to its sender.
    fn signals(&mut self) -> bool {
        let (min, max) = (f64::from(self.spec.min_threshold), f64::from(self.spec.max_threshold));
        if self.average < min {
            self.since_drop = None;
            return false;
        }
        if self.average >= max {
            self.since_drop = Some(0);
            return true;
        }
        let counted = self.since_drop.map_or(0, |count| count.saturating_add(1));
        let alone = self.spec.max_probability * (self.average - min) / (max - min);
        let probability = if self.spec.uniform_drops {
            let rest = 1.0 - f64::from(counted) * alone;
            if rest > alone { alone / rest } else { 1.0 }
        } else {
            alone
        };
        let drop = unit_interval(&mut self.generator) < probability;
        self.since_drop = Some(if drop { 0 } else { counted });
        drop
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::seed::Seed;

    fn red(spec: RedSpec) -> Red {
        Red::new(spec, Seed(1).generator("red"))
    }

    /// Returns the numbers of packets between drops while the average stays midway between the thresholds: p_b is 0.05.
    fn gaps(uniform_drops: bool) -> Vec<u32> {
        let spec = RedSpec { weight: 1.0, max_probability: 0.1, uniform_drops, ..RedSpec::default() };
        let mut red = red(spec);
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 5_000 {
            gap += 1;
            if red.judge(Instant::ZERO, 50, Instant::ZERO, false) == RedDecision::DropEarly {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps
    }

    fn mean_and_deviation(gaps: &[u32]) -> (f64, f64) {
        let n = gaps.len() as f64;
        let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / n;
        let square = gaps.iter().map(|gap| (f64::from(*gap) - mean).powi(2)).sum::<f64>() / n;
        (mean, square.sqrt())
    }

    #[test]
    fn the_average_follows_the_length_by_its_weight() {
        let mut red = red(RedSpec { weight: 0.25, ..RedSpec::default() });
        red.judge(Instant::ZERO, 8, Instant::ZERO, false);
        assert_eq!(red.average, 2.0);
        red.judge(Instant::ZERO, 10, Instant::ZERO, false);
        assert_eq!(red.average, 4.0);
    }

    #[test]
    fn the_average_ages_while_nothing_waits() {
        let mut red = red(RedSpec::default());
        red.average = 16.0;
        // The average halves in ln 0.5 / ln 0.998 = 346.23 packets, at 150 per second.
        red.judge(Instant::ZERO + Duration::from_micros(2_308_200), 0, Instant::ZERO, false);
        assert!((red.average - 8.0).abs() < 1e-3, "{}", red.average);
    }

    #[test]
    fn thresholds_bound_the_early_drops() {
        let mut red = red(RedSpec { weight: 1.0, max_probability: 1.0, ..RedSpec::default() });
        for _ in 0..1000 {
            assert_eq!(red.judge(Instant::ZERO, 19, Instant::ZERO, false), RedDecision::Admit);
            assert_eq!(red.judge(Instant::ZERO, 20, Instant::ZERO, false), RedDecision::Admit, "p_b is 0");
        }
        assert_eq!(red.judge(Instant::ZERO, 80, Instant::ZERO, false), RedDecision::DropEarly);
        // A slow average still admits packets, but the hard limit does not.
        red.spec.weight = 0.002;
        red.average = 0.0;
        assert_eq!(red.judge(Instant::ZERO, 79, Instant::ZERO, false), RedDecision::Admit);
        assert_eq!(red.judge(Instant::ZERO, 80, Instant::ZERO, false), RedDecision::DropFull);
    }

    #[test]
    fn marks_take_the_place_of_early_drops_up_to_the_upper_threshold() {
        let spec = RedSpec { weight: 1.0, max_probability: 1.0, ecn: true, ..RedSpec::default() };
        let decisions = |waiting, markable| {
            let mut red = red(spec);
            (0..1000).map(move |_| red.judge(Instant::ZERO, waiting, Instant::ZERO, markable))
        };
        assert!(decisions(79, true).any(|decision| decision == RedDecision::Mark));
        assert!(
            decisions(79, true).all(|decision| matches!(decision, RedDecision::Mark | RedDecision::Admit))
        );
        assert!(decisions(79, false).any(|decision| decision == RedDecision::DropEarly));
        assert!(decisions(80, true).all(|decision| decision == RedDecision::DropEarly));
    }

    #[test]
    fn without_counting_gaps_are_geometric() {
        let (mean, deviation) = mean_and_deviation(&gaps(false));
        // p = 0.05: mean 20, deviation 19.5; standard error of the mean 0.28.
        assert!((mean - 20.0).abs() < 1.2, "{mean}");
        assert!((deviation - 19.5).abs() < 1.5, "{deviation}");
    }

    #[test]
    fn with_counting_gaps_are_uniform() {
        let gaps = gaps(true);
        let (mean, deviation) = mean_and_deviation(&gaps);
        // The first packet after a drop counts as 1, so p_a is 1/19, 1/18, … 1: uniform on 1 to 19, with mean 10 and
        // deviation 5.48.
        assert!((mean - 10.0).abs() < 0.4, "{mean}");
        assert!((deviation - 5.48).abs() < 0.2, "{deviation}");
        assert_eq!(gaps.iter().max(), Some(&19));
    }
}
