//! Ledger of messages between two applications: each message sent, with its time, and the messages delivered.
//!
//! It measures throughput and delay. It also checks the guarantee of the transport: every message is delivered exactly
//! once, and in the order of its stream if it is ordered. A message is identified by its stream and a counter in the
//! payload protocol identifier.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use tresse_proto::{Instant, Message, Ppid, StreamId};

use crate::error::{DeliveryViolation, RunError};

/// All messages of one sender and its receiver.
#[derive(Debug)]
pub struct Ledger {
    streams: Vec<Stream>,
    /// Messages that were sent and not yet delivered.
    under_way: u64,
    digits: u8,
    /// Bits in which the identifier of a message differs from its number.
    marks: u32,
    /// True once the sender shuts the association down.
    closing: bool,
}

#[derive(Debug, Default)]
struct Stream {
    /// Messages from `first` on that were sent; delivered ones are `None`.
    under_way: VecDeque<Option<Handed>>,
    first: u32,
    accepted: u64,
    delivered: u64,
    report: StreamReport,
}

#[derive(Copy, Clone, Debug)]
struct Handed {
    at: Instant,
    bytes: u32,
}

/// Counts of a stream since the measurement began.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StreamReport {
    /// Messages.
    pub messages: u64,
    /// Bytes of user data.
    pub bytes: u64,
    /// Sum of all delays, in nanoseconds, for an exact mean.
    delay_sum: u128,
    /// Delays in microseconds; allocated with the first delay.
    delays: Option<Box<Histogram<u32>>>,
}

impl Ledger {
    /// A ledger for `streams` streams.
    pub fn new(streams: u16) -> Self {
        let digits = if streams <= FEW_STREAMS { 3 } else { 2 };
        let streams = (0..streams).map(|_| Stream::default()).collect();
        Ledger { streams, under_way: 0, digits, marks: 0, closing: false }
    }

    /// Sets the ledger for a protected association: on its first stream the key management uses identifiers of its own.
    pub fn beside_keys(self) -> Self {
        Ledger { marks: 1 << 31, ..self }
    }

    /// Notes that the sender shuts the association down.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Returns whether the sender shuts the association down, or has done so.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns the identifier for the next message of `stream`.
    pub fn next_ppid(&self, stream: StreamId) -> Ppid {
        let stream = self.streams.get(usize::from(stream.0));
        let number = stream.map_or(0, |stream| stream.first.wrapping_add(stream.under_way.len() as u32));
        Ppid(number ^ self.marks)
    }

    /// Notes that the transport accepted the next message of `stream`.
    pub fn accepted(&mut self, now: Instant, stream: StreamId, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(usize::from(stream.0)) {
            stream.under_way.push_back(Some(Handed { at: now, bytes: bytes as u32 }));
            stream.accepted += 1;
            self.under_way += 1;
        }
    }

    /// Notes that a message was delivered.
    ///
    /// # Errors
    /// A message that should not have been delivered, or not yet.
    pub fn delivered(&mut self, now: Instant, message: &Message) -> Result<(), DeliveryViolation> {
        let id = message.stream.0;
        let (digits, marks) = (self.digits, self.marks);
        let stream = self.streams.get_mut(usize::from(id)).ok_or(DeliveryViolation::NoSuchStream(id))?;
        let number = message.ppid.0 ^ marks;
        let place = number.wrapping_sub(stream.first) as usize;
        let handed = stream.under_way.get_mut(place).and_then(Option::take);
        let Some(handed) = handed else {
            return Err(DeliveryViolation::NotUnderWay { stream: id, message: number });
        };
        if !message.unordered && place != 0 {
            return Err(DeliveryViolation::OutOfOrder {
                stream: id,
                message: number,
                expected: stream.first,
            });
        }
        if message.payload.len() != handed.bytes as usize {
            return Err(DeliveryViolation::Altered { stream: id, message: number });
        }
        while let Some(None) = stream.under_way.front() {
            stream.under_way.pop_front();
            stream.first = stream.first.wrapping_add(1);
        }
        stream.delivered += 1;
        self.under_way -= 1;
        stream.report.add(now.since(handed.at).as_nanos(), handed.bytes, digits);
        Ok(())
    }

    /// Restarts the measurement; messages sent and not delivered yet remain.
    pub fn restart(&mut self) {
        for stream in &mut self.streams {
            stream.report = StreamReport::default();
        }
    }

    /// Returns the counts since the restart, by stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.streams.iter().map(|stream| &stream.report)
    }

    /// Bounds the memory of a run: undelivered messages and the `waiting` ones behind them.
    ///
    /// # Errors
    /// There are more than a run may have.
    pub(super) fn bounded(&self, now: Instant, waiting: u64) -> Result<(), RunError> {
        let messages = self.under_way.saturating_add(waiting);
        if messages > MOST_MESSAGES { Err(RunError::TooManyMessages { at: now, messages }) } else { Ok(()) }
    }

    /// Returns the number of messages ever sent.
    pub fn total_accepted(&self) -> u64 {
        self.streams.iter().map(|stream| stream.accepted).sum()
    }

    /// Returns the number of messages ever delivered.
    pub fn total_delivered(&self) -> u64 {
        self.streams.iter().map(|stream| stream.delivered).sum()
    }
}

