//! Comparison of the clocks of two hosts, by one exchange over the network.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns this host's clock, in nanoseconds since 1970.
pub(super) fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Offset of the peer's clock from this host's.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Offset {
    /// Time by which the peer's clock is ahead, in milliseconds.
    pub(super) ahead_ms: f64,
    /// Largest error of that, in milliseconds.
    pub(super) error_ms: f64,
}

/// A question for the peer's clock, with the time at which it was asked.
pub(super) struct Question {
    asked: Instant,
    here: u64,
}

impl Question {
    pub(super) fn new() -> Self {
        Question { asked: Instant::now(), here: unix_nanos() }
    }

    /// Returns the offset. The peer read its clock as `there`, between the question and now.
    pub(super) fn answered(&self, there: u64) -> Offset {
        self.answered_after(there, self.asked.elapsed())
    }

    fn answered_after(&self, there: u64, elapsed: Duration) -> Offset {
        let error_ms = elapsed.as_secs_f64() * 1e3 / 2.0;
        Offset { ahead_ms: (i128::from(there) - i128::from(self.here)) as f64 / 1e6 - error_ms, error_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_for_one_of_half_the_time() {
        let question = Question { asked: Instant::now(), here: 5_000_000_000 };
        let offset = question.answered_after(5_007_000_000, Duration::from_millis(4));
        assert_eq!(offset, Offset { ahead_ms: 5.0, error_ms: 2.0 });
    }
}
