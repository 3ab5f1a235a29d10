//! Readers that join fragments to messages: one for DATA, one for I-DATA, behind one interface.
//!
//! A reader owns the fragments of incomplete messages, and knows the message that is delivered in parts. It is independent of
//! the size of the buffer.

use tresse_wire::{Ssn, StreamId};

use super::consecutive::{Consecutive, Run};
use super::interleaved::Interleaved;
use super::joined::{Dropped, Joined, Step};
use super::ordered::Ordered;
use crate::fragment::{DataFormat, Fragment};
use crate::interface::event::Message;

/// The reader for the negotiated kind of chunk.
#[derive(Debug)]
pub(super) enum Reader {
    Consecutive(Consecutive),
    Interleaved(Box<Interleaved>),
}

impl Reader {
    /// Returns the bytes and chunks held of incomplete messages.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn held(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), (bytes, chunks)| (sum.0 + bytes, sum.1 + chunks);
        match self {
            Reader::Consecutive(reader) => reader.held().fold((0, 0), add),
            Reader::Interleaved(reader) => reader.held().fold((0, 0), add),
        }
    }

    /// Creates an empty reader. A message of which `point` bytes have arrived is delivered in parts; `lenient` is true if the
    /// peer may abandon a message that it began to send.
    pub(super) fn new(data_format: DataFormat, point: usize, lenient: bool) -> Self {
        match data_format {
            DataFormat::Data => Reader::Consecutive(Consecutive::new(point, lenient)),
            DataFormat::IData => Reader::Interleaved(Box::new(Interleaved::new(point, lenient))),
        }
    }

    /// Checks a chunk that carries a whole message, which is not kept here. Returns whether the chunk is wanted: a chunk of an
    /// abandoned message is not.
    ///
    /// # Errors
    /// The chunk contradicts what arrived before.
    // Always: mostly nothing is incomplete, and then there is nothing to check.
    #[inline(always)]
    pub(super) fn check_whole(
        &mut self,
        index: u64,
        chunk: &Fragment,
        ordered: &Ordered,
    ) -> Result<bool, &'static str> {
        match self {
            Reader::Consecutive(reader) => reader.check_whole(index, chunk).map(|()| true),
            Reader::Interleaved(reader) => reader.check(chunk, ordered),
        }
    }

    /// Returns the run that a chunk with `len` bytes of user data only has to be appended to: the run is the only incomplete
    /// message, and the chunk is its next fragment but not its last. Mostly that is so.
    #[inline]
    pub(super) fn grown_by(&mut self, index: u64, chunk: &Fragment, len: usize) -> Option<&mut Run> {
        match self {
            Reader::Consecutive(reader) => reader.grown_by(index, chunk, len),
            Reader::Interleaved(_) => None,
        }
    }

    /// Adds a chunk that does not carry a whole message, if everything up to `cumulative` arrived before it: only a message
    /// that begins there or next may be delivered in parts, and an ordered one only if it is the next one in `ordered`.
    ///
    /// # Errors
    /// The chunk contradicts what arrived before.
    pub(super) fn add(
        &mut self,
        index: u64,
        cumulative: u64,
        chunk: Fragment,
        ordered: &Ordered,
    ) -> Result<Step, &'static str> {
        match self {
            Reader::Consecutive(reader) => reader.add(index, cumulative, chunk, ordered),
            Reader::Interleaved(reader) => reader.add(index, cumulative, chunk, ordered),
        }
    }

    /// Begins to deliver an incomplete message in parts: returns its fragments from the beginning; the rest follows in parts.
    /// `None` if no message allows that; `cumulative` as for [`add`](Self::add).
    pub(super) fn begin_partial_delivery(&mut self, cumulative: u64, ordered: &Ordered) -> Option<Joined> {
        match self {
            Reader::Consecutive(reader) => reader.begin_partial_delivery(cumulative, ordered),
            Reader::Interleaved(reader) => reader.begin_partial_delivery(cumulative, ordered),
        }
    }

    /// Drops the messages of a stream and order up to `number`, because they were abandoned. With DATA this concerns the
    /// message that is delivered in parts; other fragments are dropped by their indices.
    pub(super) fn skip(&mut self, stream: StreamId, unordered: bool, number: u32) -> Dropped {
        match self {
            Reader::Consecutive(reader) if !unordered => reader.skip(stream, Ssn(number as u16)),
            Reader::Consecutive(_) => Dropped::default(),
            Reader::Interleaved(reader) => reader.skip(stream, unordered, number),
        }
    }

    /// Drops fragments of ordered messages that were skipped. Messages that are delivered in parts were dropped before.
    pub(super) fn drop_skipped(&mut self, ordered: &Ordered) -> Dropped {
        match self {
            Reader::Consecutive(reader) => reader.drop_skipped(ordered),
            // [`skip`](Self::skip) drops them by their numbers.
            Reader::Interleaved(_) => Dropped::default(),
        }
    }

    /// Drops incomplete messages of which a part arrived before `epoch`: the peer has restarted its numbers and abandoned them.
    pub(super) fn forget(&mut self, epoch: u64) -> Dropped {
        match self {
            Reader::Consecutive(reader) => reader.forget(epoch),
            Reader::Interleaved(reader) => reader.forget(epoch),
        }
    }

    /// Returns the ends of the messages that are delivered in parts, if nothing more of them will arrive.
    pub(super) fn into_open_ends(self) -> Vec<Message> {
        match self {
            Reader::Consecutive(reader) => reader.into_open_ends(),
            Reader::Interleaved(reader) => reader.into_open_ends(),
        }
    }

    /// Returns whether [`check_progress`](Self::check_progress) has something to drop or to report.
    #[inline]
    pub(super) fn is_stuck(&self, cumulative: u64) -> bool {
        match self {
            Reader::Consecutive(reader) => reader.is_stuck(cumulative),
            // With I-DATA, an incomplete message is no contradiction: its rest may have any later TSN. But late fragments of an
            // abandoned message would stay for ever.
            Reader::Interleaved(reader) => reader.is_stuck(cumulative),
        }
    }

    /// Drops fragments that can never become a message, because nothing up to `cumulative` is missing or will still arrive.
    ///
    /// # Errors
    /// There are such fragments, and the peer may not abandon messages.
    pub(super) fn check_progress(&mut self, cumulative: u64) -> Result<Dropped, &'static str> {
        match self {
            Reader::Consecutive(reader) => reader.check_progress(cumulative),
            Reader::Interleaved(reader) => Ok(reader.drop_late(cumulative)),
        }
    }
}
