//! What has come of a load, counted where it arrives and read where it is shown.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::message::Got;

/// What has come so far.
#[derive(Default)]
pub(super) struct Tally(Mutex<Count>);

#[derive(Copy, Clone, Default)]
struct Count {
    messages: u64,
    bytes: u64,
    /// When the first and the latest byte came.
    times: Option<(Instant, Instant)>,
}

impl Tally {
    /// `bytes` more came, and with them the end of a message or not.
    pub(super) fn add(&self, bytes: u64, completes: bool) {
        let now = Instant::now();
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.messages += u64::from(completes);
        count.bytes += bytes;
        count.times = Some((count.times.map_or(now, |(first, _)| first), now));
    }

    /// All of it.
    pub(super) fn got(&self) -> Got {
        let Count { messages, bytes, times } = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = times.map_or(0.0, |(first, latest)| (latest - first).as_secs_f64());
        Got { messages, bytes, seconds }
    }
}
