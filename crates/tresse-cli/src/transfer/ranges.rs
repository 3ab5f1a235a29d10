//! Ranges of a file that have arrived: disjoint, in order, bounded in number.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of offsets of bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ranges {
    /// Ends by start. No range is empty, and no two touch.
    ranges: BTreeMap<u64, u64>,
}

/// The set has too many gaps. A working network never causes so many, so the peer is malicious.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("the data has more than {MAX_RANGES} gaps")]
pub(crate) struct TooManyRanges;

impl Ranges {
    /// Adds a range, joined with those that it touches.
    pub(crate) fn insert(&mut self, added: Range<u64>) -> Result<(), TooManyRanges> {
        if added.is_empty() {
            return Ok(());
        }
        let Range { mut start, mut end } = added;
        if let Some((&before, &until)) = self.ranges.range(..start).next_back()
            && until >= start
        {
            start = before;
            end = end.max(until);
        }
        // Each range that begins inside or at the end of the new one becomes part of it.
        while let Some((&next, &until)) = self.ranges.range(start..=end).next() {
            self.ranges.remove(&next);
            end = end.max(until);
        }
        if self.ranges.len() >= MAX_RANGES {
            return Err(TooManyRanges);
        }
        self.ranges.insert(start, end);
        Ok(())
    }

    /// Returns the end of the range that begins with the first byte; 0 if there is none.
    pub(crate) fn prefix(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// Returns the number of bytes in the set.
    pub(crate) fn total(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the end of the last range.
    pub(crate) fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// Returns whether the set has all of `wanted`.
    pub(crate) fn contains(&self, wanted: &Range<u64>) -> bool {
        let before = self.ranges.range(..=wanted.start).next_back();
        wanted.is_empty() || before.is_some_and(|(_, &end)| end >= wanted.end)
    }

    /// Returns the ranges in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Range<u64>> {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }
}

/// Most ranges: they need 2 MiB of memory at most.
pub(crate) const MAX_RANGES: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> Ranges {
        let mut set = Ranges::default();
        for &(start, end) in ranges {
            set.insert(start..end).expect("few");
        }
        set
    }

    fn joined(inserted: &[(u64, u64)]) -> Vec<(u64, u64)> {
        set(inserted).iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_join_where_they_meet_or_overlap() {
        assert_eq!(joined(&[(0, 5), (5, 9)]), [(0, 9)]);
        assert_eq!(joined(&[(5, 9), (0, 5)]), [(0, 9)]);
        assert_eq!(joined(&[(0, 2), (4, 6), (2, 4)]), [(0, 6)]);
        assert_eq!(joined(&[(0, 2), (4, 6), (8, 9), (1, 20)]), [(0, 20)]);
        assert_eq!(joined(&[(3, 8), (4, 5)]), [(3, 8)]);
        assert_eq!(joined(&[(3, 4), (7, 7), (5, 6)]), [(3, 4), (5, 6)]);
    }

    #[test]
    fn questions_are_answered_from_the_whole_set() {
        let set = set(&[(0, 10), (20, 30)]);
        assert_eq!((set.prefix(), set.total(), set.end()), (10, 20, 30));
        assert!(set.contains(&(3..10)) && set.contains(&(20..30)) && set.contains(&(15..15)));
        assert!(!set.contains(&(3..11)) && !set.contains(&(12..14)) && !set.contains(&(9..21)));
        assert_eq!(Ranges::default().prefix(), 0);
    }

    #[test]
    fn holes_are_bounded() {
        let mut set = Ranges::default();
        for hole in 0..MAX_RANGES as u64 {
            set.insert(hole * 2..hole * 2 + 1).expect("within the bound");
        }
        let beyond = MAX_RANGES as u64 * 2;
        assert_eq!(set.insert(beyond..beyond + 1), Err(TooManyRanges));
        set.insert(0..beyond).expect("filling holes is welcome");
    }
}
