//! Tags of associations that have ended: a cookie makes one association, however late a copy of it arrives.
//!
//! Without this a COOKIE ECHO that the network held back would raise the association from the dead, and DATA that was
//! held back with it would be delivered again. A TCP keeps TIME-WAIT for that; here a tag is enough, because cookies are
//! signed and name theirs. Knows tags, not cookies.

use std::collections::{BTreeSet, VecDeque};

/// The tags that ended last.
#[derive(Debug, Default)]
pub(super) struct SpentTags {
    /// The oldest first.
    order: VecDeque<u32>,
    tags: BTreeSet<u32>,
}

/// Tags that are kept. Cookies live for a minute: that is 270 ends a second, for 200 kB at most.
const KEPT: usize = 16_384;

impl SpentTags {
    /// The association with this tag has ended.
    pub(super) fn note(&mut self, tag: u32) {
        if !self.tags.insert(tag) {
            return;
        }
        self.order.push_back(tag);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.tags.remove(&oldest);
        }
    }

    /// Whether an association with this tag has ended lately.
    pub(super) fn contains(&self, tag: u32) -> bool {
        self.tags.contains(&tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_tags_are_kept_and_each_once() {
        let mut spent = SpentTags::default();
        for tag in 0..KEPT as u32 + 10 {
            spent.note(tag);
            spent.note(tag);
        }
        assert_eq!((spent.order.len(), spent.tags.len()), (KEPT, KEPT));
        assert!(!spent.contains(9) && spent.contains(10) && spent.contains(KEPT as u32 + 9));
    }
}
