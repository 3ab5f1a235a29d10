//! Replay window of one key: the record numbers that have been decrypted (RFC 9147 §4.5.1).
//!
//! Paths share one number space, so the window covers the difference between paths of unlike delay. This takes 64 KiB at most,
//! and less while numbers are low. A number before the window counts as a replay.

/// Size of the window: a delay difference of 300 ms at 10 Gbit/s is 250,000 packets of 1,500 bytes.
pub(super) const BITS: u64 = 1 << 19;

/// Status of a number in a window.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NumberStatus {
    /// No record with this number was decrypted.
    Fresh,
    /// A record with this number was decrypted.
    Seen,
    /// The number is before the window.
    TooOld,
}

/// The numbers of decrypted records.
#[derive(Debug, Default)]
pub(super) struct ReplayWindow {
    /// A bit for each number, at the number modulo [`BITS`]; missing words are zero.
    words: Vec<u64>,
    /// One more than the highest decrypted number.
    next: u64,
}

impl ReplayWindow {
    /// Returns one more than the highest decrypted number.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    fn place(number: u64) -> (usize, u64) {
        let bit = number & (BITS - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// Returns the status of `number`.
    #[inline]
    pub(super) fn look(&self, number: u64) -> NumberStatus {
        if number >= self.next {
            return NumberStatus::Fresh;
        }
        if self.next - number > BITS {
            return NumberStatus::TooOld;
        }
        let (word, bit) = Self::place(number);
        let seen = self.words.get(word).is_some_and(|word| word & bit != 0);
        if seen { NumberStatus::Seen } else { NumberStatus::Fresh }
    }

    /// Records that a record with `number`, which is fresh, was decrypted.
    #[inline]
    pub(super) fn mark(&mut self, number: u64) {
        self.grow(number);
        if number > self.next {
            self.clear(self.next, number);
        }
        let (word, bit) = Self::place(number);
        self.words[word] |= bit;
        self.next = self.next.max(number.saturating_add(1));
    }

    /// Grows the vector to contain `number`: most associations never use a large part of the window.
    #[inline]
    fn grow(&mut self, number: u64) {
        let words = (number / 64 + 1).min(BITS / 64) as usize;
        if words > self.words.len() {
            self.words.resize(words.next_power_of_two(), 0);
        }
    }

    /// Clears the bits of the numbers from `first` to before `end`, which were not in the window.
    fn clear(&mut self, first: u64, end: u64) {
        if end - first >= BITS {
            self.words.fill(0);
            return;
        }
        let mut number = first;
        while number < end {
            if number & 63 == 0 && end - number >= 64 {
                let (word, _) = Self::place(number);
                self.words[word] = 0;
                number += 64;
            } else {
                let (word, bit) = Self::place(number);
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
        let mut window = ReplayWindow::default();
        for number in [0, 1, 5, 3, 64, 63, 1_000, 700_000, 699_999] {
            assert_eq!(window.look(number), NumberStatus::Fresh, "{number}");
            window.mark(number);
            assert_eq!(window.look(number), NumberStatus::Seen, "{number}");
        }
        assert_eq!(window.next(), 700_001);
        assert_eq!(window.look(700_001 - BITS), NumberStatus::Fresh);
        assert_eq!(window.look(700_000 - BITS), NumberStatus::TooOld);
        window.mark(10_000_000);
        assert_eq!(window.look(10_000_000 - BITS + 1), NumberStatus::Fresh, "a jump leaves nothing behind");
    }

    #[test]
    fn the_window_takes_memory_as_numbers_come() {
        let mut window = ReplayWindow::default();
        for number in 0..1_000 {
            window.mark(number);
        }
        assert_eq!(window.words.len(), 16);
        window.mark(BITS * 3);
        assert_eq!(window.words.len() as u64, BITS / 64);
    }

    proptest! {
        /// Compares the window with a set of all decrypted numbers.
        #[test]
        fn the_window_agrees_with_a_set(
            start in prop_oneof![Just(0_u64), 0..u64::from(u32::MAX)],
            steps in prop::collection::vec((0..4_u8, 0..600_000_u64), 1..60),
        ) {
            let mut window = ReplayWindow::default();
            let mut seen = BTreeSet::new();
            let mut highest = start;
            for (kind, size) in steps {
                let number = match kind {
                    0 => highest + 1,
                    1 => highest + size,
                    2 => highest.saturating_sub(size),
                    _ => highest.saturating_sub(size % 200),
                };
                let expected = if number >= window.next() {
                    NumberStatus::Fresh
                } else if window.next() - number > BITS {
                    NumberStatus::TooOld
                } else if seen.contains(&number) {
                    NumberStatus::Seen
                } else {
                    NumberStatus::Fresh
                };
                prop_assert_eq!(window.look(number), expected, "{}", number);
                if expected == NumberStatus::Fresh {
                    window.mark(number);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
