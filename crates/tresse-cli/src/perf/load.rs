//! A sender's work: messages of one length, as fast as the transport takes them or as was asked for.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout_at};
use tresse::{Association, SendOptions, StreamId};

use super::message::{DATA, Load, Sent, Until};
use crate::call::put;
use crate::failure::Failure;
use crate::report::paths::{PathsReport, Side, Snapshot};

impl Load {
    /// Sends all of it. What comes back is the state of the association when the load ended, before its last
    /// messages have arrived.
    ///
    /// # Errors
    /// The association ended.
    pub(super) async fn send(&self, association: &Association) -> Result<Sent, Failure> {
        let message = Bytes::from(vec![FILLING; self.message_bytes as usize]);
        let begin = Instant::now();
        let end = match self.until {
            Until::Seconds(seconds) => Some(begin + Duration::from_secs_f64(seconds)),
            Until::Bytes(_) => None,
        };
        let (mut messages, mut bytes) = (0, 0);
        while let Some(len) = self.next_len(bytes) {
            let due = begin + self.due(bytes);
            if end.is_some_and(|end| due.max(Instant::now()) >= end) {
                break;
            }
            sleep_until(due).await;
            let stream = StreamId(1 + (messages % u64::from(self.streams)) as u16);
            let options = SendOptions { ppid: DATA, unordered: self.unordered, ..SendOptions::on(stream) };
            let sending = put(association, options, message.slice(..len));
            match end {
                Some(end) => match timeout_at(end, sending).await {
                    Ok(outcome) => outcome?,
                    Err(_) => break,
                },
                None => sending.await?,
            }
            messages += 1;
            bytes += len as u64;
        }
        let paths = PathsReport::new(&Snapshot::take(association), Side::Sender, begin.elapsed());
        Ok(Sent { messages, bytes, paths })
    }

    /// The length of the message after `bytes` of them.
    fn next_len(&self, bytes: u64) -> Option<usize> {
        let left = match self.until {
            Until::Seconds(_) => u64::MAX,
            Until::Bytes(all) => all.saturating_sub(bytes),
        };
        (left > 0).then(|| left.min(self.message_bytes.into()) as usize)
    }

    /// When the message after `bytes` of them may leave.
    fn due(&self, bytes: u64) -> Duration {
        let rate = self.bits_per_second.filter(|rate| *rate > 0);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64))
    }
}

/// What data consists of.
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
        };
        assert_eq!(
            [0, 1000, 2000, 2500].map(|sent| load.next_len(sent)),
            [Some(1000), Some(1000), Some(500), None]
        );
        assert_eq!(load.due(1500), Duration::from_millis(1500));
    }
}
