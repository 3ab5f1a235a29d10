//! Latest arrivals above a gap, which the fewest SACKs have reported, for SACKs that cannot list all blocks.
//!
//! Owns a bounded list of indices. Independent of other arrivals, and of the contents of SACKs.

use std::collections::VecDeque;
use std::ops::Range;

use crate::collections::LazyBox;
use crate::collections::RangeSet;

/// The indices that arrived last.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// The last index of each run that arrived in order, the newest run last; at most [`MAX_RUNS`].
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

    /// Forgets all runs: there is no gap any more.
    pub(super) fn forget(&mut self) {
        if !self.runs.is_empty() {
            self.runs = LazyBox::default();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Puts the ranges of `received` in which the newest runs end into `out`, ascending and at most `most`.
    pub(super) fn find(&self, received: &RangeSet, most: usize, out: &mut Vec<Range<u64>>) {
        out.clear();
        out.extend(received.ranges_of(self.runs.iter().rev().take(most).copied()));
        out.sort_unstable_by_key(|range| range.start);
        out.dedup();
    }
}

/// Most runs that are kept. About as many consecutive SACKs may be lost before an arrival is never reported to the peer.
const MAX_RUNS: usize = 64;
