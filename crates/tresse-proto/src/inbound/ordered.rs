//! Order within streams: messages that came early wait for those before them.
//!
//! Owns the next expected SSN of every stream and the messages that wait. Refuses to know fragments:
//! a message comes here when it is complete.

use std::collections::BTreeMap;
use std::ops::Range;

use tresse_wire::{Ssn, StreamId};

use super::Acceptance;
use crate::event::Message;
use crate::reconfiguration::Streams;
use crate::stream_table::StreamTable;

/// The order of all streams.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    streams: StreamTable<InStream>,
    /// Messages that came before their turn, by stream and unwrapped SSN.
    waiting: BTreeMap<(StreamId, u64), Waiting>,
    /// Streams of which nothing is known have delivered nothing above this index.
    base: u64,
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

    /// Whether `ssn` is the one that `stream` expects next.
    pub(super) fn is_next(&self, stream: StreamId, ssn: Ssn) -> bool {
        self.streams.get(stream).map_or(Ssn(0), InStream::next_ssn) == ssn
    }

    /// Lets streams begin anew at SSN 0, but for those whose last message has an index from `epoch` on: they
    /// have begun anew already. What still waited for messages before it is delivered: they can come no more.
    pub(super) fn reset(
        &mut self,
        streams: &Streams,
        epoch: u64,
        mut deliver: impl FnMut(Range<u64>, Message),
    ) {
        match streams {
            Streams::All => {
                for waiting in std::mem::take(&mut self.waiting).into_values() {
                    deliver(waiting.indices, waiting.message);
                }
                // Forgotten streams expect SSN 0, and cost the next reset nothing.
                self.base = self.base.max(epoch.saturating_sub(1));
                for (id, stream) in std::mem::take(&mut self.streams).iter() {
                    if stream.delivered_to >= epoch {
                        let InStream { next, delivered_to, .. } = *stream;
                        *self.streams.entry(id) = InStream { next, delivered_to, waiting: 0 };
                    }
                }
            }
            Streams::These(streams) => {
                for &id in streams {
                    self.reset_one(id, epoch, &mut deliver);
                }
            }
        }
    }

    fn reset_one(&mut self, id: StreamId, epoch: u64, deliver: &mut impl FnMut(Range<u64>, Message)) {
        // A stream that was never used expects SSN 0 anyway.
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.delivered_to < epoch) else {
            return;
        };
        while stream.waiting > 0
            && let Some((&key, _)) = self.waiting.range((id, 0)..=(id, u64::MAX)).next()
            && let Some(released) = self.waiting.remove(&key)
        {
            stream.waiting -= 1;
            deliver(released.indices, released.message);
        }
        stream.next = 0;
    }

    /// The messages that wait.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.waiting.values().map(|waiting| &waiting.message)
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
        if ahead >= indices.start.saturating_sub(stream.delivered_to.max(self.base)) {
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
