//! Selection of the path that carries a SACK (RFC 9260 §6.4, and the variants of CMT studies).
//!
//! Independent of the acknowledged data, and of the state of the path: if the selected path cannot be used, the caller
//! selects another one.

use std::time::Duration;

use crate::choices::SackPath;
use crate::path::PathId;
use crate::time::Instant;

/// A path on which DATA arrived since the last SACK.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DataSource {
    /// The path.
    pub path: PathId,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Time at which the path last carried a SACK.
    pub last_sack: Option<Instant>,
}

/// Returns the path for the next SACK.
///
/// The first and the last DATA packet since the last SACK arrived on `first` and `last`. `sources` are all paths on which
/// one arrived; only the policies that select among them use it.
pub fn choose(
    policy: SackPath,
    primary: PathId,
    first: PathId,
    last: PathId,
    sources: impl IntoIterator<Item = DataSource>,
) -> PathId {
    match policy {
        SackPath::LastData => last,
        SackPath::FirstData => first,
        SackPath::Primary => primary,
        SackPath::RoundRobin => least(sources, |source| (source.last_sack, source.path)).unwrap_or(last),
        SackPath::LowestRtt | SackPath::Fastest => {
            least(sources, |source| (source.srtt.unwrap_or(Duration::MAX), source.path)).unwrap_or(last)
        }
    }
}

fn least<K: Ord>(
    sources: impl IntoIterator<Item = DataSource>,
    key: impl FnMut(&DataSource) -> K,
) -> Option<PathId> {
    sources.into_iter().min_by_key(key).map(|source| source.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: u8, srtt: Option<u64>, last_sack: Option<u64>) -> DataSource {
        DataSource {
            path: PathId(path),
            srtt: srtt.map(Duration::from_millis),
            last_sack: last_sack.map(Instant::from_nanos),
        }
    }

    fn chosen(policy: SackPath, sources: &[DataSource]) -> u8 {
        choose(policy, PathId(0), PathId(1), PathId(2), sources.iter().copied()).0
    }

    #[test]
    fn single_sources_are_taken_as_they_are() {
        assert_eq!(chosen(SackPath::LastData, &[]), 2);
        assert_eq!(chosen(SackPath::FirstData, &[]), 1);
        assert_eq!(chosen(SackPath::Primary, &[]), 0);
    }

    #[test]
    fn round_robin_takes_the_path_whose_last_sack_is_oldest() {
        let two = [source(1, None, Some(50)), source(2, None, Some(40))];
        assert_eq!(chosen(SackPath::RoundRobin, &two), 2);
        let one_never = [source(1, None, Some(50)), source(3, None, None)];
        assert_eq!(chosen(SackPath::RoundRobin, &one_never), 3);
        assert_eq!(chosen(SackPath::RoundRobin, &[]), 2, "nothing brought data: as last_data");
    }

    #[test]
    fn lowest_rtt_prefers_what_was_measured() {
        let sources = [source(1, None, None), source(2, Some(80), None), source(3, Some(20), None)];
        assert_eq!(chosen(SackPath::LowestRtt, &sources), 3);
        assert_eq!(chosen(SackPath::Fastest, &sources), 3);
        assert_eq!(chosen(SackPath::LowestRtt, &sources[..1]), 1);
    }
}
