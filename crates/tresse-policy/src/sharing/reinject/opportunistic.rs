//! Opportunistic retransmission of MPTCP (Raiciu et al., "How Hard Can It Be?", NSDI 2012, §4.2): a fast path on which
//! the peer's window admits no new data reinjects the head-of-line chunk.
//!
//! It optimises throughput over paths of different delay with a receive buffer too short for them, at the price of
//! sending chunks twice. It is a disadvantage if the buffer is ample, or the slow path would have delivered as soon.

use crate::path::PathId;
use crate::sharing::view::{HeadOfLine, PathSample};

/// Returns the path that reinjects `head`: the fastest of the `usable` paths with room that the peer's window keeps
/// from new data (`window_limited`), if it is faster than the path that carries the chunk.
pub fn choose(
    head: &HeadOfLine,
    usable: &[PathSample],
    mut window_limited: impl FnMut(PathId) -> bool,
) -> Option<PathId> {
    let carrier = usable.iter().find(|path| path.id == head.path)?.srtt?;
    usable
        .iter()
        .filter(|path| path.id != head.path && path.room > 0)
        .filter_map(|path| path.srtt.filter(|&srtt| srtt < carrier).map(|srtt| (srtt, path.id)))
        .filter(|&(_, path)| window_limited(path))
        .min()
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{full, head, unmeasured, with_srtt};
    use super::*;

    const ALL: fn(PathId) -> bool = |_| true;

    #[test]
    fn the_fastest_limited_path_reinjects_the_chunk_of_a_slower_one() {
        let paths = [with_srtt(0, 30), with_srtt(1, 200), with_srtt(2, 20)];
        assert_eq!(choose(&head(1, 0), &paths, ALL), Some(PathId(2)));
        assert_eq!(choose(&head(1, 0), &paths, |path| path == PathId(0)), Some(PathId(0)));
        assert_eq!(choose(&head(1, 0), &paths, |_| false), None, "none is kept from sending new data");
    }

    #[test]
    fn a_slower_full_or_unmeasured_path_reinjects_nothing() {
        for other in [with_srtt(0, 201), full(with_srtt(0, 20)), unmeasured(0)] {
            assert_eq!(choose(&head(1, 0), &[other, with_srtt(1, 200)], ALL), None);
        }
        let unknown = [with_srtt(0, 20), unmeasured(1)];
        assert_eq!(choose(&head(1, 0), &unknown, ALL), None, "nobody knows how slow path 1 is");
        assert_eq!(choose(&head(1, 0), &[with_srtt(0, 20)], ALL), None, "its path is not in use");
    }
}
