//! Counters of a load, written where it arrives and read where it is shown.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tresse::StreamId;
use tresse::host::Load as ProcessorTime;

use super::delays::Delays;
use super::message::{Processor, ReceiverReport, StreamReceived};

/// Data that has come so far.
pub(super) struct Tally {
    /// Time after the first byte whose data does not count.
    omit: Duration,
    /// True if streams are told apart.
    by_stream: bool,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    /// All bytes, and when the first one came.
    all: u64,
    began: Option<Instant>,
    messages: u64,
    bytes: u64,
    /// Times at which the first and the latest byte came that count.
    times: Option<(Instant, Instant)>,
    delays: Delays,
    streams: BTreeMap<u16, StreamCount>,
    /// Bytes of each stream that were handed to the transport here, and that came, whether they count or not.
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
    /// `omit` after the first byte do not count; `by_stream` says whether streams are told apart.
    pub(super) fn new(omit: Duration, by_stream: bool) -> Self {
        Tally { omit, by_stream, count: Mutex::default() }
    }

    /// `bytes` more came on `stream`, and with them the end of a message or not; `delay` is how long it took, in nanoseconds.
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

    /// `bytes` more were handed to the transport on `stream`.
    pub(super) fn handed_over(&self, stream: StreamId, bytes: u64) {
        self.lock().carried.entry(stream.0).or_default().0 += bytes;
    }

    /// Bytes by stream: handed to the transport here, and come.
    pub(super) fn carried(&self) -> BTreeMap<u16, (u64, u64)> {
        self.lock().carried.clone()
    }

    /// All that counts.
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
            // The peer need not keep to the streams that it asked for.
            streams: count.streams.iter().take(MOST_STREAMS).map(|(id, stream)| (*id, of(stream))).collect(),
        }
    }

    /// Bytes, whether they count or not.
    pub(super) fn all_bytes(&self) -> u64 {
        self.lock().all
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Streams that an account tells apart.
const MOST_STREAMS: usize = 64;