impl StreamReport {
    /// Returns the mean delay in milliseconds, exact; `None` before the first message.
    pub fn mean_delay_ms(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.delay_sum as f64 / self.messages as f64 / 1e6)
    }

    /// Returns the delay in milliseconds that `quantile` of the messages did not exceed, from a histogram of three
    /// significant digits (two with more than 1,024 streams).
    pub fn delay_quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.delays.as_ref().map(|delays| delays.value_at_quantile(quantile) as f64 / 1e3)
    }

    fn add(&mut self, delay_nanos: u128, bytes: u32, digits: u8) {
        self.messages += 1;
        self.bytes += u64::from(bytes);
        self.delay_sum += delay_nanos;
        if self.delays.is_none() {
            // Fails only for more than five digits. The histogram grows with the largest delay.
            self.delays = Histogram::new(digits).ok().map(Box::new);
        }
        if let Some(delays) = &mut self.delays {
            let micros = u64::try_from(delay_nanos / 1000).unwrap_or(LONGEST_MICROS);
            // Fails only for a histogram of fixed size.
            let _ = delays.record(micros.min(LONGEST_MICROS));
        }
    }
}

/// Most messages in a run: each takes about 70 bytes here and in the transport, besides its content.
const MOST_MESSAGES: u64 = 1 << 21;
/// Most streams whose delays are kept with three digits (about 40 KiB each); with more streams, two digits (about 6 KiB each).
const FEW_STREAMS: u16 = 1024;
/// Delays above one hour count as one hour in the quantiles.
const LONGEST_MICROS: u64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn millis(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn message(stream: u16, number: u32, unordered: bool) -> Message {
        let mut message = Message::whole(StreamId(stream), Ppid(number), Bytes::from_static(&[0; 10]));
        message.unordered = unordered;
        message
    }

    fn ledger(messages: u32) -> Ledger {
        let mut ledger = Ledger::new(2);
        for number in 0..messages {
            assert_eq!(ledger.next_ppid(StreamId(1)), Ppid(number));
            ledger.accepted(millis(0), StreamId(1), 10);
        }
        ledger
    }

    #[test]
    fn delays_are_measured_from_hand_over_to_delivery() {
        let mut ledger = ledger(4);
        for (number, at) in [(0, 10), (1, 20), (2, 30), (3, 60)] {
            assert_eq!(ledger.delivered(millis(at), &message(1, number, false)), Ok(()));
        }
        let report = ledger.reports().nth(1).expect("two streams");
        assert_eq!((report.messages, report.bytes), (4, 40));
        assert_eq!(report.mean_delay_ms(), Some(30.0));
        let median = report.delay_quantile_ms(0.5).expect("messages came");
        assert!((median - 20.0).abs() < 0.02, "{median}");
        assert_eq!(ledger.reports().next().and_then(StreamReport::mean_delay_ms), None);
    }

    #[test]
    fn a_restart_forgets_what_came_out_but_not_what_is_under_way() {
        let mut ledger = ledger(2);
        assert_eq!(ledger.delivered(millis(10), &message(1, 0, false)), Ok(()));
        ledger.restart();
        assert_eq!(ledger.delivered(millis(20), &message(1, 1, false)), Ok(()));
        assert_eq!(ledger.reports().nth(1).map(|report| report.messages), Some(1));
        assert_eq!((ledger.total_accepted(), ledger.total_delivered()), (2, 2));
    }

    #[test]
    fn breaches_are_noticed() {
        let deliver = |number, unordered| ledger(3).delivered(millis(1), &message(1, number, unordered));
        let expected = DeliveryViolation::OutOfOrder { stream: 1, message: 1, expected: 0 };
        assert_eq!(deliver(1, false), Err(expected));
        assert_eq!(deliver(1, true), Ok(()));
        assert_eq!(deliver(3, true), Err(DeliveryViolation::NotUnderWay { stream: 1, message: 3 }));
        assert_eq!(
            ledger(1).delivered(millis(1), &message(2, 0, false)),
            Err(DeliveryViolation::NoSuchStream(2))
        );
        let mut twice = ledger(2);
        assert_eq!(twice.delivered(millis(1), &message(1, 1, true)), Ok(()));
        let again = twice.delivered(millis(1), &message(1, 1, true));
        assert_eq!(again, Err(DeliveryViolation::NotUnderWay { stream: 1, message: 1 }));
    }

    #[test]
    fn the_counter_wraps() {
        let mut ledger = Ledger::new(1);
        ledger.streams[0].first = u32::MAX;
        for _ in 0..2 {
            ledger.accepted(millis(0), StreamId(0), 10);
        }
        assert_eq!(ledger.delivered(millis(1), &message(0, u32::MAX, false)), Ok(()));
        assert_eq!(ledger.delivered(millis(1), &message(0, 0, false)), Ok(()));
    }
}
