//! Impairments on the wire, behind the queue: losses, damage, duplicates, late packets.
//!
//! Each impairment has a random generator of its own, so that an additional impairment does not change the random numbers of the others.
//! This module knows only the length of a packet. A lost packet has waited in the queue and occupied the transmitter.

use std::time::Duration;

use tresse_proto::Instant;

use super::bit_errors::{BitErrors, Damage};
use crate::seed::{Generator, Seed, unit_interval};

/// Loss model of a link.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// No losses.
    #[default]
    None,
    /// Independent losses with this probability.
    Uniform(f64),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
}

impl Loss {
    /// Returns the share of packets that is lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            Loss::None => 0.0,
            Loss::Uniform(probability) => probability,
            Loss::GilbertElliott(GilbertElliott { p, r, good_loss, bad_loss }) => {
                let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
                bad * bad_loss + (1.0 - bad) * good_loss
            }
        }
    }
}

/// Loss by a Markov chain of two states (Gilbert 1960, Elliott 1963). For each packet the state changes first; the new
/// state then has the probability of loss. The chain starts in its stationary distribution, in which r / (p + r) of the
/// packets meet the good state; a stay in the bad state lasts 1 / r packets in the mean.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad.
    pub p: f64,
    /// Probability of a change from bad to good; `p` and `r` are not both 0.
    pub r: f64,
    /// Probability of loss in the good state.
    pub good_loss: f64,
    /// Probability of loss in the bad state.
    pub bad_loss: f64,
}

/// State of a loss model.
#[derive(Debug)]
pub(super) struct Losses {
    model: Loss,
    generator: Generator,
    /// The chain's state, once it has started.
    bad: Option<bool>,
}

impl Losses {
    pub(super) fn new(model: Loss, generator: Generator) -> Self {
        Losses { model, generator, bad: None }
    }

    /// Changes the loss model.
    pub(super) fn set_model(&mut self, model: Loss) {
        self.model = model;
    }

    /// Returns whether the next packet is lost.
    pub(super) fn strike(&mut self) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Uniform(probability) => unit_interval(&mut self.generator) < probability,
            Loss::GilbertElliott(chain) => self.strike_in_bursts(chain),
        }
    }

    fn strike_in_bursts(&mut self, chain: GilbertElliott) -> bool {
        let GilbertElliott { p, r, good_loss, bad_loss } = chain;
        let draw = unit_interval(&mut self.generator);
        let bad = match self.bad {
            None => draw * (p + r) < p,
            Some(false) => draw < p,
            Some(true) => draw >= r,
        };
        self.bad = Some(bad);
        unit_interval(&mut self.generator) < if bad { bad_loss } else { good_loss }
    }
}

/// Packets that arrive late, behind others that were sent after them.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Reordering {
    /// Probability of each packet, independent of the others.
    pub probability: f64,
    /// Additional delay of such packets.
    pub extra_delay: Duration,
}

/// Probabilities of impairments of a packet that is not lost.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct ImpairmentSpec {
    /// Probability that a bit on the wire, frame included, is flipped.
    pub bit_error_rate: f64,
    /// Bytes at the start of each IP packet without bit errors; above 0, the frame has none either.
    pub bit_errors_spare: u32,
    /// Probability that a packet arrives twice, the second time immediately after the first.
    pub duplication: f64,
    /// Probability that a packet arrives late.
    pub reordering: Option<Reordering>,
    /// Longest jitter: each packet takes longer by up to this time, uniformly distributed, without overtaking another one.
    pub jitter: Duration,
}

/// Impairments of packets that are not lost.
#[derive(Debug)]
pub(super) struct Impairments {
    bit_errors: Option<BitErrors>,
    duplication: Option<Trials>,
    reordering: Option<(Trials, Duration)>,
    jitter: Option<Jitter>,
}

/// Impairment of one packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Impairment {
    pub(super) damage: Damage,
    pub(super) twice: bool,
    /// Additional delay.
    pub(super) extra_delay: Duration,
}

