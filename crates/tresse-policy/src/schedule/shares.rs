//! How a buffer that several paths use is shared out between them.
//!
//! Optimises throughput for a buffer that is too small for all paths: a byte holds its place for a round trip, so the
//! shortest round trips are filled first (docs/adaptive.md has the bound). None ever gets more than fills it. Knows
//! neither windows nor flights.

use std::time::Duration;

/// What a path could use of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Round trip without a queue; zero when not yet known.
    pub rtt: Duration,
    /// Bytes that fill the path; 0 for one that cannot be used.
    pub need: usize,
    /// By how much longer a byte holds buffer because others wait for late ones of the path.
    pub burden: Duration,
    /// How many bytes wait for it at most.
    pub held: usize,
    /// It could be used, but costs the others more than it brings, and needs nothing therefore.
    pub rests: bool,
}

impl Claim {
    /// How long a byte holds its place. A burden of less than half a round trip is taken for chance.
    pub fn hold(&self) -> Duration {
        if self.rtt.is_zero() {
            return self.rtt;
        }
        self.rtt + self.rtt / 2 * (2.0 * self.burden.div_duration_f64(self.rtt)) as u32
    }

    /// What filling the path takes of the buffer: its flight, and what waits for it meanwhile.
    pub fn cost(&self) -> usize {
        if self.rtt.is_zero() {
            return self.need;
        }
        let waiting = self.need as f64 * self.burden.div_duration_f64(self.rtt);
        self.need + (waiting as usize).min(self.held)
    }
}

/// What filling a path takes at most, if others wait `seconds` longer for each of its bytes; `None` when it needs more than
/// the part of a buffer that is `equal` to others'. Where a buffer holds that of all paths it is split equally: mostly so, and
/// that is asked for every SACK.
pub fn most_needed(claim: &Claim, seconds: f64, equal: usize) -> Option<usize> {
    // A little longer, and more, however the cost itself is rounded.
    let waiting = 1.001 * claim.need as f64 * (seconds + 1e-9) / claim.rtt.as_secs_f64();
    let most = if claim.need == 0 || claim.rtt.is_zero() { 0 } else { waiting as usize + 1 };
    (claim.need <= equal).then(|| claim.need.saturating_add(most))
}

/// Writes the share of each claim into `shares`, in step with `claims`: bytes of `buffer`.
pub fn allot(claims: &[Claim], buffer: usize, shares: &mut Vec<usize>) {
    shares.clear();
    shares.resize(claims.len(), 0);
    let mut left = buffer;
    let mut served = Duration::ZERO;
    while left > 0 {
        let waiting = claims.iter().filter(|claim| claim.need > 0 && claim.hold() >= served);
        let Some(shortest) = waiting.map(Claim::hold).min() else { break };
        // Times that hardly differ are filled alike: a path that is filled alone to its brim has a queue.
        let reach = shortest + shortest / ALIKE;
        let alike = |claim: &Claim| (shortest..=reach).contains(&claim.hold());
        let wanted: usize = claims.iter().filter(|claim| alike(claim)).map(Claim::cost).sum();
        let granted = wanted.min(left);
        for (share, claim) in shares.iter_mut().zip(claims).filter(|(_, claim)| alike(claim)) {
            *share = part(granted, claim.need, wanted);
        }
        left -= granted;
        served = reach + Duration::from_nanos(1);
    }
}

/// Writes shares into `shares` where there is enough for all: equal ones, but those that need more than that get it.
pub fn split(claims: &[Claim], buffer: usize, shares: &mut Vec<usize>) {
    let usable = claims.iter().filter(|claim| claim.need > 0);
    let equal = buffer / usable.clone().count().max(1);
    let (many, needed) = usable
        .filter(|claim| claim.need > equal)
        .fold((0, 0), |(many, needed), claim| (many + 1, needed + claim.need));
    let modest = claims.iter().filter(|claim| claim.need > 0).count() - many;
    let rest = buffer.saturating_sub(needed) / modest.max(1);
    shares.clear();
    shares.extend(claims.iter().map(|claim| match claim.need {
        0 => 0,
        need if need > equal => need,
        need => rest.max(need),
    }));
}

/// Which of those that need anything holds buffer for the shortest time, as far as is known.
pub fn shortest_hold(claims: &[Claim]) -> Option<usize> {
    let usable = (0..).zip(claims).filter(|(_, claim)| claim.need > 0);
    usable.min_by_key(|(_, claim)| (claim.rtt.is_zero(), claim.hold())).map(|(position, _)| position)
}

/// The part of `whole` that `need` is of `total`.
fn part(whole: usize, need: usize, total: usize) -> usize {
    if total == 0 { 0 } else { (whole as u128 * need as u128 / total as u128) as usize }
}

