//! Chunk rescheduling (Dreibholz et al., "On the Use of Concurrent Multipath Transfer over Asymmetric Paths",
//! GLOBECOM 2010, §IV-C): a path whose early arrivals fill a buffer reinjects the head-of-line chunk.
//!
//! It optimises throughput of ordered data over paths of different rate or delay, if buffers are short: a late chunk of
//! the slow path would stop the fast one. It is a disadvantage if buffers are ample, or paths have similar delays: then
//! the reinjected chunk would have arrived in time.

use crate::path::PathId;
use crate::sharing::view::{HeadOfLine, PathSample};

/// Returns the path that reinjects `head`: one of `usable` that has room, is not in fast recovery, and whose early
/// arrivals fill a buffer (`fills`). The path that carries `head` reinjects it only after two round trips.
pub fn choose(
    head: &HeadOfLine,
    usable: &[PathSample],
    mut fills: impl FnMut(PathId) -> bool,
) -> Option<PathId> {
    let late = |path: &PathSample| path.srtt.is_some_and(|srtt| head.age > 2 * srtt);
    usable
        .iter()
        .filter(|path| path.room > 0 && !path.recovering)
        .filter(|path| path.id != head.path || late(path))
        .map(|path| path.id)
        .find(|&path| fills(path))
}

/// Bytes of a path that arrived early, and the buffers that hold them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EarlyArrivals {
    /// Bytes that the sender keeps, because they are renegable.
    pub kept: usize,
    /// Bytes that the sender has released, because the receiver promised to keep them (NR-SACK).
    pub promised: usize,
    /// The send buffer.
    pub send_buffer: usize,
    /// Bytes that the peer's receive buffer is known to hold and to have room for.
    pub receive_buffer: usize,
}

/// The part of a buffer that early arrivals may hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Threshold {
    /// Percent of a path's part of the buffer.
    pub percent: u16,
    /// Parts into which the buffer is split.
    pub parts: usize,
}

impl EarlyArrivals {
    /// Returns whether they hold more of the send buffer than the threshold.
    pub fn fill_sender(&self, threshold: Threshold) -> bool {
        threshold.is_exceeded(self.kept, self.send_buffer)
    }

    /// Returns whether they hold more of the receive buffer than the threshold. The application may have received some
    /// of the ordered data. The sender cannot know that, so all of it counts.
    pub fn fill_receiver(&self, threshold: Threshold) -> bool {
        threshold.is_exceeded(self.kept + self.promised, self.receive_buffer)
    }
}

impl Threshold {
    fn is_exceeded(self, held: usize, buffer: usize) -> bool {
        100 * self.parts * held > usize::from(self.percent) * buffer
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{full, head, with_srtt};
    use super::*;

    const ALL: fn(PathId) -> bool = |_| true;

    #[test]
    fn a_path_whose_early_arrivals_fill_a_buffer_reinjects_the_chunk_of_another() {
        let paths = [with_srtt(0, 20), with_srtt(1, 200)];
        assert_eq!(choose(&head(1, 30), &paths, ALL), Some(PathId(0)));
        assert_eq!(choose(&head(1, 30), &paths, |path| path == PathId(1)), None, "its own is not late yet");
        assert_eq!(choose(&head(1, 30), &paths, |_| false), None);
    }

    #[test]
    fn its_own_chunk_is_late_after_two_round_trips() {
        let paths = [with_srtt(0, 20)];
        assert_eq!(choose(&head(0, 40), &paths, ALL), None);
        assert_eq!(choose(&head(0, 41), &paths, ALL), Some(PathId(0)));
    }

    #[test]
    fn a_path_that_is_full_or_in_fast_recovery_reinjects_nothing() {
        let recovering = PathSample { recovering: true, ..with_srtt(0, 20) };
        for busy in [full(with_srtt(0, 20)), recovering] {
            assert_eq!(choose(&head(1, 30), &[busy, with_srtt(1, 200)], ALL), None);
        }
    }

    #[test]
    fn early_arrivals_fill_a_buffer_beyond_the_threshold_of_their_part() {
        let early = EarlyArrivals { kept: 2500, promised: 500, send_buffer: 10_000, receive_buffer: 12_000 };
        let threshold = |percent, parts| Threshold { percent, parts };
        assert!(early.fill_sender(threshold(24, 1)) && !early.fill_sender(threshold(25, 1)));
        assert!(early.fill_sender(threshold(49, 2)) && !early.fill_sender(threshold(50, 2)));
        assert!(early.fill_receiver(threshold(24, 1)) && !early.fill_receiver(threshold(25, 1)));
    }
}
