//! Opportunistic retransmission as MPTCP has it (Raiciu et al., "How Hard Can It Be?", NSDI 2012, §4.2): when the peer's
//! window keeps a fast path silent, it repeats the chunk that everything waits for.
//!
//! Optimises throughput over paths of unlike delay with a receive buffer too short for them, at the price of sending
//! twice. It loses where the buffer is ample, and where the slow path would have delivered just as soon.

use super::path::PathView;
use super::reschedule::HeadOfLine;
use crate::path::PathId;

/// The path that `head` is to go again on: of those with room that the peer's window silences, as `silenced` says, the
/// fastest, if it is faster than the path that carries the chunk.
pub fn choose(
    head: &HeadOfLine,
    usable: &[PathView],
    mut silenced: impl FnMut(PathId) -> bool,
) -> Option<PathId> {
    let carrier = usable.iter().find(|path| path.id == head.path)?.srtt?;
    usable
        .iter()
        .filter(|path| path.id != head.path && path.room > 0)
        .filter_map(|path| path.srtt.filter(|&srtt| srtt < carrier).map(|srtt| (srtt, path.id)))
        .filter(|&(_, path)| silenced(path))
        .min()
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::path::tests::{full, view, with_srtt};
    use super::*;

    const HEAD: HeadOfLine = HeadOfLine { index: 7, path: PathId(1), bytes: 1000, age: Duration::ZERO };
    const ALL: fn(PathId) -> bool = |_| true;

    #[test]
    fn the_fastest_silenced_path_repeats_the_chunk_of_a_slower_one() {
        let paths = [with_srtt(0, 30), with_srtt(1, 200), with_srtt(2, 20)];
        assert_eq!(choose(&HEAD, &paths, ALL), Some(PathId(2)));
        assert_eq!(choose(&HEAD, &paths, |path| path == PathId(0)), Some(PathId(0)));
        assert_eq!(choose(&HEAD, &paths, |_| false), None, "none is kept from sending new data");
    }

    #[test]
    fn a_slower_full_or_unmeasured_path_repeats_nothing() {
        for other in [with_srtt(0, 201), full(with_srtt(0, 20)), view(0)] {
            assert_eq!(choose(&HEAD, &[other, with_srtt(1, 200)], ALL), None);
        }
        assert_eq!(choose(&HEAD, &[with_srtt(0, 20), view(1)], ALL), None, "nobody knows how slow path 1 is");
        assert_eq!(choose(&HEAD, &[with_srtt(0, 20)], ALL), None, "its path is not in use");
    }
}
