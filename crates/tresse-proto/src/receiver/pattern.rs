//! Pattern of arriving data: over several paths at once, and so fast and steadily that one SACK acknowledges a batch of packets.
//!
//! RFC 9260 §6.2 asks for a SACK after every second packet at least. A sender in slow start needs that, because each SACK adds a
//! packet to its window (§7.2.1), and so does one with a window of a few packets. Otherwise the SACKs of a fast path cost
//! both hosts more than they tell. A receiver cannot see windows, so it observes what they do: in slow start the rate grows
//! from second to second, and behind a window smaller than a batch the batch is not filled in time.

use std::time::Duration;

use tresse_policy::{Instant, PathId};

use crate::collections::LazyState;

/// Pattern of arriving data.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    pub(super) concurrency: Concurrency,
    pub(super) bulk: Bulk,
}

impl LazyState for Pattern {
    const INITIAL: &Self = &Pattern { concurrency: Concurrency::INITIAL, bulk: Bulk::INITIAL };
}

/// Arrival of new data over more than one path, as with CMT.
#[derive(Debug)]
pub(super) struct Concurrency {
    /// Path of the latest new data; `at` is its time of arrival.
    path: PathId,
    at: Instant,
    /// Time until which data of another path counts as recent.
    until: Instant,
}

impl Default for Concurrency {
    fn default() -> Self {
        Concurrency::INITIAL
    }
}

impl Concurrency {
    const INITIAL: Self = Concurrency { path: PathId(0), at: Instant::FAR_FUTURE, until: Instant::ZERO };

    /// Processes new data that came over `path`.
    pub(super) fn on_data(&mut self, now: Instant, path: PathId) {
        if self.path != path {
            if self.at < Instant::FAR_FUTURE {
                self.until = self.at + CONCURRENT_FOR;
            }
            self.path = path;
        }
        self.at = now;
    }

    /// Returns whether new data has come over more than one path lately.
    pub(super) fn is_in_use(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// Rate of arriving packets, and the batch that the next report acknowledges.
#[derive(Debug)]
pub(super) struct Bulk {
    /// Beginning of the interval, and the packets with DATA that were reported in it.
    since: Instant,
    packets: u32,
    /// Packets in the interval before.
    before: u32,
    /// True if batches are used.
    steady: bool,
    /// Time at which the batch ends.
    ends: Instant,
}

impl Default for Bulk {
    fn default() -> Self {
        Bulk::INITIAL
    }
}

impl Bulk {
    const INITIAL: Self =
        Bulk { since: Instant::ZERO, packets: 0, before: 0, steady: false, ends: Instant::ZERO };

    /// Begins a batch of up to `batch` packets, with the first packet since the last report.
    pub(super) fn begin(&mut self, now: Instant, batch: u32) {
        self.ends = now + BATCH_TIME;
        let elapsed = now.since(self.since);
        if elapsed < INTERVAL {
            return;
        }
        let fast = f64::from(self.packets) >= f64::from(batch) * elapsed.div_duration_f64(BATCH_TIME);
        self.steady = fast && self.packets <= self.before + self.before / MOST_GROWTH;
        self.before = if elapsed < 2 * INTERVAL { self.packets } else { 0 };
        (self.since, self.packets) = (now, 0);
    }

    /// Counts the packets of a report.
    pub(super) fn on_reported(&mut self, packets: u32) {
        self.packets = self.packets.saturating_add(packets);
    }

    /// Returns the time until which the report of `packets` packets waits for the rest of a batch of `batch` packets; `None` if
    /// it does not wait. If the time has passed, the batch was not filled.
    pub(super) fn waits_until(&mut self, now: Instant, packets: u32, batch: u32) -> Option<Instant> {
        if !self.steady || packets >= batch {
            return None;
        }
        if now >= self.ends {
            self.stop();
            return None;
        }
        Some(self.ends)
    }

    /// Ends the use of batches in this interval, because one was not filled in time.
    pub(super) fn stop(&mut self) {
        self.steady = false;
    }
}

/// Time for which data of one path explains gaps in the data of another: RTO.Min (RFC 9260 §16). The sender counts data that a
/// path has not delivered by then as lost.
const CONCURRENT_FOR: Duration = Duration::from_secs(1);
/// Longest time between the first and the last packet of a batch.
const BATCH_TIME: Duration = Duration::from_millis(1);
/// Interval over which packets are counted: longer than most round trips, so that slow start is seen as growth.
const INTERVAL: Duration = Duration::from_secs(1);
/// Data is steady if its rate has grown by no more than this fraction (1/4) of the rate before.
const MOST_GROWTH: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: u32 = 8;

    /// Data that arrives at equal intervals.
    struct Arriving {
        bulk: Bulk,
        now: Instant,
        waiting: u32,
    }

    impl Arriving {
        fn new() -> Self {
            Arriving { bulk: Bulk::default(), now: Instant::ZERO, waiting: 0 }
        }

        /// Lets packets arrive for `millis`, one each `gap_us`. Returns how many of them found a report that waits for its batch.
        fn run(&mut self, millis: u64, gap_us: u64) -> usize {
            let mut waited = 0;
            for _ in 0..millis * 1000 / gap_us {
                self.now += Duration::from_micros(gap_us);
                self.waiting += 1;
                if self.waiting == 1 {
                    self.bulk.begin(self.now, BATCH);
                }
                match self.bulk.waits_until(self.now, self.waiting, BATCH) {
                    Some(_) => waited += 1,
                    None => self.bulk.on_reported(std::mem::take(&mut self.waiting)),
                }
            }
            waited
        }
    }

    #[test]
    fn steady_data_is_reported_in_batches_after_two_seconds() {
        let mut arriving = Arriving::new();
        assert_eq!(arriving.run(1999, 100), 0);
        let waited = arriving.run(8000, 100);
        assert!((69_900..=70_100).contains(&waited), "{waited} of 80,000: seven of eight packets");
    }

    #[test]
    fn data_that_would_not_fill_a_batch_in_time_is_not() {
        assert_eq!(Arriving::new().run(10_000, 130), 0);
    }

    #[test]
    fn data_that_comes_faster_each_second_may_be_in_slow_start() {
        let mut arriving = Arriving::new();
        for gap_us in [100, 70, 50, 35, 25, 18, 12] {
            assert_eq!(arriving.run(1000, gap_us), 0, "{gap_us}");
        }
        arriving.run(1000, 12);
        assert!(arriving.run(1000, 12) > 70_000);
    }

    #[test]
    fn a_batch_that_is_not_filled_in_time_is_the_last_of_its_second() {
        let mut arriving = Arriving::new();
        arriving.run(2500, 100);
        assert!(arriving.run(10, 100) > 80);
        // Half a batch, then nothing for 2 ms.
        arriving.run(1, 250);
        arriving.now += Duration::from_millis(2);
        assert_eq!(arriving.run(400, 100), 0);
        arriving.run(1000, 100);
        assert!(arriving.run(10, 100) > 80);
    }

    #[test]
    fn after_a_pause_data_has_to_be_steady_for_two_seconds_again() {
        let mut arriving = Arriving::new();
        arriving.run(3000, 100);
        arriving.now += 3 * INTERVAL;
        assert_eq!(arriving.run(1900, 100), 0);
        assert!(arriving.run(1000, 100) > 7000);
    }
}
