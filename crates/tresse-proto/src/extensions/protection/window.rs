//! Replay window of one key: which record numbers have been opened (RFC 9147 §4.5.1).
//!
//! It begins with 65,536 numbers, and grows to eight times as many where genuine records come from further back: paths of
//! unlike delay share one space of numbers. What lies before it cannot be told from a replay.

/// Numbers that a new window covers.
const FIRST_BITS: u64 = 1 << 16;

/// Numbers that the largest one covers: 300 ms of difference at 10 Gbit/s in packets of 1,500 bytes are 250,000.
pub(super) const MOST_BITS: u64 = 1 << 19;

/// What a window says of a number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Sighting {
    /// No record of this number was opened.
    Fresh,
    /// One was.
    Seen,
    /// The number lies before the window.
    TooOld,
}

/// The numbers of opened records.
#[derive(Debug)]
pub(super) struct ReplayWindow {
    /// A bit for each number, at its place modulo their count, which is a power of two.
    words: Vec<u64>,
    /// One more than the highest number that was opened.
    next: u64,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        ReplayWindow { words: vec![0; (FIRST_BITS / 64) as usize], next: 0 }
    }

    /// One more than the highest number that was opened.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    #[inline]
    fn place(&self, number: u64) -> (usize, u64) {
        let bit = number & (self.bits() - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// What is known of `number`.
    #[inline]
    pub(super) fn look(&self, number: u64) -> Sighting {
        if number >= self.next {
            return Sighting::Fresh;
        }
        if self.next - number > self.bits() {
            return Sighting::TooOld;
        }
        let (word, bit) = self.place(number);
        if self.words[word] & bit == 0 { Sighting::Fresh } else { Sighting::Seen }
    }

    /// A record with `number`, which is fresh, was opened.
    #[inline]
    pub(super) fn mark(&mut self, number: u64) {
        if number > self.next {
            self.clear(self.next, number);
        }
        let (word, bit) = self.place(number);
        self.words[word] |= bit;
        self.next = self.next.max(number.saturating_add(1));
    }

    /// A genuine record came from before the window: as time goes on it covers twice as much.
    pub(super) fn grow(&mut self) {
        let bits = self.bits();
        if bits >= MOST_BITS {
            return;
        }
        let mut larger = ReplayWindow { words: vec![0; self.words.len() * 2], next: self.next };
        for number in self.next.saturating_sub(2 * bits)..self.next {
            // Of what was before the window nothing is known: it counts as seen.
            if self.look(number) != Sighting::Fresh {
                let (word, bit) = larger.place(number);
                larger.words[word] |= bit;
            }
        }
        *self = larger;
    }

    /// No number from `first` to before `end` has been opened; none of them was in the window.
    fn clear(&mut self, first: u64, end: u64) {
        if end - first >= self.bits() {
            self.words.fill(0);
            return;
        }
        let mut number = first;
        while number < end {
            if number & 63 == 0 && end - number >= 64 {
                let (word, _) = self.place(number);
                self.words[word] = 0;
                number += 64;
            } else {
                let (word, bit) = self.place(number);
                self.words[word] &= !bit;
                number += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_number_is_fresh_once() {
        let mut window = ReplayWindow::new();
        for number in [0, 1, 5, 3, 64, 63, 1_000, 70_000, 69_999] {
            assert_eq!(window.look(number), Sighting::Fresh, "{number}");
            window.mark(number);
            assert_eq!(window.look(number), Sighting::Seen, "{number}");
        }
        assert_eq!(window.next(), 70_001);
        assert_eq!(window.look(70_001 - FIRST_BITS), Sighting::Fresh);
        assert_eq!(window.look(70_000 - FIRST_BITS), Sighting::TooOld);
        window.mark(10_000_000);
        assert_eq!(window.look(10_000_000 - 65_535), Sighting::Fresh, "a jump leaves nothing behind");
    }

    #[test]
    fn a_window_that_grew_knows_nothing_of_what_was_before_it() {
        let mut window = ReplayWindow::new();
        window.mark(200_000);
        window.grow();
        assert_eq!(window.look(200_000), Sighting::Seen);
        assert_eq!(window.look(200_001 - FIRST_BITS), Sighting::Fresh);
        assert_eq!(window.look(200_000 - FIRST_BITS), Sighting::Seen, "not known, so not taken");
        window.mark(260_000);
        assert_eq!(window.look(150_000), Sighting::Fresh, "now the larger window covers it");
        for _ in 0..9 {
            window.grow();
        }
        assert_eq!(window.bits(), MOST_BITS);
    }

    proptest! {
        /// Against a set of everything that was opened.
        #[test]
        fn the_window_agrees_with_a_set(
            start in prop_oneof![Just(0_u64), 0..u64::from(u32::MAX)],
            steps in prop::collection::vec((0..5_u8, 0..70_000_u64), 1..60),
        ) {
            let mut window = ReplayWindow::new();
            let mut seen = BTreeSet::new();
            let (mut bits, mut floor) = (FIRST_BITS, 0);
            let mut highest = start;
            for (kind, size) in steps {
                let number = match kind {
                    0 => highest + 1,
                    1 => highest + size,
                    2 => highest.saturating_sub(size),
                    3 => highest.saturating_sub(size % 200),
                    _ => {
                        floor = floor.max(window.next().saturating_sub(bits));
                        window.grow();
                        bits = (bits * 2).min(MOST_BITS);
                        continue;
                    }
                };
                let expected = if number >= window.next() {
                    Sighting::Fresh
                } else if window.next() - number > bits {
                    Sighting::TooOld
                } else if number < floor || seen.contains(&number) {
                    Sighting::Seen
                } else {
                    Sighting::Fresh
                };
                prop_assert_eq!(window.look(number), expected, "{}", number);
                if expected == Sighting::Fresh {
                    window.mark(number);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
