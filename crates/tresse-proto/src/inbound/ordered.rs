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
        if stream.waiting > 0 {
            self.release(id, deliver);
        }
        Ok(Acceptance::Ready)
    }

    /// The messages of a stream up to `number` will not come: whoever waits goes without them. Calls `deliver`
    /// as [`Self::place`] does; a number that was passed long ago changes nothing.
    pub(super) fn skip(&mut self, id: StreamId, number: u32, mut deliver: impl FnMut(Range<u64>, Message)) {
        let stream = self.streams.entry(id);
        let ahead = Ssn(number as u16).distance_from(stream.next_ssn());
        if ahead > u16::MAX / 2 {
            return;
        }
        let beyond = stream.next + u64::from(ahead) + 1;
        while stream.waiting > 0
            && let Some((&key, _)) = self.waiting.range((id, stream.next)..(id, beyond)).next()
            && let Some(early) = self.waiting.remove(&key)
        {
            stream.waiting -= 1;
            stream.next = key.1;
            stream.advance(&early.indices);
            deliver(early.indices, early.message);
        }
        stream.next = beyond;
        self.release(id, deliver);
    }

    /// Calls `deliver` for the messages whose turn it is.
    #[inline]
    fn release(&mut self, id: StreamId, mut deliver: impl FnMut(Range<u64>, Message)) {
        let stream = self.streams.entry(id);
        while stream.waiting > 0
            && let Some(released) = self.waiting.remove(&(id, stream.next))
        {
            stream.waiting -= 1;
            stream.advance(&released.indices);
            deliver(released.indices, released.message);
        }
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tresse_wire::Ppid;

    use super::*;
    use crate::event::Payload;

    #[test]
    fn a_stream_knows_how_many_wait() {
        let mut ordered = Ordered::default();
        let mut delivered = Vec::new();
        for (index, expected) in [(4, 1), (2, 2), (1, 1), (3, 0)] {
            let message = Message {
                stream: StreamId(5),
                ssn: Ssn(index as u16 - 1),
                ppid: Ppid(0),
                unordered: false,
                payload: Payload::Whole(Bytes::new()),
            };
            let placed = ordered.place(index..index + 1, message, |indices, _| delivered.push(indices.start));
            assert!(placed.is_ok());
            assert_eq!(ordered.streams.get(StreamId(5)).map(|stream| stream.waiting), Some(expected));
            assert_eq!(ordered.waiting.len(), expected as usize);
        }
        assert_eq!(delivered, [1, 2, 3, 4]);
    }
}
