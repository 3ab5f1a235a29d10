//! Sets of indices as sorted ranges: TSNs beyond a gap that arrived or were acknowledged.
//!
//! Owns the order and the disjointness of the ranges. Independent of the meaning of an index. The number of ranges is
//! not bounded here: a caller that fills the set from packets bounds it with [`RangeSet::opens_range`].

use std::collections::VecDeque;
use std::ops::Range;

use crate::collections::LazyBox;

/// A set of `u64` indices, kept as sorted half-open ranges that neither overlap nor touch.
///
/// An insertion at the last range costs O(1), a lookup O(log ranges). A change in the middle moves at most half of the
/// ranges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: LazyBox<Ranges>,
}

/// `(start, end)` with `start < end`; `end` is below the `start` of the next range.
type Ranges = VecDeque<(u64, u64)>;

impl RangeSet {
    /// Returns whether no index is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the start of the range after the `passed` lowest ranges.
    pub(crate) fn start_after(&self, passed: usize) -> Option<u64> {
        self.ranges.get(passed).map(|&(start, _)| start)
    }

    /// Returns the ranges, lowest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|&(start, end)| start..end)
    }

    /// Returns whether `index` is in the set.
    pub(crate) fn contains(&self, index: u64) -> bool {
        match self.ranges.back() {
            Some(&(_, end)) if index < end => {
                let at = self.first_ending_after(index);
                self.ranges.get(at).is_some_and(|&(start, _)| start <= index)
            }
            _ => false,
        }
    }

    /// Returns whether every index of `range`, which is not empty, is in the set.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn holds(&self, range: &Range<u64>) -> bool {
        let at = self.first_ending_after(range.start);
        self.ranges.get(at).is_some_and(|&(start, end)| start <= range.start && range.end <= end)
    }

    /// Returns the range of each of `indices` that is in the set. It is fastest if each range precedes that of the
    /// index before.
    pub(crate) fn ranges_of(&self, indices: impl Iterator<Item = u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = self.ranges.len();
        indices.filter_map(move |index| {
            let holds = |&&(start, end): &&(u64, u64)| start <= index && index < end;
            at = at.wrapping_sub(1);
            let range = self.ranges.get(at).filter(holds).or_else(|| {
                at = self.first_ending_after(index);
                self.ranges.get(at).filter(holds)
            });
            range.map(|&(start, end)| start..end)
        })
    }

    /// Fills `out` with the parts of `ranges` that are not in the set. `ranges` are ascending and disjoint. It is
    /// fastest if most of them are ranges of the set.
    pub(crate) fn missing_of(&self, ranges: &[Range<u64>], out: &mut Vec<Range<u64>>) {
        out.clear();
        let mut at = 0;
        for range in ranges {
            if self.ranges.get(at) == Some(&(range.start, range.end)) {
                at += 1;
                continue;
            }
            at = self.first_ending_after(range.start);
            let mut start = range.start;
            while let Some(&(first, end)) = self.ranges.get(at).filter(|&&(first, _)| first < range.end) {
                if start < first {
                    out.push(start..first);
                }
                start = end;
                if range.end < end {
                    break;
                }
                at += 1;
            }
            if start < range.end {
                out.push(start..range.end);
            }
        }
    }

    /// Returns whether adding `index` would add a range: `index` is not in the set and touches no range.
    pub(crate) fn opens_range(&self, index: u64) -> bool {
        let at = self.first_ending_after(index.saturating_sub(1));
        self.ranges.get(at).is_none_or(|&(start, _)| start > index.saturating_add(1))
    }

    /// Adds `index`; returns whether it was not in the set before.
    pub(crate) fn insert(&mut self, index: u64) -> bool {
        let new = !self.contains(index);
        if new {
            self.insert_range(index..index + 1);
        }
        new
    }

    /// Adds every index of `range`; some of them may be in the set already.
    pub(crate) fn insert_range(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.back_mut() {
            Some((_, end)) if *end > range.start => self.insert_between(range),
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => self.ranges.push_back((range.start, range.end)),
        }
    }

    fn insert_between(&mut self, range: Range<u64>) {
        // All ranges that `range` overlaps or touches are merged with it.
        let from = self.first_ending_after(range.start.saturating_sub(1));
        let to = from + self.ranges.iter().skip(from).take_while(|&&(start, _)| start <= range.end).count();
        if from == to {
            self.ranges.insert(from, (range.start, range.end));
            return;
        }
        let start = range.start.min(self.ranges[from].0);
        let end = range.end.max(self.ranges[to - 1].1);
        self.ranges[from] = (start, end);
        if to - from > 1 {
            self.ranges.drain(from + 1..to);
        }
    }

    /// Removes `index`, which may split its range; returns whether it was in the set.
    pub(crate) fn remove(&mut self, index: u64) -> bool {
        let at = self.first_ending_after(index);
        let Some(&(start, end)) = self.ranges.get(at).filter(|&&(start, _)| start <= index) else {
            return false;
        };
        match (start < index, index + 1 < end) {
            (true, true) => {
                self.ranges[at].1 = index;
                self.ranges.insert(at + 1, (index + 1, end));
            }
            (true, false) => self.ranges[at].1 = index,
            (false, true) => self.ranges[at].0 = index + 1,
            (false, false) => drop(self.ranges.remove(at)),
        }
        true
    }

    /// Removes every index below `bound`.
    pub(crate) fn remove_below(&mut self, bound: u64) {
        while let Some((start, end)) = self.ranges.front_mut() {
            if *end > bound {
                *start = bound.max(*start);
                return;
            }
            self.ranges.pop_front();
        }
        self.give_back_memory();
    }

    /// Removes the lowest range if it starts at `start`, and returns its end.
    pub(crate) fn take_first_at(&mut self, start: u64) -> Option<u64> {
        let &(_, end) = self.ranges.front().filter(|first| first.0 == start)?;
        self.ranges.pop_front();
        if self.ranges.is_empty() {
            self.give_back_memory();
        }
        Some(end)
    }

    /// Returns the position of the first range that ends after `index`: no other range can hold it.
    fn first_ending_after(&self, index: u64) -> usize {
        self.ranges.partition_point(|&(_, end)| end <= index)
    }

    /// Frees the memory of an empty set if it is large: a burst of gaps must not keep it allocated.
    fn give_back_memory(&mut self) {
        if self.ranges.capacity() > KEPT_WHEN_EMPTY {
            self.ranges = LazyBox::default();
        }
    }
}

