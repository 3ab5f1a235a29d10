//! One outgoing stream: its queue of messages, the next sequence numbers, and the progress of its first message.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tresse_policy::Instant;
use tresse_wire::{DataFlags, Fsn, Mid, Ppid, StreamId};

use super::terms_queue::TermsQueue;
use crate::fragment::{CutFragment, Fragment};
use crate::interface::reliability::DeliveryTerms;

/// A message that waits to be sent. A buffer full of short messages consists mostly of these, so fields that few messages need
/// are kept apart: the smaller they are, the more of them the cache holds.
#[derive(Debug)]
pub(super) struct WaitingMessage {
    pub(super) data: Bytes,
    pub(super) ppid: Ppid,
    pub(super) unordered: bool,
    /// True if the SACK for its last fragment is requested at once (I bit, RFC 7053).
    pub(super) immediate: bool,
    /// Time at which the application sent it.
    pub(super) at: Instant,
}

/// A message that was removed from the queue, or the rest of one.
#[derive(Debug)]
pub(super) struct RemovedMessage {
    /// Bytes that were not cut.
    pub(super) rest: Bytes,
    /// True if a part was cut before.
    pub(super) begun: bool,
    /// Number of messages before it in the queue.
    pub(super) ahead: usize,
}

/// A queued message, or the part of one that was not cut.
#[derive(Debug)]
pub(super) struct QueuedMessage<'a> {
    pub(super) waiting: &'a WaitingMessage,
    pub(super) rest: Bytes,
    /// MID of the message, if a part was cut before.
    pub(super) begun: Option<Mid>,
    pub(super) terms: Option<&'a Arc<DeliveryTerms>>,
}

/// The queue of one stream.
#[derive(Debug, Default)]
pub(super) struct OutStream {
    queue: VecDeque<WaitingMessage>,
    /// Delivery terms of queued messages that have some; allocated with the first.
    terms_queue: Option<Box<TermsQueue>>,
    /// Number of ordered messages that were cut completely; it is the MID of the next one.
    next_ordered: Mid,
    next_unordered: Mid,
    /// Number of fragments that were cut off the first message.
    next_fragment: Fsn,
    /// Bytes that were cut off the first message.
    begun: usize,
    unsent: usize,
}

impl OutStream {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn messages(&self) -> usize {
        self.queue.len()
    }

    /// Returns the bytes not yet cut.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Returns the bytes of the first message not yet cut.
    pub(super) fn head_bytes(&self) -> usize {
        self.queue.front().map_or(0, |waiting| waiting.data.len() - self.begun)
    }

