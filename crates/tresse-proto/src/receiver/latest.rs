//! Latest arrivals beyond a gap, which were reported least often, for SACKs that cannot list all blocks.
//!
//! Owns a bounded list of indices. Independent of other arrivals, and of the contents of SACKs.

use std::collections::VecDeque;
use std::ops::Range;

use crate::collections::LazyBox;
use crate::collections::RangeSet;

/// The indices that came last.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// The last of each run that came in order, the newest run last; at most [`MAX_RUNS`].
    runs: LazyBox<VecDeque<u64>>,
}

impl Latest {
    pub(super) fn note(&mut self, index: u64) {
        if let Some(last) = self.runs.back_mut()
            && *last + 1 == index
        {
            *last = index;
            return;
        }
        if self.runs.len() == MAX_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(index);
    }

    /// Nothing is beyond a gap any more.
    pub(super) fn forget(&mut self) {
        if !self.runs.is_empty() {
            self.runs = LazyBox::default();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Puts into `out` the ranges of `received` that the newest runs ended in, ascending and at most `most`.
    pub(super) fn find(&self, received: &RangeSet, most: usize, out: &mut Vec<Range<u64>>) {
        out.clear();
        out.extend(received.ranges_of(self.runs.iter().rev().take(most).copied()));
        out.sort_unstable_by_key(|range| range.start);
        out.dedup();
    }
}

/// As many SACKs in a row may be lost, or nearly, before the peer misses something that arrived.
const MAX_RUNS: usize = 64;