/// Number of ranges for which an empty set keeps memory, so that an occasional gap allocates nothing.
const KEPT_WHEN_EMPTY: usize = 64;

/// Fills `out` with the indices of `from` that are not in `without`; both are ascending and disjoint.
pub(crate) fn difference(
    from: impl Iterator<Item = Range<u64>>,
    mut without: impl Iterator<Item = Range<u64>>,
    out: &mut Vec<Range<u64>>,
) {
    out.clear();
    let mut next = without.next();
    for range in from {
        let mut start = range.start;
        while let Some(hole) = &next {
            if hole.start >= range.end {
                break;
            }
            if hole.start > start {
                out.push(start..hole.start);
            }
            start = start.max(hole.end);
            if hole.end > range.end {
                break;
            }
            next = without.next();
        }
        if start < range.end {
            out.push(start..range.end);
        }
    }
}

/// Fills `out` with the indices that are in both; both are ascending and disjoint.
pub(crate) fn intersection(
    one: impl Iterator<Item = Range<u64>>,
    other: impl Iterator<Item = Range<u64>>,
    out: &mut Vec<Range<u64>>,
) {
    out.clear();
    let (mut one, mut other) = (one.peekable(), other.peekable());
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        let shared = a.start.max(b.start)..a.end.min(b.end);
        let first = a.end < b.end;
        if !shared.is_empty() {
            out.push(shared);
        }
        if first {
            one.next()
        } else {
            other.next()
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[Range<u64>]) -> RangeSet {
        let mut set = RangeSet::default();
        for range in ranges {
            set.insert_range(range.clone());
        }
        set
    }

    /// Returns the first and last index of each range.
    fn ranges(set: &RangeSet) -> Vec<(u64, u64)> {
        set.iter().map(|range| (range.start, range.end - 1)).collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = set(&[1..3, 5..7]);
        assert!(set.insert(3) && set.insert(4) && set.insert(0) && set.insert(7));
        assert!(!set.insert(5));
        assert_eq!(ranges(&set), [(0, 7)]);
    }

    #[test]
    fn a_range_swallows_what_it_covers() {
        let mut set = set(&[1..2, 4..5, 7..8, 20..30]);
        set.insert_range(3..21);
        assert_eq!(ranges(&set), [(1, 1), (3, 29)]);
        set.insert_range(5..5);
        set.insert_range(10..12);
        assert_eq!(ranges(&set), [(1, 1), (3, 29)]);
    }

    #[test]
    fn only_an_index_without_neighbour_opens_a_range() {
        let set = set(&[4..6, 9..10]);
        let opening: Vec<u64> = (0..13).filter(|&index| set.opens_range(index)).collect();
        assert_eq!(opening, [0, 1, 2, 7, 11, 12]);
        assert!(RangeSet::default().opens_range(0));
    }

    #[test]
    fn the_lowest_range_is_taken_only_where_it_is_asked_for() {
        let mut set = set(&[4..6, 9..10]);
        assert_eq!(set.take_first_at(5), None);
        assert_eq!(set.take_first_at(4), Some(6));
        assert_eq!((ranges(&set), set.len()), (vec![(9, 9)], 1));
    }

    #[test]
    fn an_emptied_set_gives_back_its_memory() {
        let mut set = RangeSet::default();
        for index in 0..1000 {
            set.insert(2 * index);
        }
        assert_eq!(set.len(), 1000);
        set.remove_below(5000);
        assert!(set.is_empty() && set.ranges.capacity() == 0);
    }

    proptest! {
        #[test]
        fn what_one_set_has_is_shared_with_another_or_missing_there(
            one in prop::collection::vec(0u64..60, 0..40),
            other in prop::collection::vec(0u64..60, 0..40),
        ) {
            let set = |indices: &[u64]| {
                let mut set = RangeSet::default();
                indices.iter().for_each(|&index| set.insert_range(index..index + 1));
                set
            };
            let (one, other, mut out) = (set(&one), set(&other), Vec::new());
            let listed = |keep: &dyn Fn(&u64) -> bool| one.iter().flatten().filter(keep).collect::<Vec<_>>();
            difference(one.iter(), other.iter(), &mut out);
            prop_assert_eq!(out.drain(..).flatten().collect::<Vec<_>>(), listed(&|&index| !other.contains(index)));
            other.missing_of(&one.iter().collect::<Vec<_>>(), &mut out);
            prop_assert_eq!(out.drain(..).flatten().collect::<Vec<_>>(), listed(&|&index| !other.contains(index)));
            intersection(one.iter(), other.iter(), &mut out);
            prop_assert_eq!(out.drain(..).flatten().collect::<Vec<_>>(), listed(&|&index| other.contains(index)));
        }

        #[test]
        fn the_ranges_of_indices_are_found_in_whatever_order_they_are_asked_for(
            held in prop::collection::vec(0u64..60, 0..40),
            asked in prop::collection::vec(0u64..60, 0..10),
        ) {
            let mut set = RangeSet::default();
            held.iter().for_each(|&index| set.insert_range(index..index + 1));
            let range = |index: &u64| set.iter().find(|range| range.contains(index));
            let expected: Vec<_> = asked.iter().filter_map(range).collect();
            prop_assert_eq!(set.ranges_of(asked.iter().copied()).collect::<Vec<_>>(), expected);
        }

        /// Compares the set with a plain set of indices after each of many steps.
        #[test]
        fn behaves_like_a_set_of_indices(
            steps in prop::collection::vec((0u8..5, 0u64..80, 0u64..12), 1..120),
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (verb, index, span) in steps {
                match verb {
                    0 | 1 => {
                        let opens = !(index.saturating_sub(1)..=index + 1).any(|near| model.contains(&near));
                        prop_assert_eq!(set.opens_range(index), opens);
                        prop_assert_eq!(set.insert(index), model.insert(index));
                    }
                    2 => {
                        set.insert_range(index..index + span);
                        model.extend(index..index + span);
                    }
                    3 => prop_assert_eq!(set.remove(index), model.remove(&index)),
                    _ => {
                        set.remove_below(index / 4);
                        model.retain(|&kept| kept >= index / 4);
                    }
                }
                let listed: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(&listed, &model.iter().copied().collect::<Vec<_>>());
                let apart = set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start);
                prop_assert!(apart && set.iter().all(|range| !range.is_empty()));
                prop_assert!((0..100).all(|probe| set.contains(probe) == model.contains(&probe)));
                let all = |range: &Range<u64>| range.clone().all(|index| model.contains(&index));
                prop_assert!((0..90).all(|start| set.holds(&(start..start + 3)) == all(&(start..start + 3))));
            }
        }
    }
}
