//! Deadlines of associations: a queue that gives the earliest deadline, and the deadline of each slot.

use tresse_policy::Instant;

use super::slots::Slot;

/// A heap with [`FAN`] branches. The earliest deadline is on top; of equal deadlines, that of the lowest slot.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<(Instant, Slot)>,
    /// By slot: its index in the heap plus one; 0 for none.
    places: Vec<u32>,
}

/// With four branches a heap has half the depth of one with two, and the four entries are adjacent in memory.
const FAN: usize = 4;

impl Deadlines {
    /// Returns the earliest deadline.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Returns the deadline of `slot`.
    pub(super) fn of(&self, slot: Slot) -> Option<Instant> {
        self.place(slot).map(|place| self.heap[place].0)
    }

    /// Sets the deadline of `slot`, in place of its old one.
    pub(super) fn file(&mut self, slot: Slot, at: Instant) {
        let place = self.place(slot).unwrap_or_else(|| {
            let least = slot as usize + 1;
            if self.places.len() < least {
                self.places.resize(least, 0);
            }
            self.heap.push((at, slot));
            self.heap.len() - 1
        });
        self.fit(place, (at, slot));
    }

    /// Removes the deadline of `slot`, if it has one.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(place) = self.place(slot) else { return };
        self.places[slot as usize] = 0;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.fit(place, last);
        }
    }

    /// Removes the earliest deadline if it is not after `now`, and returns its slot.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Slot> {
        let &(at, slot) = self.heap.first()?;
        (at <= now).then(|| {
            self.remove(slot);
            slot
        })
    }

    /// Returns every slot that has a deadline, in no order.
    #[cfg(feature = "invariants")]
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.heap.iter().map(|&(_, slot)| slot)
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        (*self.places.get(slot as usize)? as usize).checked_sub(1)
    }

    /// Inserts `entry` on the branch through `place`, and overwrites the entry there.
    fn fit(&mut self, mut place: usize, entry: (Instant, Slot)) {
        while let Some(above) = place.checked_sub(1).map(|below| below / FAN)
            && entry < self.heap[above]
        {
            self.set(place, self.heap[above]);
            place = above;
        }
        while let Some(first) = self.first_below(place).filter(|&below| self.heap[below] < entry) {
            self.set(place, self.heap[first]);
            place = first;
        }
        self.set(place, entry);
    }

    /// Returns the place of the earliest child of `place`.
    fn first_below(&self, place: usize) -> Option<usize> {
        let below = FAN * place + 1;
        (below..self.heap.len().min(below + FAN)).min_by_key(|&below| self.heap[below])
    }

    fn set(&mut self, place: usize, entry: (Instant, Slot)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32 + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    proptest! {
        #[test]
        fn deadlines_come_in_order_whatever_was_filed_and_forgotten(
            steps in prop::collection::vec((0u32..30, prop::option::weighted(0.8, 0u64..50)), 0..300),
        ) {
            let (mut deadlines, mut expected) = (Deadlines::default(), BTreeMap::new());
            for (slot, time) in steps {
                match time {
                    Some(time) => {
                        deadlines.file(slot, at(time));
                        expected.insert(slot, at(time));
                    }
                    None => {
                        deadlines.remove(slot);
                        expected.remove(&slot);
                    }
                }
                prop_assert_eq!(deadlines.first(), expected.values().min().copied());
                for slot in 0..30 {
                    prop_assert_eq!(deadlines.of(slot), expected.get(&slot).copied());
                }
            }
            let mut due: Vec<_> = expected.into_iter().map(|(slot, at)| (at, slot)).collect();
            due.sort_unstable();
            for (time, slot) in due {
                prop_assert_eq!((deadlines.first(), deadlines.pop_due(time)), (Some(time), Some(slot)));
            }
            prop_assert_eq!(deadlines.first(), None);
        }
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut deadlines = Deadlines::default();
        deadlines.file(3, at(7));
        assert_eq!((deadlines.pop_due(at(6)), deadlines.of(3)), (None, Some(at(7))));
        assert_eq!((deadlines.pop_due(at(7)), deadlines.of(3)), (Some(3), None));
        assert_eq!(deadlines.pop_due(at(7)), None);
    }
}
