//! Deadlines of associations, with access to the earliest one, and to each by its slot. Knows slots and
//! times only.

use tresse_policy::Instant;

use super::demux::Slot;

/// A heap with [`FAN`] branches, the earliest deadline on top; of equal ones the lower slot.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<(Instant, Slot)>,
    /// By slot: one more than its place in the heap, 0 for none.
    places: Vec<u32>,
}

/// With four branches a heap is half as deep as with two, and the four lie side by side.
const FAN: usize = 4;

impl Deadlines {
    /// The earliest of all.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// That of `slot`.
    pub(super) fn of(&self, slot: Slot) -> Option<Instant> {
        self.place(slot).map(|place| self.heap[place].0)
    }

    /// Files a deadline in place of the one that `slot` had.
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

    /// Forgets the one of `slot`, if there is any.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(place) = self.place(slot) else { return };
        self.places[slot as usize] = 0;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.fit(place, last);
        }
    }

    /// Takes out the earliest one that is not after `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Slot> {
        let &(at, slot) = self.heap.first()?;
        (at <= now).then(|| {
            self.remove(slot);
            slot
        })
    }

    /// Every slot that has one, in no order.
    #[cfg(feature = "invariants")]
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.heap.iter().map(|&(_, slot)| slot)
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        (*self.places.get(slot as usize)? as usize).checked_sub(1)
    }

    /// Puts `entry` where it belongs on the way through `place`, whose own entry is no longer wanted.
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

    /// The place of the earliest of those right below `place`.
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
