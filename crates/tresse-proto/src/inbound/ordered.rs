//! Order within streams: messages that arrived early wait for those before them.
//!
//! Owns the next expected number of every stream and the messages that wait. Independent of fragments: it gets complete
//! messages.

use std::collections::BTreeMap;

use tresse_policy::StreamTable;
use tresse_wire::StreamId;

use super::indices::Indices;
use super::joined::Joined;
use crate::collections::LazyBox;
use crate::fragment::DataFormat;
use crate::interface::event::Message;
use crate::interface::reconfiguration::Streams;

/// The order of all streams.
#[derive(Debug)]
pub(super) struct Ordered {
    streams: StreamTable<InStream>,
    /// Messages that arrived early, by stream and unwrapped number.
    waiting: LazyBox<BTreeMap<(StreamId, u64), Waiting>>,
    /// A stream without an entry has delivered nothing above this index.
    base: u64,
    /// Low bits of the index up to which nothing was missing at the end of the last packet, or was abandoned. They suffice,
    /// because no chunk is farther from it than a SACK can report.
    cumulative: u32,
    /// The kind of chunk, which determines the kind of number: SSN or MID.
    data_format: DataFormat,
    /// True if the peer may abandon messages (RFC 3758): then a skipped message may still arrive.
    lenient: bool,
}

/// One stream.
#[derive(Debug, Default)]
struct InStream {
    /// The number expected next, unwrapped: its low bits are the SSN or MID.
    next: u64,
    /// The last index of the message before that.
    delivered_to: u64,
    /// Messages of this stream that wait.
    waiting: u32,
}

#[derive(Debug)]
struct Waiting {
    indices: Indices,
    message: Message,
}

/// Returns the distance of a number from the unwrapped number `next`: at least 0, and less than the count of numbers.
#[inline]
fn ahead(data_format: DataFormat, next: u64, number: u32) -> u64 {
    u64::from(number).wrapping_sub(next) & (data_format.numbers() - 1)
}

impl Ordered {
    /// Creates the order of streams before anything has arrived.
    pub(super) fn new(data_format: DataFormat, lenient: bool) -> Self {
        Ordered {
            streams: StreamTable::default(),
            waiting: LazyBox::default(),
            base: 0,
            cumulative: 0,
            data_format,
            lenient,
        }
    }

    /// Returns the kind of chunk that carries all user data.
    #[inline]
    pub(super) fn data_format(&self) -> DataFormat {
        self.data_format
    }

    /// Returns the MID expected next on a stream.
    pub(super) fn next_mid(&self, id: StreamId) -> u32 {
        self.streams.get(id).map_or(0, |stream| stream.next as u32)
    }

    /// Returns whether the stream expects a message with this number next.
    pub(super) fn is_next(&self, id: StreamId, number: u32) -> bool {
        ahead(self.data_format, self.streams.get(id).map_or(0, |stream| stream.next), number) == 0
    }

    /// Returns whether a message with this number was delivered or skipped before (serial number arithmetic).
    pub(super) fn is_past(&self, id: StreamId, number: u32) -> bool {
        let next = self.streams.get(id).map_or(0, |stream| stream.next);
        ahead(self.data_format, next, number) >= self.data_format.numbers() / 2
    }

    /// Returns whether a complete message with this number waits for those before it.
    pub(super) fn holds(&self, id: StreamId, number: u32) -> bool {
        self.streams.get(id).filter(|stream| stream.waiting > 0).is_some_and(|stream| {
            self.waiting.contains_key(&(id, stream.next + ahead(self.data_format, stream.next, number)))
        })
    }

    /// Notes that nothing is missing up to `cumulative`.
    #[inline]
    pub(super) fn note_cumulative(&mut self, cumulative: u64) {
        self.cumulative = cumulative as u32;
    }

    /// Returns whether a message with this number can still be delivered; `index` is that of one of its chunks.
    ///
    /// Numbers wrap, so an old number looks like one far ahead. With DATA, however, each message in between has a TSN between
    /// the last delivered message and this one: the message in between waits here, or one of its TSNs is missing.
    pub(super) fn may_come(&self, id: StreamId, number: u32, index: u64) -> bool {
        let (next, delivered_to, waiting) = match self.streams.get(id) {
            Some(stream) => (stream.next, stream.delivered_to.max(self.base), stream.waiting),
            None => (0, self.base, 0),
        };
        let furthest = match self.data_format {
            DataFormat::Data => {
                let missing = (index as u32).wrapping_sub(self.cumulative) as i32;
                index.saturating_sub(delivered_to).min(u64::from(waiting) + missing.max(0) as u64)
            }
            DataFormat::IData => self.data_format.numbers() / 2,
        };
        let ahead = ahead(self.data_format, next, number);
        ahead == 0 || ahead < furthest
    }

