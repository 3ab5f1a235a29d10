//! Duplicates of chunks in flight on a lossy path, on another path that a full buffer keeps from new data.
//!
//! It optimises throughput with a short buffer over lossy paths: there each loss delays all streams by the round trip
//! of its retransmission. A duplicate uses window for which there is no new data, and repairs the loss before it is
//! detected. It costs throughput if it takes capacity from other data. So a full path gets no duplicates, and chunks of
//! a path without losses are not duplicated.

use std::time::Duration;

use super::capacities::Capacities;
use super::view::{PathSample, Rules, SharingView};
use crate::path::PathId;

/// Decisions on duplicates in one situation: the path, the chunks, and the time.
#[derive(Copy, Clone, Debug)]
pub struct Duplication<'a> {
    capacities: &'a Capacities,
    rules: &'a Rules,
    situation: SharingView<'a>,
}

/// Decision on a duplicate at this instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DuplicateTiming {
    /// The duplicate waits: an acknowledgement could be for either transmission.
    TooEarly,
    /// The duplicate may leave.
    Right,
    /// The duplicate would save little: the original will soon be acknowledged or detected as lost.
    TooLate,
}

impl<'a> Duplication<'a> {
    pub(crate) fn new(capacities: &'a Capacities, rules: &'a Rules, situation: SharingView<'a>) -> Self {
        Duplication { capacities, rules, situation }
    }

    /// Returns whether duplicates of chunks of some other path are worth sending on `path`: the other path has enough
    /// losses, and its round trip is long enough for a duplicate to arrive in time.
    pub fn is_possible_on(&self, path: PathId) -> bool {
        let in_time = |from| self.moment(Duration::ZERO, from, path) != DuplicateTiming::TooLate;
        self.is_wanted()
            && self.is_wide(path)
            && self.paths().any(|from| from != path && in_time(from) && self.is_worth(from))
    }

    /// Returns whether the losses of `path` are frequent enough for duplicates of its chunks.
    pub fn is_worth(&self, path: PathId) -> bool {
        let Some(sample) = self.sample(path) else { return false };
        let packets = self.situation.whole_buffer / self.situation.chunk.max(1);
        sample.loss > 0.0 && pays(sample.loss, packets) && self.is_wide(path)
    }

    /// Decides by time alone whether a chunk that was sent `age` ago on `from` may be duplicated on `to`.
    pub fn moment(&self, age: Duration, from: PathId, to: PathId) -> DuplicateTiming {
        let srtt = |path| self.sample(path).and_then(|sample| sample.srtt);
        moment(age, srtt(from), srtt(to))
    }

    /// Returns whether a duplicate on `path` would meet no queue: less than the BDP is in flight on the path, and its
    /// RTT shows no standing queue.
    pub fn finds_no_queue_on(&self, path: PathId) -> bool {
        self.sample(path).is_some_and(|sample| {
            let demand = self.capacities.demand(self.rules, sample);
            sample.flight < demand.bdp && !has_standing_queue(sample.srtt, demand.min_rtt)
        })
    }

    /// Returns whether `path` alone could use half of the buffer: a path of little capacity delivers little, and a
    /// duplicate waits in its queue. The lower bound of the capacity counts, because the estimate itself may never
    /// have been measured.
    pub fn is_wide(&self, path: PathId) -> bool {
        let bound = |sample| self.capacities.lower_bound(self.rules, sample);
        2 * self.sample(path).map_or(0, bound) >= self.situation.whole_buffer
    }

    fn is_wanted(&self) -> bool {
        let SharingView { paths, whole_buffer, chunk, .. } = self.situation;
        self.rules.duplicates && paths.len() > 1 && is_short(whole_buffer, chunk)
    }

    fn paths(&self) -> impl Iterator<Item = PathId> {
        self.situation.paths.iter().map(|sample| sample.id)
    }

    fn sample(&self, path: PathId) -> Option<&'a PathSample> {
        self.situation.paths.get(path.index())
    }
}

/// Returns whether the losses of a path are worth duplicates if `packets` fit the buffer. Each loss costs a round trip
/// of the whole buffer, so that losses take `loss` times `packets` of the time.
pub(crate) fn pays(loss: f64, packets: usize) -> bool {
    loss * packets as f64 * LEAST_LOST_TIME >= 1.0
}

