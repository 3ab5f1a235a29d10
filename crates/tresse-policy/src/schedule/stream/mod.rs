//! Stream schedulers: their contract (RFC 8260 §3).
//!
//! The core owns the queues, cuts the fragments and keeps messages of a stream in order; a scheduler
//! owns only the order among streams.

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

/// End of its stream's queue that a message was put at.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Behind what waits already: a new message.
    Tail,
    /// Before it: a message that was put back.
    Head,
}

/// A message was queued.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Queued {
    /// On this stream.
    pub stream: StreamId,
    /// Its length.
    pub bytes: usize,
    /// True if the stream had nothing to send before.
    pub was_idle: bool,
    /// End of the queue that it was put at.
    pub place: Place,
    /// Time at which the application gave it.
    pub at: Instant,
}

impl Queued {
    /// A new message behind others of its stream.
    #[inline]
    pub const fn new(stream: StreamId, bytes: usize, at: Instant) -> Self {
        Queued { stream, bytes, was_idle: false, place: Place::Tail, at }
    }
}

/// Data of a stream went into a packet.
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
    /// The end of a message, behind which others of its stream wait.
    #[inline]
    pub const fn new(stream: StreamId, bytes: usize) -> Self {
        Taken { stream, bytes, message_done: true, turn_over: true, stream_empty: false }
    }
}

/// A message that had not been sent was withdrawn, because it expired for instance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Removed {
    /// The stream.
    pub stream: StreamId,
    /// Bytes of it that were still to be sent.
    pub bytes: usize,
    /// Number of messages of the stream that were waiting before it.
    pub ahead: usize,
    /// True if the stream has nothing left to send.
    pub stream_empty: bool,
}

impl Removed {
    /// The first message of a stream that has others.
    pub const fn new(stream: StreamId, bytes: usize) -> Self {
        Removed { stream, bytes, ahead: 0, stream_empty: false }
    }
}

/// Data that waits on each stream; a stream that was never used has none.
pub trait Backlog {
    /// Bytes not yet sent.
    fn unsent_bytes(&self, stream: StreamId) -> usize;
    /// Messages not yet sent, or not to their end.
    fn messages(&self, stream: StreamId) -> usize;
    /// Bytes not yet sent of the first of them.
    fn head_bytes(&self, stream: StreamId) -> usize;
}

/// Orders the streams of an association, or of one group of its streams.
///
/// Each call should cost no more than O(log streams): there may be 65,535 of them. A scheduler that
/// breaks the contract can delay data, but neither lose nor reorder it.
pub trait StreamScheduler: Send {
    /// A message was queued.
    fn on_queued(&mut self, queued: Queued);

    /// The stream whose data is to leave next on `path`; `None` for nothing on this path now.
    ///
    /// Asked again before anything else was told, it gives the same answer. Without interleaving it
    /// is not asked in the middle of a message: that continues (RFC 9260 §6.9).
    fn next(&mut self, path: &PathView, backlog: &dyn Backlog) -> Option<StreamId>;

    /// Data was taken: mostly what [`next`](Self::next) named, or the continuation of a message.
    fn on_taken(&mut self, taken: Taken);

    /// A message was withdrawn. Unless a scheduler says otherwise, that counts as taken when it empties
    /// the stream, and else as nothing.
    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            let Removed { stream, bytes, .. } = removed;
            self.on_taken(Taken { stream, bytes, message_done: true, turn_over: true, stream_empty: true });
        }
    }

    /// A packet is complete; what is taken next goes into another one.
    fn on_packet_end(&mut self) {}

    /// Returns whether no stream has data.
    fn is_empty(&self) -> bool;

    /// Sets the value of a stream: a priority or weight, whatever the scheduler makes of it
    /// (RFC 8260 §4.3.3).
    ///
    /// # Errors
    /// In the scheduler's own words; schedulers without such values refuse all.
    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let _ = (stream, value);
        Err("streams have no values with this scheduler".to_owned())
    }

    /// The value of a stream, where there are such values.
    fn value(&self, stream: StreamId) -> Option<u16> {
        let _ = stream;
        None
    }

    /// Reason for which the scheduler cannot go on, in its own words, once that is so. Asked when [`next`](Self::next)
    /// names no stream: the scheduler is replaced then. For schedulers that run code which can fail.
    fn failure(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests;
