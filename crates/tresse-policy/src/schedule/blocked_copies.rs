//! Copies of what is under way on a path that has been losing, on another one that the buffers keep silent: whether one
//! is worth a packet, and when.
//!
//! Optimises throughput behind a buffer that is short, over paths that lose: there a loss costs everybody the round trip
//! of its repeat, and nobody knows in advance which packet will be lost. A copy takes a packet of room that no new data
//! can have, and the loss is mended before anyone knows of it. It loses where that packet was somebody else's: a path on
//! which nothing is lost, or the queue of a path that is full, must see none; whoever asks sees to windows and queues.

use std::time::Duration;

/// What is the matter with a copy now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Moment {
    /// An answer could be for either sending: it waits.
    TooEarly,
    /// It may leave.
    Right,
    /// It would save little: the original is answered soon, or missed.
    TooLate,
}

/// Whether the losses of a path are worth copies, where `packets` fit the buffer: each costs a round trip of the whole
/// buffer, so that together they take `loss` times `packets` of the time.
pub fn pays(loss: f64, packets: usize) -> bool {
    loss * packets as f64 * LEAST_LOST_TIME >= 1.0
}

/// Whether the round trips of a path, `srtt` lately and `base` without a queue, tell of a queue: what is lost there is
/// lost to congestion, and what room there is belongs to whoever fills the queue.
pub fn is_crowded(srtt: Option<Duration>, base: Duration) -> bool {
    srtt.is_none_or(|srtt| srtt > base + base / CROWDED)
}

/// When a chunk may be copied that left `age` ago on a path with the round trip `srtt`, on one with the round trip `to`.
/// Lost, it would be answered after two of its own at the earliest. What is not measured waits.
pub fn moment(age: Duration, srtt: Option<Duration>, to: Option<Duration>) -> Moment {
    let (Some(srtt), Some(to)) = (srtt, to) else { return Moment::TooEarly };
    if age > srtt / LATEST || age + to + srtt / LATEST > 2 * srtt {
        Moment::TooLate
    } else if age >= srtt / EARLIEST {
        Moment::Right
    } else {
        Moment::TooEarly
    }
}

/// Losses that take less than this part of the time are nobody's copies worth.
const LEAST_LOST_TIME: f64 = 32.0;
/// A buffer for more packets is none that copies are for: new data finds room soon enough.
pub const MOST_PACKETS: usize = 16;
/// Round trips that are longer than without a queue by more than this part of them are no chance.
const CROWDED: u32 = 4;
/// A copy leaves this part of a round trip after its original, or more: else nobody could tell which of the two an
/// acknowledgement is for, and a path would pay for losses of another.
const EARLIEST: u32 = 16;
/// After this part of a round trip it does not leave any more. It would save the rest only.
const LATEST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_the_buffer_the_more_a_path_has_to_lose_before_copies_pay() {
        assert!(pays(0.01, 11) && pays(0.003, 11) && !pays(0.002, 11));
        assert!(pays(0.002, 45) && pays(0.1, 1) && !pays(0.01, 1));
        assert!(!pays(0.0, usize::MAX), "where nothing is lost nothing is copied");
    }

    #[test]
    fn a_path_with_a_queue_or_one_never_measured_is_crowded() {
        let millis = Duration::from_millis;
        assert!(!is_crowded(Some(millis(50)), millis(40)) && is_crowded(Some(millis(51)), millis(40)));
        assert!(is_crowded(Some(millis(40)), Duration::ZERO) && is_crowded(None, millis(40)));
    }

    #[test]
    fn a_copy_leaves_when_it_can_be_told_from_its_original_and_still_saves_time() {
        let at = |millis| {
            let srtt = Some(Duration::from_millis(160));
            moment(Duration::from_millis(millis), srtt, srtt)
        };
        assert_eq!([at(0), at(9), at(10)], [Moment::TooEarly, Moment::TooEarly, Moment::Right]);
        assert_eq!([at(80), at(81), at(500)], [Moment::Right, Moment::TooLate, Moment::TooLate]);
        let second = Duration::from_secs(1);
        assert_eq!(moment(second, None, Some(second)), Moment::TooEarly);
        assert_eq!(moment(second, Some(second), None), Moment::TooEarly);
    }

    #[test]
    fn on_a_path_that_takes_longer_than_a_repeat_would_nothing_is_copied() {
        let at = |age, to| {
            let millis = Duration::from_millis;
            moment(millis(age), Some(millis(160)), Some(millis(to)))
        };
        assert_eq!([at(10, 230), at(11, 230), at(0, 241)], [Moment::Right, Moment::TooLate, Moment::TooLate]);
        assert_eq!([at(80, 10), at(81, 10)], [Moment::Right, Moment::TooLate]);
    }
}
