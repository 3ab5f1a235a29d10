//! Streams in the order of a number, as calendars order days: 64 slots in a ring, first come first
//! served within a slot.
//!
//! Everything costs constant time. In exchange, numbers further apart than the ring is long share its
//! last slot; who takes from the front checks whether a stream is really due.

use tresse_wire::StreamId;

use super::list::{Linked, List};
use crate::stream_table::StreamTable;

/// Slots of the ring.
const SLOTS: u64 = 64;

/// Streams by slot number.
#[derive(Debug)]
pub(super) struct Slots {
    lists: [List; SLOTS as usize],
    /// A bit for each list that is not empty.
    occupied: u64,
    /// Number of the first slot of the ring; none that holds streams is before it.
    first: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { lists: [List::default(); SLOTS as usize], occupied: 0, first: 0 }
    }
}

impl Slots {
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Puts a stream into the slot `number`, or into the nearest one that the ring reaches; answers which
    /// list that is, for [`remove`](Self::remove).
    pub(super) fn insert<T: Linked>(
        &mut self,
        table: &mut StreamTable<T>,
        number: u64,
        stream: StreamId,
    ) -> u8 {
        let number = self.reach(number);
        let position = number % SLOTS;
        self.lists[position as usize].push_back(table, stream);
        self.occupied |= 1 << position;
        position as u8
    }

    pub(super) fn remove<T: Linked>(&mut self, table: &mut StreamTable<T>, position: u8, stream: StreamId) {
        let Some(list) = self.lists.get_mut(usize::from(position)) else { return };
        list.remove(table, stream);
        if list.is_empty() {
            self.occupied &= !(1 << position);
        }
    }

    /// Empties the first slot if its number is at most `last`; answers who stood there. They may be put
    /// elsewhere one by one from the front, each when it is known who stands behind it.
    pub(super) fn take_up_to(&mut self, last: u64) -> Option<List> {
        let number = self.first_occupied().filter(|&number| number <= last)?;
        let position = number % SLOTS;
        self.occupied &= !(1 << position);
        Some(std::mem::take(&mut self.lists[position as usize]))
    }

    /// The first stream with the number of its slot.
    pub(super) fn front(&self) -> Option<(u64, StreamId)> {
        let number = self.first_occupied()?;
        self.lists[(number % SLOTS) as usize].front().map(|stream| (number, stream))
    }

    /// Moves the ring so that it holds `number`, as far as the streams in it allow.
    fn reach(&mut self, number: u64) -> u64 {
        let Some(first) = self.first_occupied() else {
            self.first = number;
            return number;
        };
        let length = u64::from(u64::BITS - 1 - self.from(first).leading_zeros());
        let number = number.clamp((first + length).saturating_sub(SLOTS - 1), first + SLOTS - 1);
        self.first = first.min(number);
        number
    }

    fn first_occupied(&self) -> Option<u64> {
        let ahead = u64::from(self.from(self.first).trailing_zeros());
        (self.occupied != 0).then(|| self.first + ahead)
    }

    /// The occupied bits, turned so that bit 0 is slot `number`.
    fn from(&self, number: u64) -> u64 {
        self.occupied.rotate_right((number % SLOTS) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::Link;
    use super::*;

    fn drain(slots: &mut Slots, table: &mut StreamTable<Link>) -> Vec<(u64, u16)> {
        let mut order = Vec::new();
        while let Some((number, stream)) = slots.front() {
            order.push((number, stream.0));
            slots.remove(table, (number % SLOTS) as u8, stream);
        }
        order
    }

    #[test]
    fn streams_leave_by_number_and_within_a_number_as_they_came() {
        let (mut slots, mut table) = (Slots::default(), StreamTable::default());
        for (number, stream) in [(1000, 1), (990, 2), (1040, 3), (1000, 4), (985, 5)] {
            slots.insert(&mut table, number, StreamId(stream));
        }
        assert_eq!(drain(&mut slots, &mut table), [(985, 5), (990, 2), (1000, 1), (1000, 4), (1040, 3)]);
        assert!(slots.is_empty());
    }

    #[test]
    fn numbers_out_of_reach_share_the_last_slot_at_their_end() {
        let (mut slots, mut table) = (Slots::default(), StreamTable::default());
        for (number, stream) in [(100, 1), (1 << 60, 2), (170, 3), (0, 4)] {
            slots.insert(&mut table, number, StreamId(stream));
        }
        assert_eq!(drain(&mut slots, &mut table), [(100, 1), (100, 4), (163, 2), (163, 3)]);
    }

    #[test]
    fn whole_slots_are_taken_while_they_are_due() {
        let (mut slots, mut table) = (Slots::default(), StreamTable::default());
        for (number, stream) in [(9, 1), (8, 2), (9, 3), (11, 4)] {
            slots.insert(&mut table, number, StreamId(stream));
        }
        let mut taken = Vec::new();
        while let Some(list) = slots.take_up_to(10) {
            let mut next = list.front();
            while let Some(stream) = next {
                next = list.behind(&mut table, stream);
                taken.push(stream.0);
            }
        }
        assert_eq!(taken, [2, 1, 3]);
        assert_eq!(drain(&mut slots, &mut table), [(11, 4)]);
    }

    #[test]
    fn the_ring_moves_on_when_it_empties() {
        let (mut slots, mut table) = (Slots::default(), StreamTable::default());
        for number in [5, 69, 1 << 50, 3] {
            slots.insert(&mut table, number, StreamId(9));
            assert_eq!(drain(&mut slots, &mut table), [(number, 9)]);
        }
    }
}
