//! Streams that are being reset, and streams that are added (RFC 6525).
//!
//! Owns the messages kept back until their streams' new numbers are agreed, in the order in which the
//! application sent them. Independent of requests and answers.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::StreamTable;
#[cfg(any(test, feature = "invariants"))]
use tresse_wire::Mid;
use tresse_wire::StreamId;

use super::Outbound;
use super::keys::Apart;
use super::stream::{OutStream, WaitingMessage};
use crate::interface::reconfiguration::Streams;
use crate::interface::reliability::DeliveryTerms;

/// The cause of a [`Hold`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum HoldReason {
    /// The streams are about to be numbered anew. Messages of the key management wait, too.
    Renumbering,
    /// There are no keys yet. Messages of the key management leave.
    Keys,
}

/// Streams that give out no message numbers for now (RFC 6525 §5.1.2 A1).
#[derive(Debug)]
pub(super) struct StreamHold {
    streams: Streams,
    pub(super) reason: HoldReason,
    messages: VecDeque<HeldMessage>,
    bytes: usize,
    bytes_on: StreamTable<usize>,
}

/// A message that is kept back.
#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) stream: StreamId,
    /// Grows from message to message.
    pub(super) number: u64,
    pub(super) message: WaitingMessage,
    /// For a message that need not arrive.
    pub(super) terms: Option<Arc<DeliveryTerms>>,
}

impl StreamHold {
    fn new(streams: Streams, reason: HoldReason) -> Self {
        StreamHold { streams, reason, messages: VecDeque::new(), bytes: 0, bytes_on: StreamTable::default() }
    }

    /// Returns whether messages for `stream` wait.
    pub(super) fn holds(&self, stream: StreamId) -> bool {
        self.streams.contains(stream)
    }

    /// Keeps a message back.
    pub(super) fn keep(&mut self, held: HeldMessage) {
        self.bytes += held.message.data.len();
        *self.bytes_on.entry(held.stream) += held.message.data.len();
        self.messages.push_back(held);
    }

    /// Takes out the message `number`.
    pub(super) fn take_out(&mut self, number: u64) -> Option<Bytes> {
        let place = self.messages.binary_search_by_key(&number, |held| held.number).ok()?;
        let HeldMessage { stream, message, .. } = self.messages.remove(place)?;
        self.bytes -= message.data.len();
        *self.bytes_on.entry(stream) -= message.data.len();
        Some(message.data)
    }

    /// The messages kept back.
    pub(super) fn messages(&self) -> impl Iterator<Item = &HeldMessage> {
        self.messages.iter()
    }

    /// Bytes kept back on `stream`.
    pub(super) fn bytes_on(&self, stream: StreamId) -> usize {
        self.bytes_on.get(stream).copied().unwrap_or_default()
    }
}

impl Outbound {
    /// The hold, if anything may be held, to change it.
    #[inline]
    pub(super) fn holding_mut(&mut self) -> Option<&mut StreamHold> {
        self.apart.as_deref_mut().and_then(|apart| apart.hold.as_mut())
    }

    /// From now on messages for these streams wait; those queued before are still sent.
    pub(crate) fn hold(&mut self, streams: Streams, reason: HoldReason) {
        self.apart.get_or_insert_default().hold = Some(StreamHold::new(streams, reason));
    }

    /// Returns whether messages of some streams wait for new numbers.
    #[cfg(feature = "invariants")]
    pub(crate) fn is_holding(&self) -> bool {
        self.apart.as_deref().and_then(Apart::holding).is_some()
    }

    /// Returns whether everything that was queued on the held streams before is sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.apart
            .as_deref()
            .and_then(Apart::holding)
            .is_none_or(|hold| self.has_sent(&hold.streams, hold.bytes))
    }

    /// Returns whether everything that is queued on these streams is sent: a hold on them would begin drained.
    pub(crate) fn has_sent_all_of(&self, streams: &Streams) -> bool {
        self.has_sent(streams, 0)
    }

    /// The same but for `held` bytes, which wait for the streams' new numbers, and for key messages that were not begun: they
    /// do so, too.
    fn has_sent(&self, streams: &Streams, held: usize) -> bool {
        let apart = self.apart.as_deref();
        if apart.is_some_and(|apart| apart.has_begun_keys(streams)) {
            return false;
        }
        match streams {
            Streams::All => self.buffer.unsent() == held + apart.map_or(0, Apart::key_bytes),
            Streams::These(streams) => {
                streams.iter().all(|&stream| self.queues.streams.get(stream).is_none_or(OutStream::is_empty))
            }
        }
    }

    /// Messages go on as ever, those that waited first.
    pub(crate) fn resume(&mut self) {
        let Some(hold) = self.apart.as_mut().and_then(|apart| apart.hold.take()) else { return };
        for held in hold.messages {
            self.enqueue(held);
        }
    }

    /// The next messages of these streams are numbered from 0.
    pub(crate) fn reset(&mut self, streams: &Streams) {
        match streams {
            Streams::All => self.queues.streams.iter_mut().for_each(OutStream::reset),
            Streams::These(streams) => streams.iter().for_each(|&stream| {
                // One that was never used has nothing to forget.
                if let Some(state) = self.queues.streams.get_mut(stream) {
                    state.reset();
                }
            }),
        }
    }

    /// The first messages of all streams that there are have this number instead of 0; none was queued yet.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn begin_at(&mut self, first: Mid) {
        (0..self.stream_count).for_each(|stream| self.queues.streams.entry(StreamId(stream)).begin_at(first));
    }

    /// Returns whether no message of `stream` has been begun.
    pub(crate) fn is_at_start(&self, stream: StreamId) -> bool {
        self.queues.streams.get(stream).is_none_or(OutStream::is_at_start)
    }

    /// There are `count` streams more, numbered after those there are. Their values are those that the
    /// scheduler's configuration has for them.
    pub(crate) fn add_streams(&mut self, count: u16) {
        self.stream_count = self.stream_count.saturating_add(count);
    }
}
