//! Order within streams: messages that came early wait for those before them.
//!
//! Owns the next expected SSN of every stream and the messages that wait. Refuses to know fragments:
//! a message comes here when it is complete.

use std::collections::BTreeMap;
use std::ops::Range;

use tresse_wire::{Ssn, StreamId};

use super::Acceptance;
use crate::event::Message;
use crate::stream_table::StreamTable;

/// The order of all streams.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    streams: StreamTable<InStream>,
    /// Messages that came before their turn, by stream and unwrapped SSN.
    waiting: BTreeMap<(StreamId, u64), Waiting>,
}

/// One stream.
#[derive(Debug, Default)]
struct InStream {
    /// The SSN expected next, unwrapped: its low 16 bits are the SSN.
    next: u64,
    /// The last index of the message before that.
    delivered_to: u64,
    /// Messages of this stream that wait.
    waiting: u32,
}

#[derive(Debug)]
struct Waiting {
    indices: Range<u64>,
    message: Message,
}

impl Ordered {
    /// Puts a complete message with `indices` in its place. `deliver` is called for it if it is its turn,
    /// and then for those that it was holding up, in order.
    ///
    /// # Errors
    /// What is wrong with its SSN; the message is dropped.
    #[inline]
    pub(super) fn place(
        &mut self,
        indices: Range<u64>,
        message: Message,
        mut deliver: impl FnMut(Range<u64>, Message),
    ) -> Result<Acceptance, &'static str> {
        let id = message.stream;
        let stream = self.streams.entry(id);
        let ahead = u64::from(message.ssn.distance_from(stream.next_ssn()));
        if ahead > 0 {
            return self.hold(indices, message, ahead);
        }
        stream.advance(&indices);
        deliver(indices, message);
        while stream.waiting > 0
            && let Some(released) = self.waiting.remove(&(id, stream.next))
        {
            stream.waiting -= 1;
            stream.advance(&released.indices);
            deliver(released.indices, released.message);
        }
        Ok(Acceptance::Ready)
    }

    /// Keeps a message that is `ahead` messages early.
    fn hold(
        &mut self,
        indices: Range<u64>,
        message: Message,
        ahead: u64,
    ) -> Result<Acceptance, &'static str> {
        let id = message.stream;
        let stream = self.streams.entry(id);
        // SSNs wrap, so an old one looks like one far ahead. But each message in between has at least one
        // TSN between the last delivered message and this one.
        if ahead >= indices.start.saturating_sub(stream.delivered_to) {
            return Err("SSN of a message that was delivered before, or too far ahead for its TSN");
        }
        let key = (id, stream.next + ahead);
        if self.waiting.contains_key(&key) {
            return Err("two messages with the same SSN");
        }
        stream.waiting += 1;
        self.waiting.insert(key, Waiting { indices, message });
        Ok(Acceptance::Held)
    }
}

impl InStream {
    fn next_ssn(&self) -> Ssn {
        Ssn(self.next as u16)
    }

    /// The next message of the stream, with `indices`, is delivered.
    fn advance(&mut self, indices: &Range<u64>) {
        self.next += 1;
        self.delivered_to = indices.end.saturating_sub(1);
    }
}
