//! Counters of a load, which the code that receives data writes and the display reads.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tresse::StreamId;
use tresse::host::Load as ProcessorTime;

use super::delays::Delays;
use super::message::{Processor, ReceiverReport, StreamReceived};

/// Counters of the data received so far.
pub(super) struct Tally {
    /// Time after the first byte in which data does not count.
    omit: Duration,
    /// True if streams are counted separately.
    by_stream: bool,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    /// All bytes, and the time at which the first one arrived.
    all: u64,
    began: Option<Instant>,
    messages: u64,
    bytes: u64,
    /// Times at which the first and the latest byte that count arrived.
    times: Option<(Instant, Instant)>,
    delays: Delays,
    streams: BTreeMap<u16, StreamCount>,
    /// Bytes of each stream that this side passed to the transport, and that arrived, whether they count or not.
    carried: BTreeMap<u16, (u64, u64)>,
    processor: Option<ProcessorTime>,
}

#[derive(Default)]
struct StreamCount {
    messages: u64,
    bytes: u64,
    delays: Delays,
}

impl Tally {
    /// Creates a tally. Data that arrives within `omit` after the first byte does not count. `by_stream` is true if streams are counted
    /// separately.
    pub(super) fn new(omit: Duration, by_stream: bool) -> Self {
        Tally { omit, by_stream, count: Mutex::default() }
    }

    /// Counts `bytes` that arrived on `stream`. `completes` is true if they end a message; `delay` is that of the message, in
    /// nanoseconds.
    pub(super) fn add(&self, stream: StreamId, bytes: u64, completes: bool, delay: Option<i64>) {
        let now = Instant::now();
        let mut count = self.lock();
        count.all += bytes;
        count.carried.entry(stream.0).or_default().1 += bytes;
        let began = *count.began.get_or_insert(now);
        if now - began < self.omit {
            return;
        }
        if count.times.is_none() {
            count.processor = ProcessorTime::now();
        }
        count.messages += u64::from(completes);
        count.bytes += bytes;
        count.times = Some((count.times.map_or(now, |(first, _)| first), now));
        if let Some(delay) = delay {
            count.delays.add(delay);
        }
        if self.by_stream {
            let stream = count.streams.entry(stream.0).or_default();
            stream.messages += u64::from(completes);
            stream.bytes += bytes;
            delay.into_iter().for_each(|delay| stream.delays.add(delay));
        }
    }

    /// Counts `bytes` that were passed to the transport on `stream`.
    pub(super) fn handed_over(&self, stream: StreamId, bytes: u64) {
        self.lock().carried.entry(stream.0).or_default().0 += bytes;
    }

    /// Returns the bytes of each stream: those passed to the transport by this side, and those that arrived.
    pub(super) fn carried(&self) -> BTreeMap<u16, (u64, u64)> {
        self.lock().carried.clone()
    }

    /// Returns the report on all data that counts.
    pub(super) fn got(&self) -> ReceiverReport {
        let count = self.lock();
        let seconds = count.times.map_or(0.0, |(first, latest)| (latest - first).as_secs_f64());
        let processor = Processor::since(count.processor);
        let of = |stream: &StreamCount| StreamReceived {
            messages: stream.messages,
            bytes: stream.bytes,
            delay: stream.delays.read(),
        };
        ReceiverReport {
            messages: count.messages,
            bytes: count.bytes,
            seconds,
            delay: count.delays.read(),
            processor,
            // The peer may use more streams than it requested.
            streams: count.streams.iter().take(MOST_STREAMS).map(|(id, stream)| (*id, of(stream))).collect(),
        }
    }

    /// Returns all bytes received, whether they count or not.
    pub(super) fn all_bytes(&self) -> u64 {
        self.lock().all
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most streams in a report.
const MOST_STREAMS: usize = 64;
