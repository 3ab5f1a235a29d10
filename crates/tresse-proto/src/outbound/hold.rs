//! Streams that are being reset, and streams that are added (RFC 6525).
//!
//! Owns the messages that are held until the new numbers of their streams are agreed, in the order in which the application
//! sent them. Independent of requests and responses.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::StreamTable;
#[cfg(any(test, feature = "invariants"))]
use tresse_wire::Mid;
use tresse_wire::StreamId;

use super::Outbound;
use super::stream::{OutStream, WaitingMessage};
use crate::interface::reconfiguration::Streams;
use crate::interface::reliability::DeliveryTerms;

/// The reason for a [`StreamHold`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum HoldReason {
    /// The streams are about to be renumbered. Messages of the key management wait, too.
    Renumbering,
    /// There are no keys yet. Messages of the key management are sent.
    Keys,
}

/// A hold on streams, which assign no message numbers for now (RFC 6525 §5.1.2 A1).
#[derive(Debug)]
pub(super) struct StreamHold {
    streams: Streams,
    pub(super) reason: HoldReason,
    messages: VecDeque<HeldMessage>,
    bytes: usize,
    bytes_on: StreamTable<usize>,
}

/// A held message.
#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) stream: StreamId,
    /// Number of the message in the association; it increases from message to message.
    pub(super) number: u64,
    pub(super) message: WaitingMessage,
    /// Delivery terms, if the message has partial reliability or a context.
    pub(super) terms: Option<Arc<DeliveryTerms>>,
}

impl StreamHold {
    fn new(streams: Streams, reason: HoldReason) -> Self {
        StreamHold { streams, reason, messages: VecDeque::new(), bytes: 0, bytes_on: StreamTable::default() }
    }

    /// Returns whether messages for `stream` are held.
    pub(super) fn holds(&self, stream: StreamId) -> bool {
        self.streams.contains(stream)
    }

    /// Holds a message.
    pub(super) fn keep(&mut self, held: HeldMessage) {
        self.bytes += held.message.data.len();
        *self.bytes_on.entry(held.stream) += held.message.data.len();
        self.messages.push_back(held);
    }

    /// Removes the message `number` and returns its data.
    pub(super) fn take_out(&mut self, number: u64) -> Option<Bytes> {
        let place = self.messages.binary_search_by_key(&number, |held| held.number).ok()?;
        let HeldMessage { stream, message, .. } = self.messages.remove(place)?;
        self.bytes -= message.data.len();
        *self.bytes_on.entry(stream) -= message.data.len();
        Some(message.data)
    }

    /// Returns the held messages.
    pub(super) fn messages(&self) -> impl Iterator<Item = &HeldMessage> {
        self.messages.iter()
    }

    /// Returns the bytes held on `stream`.
    pub(super) fn bytes_on(&self, stream: StreamId) -> usize {
        self.bytes_on.get(stream).copied().unwrap_or_default()
    }
}

impl Outbound {
    /// Returns the hold for a change, if there is one.
    #[inline]
    pub(super) fn holding_mut(&mut self) -> Option<&mut StreamHold> {
        self.apart.as_deref_mut().and_then(|apart| apart.hold.as_mut())
    }

    /// Holds messages for these streams from now on; messages queued before are still sent.
    pub(crate) fn hold(&mut self, streams: Streams, reason: HoldReason) {
        self.apart.get_or_insert_default().hold = Some(StreamHold::new(streams, reason));
    }

    /// Returns whether messages of some streams are held.
    #[cfg(feature = "invariants")]
    pub(crate) fn is_holding(&self) -> bool {
        self.apart.as_deref().and_then(|apart| apart.holding()).is_some()
    }

    /// Returns whether everything that was queued on the held streams before the hold has been sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.apart
            .as_deref()
            .and_then(|apart| apart.holding())
            .is_none_or(|hold| self.has_sent(&hold.streams, hold.bytes))
    }

    /// Returns whether everything that is queued on these streams has been sent: a hold on them would be drained from the
    /// start.
    pub(crate) fn has_sent_all_of(&self, streams: &Streams) -> bool {
        self.has_sent(streams, 0)
    }

    /// Returns the same, not counting `held` bytes and key messages that were not begun: both wait for the new numbers.
    fn has_sent(&self, streams: &Streams, held: usize) -> bool {
        let apart = self.apart.as_deref();
        if apart.is_some_and(|apart| apart.has_begun_keys(streams)) {
            return false;
        }
        match streams {
            Streams::All => self.buffer.unsent() == held + apart.map_or(0, |apart| apart.key_bytes()),
            Streams::These(streams) => {
                streams.iter().all(|&stream| self.queues.streams.get(stream).is_none_or(OutStream::is_empty))
            }
        }
    }

    /// Ends the hold, and queues the held messages first.
    pub(crate) fn resume(&mut self) {
        let Some(hold) = self.apart.as_mut().and_then(|apart| apart.hold.take()) else { return };
        for held in hold.messages {
            self.enqueue(held);
        }
    }

    /// Restarts the message numbers of these streams at 0.
    pub(crate) fn reset(&mut self, streams: &Streams) {
        match streams {
            Streams::All => self.queues.streams.iter_mut().for_each(OutStream::reset),
            Streams::These(streams) => streams.iter().for_each(|&stream| {
                // A stream that was never used has nothing to reset.
                if let Some(state) = self.queues.streams.get_mut(stream) {
                    state.reset();
                }
            }),
        }
    }

    /// Starts the message numbers of all streams at `first` instead of 0; no message may have been queued.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn begin_at(&mut self, first: Mid) {
        (0..self.stream_count).for_each(|stream| self.queues.streams.entry(StreamId(stream)).begin_at(first));
    }

    /// Returns whether no message of `stream` has been begun.
    pub(crate) fn is_at_start(&self, stream: StreamId) -> bool {
        self.queues.streams.get(stream).is_none_or(OutStream::is_at_start)
    }

    /// Adds `count` streams, numbered after the present ones. Their values are those in the scheduler's configuration.
    pub(crate) fn add_streams(&mut self, count: u16) {
        self.stream_count = self.stream_count.saturating_add(count);
    }
}