    /// Returns for every message in order the bytes not yet cut, and the time at which the application sent it.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, Instant)> {
        let begun = std::iter::once(self.begun).chain(std::iter::repeat(0));
        self.queue.iter().zip(begun).map(|(waiting, begun)| (waiting.data.len() - begun, waiting.at))
    }

    /// Returns the waiting messages in order: the part of each that was not cut, and the MID if a part was cut before.
    pub(super) fn left(&self) -> impl Iterator<Item = QueuedMessage<'_>> {
        let terms = self.terms_queue.as_deref();
        self.queue.iter().enumerate().map(move |(place, waiting)| {
            let begun = if place == 0 { self.begun } else { 0 };
            let next = if waiting.unordered { self.next_unordered } else { self.next_ordered };
            QueuedMessage {
                waiting,
                rest: waiting.data.slice(begun..),
                begun: (begun > 0).then_some(next),
                terms: terms.and_then(|terms| terms.at(place)),
            }
        })
    }

    /// Queues a message; `terms` is present for a message with partial reliability or with a context.
    // Always: otherwise the message is copied through memory once more.
    #[inline(always)]
    pub(super) fn push(&mut self, waiting: WaitingMessage, terms: Option<Arc<DeliveryTerms>>) {
        if let Some(terms) = terms {
            self.terms_queue.get_or_insert_default().push(self.queue.len(), terms);
        }
        self.unsent += waiting.data.len();
        self.queue.push_back(waiting);
    }

    /// Restarts the numbers at 0. No message may have been begun.
    pub(super) fn reset(&mut self) {
        self.next_ordered = Mid(0);
        self.next_unordered = Mid(0);
    }

    /// Starts the numbers at `first`. No message may have been begun.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn begin_at(&mut self, first: Mid) {
        self.next_ordered = first;
        self.next_unordered = first;
    }

    /// Returns whether no message was begun since the last reset, if there was one.
    pub(super) fn is_at_start(&self) -> bool {
        self.next_ordered == Mid(0) && self.next_unordered == Mid(0) && self.begun == 0
    }

    /// Returns whether the first message is ordered and was begun: until its end, the next number is its own.
    pub(super) fn has_begun_ordered(&self) -> bool {
        self.begun > 0 && self.queue.front().is_some_and(|waiting| !waiting.unordered)
    }

    /// Returns the next number of ordered messages and uses it up, for a message that is not in this queue.
    pub(super) fn take_number(&mut self) -> Mid {
        let number = self.next_ordered;
        self.next_ordered = number.next();
        number
    }

    /// Cuts the next fragment of the first message, of at most `room` bytes.
    // Always: otherwise the fragment is copied through memory for every chunk.
    #[inline(always)]
    pub(super) fn cut(&mut self, stream: StreamId, room: usize) -> Option<CutFragment> {
        if self.head_bytes() <= room { self.take_rest(stream) } else { self.cut_off(stream, room) }
    }

    /// Takes the first message, or the rest of it.
    #[inline(always)]
    fn take_rest(&mut self, stream: StreamId) -> Option<CutFragment> {
        let WaitingMessage { data: mut payload, ppid, unordered, immediate, .. } = self.queue.pop_front()?;
        let terms = self.terms_queue.as_deref_mut().and_then(TermsQueue::pop_front);
        let begun = std::mem::take(&mut self.begun);
        let fsn = std::mem::take(&mut self.next_fragment);
        let next = if unordered { &mut self.next_unordered } else { &mut self.next_ordered };
        let mid = *next;
        *next = mid.next();
        payload.advance(begun);
        self.unsent -= payload.len();
        let flags = DataFlags { beginning: begun == 0, ending: true, unordered, immediate };
        Some(CutFragment {
            fragment: Fragment { stream, mid, fsn, ppid, flags: flags.into(), payload },
            terms,
        })
    }

    /// Cuts `len` bytes off the first message, which is longer.
    #[inline(always)]
    fn cut_off(&mut self, stream: StreamId, len: usize) -> Option<CutFragment> {
        let waiting = self.queue.front()?;
        let (ppid, unordered) = (waiting.ppid, waiting.unordered);
        let terms = self.terms_queue.as_deref().and_then(TermsQueue::front).cloned();
        let payload = waiting.data.slice(self.begun..self.begun + len);
        let mid = if unordered { self.next_unordered } else { self.next_ordered };
        let fsn = self.next_fragment;
        let flags = DataFlags { beginning: self.begun == 0, ending: false, unordered, immediate: false };
        self.begun += len;
        self.next_fragment = fsn.next();
        self.unsent -= len;
        Some(CutFragment {
            fragment: Fragment { stream, mid, fsn, ppid, flags: flags.into(), payload },
            terms,
        })
    }

    /// Removes the message `number`, or the rest of it; `None` if it has no delivery terms or is not queued.
    pub(super) fn take_out(&mut self, number: u64) -> Option<RemovedMessage> {
        let ahead = self.terms_queue.as_deref_mut()?.take_out(number)?;
        let begun = ahead == 0 && self.begun > 0;
        let waiting = self.queue.remove(ahead)?;
        let mut rest = waiting.data;
        if begun {
            rest.advance(std::mem::take(&mut self.begun));
            // The fragments that were already sent have this number.
            let next = if waiting.unordered { &mut self.next_unordered } else { &mut self.next_ordered };
            *next = next.next();
            self.next_fragment = Fsn(0);
        }
        self.unsent -= rest.len();
        Some(RemovedMessage { rest, begun, ahead })
    }
}
