//! Sets of descriptor numbers, as bits that are read without a lock: the numbers in the table, and those that only the library
//! uses.
//!
//! The preload library checks for every call of a program whether its descriptor belongs to one of our sockets, also in a signal
//! handler. The handler may have interrupted a thread that holds the lock of the table or is in `malloc`. So the check neither
//! takes a lock nor allocates.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors in the table.
pub(crate) static OWNED: Numbers = Numbers::new();
/// Descriptors that only the library uses.
pub(crate) static PRIVATE: Numbers = Numbers::new();

/// Bits of [`PAGE_BITS`] consecutive numbers, allocated when the first of them is inserted.
type Page = OnceLock<Box<[AtomicU64]>>;

/// Set of descriptor numbers.
pub(crate) struct Numbers([Page; PAGE_COUNT]);

const PAGE_BITS: usize = 1 << 18;
/// Enough for every non-negative `int`.
const PAGE_COUNT: usize = (1 << 31) / PAGE_BITS;
const WORD_BITS: usize = u64::BITS as usize;

impl Numbers {
    const fn new() -> Self {
        Numbers([const { OnceLock::new() }; PAGE_COUNT])
    }

    /// Returns the page of a number, and the word and the bit in it.
    fn place(&self, number: i32) -> Option<(&Page, usize, u64)> {
        let number = usize::try_from(number).ok()?;
        let within = number % PAGE_BITS;
        Some((self.0.get(number / PAGE_BITS)?, within / WORD_BITS, 1 << (within % WORD_BITS)))
    }

    /// Returns whether the number is in the set. Safe in a signal handler.
    pub(crate) fn contains(&self, number: i32) -> bool {
        let word = self.place(number).and_then(|(page, word, bit)| Some((page.get()?.get(word)?, bit)));
        word.is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Returns the least number in the set that is not less than `from`. Safe in a signal handler.
    pub(crate) fn next(&self, from: i32) -> Option<i32> {
        let mut number = usize::try_from(from).ok()?;
        while let Some(page) = self.0.get(number / PAGE_BITS) {
            let Some(words) = page.get() else {
                number = (number / PAGE_BITS + 1) * PAGE_BITS;
                continue;
            };
            let word = words[number % PAGE_BITS / WORD_BITS].load(Ordering::Relaxed);
            let rest = word >> (number % WORD_BITS);
            if rest != 0 {
                return i32::try_from(number + rest.trailing_zeros() as usize).ok();
            }
            number = (number / WORD_BITS + 1) * WORD_BITS;
        }
        None
    }

    /// Inserts a number.
    pub(crate) fn insert(&self, number: i32) {
        let Some((page, word, bit)) = self.place(number) else { return };
        let words = page.get_or_init(|| (0..PAGE_BITS / WORD_BITS).map(|_| AtomicU64::new(0)).collect());
        words[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Removes a number.
    pub(crate) fn remove(&self, number: i32) {
        if let Some((page, word, bit)) = self.place(number)
            && let Some(words) = page.get()
        {
            words[word].fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_are_entered_found_and_taken_out_each_by_itself() {
        let numbers = Numbers::new();
        let all = [(1 << 18) - 1, 1 << 18, (1 << 20) + 63, (1 << 20) + 64, i32::MAX];
        for (at, &number) in all.iter().enumerate() {
            numbers.insert(number);
            assert!(all[..=at].iter().all(|&number| numbers.contains(number)));
            assert!(!all[at + 1..].iter().any(|&number| numbers.contains(number)));
        }
        let found = std::iter::successors(numbers.next(0), |&last| numbers.next(last.checked_add(1)?));
        assert_eq!(found.collect::<Vec<_>>(), all);
        for (at, &number) in all.iter().enumerate() {
            numbers.remove(number);
            assert!(
                !numbers.contains(number) && all[at + 1..].iter().all(|&number| numbers.contains(number))
            );
        }
        assert_eq!(numbers.next(0), None);
        assert!(!numbers.contains(-1));
        numbers.insert(-1);
        assert!(!numbers.contains(-1));
    }
}