    /// Decides on a chunk of a message that [may not come](Self::may_come): it is discarded if the peer may have abandoned the
    /// message.
    ///
    /// # Errors
    /// The chunk violates the protocol: if it were discarded, its message would be acknowledged and lost.
    pub(super) fn check_late(&self) -> Result<(), &'static str> {
        if self.lenient { Ok(()) } else { Err(OUT_OF_SEQUENCE) }
    }

    /// Delivers a message of one chunk, with `index`, if it is the next one and no other waits behind it; returns whether this
    /// is so. Otherwise nothing has changed.
    #[inline]
    pub(super) fn pass(&mut self, id: StreamId, number: u32, index: u64) -> bool {
        let data_format = self.data_format;
        let stream = self.streams.entry(id);
        let passes = stream.waiting == 0 && ahead(data_format, stream.next, number) == 0;
        if passes {
            stream.next += 1;
            stream.delivered_to = index;
        }
        passes
    }

    /// Puts a complete message in its place. If it is the next one, `deliver` is called for it, and then in order for the
    /// messages that waited for it. Returns false if the sender abandoned the message; it is dropped then.
    ///
    /// # Errors
    /// The number is invalid; the message is dropped.
    pub(super) fn place(
        &mut self,
        joined: Joined,
        mut deliver: impl FnMut(Indices, Message),
    ) -> Result<bool, &'static str> {
        let Joined { number, indices, message } = joined;
        let id = message.stream;
        let stream = self.streams.entry(id);
        let ahead = ahead(self.data_format, stream.next, number);
        if ahead > 0 {
            return self.hold(indices, message, ahead);
        }
        stream.advance(&indices);
        deliver(indices, message);
        if stream.waiting > 0 {
            self.release(id, deliver);
        }
        Ok(true)
    }

    /// Skips the messages of a stream up to `number`, which will not arrive: later messages no longer wait for them. Calls
    /// `deliver` as [`Self::place`] does; a number that was passed long ago changes nothing.
    pub(super) fn skip(&mut self, id: StreamId, number: u32, mut deliver: impl FnMut(Indices, Message)) {
        if self.is_past(id, number) {
            return;
        }
        let stream = self.streams.entry(id);
        let beyond = stream.next + ahead(self.data_format, stream.next, number) + 1;
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

    /// Calls `deliver` for the waiting messages that are next.
    fn release(&mut self, id: StreamId, mut deliver: impl FnMut(Indices, Message)) {
        let stream = self.streams.entry(id);
        while stream.waiting > 0
            && let Some(released) = self.waiting.remove(&(id, stream.next))
        {
            stream.waiting -= 1;
            stream.advance(&released.indices);
            deliver(released.indices, released.message);
        }
    }

    /// Restarts streams at number 0, except for those whose last message has an index of `epoch` or more: they have restarted
    /// already. Messages that still waited are delivered: those before them can no longer arrive.
    pub(super) fn reset(&mut self, streams: &Streams, epoch: u64, mut deliver: impl FnMut(Indices, Message)) {
        match streams {
            Streams::All => {
                for waiting in std::mem::take(&mut self.waiting).into_inner().into_values() {
                    deliver(waiting.indices, waiting.message);
                }
                // A stream without an entry expects number 0, and costs the next reset nothing.
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

    fn reset_one(&mut self, id: StreamId, epoch: u64, deliver: &mut impl FnMut(Indices, Message)) {
        // A stream that was never used expects number 0 anyway.
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

    /// Starts the numbers of the first `count` streams at `first` instead of 0; no message may have arrived.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn begin_at(&mut self, first: u32, count: u16) {
        (0..count).for_each(|stream| self.streams.entry(StreamId(stream)).next = u64::from(first));
    }

    /// Returns the messages that wait.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.waiting.values().map(|waiting| &waiting.message)
    }

    /// Holds a message that is `ahead` messages early; returns the same as [`Self::place`].
    fn hold(&mut self, indices: Indices, message: Message, ahead: u64) -> Result<bool, &'static str> {
        let id = message.stream;
        let next = self.streams.entry(id).next;
        if !self.may_come(id, (next + ahead) as u32, indices.first()) {
            return self.check_late().map(|()| false);
        }
        let stream = self.streams.entry(id);
        let key = (id, next + ahead);
        if self.waiting.contains_key(&key) {
            return Err("two messages with the same number");
        }
        stream.waiting += 1;
        self.waiting.insert(key, Waiting { indices, message });
        Ok(true)
    }
}

const OUT_OF_SEQUENCE: &str = "number of a message that was delivered before, or too far ahead for its TSN";

impl InStream {
    /// Notes that the next message of the stream, with `indices`, is delivered.
    fn advance(&mut self, indices: &Indices) {
        self.next += 1;
        self.delivered_to = indices.last();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tresse_wire::{Ppid, Ssn, Tsn};

    use super::*;
    use crate::interface::event::{Part, Payload};

    #[test]
    fn a_stream_knows_how_many_wait() {
        let mut ordered = Ordered::new(DataFormat::Data, false);
        let mut delivered = Vec::new();
        for (index, expected) in [(4, 1), (2, 2), (1, 1), (3, 0)] {
            let message = Message {
                stream: StreamId(5),
                ssn: Ssn(index as u16 - 1),
                ppid: Ppid(0),
                tsn: Tsn(index as u32),
                unordered: false,
                part: Part::Whole,
                payload: Payload::Whole(Bytes::new()),
            };
            let joined = Joined { number: index as u32 - 1, indices: Indices::of(index), message };
            let placed = ordered.place(joined, |indices, _| delivered.push(indices.first()));
            assert!(placed.is_ok());
            assert_eq!(ordered.streams.get(StreamId(5)).map(|stream| stream.waiting), Some(expected));
            assert_eq!(ordered.waiting.len(), expected as usize);
        }
        assert_eq!(delivered, [1, 2, 3, 4]);
    }
}
