//! Stream schedulers: their trait and its arguments (RFC 8260 §3).
//!
//! The core owns the queues, cuts the fragments and keeps messages of a stream in order; a scheduler decides only the
//! order among streams.

mod blocks;
mod fair_bandwidth;
mod fair_queue;
mod first_come;
mod list;
mod priority;
mod round_robin;
mod round_robin_packet;
mod set;
mod slots;
mod values;
mod weighted_fair;

use tresse_wire::StreamId;

use super::path::PathView;
use crate::time::Instant;

pub(super) use fair_bandwidth::FairBandwidth;
pub(super) use first_come::FirstCome;
pub(super) use priority::Priority;
pub(super) use round_robin::RoundRobin;
pub(super) use round_robin_packet::RoundRobinPacket;
pub(super) use weighted_fair::WeightedFair;

/// A message that was queued, behind all others of its stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Queued {
    /// Its stream.
    pub stream: StreamId,
    /// Its length, bytes of user data.
    pub bytes: usize,
    /// True if the stream had nothing to send before.
    pub was_idle: bool,
    /// Time at which the application sent it.
    pub at: Instant,
}

impl Queued {
    /// A message of a stream that has other messages.
    pub const fn new(stream: StreamId, bytes: usize, at: Instant) -> Self {
        Queued { stream, bytes, was_idle: false, at }
    }
}

/// Data of a stream that was put into a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Taken {
    /// The stream.
    pub stream: StreamId,
    /// Bytes of user data taken.
    pub bytes: usize,
    /// True if this was the end of a message.
    pub message_done: bool,
    /// True if another stream may be served now: the message ended, or fragments of messages are interleaved (RFC
    /// 8260).
    pub turn_over: bool,
    /// True if the stream has nothing left to send.
    pub stream_empty: bool,
}

impl Taken {
    /// The end of a message of a stream that has more to send.
    pub const fn new(stream: StreamId, bytes: usize) -> Self {
        Taken { stream, bytes, message_done: true, turn_over: true, stream_empty: false }
    }
}

/// A message that was withdrawn before it was sent, because it expired for instance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Removed {
    /// The stream.
    pub stream: StreamId,
    /// Bytes of the message that were still to be sent.
    pub bytes: usize,
    /// Number of messages of the stream that were waiting before it.
    pub ahead: usize,
    /// True if the stream has nothing left to send.
    pub stream_empty: bool,
}

impl Removed {
    /// The first message of a stream that has other messages.
    pub const fn new(stream: StreamId, bytes: usize) -> Self {
        Removed { stream, bytes, ahead: 0, stream_empty: false }
    }
}

/// Data waiting on each stream; a stream that was never used has none.
pub trait Backlog {
    /// Returns the bytes of user data not yet sent.
    fn unsent_bytes(&self, stream: StreamId) -> usize;
    /// Returns the number of messages that were not sent completely.
    fn messages(&self, stream: StreamId) -> usize;
    /// Returns the bytes not yet sent of the first of these messages.
    fn head_bytes(&self, stream: StreamId) -> usize;
}

/// Scheduler that selects the stream of the next data, among the streams of an association or of one group of them.
///
/// Each call should cost no more than O(log streams): there may be 65,535 of them. A scheduler that violates the
/// contract of its methods can delay data, but neither lose it nor reorder the messages of a stream.
pub trait StreamScheduler: Send {
    /// A message was queued.
    fn on_queued(&mut self, queued: Queued);

    /// Selects the stream whose data leaves next on `path`; `None` if no stream is to use this path now.
    ///
    /// If it is called again before any other method, it must give the same answer. Without interleaving (RFC 8260) it
    /// is not called in the middle of a message, whose fragments have consecutive TSNs (RFC 9260 §6.9).
    fn next(&mut self, path: &PathView, backlog: &dyn Backlog) -> Option<StreamId>;

    /// Data of a stream was put into a packet: usually of the stream that [`next`](Self::next) selected, or the
    /// continuation of a message.
    fn on_taken(&mut self, taken: Taken);

    /// A message was withdrawn. The default calls [`on_taken`](Self::on_taken) if the stream has nothing left to send,
    /// and does nothing otherwise.
    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            let Removed { stream, bytes, .. } = removed;
            self.on_taken(Taken { stream, bytes, message_done: true, turn_over: true, stream_empty: true });
        }
    }

    /// A packet is complete; the next data is put into another one.
    fn on_packet_end(&mut self) {}

    /// Returns whether no stream has data.
    fn is_empty(&self) -> bool;

    /// Sets the value of a stream, whose meaning the scheduler defines: a priority or a weight (RFC 8260 §4.3.3).
    ///
    /// # Errors
    /// The scheduler's reason to refuse the value. Schedulers without values refuse all.
    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let _ = (stream, value);
        Err("streams have no values with this scheduler".to_owned())
    }

    /// Returns the value of a stream; `None` if the scheduler has no values.
    fn value(&self, stream: StreamId) -> Option<u16> {
        let _ = stream;
        None
    }

    /// Returns the reason for which the scheduler cannot continue, if there is one. The core calls this method when [`next`](Self::next)
    /// selects no stream, and then replaces the scheduler by `first_come`. For schedulers that run code that can fail.
    fn failure(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests;
