//! What more in flight brings: the slope of a path's rate over what was in flight, in the rounds lately.
//!
//! A queue of our own only grows with more in flight, and the rate stays what the bottleneck makes of it. On a path that
//! delays packets by chance and keeps their order, round trips grow with the rate as well, because one late packet holds
//! up all behind it; but the rate grows in step with the flight. Round trips alone do not tell the two apart.

/// The last rounds.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Response {
    /// Most bytes in flight, and bytes acknowledged a second; the oldest round makes room for the next.
    rounds: [(f64, f64); ROUNDS],
    /// Rounds ever seen.
    seen: usize,
}

impl Response {
    /// A round is over in which `peak` bytes were in flight at most and `rate` bytes a second were acknowledged.
    pub(super) fn on_round(&mut self, peak: usize, rate: f64) {
        self.rounds[self.seen % ROUNDS] = (peak as f64, rate);
        self.seen += 1;
    }

    /// Whether more in flight has lately brought more: the rate grew by half as large a part as the flight did, at least,
    /// on the line that fits the rounds best. As long as they are few, or their flights alike, nobody knows.
    pub(super) fn is_seen(&self) -> bool {
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

/// So many rounds are looked at, or half of them at the beginning.
const ROUNDS: usize = 32;
/// Flights have to differ by so large a part of their mean.
const LEAST_SPREAD: f64 = 0.08;
/// A path with room to spare would have 1, a full one 0.
const LEAST_SLOPE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a response is seen after rounds with so many packets in flight, over a path that carries what `rate` says.
    fn is_seen(flights: impl IntoIterator<Item = usize>, rate: impl Fn(usize, usize) -> f64) -> bool {
        let mut response = Response::default();
        for (round, flight) in flights.into_iter().enumerate() {
            response.on_round(1000 * flight, rate(flight, round));
        }
        response.is_seen()
    }

    fn sawtooth(rounds: usize) -> impl Iterator<Item = usize> {
        (20..30).cycle().take(rounds)
    }

    /// Up to a tenth more or less, in no relation to the flight.
    fn noise(round: usize) -> f64 {
        [0.93, 1.07, 1.02, 0.9, 1.1, 0.98, 1.0][round % 7]
    }

    #[test]
    fn a_path_that_carries_what_is_sent_shows_a_response() {
        assert!(is_seen(sawtooth(40), |flight, round| 20_000.0 * flight as f64 * noise(round)));
        assert!(
            is_seen(sawtooth(40), |flight, _| 1e5 * (flight as f64).powf(0.7)),
            "though each packet takes longer"
        );
    }

    #[test]
    fn a_full_path_shows_none() {
        assert!(!is_seen(sawtooth(40), |_, _| 500_000.0));
        assert!(!is_seen(sawtooth(40), |_, round| 500_000.0 * noise(round)));
    }

    #[test]
    fn a_path_that_becomes_full_shows_none_after_as_many_rounds() {
        let filled_by = |packets: usize| move |flight: usize, _| 20_000.0 * flight.min(packets) as f64;
        assert!(is_seen(2..20, filled_by(20)));
        assert!(!is_seen((2..20).chain(sawtooth(ROUNDS)), filled_by(20)));
    }

    #[test]
    fn nobody_knows_of_few_rounds_and_of_flights_that_are_alike() {
        let proportional = |flight: usize, _| 20_000.0 * flight as f64;
        assert!(!is_seen(sawtooth(ROUNDS / 2 - 1), proportional));
        assert!(!is_seen([30, 31].into_iter().cycle().take(40), proportional));
        assert!(!is_seen([], proportional));
    }
}