impl Impairments {
    /// Returns the impairments of the link `name`; `None` if there are none.
    pub(super) fn new(spec: &ImpairmentSpec, seed: Seed, name: &str) -> Option<Self> {
        if *spec == ImpairmentSpec::default() {
            return None;
        }
        let generator = |what: &str| seed.generator(&format!("{name} {what}"));
        let rng = |probability, what| Trials { probability, generator: generator(what) };
        let rate = spec.bit_error_rate;
        Some(Impairments {
            bit_errors: (rate > 0.0)
                .then(|| BitErrors::new(rate, spec.bit_errors_spare, generator("bit errors"))),
            duplication: (spec.duplication > 0.0).then(|| rng(spec.duplication, "duplication")),
            reordering: spec
                .reordering
                .map(|Reordering { probability, extra_delay }| (rng(probability, "reordering"), extra_delay)),
            jitter: (!spec.jitter.is_zero()).then(|| Jitter {
                most: spec.jitter,
                generator: generator("jitter"),
                latest: Instant::ZERO,
            }),
        })
    }

    /// Returns the arrival time, with jitter, of a packet that would arrive at `at`.
    pub(super) fn delay(&mut self, at: Instant) -> Instant {
        self.jitter.as_mut().map_or(at, |jitter| jitter.delay(at))
    }

    /// Draws the impairment of the next packet: an IP packet of `bytes` bytes behind `framing` bytes of frame.
    pub(super) fn next(&mut self, bytes: u32, framing: u32) -> Impairment {
        let damage = self.bit_errors.as_mut().map_or(Damage::None, |errors| errors.pass(bytes, framing));
        let twice = self.duplication.as_mut().is_some_and(Trials::strikes);
        let late = self.reordering.as_mut().and_then(|(rng, extra)| rng.strikes().then_some(*extra));
        let extra_delay = late.unwrap_or_default();
        Impairment { damage, twice, extra_delay }
    }

    /// Returns the flipped bits of the last packet, counted from the end of its IP header.
    pub(super) fn flips(&self) -> &[u32] {
        self.bit_errors.as_ref().map_or(&[], BitErrors::flips)
    }
}

/// Random additional delay of each packet, with a generator of its own.
#[derive(Debug)]
struct Jitter {
    most: Duration,
    generator: Generator,
    /// Arrival time of the last packet: no later packet overtakes it.
    latest: Instant,
}

impl Jitter {
    fn delay(&mut self, at: Instant) -> Instant {
        let longer = self.most.mul_f64(unit_interval(&mut self.generator));
        self.latest = self.latest.max(at + longer);
        self.latest
    }
}

/// Independent random decisions on packets, with a generator of their own.
#[derive(Debug)]
struct Trials {
    probability: f64,
    generator: Generator,
}

impl Trials {
    fn strikes(&mut self) -> bool {
        unit_interval(&mut self.generator) < self.probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> Generator {
        Seed(1).generator("impairment")
    }

    /// Returns the share of lost packets, and the lengths of runs of losses.
    fn bursts(chain: GilbertElliott, packets: usize) -> (f64, Vec<u32>) {
        let mut losses = Losses::new(Loss::GilbertElliott(chain), generator());
        let (mut lost, mut run, mut runs) = (0, 0, Vec::new());
        for _ in 0..packets {
            if losses.strike() {
                lost += 1;
                run += 1;
            } else if run > 0 {
                runs.push(std::mem::take(&mut run));
            }
        }
        (f64::from(lost) / packets as f64, runs)
    }

    #[test]
    fn bursts_are_as_frequent_and_as_long_as_the_chain_says() {
        let chain = GilbertElliott { p: 0.01, r: 0.25, good_loss: 0.0, bad_loss: 1.0 };
        let (loss, runs) = bursts(chain, 200_000);
        // Stationary: 0.01 / 0.26 = 3.85 %, in about 1,920 bursts of 4 with deviation 3.46.
        assert!((loss - 0.03846).abs() < 0.004, "{loss}");
        let mean = runs.iter().map(|run| f64::from(*run)).sum::<f64>() / runs.len() as f64;
        assert!((mean - 4.0).abs() < 0.35, "{mean}");
    }

    #[test]
    fn each_state_has_its_loss() {
        let chain = GilbertElliott { p: 0.1, r: 0.1, good_loss: 0.02, bad_loss: 0.3 };
        let (loss, _) = bursts(chain, 100_000);
        // Half of the packets meet each state: 16 %. Bursts make the deviation about 0.3 %.
        assert!((loss - 0.16).abs() < 0.012, "{loss}");
        let never = GilbertElliott { p: 0.0, r: 1.0, good_loss: 0.0, bad_loss: 1.0 };
        assert_eq!(bursts(never, 10_000).0, 0.0);
        let always = GilbertElliott { p: 1.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        assert_eq!(bursts(always, 10_000).0, 1.0);
    }
}
