//! Sets of indices as sorted ranges: TSNs that arrived, or were acknowledged, beyond a gap.
//!
//! Owns the order and the disjointness of the ranges. Independent of the meaning of an
//! index, and of a bound on the number: a caller that fills the set from packets bounds it with [`RangeSet::opens_range`].

use std::collections::VecDeque;
use std::ops::Range;

use crate::collections::LazyBox;

/// A set of `u64` indices, kept as sorted half-open ranges that neither overlap nor touch.
///
/// Growing at the last range costs O(1), looking up O(log ranges), changing the middle one move of at
/// most half of the ranges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: LazyBox<Ranges>,
}

/// `(start, end)` with `start < end`, and `end` below the next range's `start`.
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

    /// The lowest index of the range after the `passed` lowest ones.
    pub(crate) fn start_after(&self, passed: usize) -> Option<u64> {
        self.ranges.get(passed).map(|&(start, _)| start)
    }

    /// The ranges, lowest first.
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

    /// The ranges that some indices are in. It takes least where each is in the range before the last one's.
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

    /// Puts into `out` what is in `ranges`, which are ascending and disjoint, and not in the set. It takes least where
    /// most of them are ranges of the set.
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

    /// Returns whether adding `index` would make one range more: it is not in the set and touches no range.
    pub(crate) fn opens_range(&self, index: u64) -> bool {
        let at = self.first_ending_after(index.saturating_sub(1));
        self.ranges.get(at).is_none_or(|&(start, _)| start > index.saturating_add(1))
    }

    /// Adds `index`; says whether it is new.
    pub(crate) fn insert(&mut self, index: u64) -> bool {
        let new = !self.contains(index);
        if new {
            self.insert_range(index..index + 1);
        }
        new
    }

    /// Adds every index of `range`; those that are in the set already stay.
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
        // All ranges that `range` overlaps or touches become one with it.
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

    /// Takes out `index`, which may split its range; says whether it was in the set.
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

    /// Takes out every index below `bound`.
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

    /// Takes out the lowest range if it starts at `start`, and gives its end.
    pub(crate) fn take_first_at(&mut self, start: u64) -> Option<u64> {
        let (_, end) = self.ranges.pop_front_if(|first| first.0 == start)?;
        if self.ranges.is_empty() {
            self.give_back_memory();
        }
        Some(end)
    }

    /// Position of the first range that ends after `index`: the only one that can hold it.
    fn first_ending_after(&self, index: u64) -> usize {
        self.ranges.partition_point(|&(_, end)| end <= index)
    }

    /// An empty set after a burst of gaps must not keep the burst's memory.
    fn give_back_memory(&mut self) {
        if self.ranges.capacity() > KEPT_WHEN_EMPTY {
            self.ranges = LazyBox::default();
        }
    }
}

/// Room for ranges that an empty set may keep, so that a gap now and then allocates nothing.
const KEPT_WHEN_EMPTY: usize = 64;

/// Puts into `out` what is in `from` and not in `without`; both are ascending and disjoint.
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

/// Puts into `out` what is in both; both are ascending and disjoint.
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

    /// First and last index of each range.
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

        /// Against a plain set of indices, after each of many steps.
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