/// Returns whether a buffer is so short that duplicates can be worth their cost; a full packet has `packet` bytes.
pub fn is_short(buffer: usize, packet: usize) -> bool {
    buffer <= MOST_PACKETS * packet
}

/// Returns whether the smoothed RTT of a path shows a standing queue. Its losses are then due to congestion, and its
/// room belongs to the flows that fill the queue.
pub(crate) fn has_standing_queue(srtt: Option<Duration>, min_rtt: Duration) -> bool {
    srtt.is_none_or(|srtt| srtt > min_rtt + min_rtt / QUEUE_PART)
}

/// Decides whether a chunk that was sent `age` ago on a path with the round-trip time `srtt` may be duplicated now on a
/// path with the round-trip time `to`. If the chunk is lost, its retransmission is acknowledged after two round trips
/// of its path at the earliest. Without measurements it is [`TooEarly`](DuplicateTiming::TooEarly).
pub fn moment(age: Duration, srtt: Option<Duration>, to: Option<Duration>) -> DuplicateTiming {
    let (Some(srtt), Some(to)) = (srtt, to) else { return DuplicateTiming::TooEarly };
    if age > srtt / LATEST || age + to + srtt / LATEST > 2 * srtt {
        DuplicateTiming::TooLate
    } else if age >= srtt / EARLIEST {
        DuplicateTiming::Right
    } else {
        DuplicateTiming::TooEarly
    }
}

/// Inverse of the part of the time that losses must take to be worth duplicates.
const LEAST_LOST_TIME: f64 = 32.0;
/// Most packets in a buffer that counts as short: in a larger one new data soon finds room.
const MOST_PACKETS: usize = 16;
/// A smoothed RTT that exceeds the minimum by more than this part of it shows a standing queue.
const QUEUE_PART: u32 = 4;
/// A duplicate leaves at least this part of a round trip after its original. Otherwise an acknowledgement could not be
/// attributed to one of the two, and losses of one path would count against another.
const EARLIEST: u32 = 16;
/// After this part of a round trip a duplicate does not leave any more: it would save only the rest.
const LATEST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_the_buffer_the_more_a_path_has_to_lose_before_duplicates_pay() {
        assert!(pays(0.01, 11) && pays(0.003, 11) && !pays(0.002, 11));
        assert!(pays(0.002, 45) && pays(0.1, 1) && !pays(0.01, 1));
        assert!(!pays(0.0, usize::MAX), "where nothing is lost nothing is duplicated");
        assert!(is_short(16_000, 1000) && !is_short(16_001, 1000));
    }

    #[test]
    fn a_path_with_a_long_smoothed_rtt_or_none_is_taken_to_have_a_queue() {
        let millis = Duration::from_millis;
        assert!(!has_standing_queue(Some(millis(50)), millis(40)));
        assert!(has_standing_queue(Some(millis(51)), millis(40)));
        assert!(has_standing_queue(Some(millis(40)), Duration::ZERO) && has_standing_queue(None, millis(40)));
    }

    #[test]
    fn a_duplicate_leaves_when_it_can_be_told_from_its_original_and_still_saves_time() {
        let at = |millis| {
            let srtt = Some(Duration::from_millis(160));
            moment(Duration::from_millis(millis), srtt, srtt)
        };
        assert_eq!(
            [at(0), at(9), at(10)],
            [DuplicateTiming::TooEarly, DuplicateTiming::TooEarly, DuplicateTiming::Right]
        );
        assert_eq!(
            [at(80), at(81), at(500)],
            [DuplicateTiming::Right, DuplicateTiming::TooLate, DuplicateTiming::TooLate]
        );
        let second = Duration::from_secs(1);
        assert_eq!(moment(second, None, Some(second)), DuplicateTiming::TooEarly);
        assert_eq!(moment(second, Some(second), None), DuplicateTiming::TooEarly);
    }

    #[test]
    fn on_a_path_that_takes_longer_than_a_retransmission_nothing_is_duplicated() {
        let at = |age, to| {
            let millis = Duration::from_millis;
            moment(millis(age), Some(millis(160)), Some(millis(to)))
        };
        assert_eq!(
            [at(10, 230), at(11, 230), at(0, 241)],
            [DuplicateTiming::Right, DuplicateTiming::TooLate, DuplicateTiming::TooLate]
        );
        assert_eq!([at(80, 10), at(81, 10)], [DuplicateTiming::Right, DuplicateTiming::TooLate]);
    }
}
