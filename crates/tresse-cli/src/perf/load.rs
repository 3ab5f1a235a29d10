//! Sender of a load: messages at the requested rate, or as fast as the transport accepts them.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout_at};
use tresse::host::Load as ProcessorTime;
use tresse::{Association, Reliability, SendOptions, StreamId};

use super::clock::unix_nanos;
use super::message::{DATA, Load, Processor, SenderReport, Until, class_of};
use super::streams::Turns;
use super::tally::Tally;
use crate::call::put;
use crate::failure::Failure;
use crate::report::paths::{PathsReport, Side, Snapshot};

impl Load {
    /// Sends the whole load, and counts it in `tally`. The report has the state of the association at the end of the load, before the
    /// last messages have arrived.
    ///
    /// # Errors
    /// The association ended.
    pub(super) async fn send(
        &self,
        association: &Association,
        tally: &Tally,
    ) -> Result<SenderReport, Failure> {
        let longest = self.per_stream.iter().map(|one| one.message_bytes).max().unwrap_or(self.message_bytes);
        let mut turns = Turns::new(self);
        let mut data: Vec<_> = (0..self.streams).map(|_| Messages::new(longest as usize)).collect();
        for (stream, one) in (1..).map(StreamId).zip(&self.per_stream) {
            let class = class_of(&one.class).map_err(Failure::usage)?;
            association.set_stream_class(stream, class).map_err(Failure::running)?;
        }
        let begin = Instant::now();
        let counts = begin + Duration::from_secs_f64(self.omit_seconds);
        let end = match self.until {
            Until::Seconds(seconds) => Some(counts + Duration::from_secs_f64(seconds)),
            Until::Bytes(_) => None,
        };
        let mut since = Base::take(association);
        let mut omitting = counts > begin;
        let (mut messages, mut bytes) = (0, 0);
        loop {
            // The clock is read only once for each message: short messages leave every hundred nanoseconds.
            let mut now = Instant::now();
            let Some((at, most, due)) = turns.next(now - begin) else { break };
            let Some(len) = self.next_len(bytes, most) else { break };
            let due = begin + self.due(bytes).max(due);
            if end.is_some_and(|end| due.max(now) >= end) {
                break;
            }
            if due > now {
                sleep_until(due).await;
                now = Instant::now();
            }
            if omitting && now >= counts {
                (omitting, since) = (false, Base::take(association));
            }
            let stream = StreamId(1 + at as u16);
            // Messages still queued at the end do not count, and would delay the reports behind them. So their lifetime ends then.
            let reliability = end.map_or(Reliability::Full, |end| Reliability::Lifetime(end - now));
            let unordered = self.unordered;
            let options = SendOptions::on(stream).with(|o| {
                o.ppid = DATA;
                o.unordered = unordered;
                o.reliability = reliability;
            });
            let sending = put(association, options, data[at].next(now, len));
            match end {
                Some(end) => match timeout_at(end, sending).await {
                    Ok(outcome) => outcome?,
                    Err(_) => break,
                },
                None => sending.await?,
            }
            turns.on_sent(at, len);
            tally.handed_over(stream, len as u64);
            messages += 1;
            bytes += len as u64;
        }
        let paths = Snapshot::take(association).since(&since.snapshot);
        let paths = PathsReport::new(&paths, Side::Sender, since.at.elapsed());
        Ok(SenderReport { messages, bytes, processor: Processor::since(since.processor), paths })
    }

    /// Returns the length of the message after `bytes`, on a stream with messages of `most` bytes; `None` at the end of the load.
    fn next_len(&self, bytes: u64, most: u32) -> Option<usize> {
        let left = match self.until {
            Until::Seconds(_) => u64::MAX,
            Until::Bytes(all) => all.saturating_sub(bytes),
        };
        (left > 0).then(|| left.min(most.into()) as usize)
    }

    /// Returns the time after the beginning at which the message after `bytes` may leave.
    fn due(&self, bytes: u64) -> Duration {
        let rate = self.bits_per_second.filter(|rate| *rate > 0);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64))
    }
}

/// Counters at the beginning of a sender's report.
struct Base {
    at: Instant,
    snapshot: Snapshot,
    processor: Option<ProcessorTime>,
}

impl Base {
    fn take(association: &Association) -> Self {
        Base { at: Instant::now(), snapshot: Snapshot::take(association), processor: ProcessorTime::now() }
    }
}

/// Generator of messages. From time to time a message begins with a time stamp; the others begin with zeros.
struct Messages {
    plain: Bytes,
    stamped: Option<Instant>,
}

impl Messages {
    fn new(len: usize) -> Self {
        let mut plain = vec![FILLING; len];
        plain.iter_mut().take(STAMP).for_each(|byte| *byte = 0);
        Messages { plain: plain.into(), stamped: None }
    }

    /// Returns the next message, of `len` bytes, at the time `now`.
    fn next(&mut self, now: Instant, len: usize) -> Bytes {
        let recently = self.stamped.is_some_and(|at| now - at < BETWEEN_STAMPS);
        if len < STAMP || recently {
            return self.plain.slice(..len);
        }
        self.stamped = Some(now);
        let mut message = self.plain[..len].to_vec();
        message[..STAMP].copy_from_slice(&unix_nanos().to_be_bytes());
        message.into()
    }
}

/// Returns the delay of a message that begins with `head`, in nanoseconds by the clocks of both hosts; `None` without a time stamp.
pub(super) fn delay(head: &[u8]) -> Option<i64> {
    let stamp = u64::from_be_bytes(head.get(..STAMP)?.try_into().ok()?);
    (stamp > 0).then(|| unix_nanos().wrapping_sub(stamp) as i64)
}

/// Length of a time stamp, in bytes.
const STAMP: usize = 8;
/// Time between two time stamps, each of which costs a copy of the message.
const BETWEEN_STAMPS: Duration = Duration::from_millis(1);
/// Byte of which data consists.
const FILLING: u8 = 0x5a;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_what_is_left() {
        let load = Load {
            until: Until::Bytes(2500),
            message_bytes: 1000,
            streams: 1,
            unordered: false,
            bits_per_second: Some(8000),
            omit_seconds: 0.0,
            per_stream: Vec::new(),
        };
        assert_eq!(
            [0, 1000, 2000, 2500].map(|sent| load.next_len(sent, 1000)),
            [Some(1000), Some(1000), Some(500), None]
        );
        assert_eq!(load.due(1500), Duration::from_millis(1500));
    }

    #[test]
    fn one_message_in_a_while_says_when_it_left() {
        let mut messages = Messages::new(100);
        let now = Instant::now();
        let (first, second) = (messages.next(now, 100), messages.next(now, 50));
        assert!(delay(&first).is_some_and(|nanos| (0..60_000_000_000).contains(&nanos)));
        assert_eq!((second.len(), first[99]), (50, FILLING));
        assert_eq!(delay(&messages.plain), None);
        assert_eq!(delay(&first[..7]), None, "too short for one");
        assert_eq!(messages.next(now, 3).len(), 3);
    }
}
