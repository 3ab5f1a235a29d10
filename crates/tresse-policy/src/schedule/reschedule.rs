//! Chunk rescheduling (Dreibholz et al., "On the Use of Concurrent Multipath Transfer over Asymmetric Paths",
//! GLOBECOM 2010, §IV-C): the chunk that everything waits for goes again on a path whose early arrivals fill a buffer.
//!
//! Optimises throughput of ordered data over paths of unlike rate or delay, where buffers are short: a late chunk of
//! the slow path would stop the fast one. It loses where buffers are ample, and on paths of like delay: then
//! what it sends again would have arrived in time.

use std::time::Duration;

use super::path::PathView;
use crate::path::PathId;

/// The chunk in flight that keeps the cumulative acknowledgement where it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HeadOfLine {
    /// Its index.
    pub index: u64,
    /// The path it was sent on.
    pub path: PathId,
    /// Its length.
    pub bytes: usize,
    /// How long ago it was sent.
    pub age: Duration,
}

/// The path that `head` is to go again on: one of `usable` with room, that is not busy repairing losses and for which
/// `blocks` says that its early arrivals fill a buffer. Its own chunk is late only after two round trips.
pub fn choose(
    head: &HeadOfLine,
    usable: &[PathView],
    mut blocks: impl FnMut(PathId) -> bool,
) -> Option<PathId> {
    let late = |path: &PathView| path.srtt.is_some_and(|srtt| head.age > 2 * srtt);
    usable
        .iter()
        .filter(|path| path.room > 0 && !path.recovering)
        .filter(|path| path.id != head.path || late(path))
        .map(|path| path.id)
        .find(|&path| blocks(path))
}

#[cfg(test)]
mod tests {
    use super::super::path::tests::{full, with_srtt};
    use super::*;

    const ALL: fn(PathId) -> bool = |_| true;

    fn head(path: u8, millis: u64) -> HeadOfLine {
        HeadOfLine { index: 7, path: PathId(path), bytes: 1000, age: Duration::from_millis(millis) }
    }

    #[test]
    fn a_path_whose_early_arrivals_fill_a_buffer_repeats_the_chunk_of_another() {
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
    fn a_path_that_is_full_or_repairs_losses_repeats_nothing() {
        let recovering = PathView { recovering: true, ..with_srtt(0, 20) };
        for busy in [full(with_srtt(0, 20)), recovering] {
            assert_eq!(choose(&head(1, 30), &[busy, with_srtt(1, 200)], ALL), None);
        }
    }
}
