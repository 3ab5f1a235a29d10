//! Selection of the path that retransmits a lost chunk (RFC 9260 §6.4.1; policies of Iyengar et al., "Receive
//! Buffer Blocking in Concurrent Multipath Transfer", GLOBECOM 2005, §IV).
//!
//! The path is selected when the chunk is detected as lost. With `asap` it is selected again when the chunk can be
//! sent, because the room in the windows changes with every SACK.

use std::cmp::Reverse;

use super::path::PathView;
use crate::choices::RetransmitPath;
use crate::path::PathId;

/// Returns the path of the retransmission of a chunk that was lost on `lost_on`: one of `usable`, the paths that may carry data.
/// `alternate` is another path, if possible one that shares no address with `lost_on`. `None` if no path is usable.
///
/// The paper breaks ties at random; here the path with more room is selected, then the alternate path.
pub fn choose(
    policy: RetransmitPath,
    lost_on: PathId,
    alternate: PathId,
    usable: &[PathView],
) -> Option<PathId> {
    let named = |wanted: PathId| usable.iter().find(|path| path.id == wanted).map(|path| path.id);
    // Order of paths that are equal otherwise.
    let rank = |path: &PathView| (Reverse(path.room), path.id != alternate, path.id);
    match policy {
        RetransmitPath::Same => named(lost_on).or(named(alternate)),
        RetransmitPath::Alternate => named(alternate).or(named(lost_on)),
        RetransmitPath::Asap => least(usable, rank),
        RetransmitPath::Cwnd => least(usable, |path| (Reverse(path.cwnd), rank(path))),
        RetransmitPath::Ssthresh => least(usable, |path| (Reverse(path.ssthresh), rank(path))),
        RetransmitPath::LossRate => least(usable, |path| (parts_per_million(path.loss), rank(path))),
    }
}

/// Returns whether a chunk that waits for retransmission on one path may leave on another path that has room earlier.
pub fn moves_on(policy: RetransmitPath) -> bool {
    policy == RetransmitPath::Asap
}

fn least<K: Ord>(paths: &[PathView], mut key: impl FnMut(&PathView) -> K) -> Option<PathId> {
    paths.iter().min_by_key(|path| key(path)).map(|path| path.id)
}

/// Returns a share as a whole number: floats have no total order, and smaller differences are noise.
fn parts_per_million(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * 1e6) as u32
}

#[cfg(test)]
mod tests {
    use super::super::path::tests::view;
    use super::*;

    /// Path 0 has the largest window, path 1 the largest threshold, path 2 the least loss, path 3 most room.
    fn paths() -> [PathView; 4] {
        [
            PathView { cwnd: 90_000, room: 0, ssthresh: 50_000, loss: 0.03, ..view(0) },
            PathView { cwnd: 40_000, room: 5_000, ssthresh: 80_000, loss: 0.02, ..view(1) },
            PathView { cwnd: 30_000, room: 4_000, ssthresh: 30_000, loss: 0.01, ..view(2) },
            PathView { cwnd: 20_000, room: 9_000, ssthresh: 20_000, loss: 0.05, ..view(3) },
        ]
    }

    #[test]
    fn each_policy_has_its_own_favourite() {
        let expected = [
            (RetransmitPath::Same, 0),
            (RetransmitPath::Alternate, 2),
            (RetransmitPath::Asap, 3),
            (RetransmitPath::Cwnd, 0),
            (RetransmitPath::Ssthresh, 1),
            (RetransmitPath::LossRate, 2),
        ];
        assert_eq!(expected.len(), RetransmitPath::ALL.len());
        for (policy, favourite) in expected {
            assert_eq!(choose(policy, PathId(0), PathId(2), &paths()), Some(PathId(favourite)), "{policy:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_not_chosen() {
        let usable = &paths()[1..];
        assert_eq!(choose(RetransmitPath::Same, PathId(0), PathId(2), usable), Some(PathId(2)));
        assert_eq!(choose(RetransmitPath::Alternate, PathId(1), PathId(0), usable), Some(PathId(1)));
        assert_eq!(choose(RetransmitPath::Cwnd, PathId(0), PathId(0), usable), Some(PathId(1)));
        for &policy in RetransmitPath::ALL {
            assert_eq!(choose(policy, PathId(0), PathId(1), &[]), None, "{policy:?}");
        }
    }

    #[test]
    fn ties_go_to_more_room_and_then_to_the_alternate() {
        let like = [view(0), view(1), view(2)];
        for policy in [RetransmitPath::Asap, RetransmitPath::Ssthresh, RetransmitPath::LossRate] {
            assert_eq!(choose(policy, PathId(0), PathId(2), &like), Some(PathId(2)), "{policy:?}");
            let roomy = [view(0), PathView { room: 99_999, ..view(1) }, view(2)];
            assert_eq!(choose(policy, PathId(0), PathId(2), &roomy), Some(PathId(1)), "{policy:?}");
        }
    }
}
