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
pub(crate) enum Moment {
    /// An answer could be for either sending: it waits.
    TooEarly,
    /// It may leave.
    Right,
    /// It would save little: the original is answered soon, or missed.
    TooLate,
}

/// Whether the losses of a path are worth copies, where `packets` fit the buffer: each costs a round trip of the whole
/// buffer, so that together they take `loss` times `packets` of the time.
pub(crate) fn pays(loss: f64, packets: usize) -> bool {
    loss * packets as f64 * LEAST_LOST_TIME >= 1.0
}

/// Whether the round trips of a path, `srtt` lately and `base` without a queue, tell of a queue: what is lost there is
/// lost to congestion, and what room there is belongs to whoever fills the queue.
pub(crate) fn is_crowded(srtt: Option<Duration>, base: Duration) -> bool {
    srtt.is_none_or(|srtt| srtt > base + base / CROWDED)
}

/// When a chunk may be copied that left `age` ago on a path with such a round trip. What is not measured waits.
pub(crate) fn moment(age: Duration, srtt: Option<Duration>) -> Moment {
    match srtt {
        Some(srtt) if age > srtt / LATEST => Moment::TooLate,
        Some(srtt) if age >= srtt / EARLIEST => Moment::Right,
        _ => Moment::TooEarly,
    }
}

/// Losses that take less than this part of the time are nobody's copies worth.
const LEAST_LOST_TIME: f64 = 32.0;
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
        let at = |millis| moment(Duration::from_millis(millis), Some(Duration::from_millis(160)));
        assert_eq!([at(0), at(9), at(10)], [Moment::TooEarly, Moment::TooEarly, Moment::Right]);
        assert_eq!([at(80), at(81), at(500)], [Moment::Right, Moment::TooLate, Moment::TooLate]);
        assert_eq!(moment(Duration::from_secs(1), None), Moment::TooEarly);
    }
}
