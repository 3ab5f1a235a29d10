//! Indices of the chunks of a message.

use std::ops::Range;

/// Indices in the order of their fragments: one range for DATA, where a message has consecutive TSNs, and often for I-DATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Indices {
    first: Range<u64>,
    rest: Vec<Range<u64>>,
}

impl Indices {
    /// Returns a list of one index.
    #[inline]
    pub(super) fn of(index: u64) -> Self {
        Indices::from(index..index + 1)
    }

    /// Adds the index of the next fragment.
    pub(super) fn push(&mut self, index: u64) {
        let last = self.rest.last_mut().unwrap_or(&mut self.first);
        if last.end == index {
            last.end += 1;
        } else {
            self.rest.push(index..index + 1);
        }
    }

    /// Returns the index of the first fragment.
    pub(super) fn first(&self) -> u64 {
        self.first.start
    }

    /// Returns the index of the last fragment.
    pub(super) fn last(&self) -> u64 {
        self.rest.last().unwrap_or(&self.first).end.saturating_sub(1)
    }

    /// Appends the indices to `ranges`.
    #[inline]
    pub(super) fn append_to(self, ranges: &mut Vec<Range<u64>>) {
        ranges.push(self.first);
        ranges.extend(self.rest);
    }
}

impl From<Range<u64>> for Indices {
    #[inline]
    fn from(range: Range<u64>) -> Self {
        Indices { first: range, rest: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_range() {
        let mut indices = Indices::of(4);
        for index in [5, 9, 10, 7] {
            indices.push(index);
        }
        assert_eq!((indices.first(), indices.last()), (4, 7));
        let mut ranges = Vec::new();
        indices.append_to(&mut ranges);
        assert_eq!(ranges, [4..6, 9..11, 7..8]);
    }
}
