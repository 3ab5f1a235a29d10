//! Associations by this side's verification tag. This side chooses its tags at random, so they need no hash, and an
//! attacker cannot cause collisions. Knows tags and slots only.

use super::demux::Slot;

/// A table with open addressing: a tag stands in the first free cell from its own on.
#[derive(Debug, Default)]
pub(super) struct TagTable {
    /// A power of two of them, or none; never full. Tag 0, which no association has (RFC 9260 §5.3.1), is free.
    cells: Vec<(u32, Slot)>,
    len: usize,
}

/// Cells that a table begins with.
const FIRST_CELLS: usize = 8;

impl TagTable {
    pub(super) fn get(&self, tag: u32) -> Option<Slot> {
        let (found, slot) = *self.cells.get(self.find(tag)?)?;
        (found == tag).then_some(slot)
    }

    /// Puts `slot` under `tag`, which is not 0.
    pub(super) fn insert(&mut self, tag: u32, slot: Slot) {
        if 4 * (self.len + 1) > 3 * self.cells.len() {
            self.grow();
        }
        if let Some(at) = self.find(tag) {
            self.len += usize::from(self.cells[at].0 != tag);
            self.cells[at] = (tag, slot);
        }
    }

    pub(super) fn remove(&mut self, tag: u32) {
        let Some(mut free) = self.find(tag).filter(|&at| self.cells[at].0 == tag) else { return };
        self.len -= 1;
        // What stands behind it moves up, so that no search ends too early.
        let mut at = self.after(free);
        while self.cells[at].0 != 0 {
            let from_home = |place: usize| place.wrapping_sub(self.cells[at].0 as usize) & self.mask();
            if from_home(free) < from_home(at) {
                self.cells[free] = self.cells[at];
                free = at;
            }
            at = self.after(at);
        }
        self.cells[free] = (0, 0);
    }

    /// The cell of `tag`, or the free one where it would stand; `None` in a table without cells, and for 0.
    fn find(&self, tag: u32) -> Option<usize> {
        if self.cells.is_empty() || tag == 0 {
            return None;
        }
        let mut at = tag as usize & self.mask();
        while ![0, tag].contains(&self.cells[at].0) {
            at = self.after(at);
        }
        Some(at)
    }

    fn grow(&mut self) {
        let larger = (2 * self.cells.len()).max(FIRST_CELLS);
        for (tag, slot) in std::mem::replace(&mut self.cells, vec![(0, 0); larger]) {
            if let Some(at) = self.find(tag) {
                self.cells[at] = (tag, slot);
            }
        }
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    fn mask(&self) -> usize {
        self.cells.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Tags that meet in few cells, so that much has to move.
        #[test]
        fn tags_are_found_until_they_are_removed(
            steps in prop::collection::vec((any::<bool>(), 1u32..40, 0u32..4), 0..400),
        ) {
            let (mut table, mut expected) = (TagTable::default(), BTreeMap::new());
            for (slot, (inserts, low, high)) in (0..).zip(steps) {
                let tag = low | (high << 20);
                if inserts {
                    table.insert(tag, slot);
                    expected.insert(tag, slot);
                } else {
                    table.remove(tag);
                    expected.remove(&tag);
                }
                prop_assert_eq!(table.len, expected.len());
                for tag in (0..40).flat_map(|low| (0..4).map(move |high| low | (high << 20))) {
                    prop_assert_eq!(table.get(tag), expected.get(&tag).copied());
                }
            }
        }
    }

    #[test]
    fn there_is_no_tag_0() {
        let mut table = TagTable::default();
        table.remove(0);
        assert_eq!((table.get(0), table.cells.len()), (None, 0));
        table.insert(0, 5);
        assert_eq!((table.get(0), table.len), (None, 0));
    }
}
