//! Calendar queue: entries ordered by a slot number, in a ring of 64 slots, first in, first out within a slot.
//!
//! All operations take constant time. In exchange, an entry whose number lies beyond the ring is put into the last
//! slot. The caller that removes the first entry checks that the entry is due.

use super::blocks::{Arena, Queue};

/// Slots of the ring.
const SLOTS: u64 = 64;

/// Entries by slot number.
#[derive(Debug)]
pub(super) struct Slots {
    queues: [Queue; SLOTS as usize],
    /// A bit for each queue that is not empty.
    occupied: u64,
    /// Number of the first slot of the ring; no entry has a lower slot.
    first: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { queues: [Queue::default(); SLOTS as usize], occupied: 0, first: 0 }
    }
}

impl Slots {
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Puts an entry into the slot `number`, or into the nearest slot of the ring. The ring begins at `from` or
    /// earlier, so that later insertions with lower numbers find a slot.
    pub(super) fn insert<T: Copy + Default>(
        &mut self,
        arena: &mut Arena<T>,
        number: u64,
        from: u64,
        entry: T,
    ) {
        let position = self.reach(number, from) % SLOTS;
        self.queues[position as usize].push_back(arena, entry);
        self.occupied |= 1 << position;
    }

    /// Empties the first slot if its number is at most `last`, and returns its entries.
    pub(super) fn take_up_to(&mut self, last: u64) -> Option<Queue> {
        let number = self.first_occupied().filter(|&number| number <= last)?;
        let position = number % SLOTS;
        self.occupied &= !(1 << position);
        Some(std::mem::take(&mut self.queues[position as usize]))
    }

    /// Returns the first entry with the number of its slot.
    pub(super) fn front<T: Copy + Default>(&self, arena: &Arena<T>) -> Option<(u64, T)> {
        let number = self.first_occupied()?;
        self.queues[(number % SLOTS) as usize].front(arena).map(|entry| (number, entry))
    }

    /// Removes and returns the first entry.
    pub(super) fn pop_front<T: Copy + Default>(&mut self, arena: &mut Arena<T>) -> Option<T> {
        let position = self.first_occupied()? % SLOTS;
        let queue = &mut self.queues[position as usize];
        let entry = queue.pop_front(arena);
        if queue.is_empty() {
            self.occupied &= !(1 << position);
        }
        entry
    }

    /// Lowers the number of every slot by `by`, a multiple of the ring's length.
    pub(super) fn renumber(&mut self, by: u64) {
        self.first = self.first.saturating_sub(by);
    }

    /// Moves the ring so that it holds `number`, as far as the entries in it allow. Returns the slot number to use.
    fn reach(&mut self, number: u64, from: u64) -> u64 {
        let Some(first) = self.first_occupied() else {
            self.first = number.min(from);
            return number.min(self.first + SLOTS - 1);
        };
        let length = u64::from(u64::BITS - 1 - self.from(first).leading_zeros());
        let earliest = (first + length).saturating_sub(SLOTS - 1);
        let number = number.clamp(earliest, (first.min(from) + SLOTS - 1).max(earliest));
        self.first = first.min(number);
        number
    }

    fn first_occupied(&self) -> Option<u64> {
        let ahead = u64::from(self.from(self.first).trailing_zeros());
        (self.occupied != 0).then(|| self.first + ahead)
    }

    /// Returns the occupied bits, rotated so that bit 0 is slot `number`.
    fn from(&self, number: u64) -> u64 {
        self.occupied.rotate_right((number % SLOTS) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(slots: &mut Slots, arena: &mut Arena<u16>) -> Vec<(u64, u16)> {
        let mut order = Vec::new();
        while let Some((number, entry)) = slots.front(arena) {
            order.push((number, entry));
            assert_eq!(slots.pop_front(arena), Some(entry));
        }
        order
    }

    fn filled(entries: &[(u64, u16)]) -> (Slots, Arena<u16>) {
        let (mut slots, mut arena) = (Slots::default(), Arena::default());
        for &(number, entry) in entries {
            slots.insert(&mut arena, number, number, entry);
        }
        (slots, arena)
    }

    #[test]
    fn entries_leave_by_number_and_within_a_number_as_they_came() {
        let (mut slots, mut arena) = filled(&[(1000, 1), (990, 2), (1040, 3), (1000, 4), (985, 5)]);
        assert_eq!(drain(&mut slots, &mut arena), [(985, 5), (990, 2), (1000, 1), (1000, 4), (1040, 3)]);
        assert!(slots.is_empty());
    }

    #[test]
    fn numbers_out_of_reach_share_the_last_slot_at_their_end() {
        let (mut slots, mut arena) = filled(&[(100, 1), (1 << 60, 2), (170, 3), (0, 4)]);
        assert_eq!(drain(&mut slots, &mut arena), [(100, 1), (100, 4), (163, 2), (163, 3)]);
    }

    #[test]
    fn an_empty_ring_leaves_room_before_what_comes_far_ahead() {
        let (mut slots, mut arena) = (Slots::default(), Arena::default());
        for (number, entry) in [(640, 1), (110, 2), (164, 3)] {
            slots.insert(&mut arena, number, 100, entry);
        }
        assert_eq!(drain(&mut slots, &mut arena), [(110, 2), (163, 1), (163, 3)]);
    }

    #[test]
    fn so_does_one_that_is_not_empty() {
        let (mut slots, mut arena) = (Slots::default(), Arena::default());
        for (number, entry) in [(130, 1), (640, 2), (20, 3), (110, 4)] {
            slots.insert(&mut arena, number, 100, entry);
        }
        assert_eq!(drain(&mut slots, &mut arena), [(100, 3), (110, 4), (130, 1), (163, 2)]);
    }

    #[test]
    fn whole_slots_are_taken_while_they_are_due() {
        let (mut slots, mut arena) = filled(&[(9, 1), (8, 2), (9, 3), (11, 4)]);
        let mut taken = Vec::new();
        while let Some(mut queue) = slots.take_up_to(10) {
            while let Some(entry) = queue.pop_front(&mut arena) {
                taken.push(entry);
            }
        }
        assert_eq!(taken, [2, 1, 3]);
        assert_eq!(drain(&mut slots, &mut arena), [(11, 4)]);
    }

    #[test]
    fn the_ring_moves_on_when_it_empties() {
        let (mut slots, mut arena) = (Slots::default(), Arena::default());
        for number in [5, 69, 1 << 50, 3] {
            slots.insert(&mut arena, number, number, 9);
            assert_eq!(drain(&mut slots, &mut arena), [(number, 9)]);
        }
    }

    #[test]
    fn slots_can_be_numbered_anew() {
        let (mut slots, mut arena) = filled(&[(640, 1), (641, 2), (650, 4)]);
        slots.renumber(576);
        assert_eq!(drain(&mut slots, &mut arena), [(64, 1), (65, 2), (74, 4)]);
    }
}
