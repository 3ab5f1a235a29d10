//! One outgoing stream: its queue of messages, the next sequence numbers, and the progress of its first message.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tresse_policy::Instant;
use tresse_wire::{DataFlags, Fsn, Mid, Ppid, StreamId};

use super::terms_queue::TermsQueue;
use crate::fragment::{CutFragment, Fragment};
use crate::interface::reliability::DeliveryTerms;

/// A message that waits to be sent. A buffer full of short messages is mostly made of these, so what few messages have
/// is kept apart: the smaller they are, the more of them the cache holds.
#[derive(Debug)]
pub(super) struct WaitingMessage {
    pub(super) data: Bytes,
    pub(super) ppid: Ppid,
    pub(super) unordered: bool,
    /// The report on its end is wanted at once (RFC 7053).
    pub(super) immediate: bool,
    /// Time at which the application gave it.
    pub(super) at: Instant,
}

/// A message that was taken out of the queue, or what was left of it.
#[derive(Debug)]
pub(super) struct RemovedMessage {
    /// Bytes that were not cut.
    pub(super) rest: Bytes,
    /// True if some of it was cut before.
    pub(super) begun: bool,
    /// Messages that stood before it.
    pub(super) ahead: usize,
}

/// A message, or what was not cut of it.
#[derive(Debug)]
pub(super) struct QueuedMessage<'a> {
    pub(super) waiting: &'a WaitingMessage,
    pub(super) rest: Bytes,
    /// Its number, if some of it was cut before.
    pub(super) begun: Option<Mid>,
    pub(super) terms: Option<&'a Arc<DeliveryTerms>>,
}

/// The queue of one stream.
#[derive(Debug, Default)]
pub(super) struct OutStream {
    queue: VecDeque<WaitingMessage>,
    /// The messages of the queue that need not arrive; made with the first.
    terms_queue: Option<Box<TermsQueue>>,
    /// Ordered messages sent to their end; the next one has this number.
    next_ordered: Mid,
    next_unordered: Mid,
    /// Pieces of the first message that were already cut off.
    next_fragment: Fsn,
    /// Bytes of the first message that were already cut off.
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

    /// Bytes not yet cut.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Bytes of the first message not yet cut.
    pub(super) fn head_bytes(&self) -> usize {
        self.queue.front().map_or(0, |waiting| waiting.data.len() - self.begun)
    }

    /// Bytes not yet cut of every message, in order, and when the application gave it.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, Instant)> {
        let begun = std::iter::once(self.begun).chain(std::iter::repeat(0));
        self.queue.iter().zip(begun).map(|(waiting, begun)| (waiting.data.len() - begun, waiting.at))
    }

    /// Messages that wait, first one first: what was not cut of each, and whether some of it was cut before.
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

    /// Queues a message; `terms` is of one that need not arrive.
    // Always: otherwise the message is copied through memory once more.
    #[inline(always)]
    pub(super) fn push(&mut self, waiting: WaitingMessage, terms: Option<Arc<DeliveryTerms>>) {
        if let Some(terms) = terms {
            self.terms_queue.get_or_insert_default().push(self.queue.len(), terms);
        }
        self.unsent += waiting.data.len();
        self.queue.push_back(waiting);
    }

    /// The next message is numbered 0. Nothing may be begun.
    pub(super) fn reset(&mut self) {
        self.next_ordered = Mid(0);
        self.next_unordered = Mid(0);
    }

    /// The next message is numbered `first`. Nothing may be begun.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn begin_at(&mut self, first: Mid) {
        self.next_ordered = first;
        self.next_unordered = first;
    }

    /// Returns whether no message was begun, since the last reset if there was one.
    pub(super) fn is_at_start(&self) -> bool {
        self.next_ordered == Mid(0) && self.next_unordered == Mid(0) && self.begun == 0
    }

    /// Returns whether the first message was begun and is ordered: until its end the next number is its own.
    pub(super) fn has_begun_ordered(&self) -> bool {
        self.begun > 0 && self.queue.front().is_some_and(|waiting| !waiting.unordered)
    }

    /// Takes the next number of ordered messages, for one that is not in this queue.
    pub(super) fn take_number(&mut self) -> Mid {
        let number = self.next_ordered;
        self.next_ordered = number.next();
        number
    }

    /// Cuts the next piece of the first message, of at most `room` bytes.
    // Always: otherwise the fragment is copied through memory for every chunk.
    #[inline(always)]
    pub(super) fn cut(&mut self, stream: StreamId, room: usize) -> Option<CutFragment> {
        if self.head_bytes() <= room { self.take_rest(stream) } else { self.cut_off(stream, room) }
    }

    /// Takes the first message, or what is left of it.
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

    /// Takes out the message `number`, or what is left of it.
    pub(super) fn take_out(&mut self, number: u64) -> Option<RemovedMessage> {
        let ahead = self.terms_queue.as_deref_mut()?.take_out(number)?;
        let begun = ahead == 0 && self.begun > 0;
        let waiting = self.queue.remove(ahead)?;
        let mut rest = waiting.data;
        if begun {
            rest.advance(std::mem::take(&mut self.begun));
            // Its fragments under way have this number.
            let next = if waiting.unordered { &mut self.next_unordered } else { &mut self.next_ordered };
            *next = next.next();
            self.next_fragment = Fsn(0);
        }
        self.unsent -= rest.len();
        Some(RemovedMessage { rest, begun, ahead })
    }
}
