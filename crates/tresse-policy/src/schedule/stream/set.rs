//! Set of streams in which the next stream after any other is found in constant time.
//!
//! Three levels of bits, 64 to a word: a word of an upper level marks the words of the level below that are not zero.
//! The size is at most 8 KiB and depends on the highest stream in use.

use tresse_wire::StreamId;

/// Bits in a word, and words of a lower level for each word of an upper level.
const WORD: usize = 64;

/// A set of streams.
#[derive(Debug, Default)]
pub(super) struct StreamSet {
    streams: Vec<u64>,
    words: [u64; 16],
    blocks: u64,
}

impl StreamSet {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    pub(super) fn contains(&self, stream: StreamId) -> bool {
        let (word, bit) = split(usize::from(stream.0));
        self.streams.get(word).is_some_and(|streams| streams & (1 << bit) != 0)
    }

    pub(super) fn insert(&mut self, stream: StreamId) {
        let (word, bit) = split(usize::from(stream.0));
        if word >= self.streams.len() {
            self.streams.resize(word + 1, 0);
        }
        let (block, in_block) = split(word);
        self.streams[word] |= 1 << bit;
        self.words[block] |= 1 << in_block;
        self.blocks |= 1 << block;
    }

    pub(super) fn remove(&mut self, stream: StreamId) {
        let (word, bit) = split(usize::from(stream.0));
        let Some(streams) = self.streams.get_mut(word) else { return };
        *streams &= !(1 << bit);
        if *streams == 0 {
            let (block, in_block) = split(word);
            self.words[block] &= !(1 << in_block);
            if self.words[block] == 0 {
                self.blocks &= !(1 << block);
            }
        }
    }

    /// Returns the next stream after `last`, and after the highest stream, or without `last`, the lowest.
    pub(super) fn next_after(&self, last: Option<StreamId>) -> Option<StreamId> {
        let after = last.and_then(|last| self.at_or_above(usize::from(last.0) + 1));
        after.or_else(|| self.at_or_above(0))
    }

    /// Returns the lowest stream that is not below `start`.
    fn at_or_above(&self, start: usize) -> Option<StreamId> {
        let (word, bit) = split(start);
        let (block, in_block) = split(word);
        let streams = self.streams.get(word).map_or(0, |streams| from(*streams, bit));
        if streams != 0 {
            return found(word, streams);
        }
        let words = self.words.get(block).map_or(0, |words| from(*words, in_block + 1));
        if words != 0 {
            return self.lowest_in(block * WORD + words.trailing_zeros() as usize);
        }
        let blocks = from(self.blocks, block + 1);
        let block = (blocks != 0).then(|| blocks.trailing_zeros() as usize)?;
        self.lowest_in(block * WORD + self.words[block].trailing_zeros() as usize)
    }

    fn lowest_in(&self, word: usize) -> Option<StreamId> {
        found(word, *self.streams.get(word)?)
    }
}

/// Returns the word that holds bit `position`, and the place of the bit in this word.
fn split(position: usize) -> (usize, usize) {
    (position / WORD, position % WORD)
}

/// Returns the bits of `word` from `bit` on.
fn from(word: u64, bit: usize) -> u64 {
    if bit < WORD { word & (u64::MAX << bit) } else { 0 }
}

/// Returns the lowest stream of a word that is not zero.
fn found(word: usize, streams: u64) -> Option<StreamId> {
    u16::try_from(word * WORD + streams.trailing_zeros() as usize).ok().map(StreamId)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_an_ordered_set(steps in prop::collection::vec((any::<u16>(), 0..3_u8), 1..300), narrow in any::<bool>()) {
            let (mut set, mut model) = (StreamSet::default(), BTreeSet::new());
            for (number, step) in steps {
                let stream = StreamId(if narrow { number % 200 } else { number });
                match step {
                    0 => {
                        set.remove(stream);
                        model.remove(&stream);
                    }
                    _ => {
                        set.insert(stream);
                        model.insert(stream);
                    }
                }
                let after = model.iter().find(|&&other| other > stream).or(model.first()).copied();
                prop_assert_eq!(set.next_after(Some(stream)), after);
                prop_assert_eq!(set.next_after(None), model.first().copied());
                prop_assert_eq!(set.contains(stream), model.contains(&stream));
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn the_turn_passes_from_the_highest_stream_to_the_lowest() {
        let mut set = StreamSet::default();
        for number in [0, 63, 64, 4095, 4096, 65_535] {
            set.insert(StreamId(number));
        }
        let mut last = None;
        let mut turns = Vec::new();
        for _ in 0..7 {
            last = set.next_after(last);
            turns.extend(last.map(|stream| stream.0));
        }
        assert_eq!(turns, [0, 63, 64, 4095, 4096, 65_535, 0]);
    }
}
