//! Delivery rate of a path against the bytes in flight: its slope over the last rounds.
//!
//! With more in flight a queue only grows, and the delivery rate stays that of the bottleneck. On a path that delays
//! packets at random and keeps their order, round trips grow as well, because one late packet delays all behind it; but
//! there the rate grows with the bytes in flight. Round-trip times alone do not distinguish the two cases.

/// Flights and delivery rates of the last rounds.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct DeliveryRate {
    /// Most bytes in flight, and bytes acknowledged per second; the next round overwrites the oldest.
    rounds: [(f64, f64); ROUNDS],
    /// Number of all rounds so far.
    seen: usize,
}

impl DeliveryRate {
    /// Ends a round in which at most `peak` bytes were in flight and `rate` bytes per second were acknowledged.
    pub(super) fn on_round(&mut self, peak: usize, rate: f64) {
        self.rounds[self.seen % ROUNDS] = (peak as f64, rate);
        self.seen += 1;
    }

    /// Returns whether the rate has lately risen with the bytes in flight: on the regression line of the rounds, its
    /// relative slope is at least one half. False while there are few rounds, or the bytes in flight hardly vary.
    pub(super) fn rises_with_flight(&self) -> bool {
        let rounds = &self.rounds[..self.seen.min(ROUNDS)];
        let count = rounds.len() as f64;
        let flight = rounds.iter().map(|(flight, _)| flight).sum::<f64>() / count;
        let rate = rounds.iter().map(|(_, rate)| rate).sum::<f64>() / count;
        let (mut variance, mut covariance) = (0.0, 0.0);
        for (in_flight, carried) in rounds {
            variance += (in_flight - flight) * (in_flight - flight) / count;
            covariance += (in_flight - flight) * (carried - rate) / count;
        }
        rounds.len() >= ROUNDS / 2
            && variance.sqrt() > LEAST_SPREAD * flight
            && covariance * flight > LEAST_SLOPE * variance * rate
    }
}

/// Number of rounds that count; at the beginning half of them suffice.
const ROUNDS: usize = 32;
/// Standard deviation of the bytes in flight, as a part of their mean, below which rounds do not count.
const LEAST_SPREAD: f64 = 0.08;
/// Relative slope that counts as rising. A path with room has 1, a full path 0.
const LEAST_SLOPE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the rate rises after rounds with so many packets in flight. `rate` gives the delivery rate by
    /// packets in flight and round.
    fn rises(flights: impl IntoIterator<Item = usize>, rate: impl Fn(usize, usize) -> f64) -> bool {
        let mut rates = DeliveryRate::default();
        for (round, flight) in flights.into_iter().enumerate() {
            rates.on_round(1000 * flight, rate(flight, round));
        }
        rates.rises_with_flight()
    }

    fn sawtooth(rounds: usize) -> impl Iterator<Item = usize> {
        (20..30).cycle().take(rounds)
    }

    /// Factor that varies by up to a tenth, independently of the flight.
    fn noise(round: usize) -> f64 {
        [0.93, 1.07, 1.02, 0.9, 1.1, 0.98, 1.0][round % 7]
    }

    #[test]
    fn the_rate_of_a_path_with_room_rises() {
        assert!(rises(sawtooth(40), |flight, round| 20_000.0 * flight as f64 * noise(round)));
        assert!(
            rises(sawtooth(40), |flight, _| 1e5 * (flight as f64).powf(0.7)),
            "though each packet takes longer"
        );
    }

    #[test]
    fn that_of_a_full_path_does_not() {
        assert!(!rises(sawtooth(40), |_, _| 500_000.0));
        assert!(!rises(sawtooth(40), |_, round| 500_000.0 * noise(round)));
    }

    #[test]
    fn that_of_a_path_that_becomes_full_does_not_after_as_many_rounds() {
        let filled_by = |packets: usize| move |flight: usize, _| 20_000.0 * flight.min(packets) as f64;
        assert!(rises(2..20, filled_by(20)));
        assert!(!rises((2..20).chain(sawtooth(ROUNDS)), filled_by(20)));
    }

    #[test]
    fn few_rounds_and_flights_that_are_alike_say_nothing() {
        let proportional = |flight: usize, _| 20_000.0 * flight as f64;
        assert!(!rises(sawtooth(ROUNDS / 2 - 1), proportional));
        assert!(!rises([30, 31].into_iter().cycle().take(40), proportional));
        assert!(!rises([], proportional));
    }
}