/// Round trips that differ by less than this part of the shorter one count as alike.
const ALIKE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(claims: &[(u64, usize)], buffer: usize) -> Vec<usize> {
        let claims: Vec<Claim> = claims
            .iter()
            .map(|&(millis, need)| Claim {
                rtt: Duration::from_millis(millis),
                need,
                burden: Duration::ZERO,
                held: 0,
                rests: false,
            })
            .collect();
        let mut shares = Vec::new();
        allot(&claims, buffer, &mut shares);
        shares
    }

    #[test]
    fn a_buffer_that_is_too_small_fills_the_shortest_round_trips_first() {
        let claims = [(100, 125_000), (20, 25_000), (60, 75_000)];
        assert_eq!(shares(&claims, 10_000), [0, 10_000, 0]);
        assert_eq!(shares(&claims, 40_000), [0, 25_000, 15_000]);
        assert_eq!(shares(&claims, 150_000), [50_000, 25_000, 75_000]);
    }

    #[test]
    fn a_buffer_that_is_large_enough_gives_each_what_fills_it_and_no_more() {
        assert_eq!(shares(&[(20, 25_000), (100, 125_000)], 300_000), [25_000, 125_000]);
        assert_eq!(shares(&[(20, 25_000), (100, 125_000)], 150_000), [25_000, 125_000]);
    }

    #[test]
    fn round_trips_that_hardly_differ_are_filled_alike() {
        assert_eq!(shares(&[(20, 50_000), (22, 50_000)], 60_000), [30_000, 30_000]);
        assert_eq!(shares(&[(20, 50_000), (23, 50_000)], 60_000), [50_000, 10_000]);
    }

    fn burdened(claims: &[(u64, usize, u64, usize)], buffer: usize) -> Vec<usize> {
        let millis = Duration::from_millis;
        let claim = |&(rtt, need, burden, held)| Claim {
            rtt: millis(rtt),
            need,
            burden: millis(burden),
            held,
            rests: false,
        };
        let claims: Vec<Claim> = claims.iter().map(claim).collect();
        let mut shares = Vec::new();
        allot(&claims, buffer, &mut shares);
        shares
    }

    #[test]
    fn a_path_that_others_have_to_wait_for_is_filled_as_if_it_were_longer() {
        let claims = [(90, 10_000, 40, 10_000), (90, 10_000, 100, 10_000), (130, 10_000, 0, 0)];
        assert_eq!(
            burdened(&claims, 13_000),
            [9_000, 0, 0],
            "less than half a round trip may be chance, but takes room"
        );
        assert_eq!(burdened(&claims, 14_444), [10_000, 0, 0]);
        assert_eq!(
            burdened(&claims, 24_444),
            [10_000, 0, 10_000],
            "before the one that is shorter by itself"
        );
    }

    #[test]
    fn what_waits_for_a_path_takes_room_beside_its_flight() {
        assert_eq!(burdened(&[(100, 10_000, 100, 50_000)], 10_000), [5_000]);
        assert_eq!(burdened(&[(100, 10_000, 900, 5_000)], 10_000), [6_666], "never more than there was");
    }

    #[test]
    fn a_path_that_cannot_be_used_gets_nothing() {
        assert_eq!(shares(&[(20, 0), (100, 10_000)], 5_000), [0, 5_000]);
        assert_eq!(shares(&[(20, 0), (100, 0)], 5_000), [0, 0]);
        assert_eq!(shares(&[], 5_000), [0_usize; 0]);
    }

    #[test]
    fn where_there_is_enough_shares_are_equal_but_for_whoever_needs_more() {
        let claims = [(20, 25_000), (100, 0), (60, 75_000)].map(|(millis, need)| Claim {
            rtt: Duration::from_millis(millis),
            need,
            burden: Duration::ZERO,
            held: 0,
            rests: need == 0,
        });
        let mut shares = Vec::new();
        split(&claims, 200_000, &mut shares);
        assert_eq!(shares, [100_000, 0, 100_000]);
        split(&claims, 140_000, &mut shares);
        assert_eq!(shares, [65_000, 0, 75_000]);
        assert_eq!(shortest_hold(&claims), Some(0));
        assert_eq!(shortest_hold(&claims[1..2]), None);
        let unknown = Claim { rtt: Duration::ZERO, ..claims[2] };
        assert_eq!(shortest_hold(&[unknown, claims[2]]), Some(1));
    }

    #[test]
    fn what_a_path_needs_at_most_is_never_less_than_what_it_costs() {
        for (rtt, need, seconds) in
            [(0, 5, 9.0), (20, 0, 0.1), (20, 9_973, 0.0), (7, 99_991, 0.123_456_789_5)]
        {
            let claim = Claim {
                rtt: Duration::from_millis(rtt),
                need,
                burden: Duration::from_secs_f64(seconds),
                held: usize::MAX,
                rests: false,
            };
            let most = most_needed(&claim, seconds, need).expect("it needs no more than that");
            assert!(
                (claim.cost()..=claim.cost() + claim.cost() / 500 + 1).contains(&most),
                "{claim:?} {most}"
            );
            assert_eq!(most_needed(&claim, seconds, need.wrapping_sub(1)).is_some(), need == 0);
        }
    }

    #[test]
    fn no_more_is_given_out_than_there_is() {
        for buffer in [0, 1, 7, 99_999, 1 << 30] {
            let claims = [(0, 10), (1, 1 << 30), (1, 3), (50, 1 << 29), (50, 0)];
            assert!(shares(&claims, buffer).iter().sum::<usize>() <= buffer, "{buffer}");
        }
    }
}
