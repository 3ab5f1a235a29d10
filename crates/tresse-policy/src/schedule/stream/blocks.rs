//! First-in-first-out queues that share one arena: entries are stored in blocks, and the blocks of a queue are linked.
//!
//! Neighbouring entries are neighbours in memory too: with thousands of streams, memory access determines the cost of a
//! decision. A queue without entries holds no block.

/// Entries in a block, which takes a few cache lines together with its link.
const BLOCK: usize = 15;

/// Memory for the entries of all queues.
#[derive(Debug)]
pub(super) struct Arena<T> {
    blocks: Vec<Block<T>>,
    /// The first of the unused blocks.
    free: Option<u32>,
}

#[derive(Debug)]
struct Block<T> {
    entries: [T; BLOCK],
    next: Option<u32>,
}

/// A queue: its first and last block, and positions in them.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Queue {
    ends: Option<(u32, u32)>,
    /// Position of the first entry in the first block.
    begin: u8,
    /// Position behind the last entry in the last block.
    end: u8,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { blocks: Vec::new(), free: None }
    }
}

impl<T: Copy + Default> Arena<T> {
    /// Returns all entries of the blocks, including removed ones.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flat_map(|block| block.entries.iter_mut())
    }

    fn take_block(&mut self) -> u32 {
        if let Some(number) = self.free {
            let block = &mut self.blocks[number as usize];
            self.free = block.next.take();
            return number;
        }
        self.blocks.push(Block { entries: [T::default(); BLOCK], next: None });
        (self.blocks.len() - 1) as u32
    }

    fn give_back(&mut self, number: u32) -> Option<u32> {
        let next = std::mem::replace(&mut self.blocks[number as usize].next, self.free);
        self.free = Some(number);
        next
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    pub(super) fn front<T: Copy + Default>(&self, arena: &Arena<T>) -> Option<T> {
        let (first, _) = self.ends?;
        Some(arena.blocks[first as usize].entries[usize::from(self.begin)])
    }

    pub(super) fn push_back<T: Copy + Default>(&mut self, arena: &mut Arena<T>, entry: T) {
        let last = match self.ends {
            Some((_, last)) if usize::from(self.end) < BLOCK => last,
            Some((first, last)) => {
                let added = arena.take_block();
                arena.blocks[last as usize].next = Some(added);
                (self.ends, self.end) = (Some((first, added)), 0);
                added
            }
            None => {
                let added = arena.take_block();
                *self = Queue { ends: Some((added, added)), begin: 0, end: 0 };
                added
            }
        };
        arena.blocks[last as usize].entries[usize::from(self.end)] = entry;
        self.end += 1;
    }

    pub(super) fn pop_front<T: Copy + Default>(&mut self, arena: &mut Arena<T>) -> Option<T> {
        let (first, last) = self.ends?;
        let entry = arena.blocks[first as usize].entries[usize::from(self.begin)];
        self.begin += 1;
        if first == last && self.begin == self.end {
            arena.give_back(first);
            self.ends = None;
        } else if usize::from(self.begin) == BLOCK {
            let next = arena.give_back(first);
            self.ends = next.map(|next| (next, last));
            self.begin = 0;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn queues_keep_their_order_and_share_their_blocks(steps in prop::collection::vec((0..4_usize, 0..3_u8), 1..600)) {
            let mut arena = Arena::default();
            let mut queues = [Queue::default(); 4];
            let mut models: [VecDeque<u32>; 4] = Default::default();
            let mut most = 0;
            for (number, (queue, step)) in steps.into_iter().enumerate() {
                if step == 0 {
                    prop_assert_eq!(queues[queue].pop_front(&mut arena), models[queue].pop_front());
                } else {
                    queues[queue].push_back(&mut arena, number as u32);
                    models[queue].push_back(number as u32);
                }
                prop_assert_eq!(queues[queue].front(&arena), models[queue].front().copied());
                prop_assert_eq!(queues[queue].is_empty(), models[queue].is_empty());
                most = most.max(models.iter().map(VecDeque::len).sum());
            }
            prop_assert!(arena.blocks.len() <= most / BLOCK + 2 * queues.len(), "blocks are used again");
            for (queue, model) in queues.iter_mut().zip(models) {
                for entry in model {
                    prop_assert_eq!(queue.pop_front(&mut arena), Some(entry));
                }
                prop_assert_eq!(queue.pop_front(&mut arena), None);
            }
        }
    }
}
