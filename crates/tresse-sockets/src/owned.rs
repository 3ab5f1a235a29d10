//! Numbers of the descriptors in the table, as bits that are read without a lock.
//!
//! A library that stands in front of the C library asks for every call of a program whether its descriptor is one of ours, also in
//! a signal handler: that may have interrupted a thread which holds the lock of the table, or which is in the middle of `malloc`. So
//! the question neither takes a lock nor allocates.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of so many numbers in a row, allocated when the first of them is entered.
type Page = OnceLock<Box<[AtomicU64]>>;

static PAGES: [Page; PAGE_COUNT] = [const { OnceLock::new() }; PAGE_COUNT];

const PAGE_BITS: usize = 1 << 18;
/// Enough for every number that an `int` has.
const PAGE_COUNT: usize = (1 << 31) / PAGE_BITS;
const WORD_BITS: usize = u64::BITS as usize;

/// Page of a number, and the word and the bit in it.
fn place(number: i32) -> Option<(&'static Page, usize, u64)> {
    let number = usize::try_from(number).ok()?;
    let within = number % PAGE_BITS;
    Some((PAGES.get(number / PAGE_BITS)?, within / WORD_BITS, 1 << (within % WORD_BITS)))
}

/// Returns whether the number is one of ours. Safe in a signal handler.
pub(crate) fn contains(number: i32) -> bool {
    let word = place(number).and_then(|(page, word, bit)| Some((page.get()?.get(word)?, bit)));
    word.is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Enters a number. Whoever calls this holds the table for changes.
pub(crate) fn insert(number: i32) {
    let Some((page, word, bit)) = place(number) else { return };
    let words = page.get_or_init(|| (0..PAGE_BITS / WORD_BITS).map(|_| AtomicU64::new(0)).collect());
    words[word].fetch_or(bit, Ordering::Relaxed);
}

/// Takes a number out.
pub(crate) fn remove(number: i32) {
    if let Some((page, word, bit)) = place(number)
        && let Some(words) = page.get()
    {
        words[word].fetch_and(!bit, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_are_entered_and_taken_out_each_by_itself() {
        let all = [(1 << 18) - 1, 1 << 18, (1 << 20) + 63, (1 << 20) + 64, i32::MAX];
        for (at, &number) in all.iter().enumerate() {
            insert(number);
            assert!(all[..=at].iter().all(|&number| contains(number)));
            assert!(!all[at + 1..].iter().any(|&number| contains(number)));
        }
        for (at, &number) in all.iter().enumerate() {
            remove(number);
            assert!(!contains(number) && all[at + 1..].iter().all(|&number| contains(number)));
        }
        assert!(!contains(-1));
        insert(-1);
        assert!(!contains(-1));
    }
}
