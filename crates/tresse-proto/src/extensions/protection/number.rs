//! Record numbers from their 16 lowest bits (RFC 9147 §4.2.2), where paths of unlike delay share one number space.
//!
//! The first number to try is the one closest to the expected number of the path: as far behind the highest number as the last
//! record of this path was. If the record cannot be decrypted with it, numbers further back are tried, 65,536 apart. Because a
//! forged record costs all these attempts, each path has a small budget of failed searches; valid records restore it.

use super::window::BITS;

/// Distance of numbers with the same 16 lowest bits.
const WRAP: u64 = 1 << 16;

/// Budget of failed searches of a path.
const SEARCHES: u8 = 8;

/// Number of decrypted records that restore one failed search.
const OPENED_FOR_A_SEARCH: u32 = 1024;

/// Returns the number with these 16 lowest bits that is closest to `expected`.
#[inline]
pub(super) fn closest(low: u16, expected: u64) -> u64 {
    let number = (expected & !(WRAP - 1)) | u64::from(low);
    if number > expected && number - expected > WRAP / 2 && number >= WRAP {
        number - WRAP
    } else if number < expected && expected - number >= WRAP / 2 && number <= u64::MAX - WRAP {
        number + WRAP
    } else {
        number
    }
}

/// State of one path.
#[derive(Copy, Clone, Debug)]
struct NumberHistory {
    /// Distance of its last decrypted record from the highest number.
    behind: u64,
    searches: u8,
}

const NEW_PATH: NumberHistory = NumberHistory { behind: 0, searches: SEARCHES };

/// States of the paths, by position.
#[derive(Debug, Default)]
pub(super) struct NumberHistories {
    paths: Vec<NumberHistory>,
    opened: u32,
}

impl NumberHistories {
    #[inline]
    fn of(&self, path: usize) -> NumberHistory {
        self.paths.get(path).copied().unwrap_or(NEW_PATH)
    }

    fn change(&mut self, path: usize) -> &mut NumberHistory {
        if self.paths.len() <= path {
            self.paths.resize(path + 1, NEW_PATH);
        }
        &mut self.paths[path]
    }

    /// Returns the number to try first for a record on `path`; `next` is one more than the highest decrypted number.
    #[inline]
    pub(super) fn first(&self, path: usize, low: u16, next: u64) -> u64 {
        closest(low, next.saturating_sub(self.of(path).behind))
    }

    /// Returns the numbers to try if `first` fails; none if too many searches have failed.
    pub(super) fn others(
        &self,
        path: usize,
        low: u16,
        next: u64,
        first: u64,
    ) -> impl Iterator<Item = u64> + use<> {
        let nearest = closest(low, next);
        let count = if self.of(path).searches > 0 { BITS / WRAP + 1 } else { 0 };
        (0..count)
            .map_while(move |wraps| nearest.checked_sub(wraps * WRAP))
            .filter(move |&number| number != first)
    }

    /// Records that a record on `path` was decrypted with `number`, with or without a search.
    #[inline]
    pub(super) fn on_opened(&mut self, path: usize, number: u64, next: u64, searched: bool) {
        let behind = next.saturating_sub(number.saturating_add(1));
        if searched || self.of(path).behind != behind {
            let history = self.change(path);
            history.behind = behind;
            if searched {
                history.searches = SEARCHES;
            }
        }
        self.opened += 1;
        if self.opened >= OPENED_FOR_A_SEARCH {
            self.opened = 0;
            for history in &mut self.paths {
                history.searches = SEARCHES.min(history.searches + 1);
            }
        }
    }

    /// Records that a search for a record on `path` failed.
    pub(super) fn on_search_failed(&mut self, path: usize) {
        let history = self.change(path);
        history.searches = history.searches.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_number_is_taken() {
        for (low, expected, number) in [
            (0, 0, 0),
            (0xFFFF, 0, 0xFFFF),
            (5, 3, 5),
            (0xFFFF, 0x1_0000, 0xFFFF),
            (0, 0xFFFF, 0x1_0000),
            (2, 65_538, 65_538),
            (0x8000, 0x1_0000, 0x1_8000),
            (0x8001, 0x1_0000, 0x8001),
            (0x7FFF, 0x1_0000, 0x1_7FFF),
            (0, u64::MAX, !0xFFFF),
        ] {
            assert_eq!(closest(low, expected), number, "{low:#x} near {expected:#x}");
        }
    }

    #[test]
    fn a_number_is_known_up_to_half_the_distance() {
        for number in [0_u64, 1, 65_535, 65_536, 1 << 40] {
            for distance in [0, 1, 32_767] {
                assert_eq!(closest(number as u16, number + distance), number);
            }
            for distance in [1, 32_768] {
                assert_eq!(closest((number + distance) as u16, number), number + distance);
            }
        }
    }

    #[test]
    fn a_path_that_lags_is_expected_to_lag() {
        let mut histories = NumberHistories::default();
        let next = 1_000_000_u64;
        let late = next - 268_000;
        assert_ne!(histories.first(1, late as u16, next), late);
        let found = histories.others(1, late as u16, next, histories.first(1, late as u16, next));
        assert_eq!(found.filter(|&number| number == late).count(), 1);
        histories.on_opened(1, late, next, true);
        assert_eq!(histories.first(1, (late + 40) as u16, next + 50), late + 40);
        assert_eq!(histories.first(0, next as u16, next), next, "the other path goes by itself");
    }

    #[test]
    fn forgeries_use_up_the_searches_and_records_that_open_give_them_back() {
        let mut histories = NumberHistories::default();
        for _ in 0..SEARCHES {
            assert!(histories.others(0, 7, 1 << 20, 0).count() > 1);
            histories.on_search_failed(0);
        }
        assert_eq!(histories.others(0, 7, 1 << 20, 0).count(), 0);
        for number in 0..u64::from(OPENED_FOR_A_SEARCH) {
            histories.on_opened(1, number, number, false);
        }
        assert!(histories.others(0, 7, 1 << 20, 0).count() > 1);
        histories.on_search_failed(0);
        assert_eq!(histories.others(0, 7, 1 << 20, 0).count(), 0);
    }
}
