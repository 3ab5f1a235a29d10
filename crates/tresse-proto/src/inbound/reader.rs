//! Readers that join fragments to messages: one for DATA, one for I-DATA, behind one interface.
//!
//! A reader owns the fragments of messages that are not complete, and knows the message that is delivered in
//! parts. It is independent of the size of the buffer.

use std::ops::Range;

use bytes::{Buf, Bytes};
use tresse_wire::{Ssn, StreamId, Tsn};

use super::consecutive::{Consecutive, Run};
use super::indices::Indices;
use super::interleaved::Interleaved;
use super::ordered::Ordered;
use crate::fragment::{DataFormat, Fragment};
use crate::interface::event::{Message, Part, Payload};

/// Effect of a chunk.
#[derive(Debug)]
pub(super) enum Step {
    /// It is kept until its message is complete.
    Held,
    /// It belongs to a message that was given up, and is not kept.
    Dropped,
    /// It completed a message, or a message of which parts were handed out.
    Complete(Joined),
    /// It gave the next part of a message that is handed out in parts.
    Part(Joined),
}

/// A message, or a part of one, put together.
#[derive(Debug)]
pub(super) struct Joined {
    /// Number of the message in its stream and order, SSN or MID.
    pub(super) number: u32,
    pub(super) indices: Indices,
    pub(super) message: Message,
}

impl Joined {
    /// The message of a chunk that carries all of it.
    pub(super) fn whole(index: u64, tsn: Tsn, chunk: Fragment) -> Self {
        Joined { number: chunk.mid.0, indices: Indices::of(index), message: whole(tsn, chunk) }
    }
}

/// Leaves of what holds user data only that, if it is said where it is.
///
/// At best where it stays: a processor that reads at once what it has written in parts waits until all of them have left
/// its store buffer.
#[inline]
pub(super) fn cut(holding: &mut Bytes, at: Option<Range<usize>>) {
    if let Some(at) = at {
        holding.truncate(at.end);
        holding.advance(at.start.min(holding.len()));
    }
}

/// The message of a chunk that carries all of it.
#[inline]
pub(super) fn whole(tsn: Tsn, chunk: Fragment) -> Message {
    let ssn = chunk.ssn();
    let Fragment { stream, ppid, flags, payload, .. } = chunk;
    let payload = Payload::Whole(payload);
    Message { stream, ssn, ppid, tsn, unordered: flags.unordered(), part: Part::Whole, payload }
}

/// A message, or a part of one, whose fragments are like `head`; its TSN is still to be said.
#[inline]
pub(super) fn message(head: &Fragment, part: Part, payload: Payload) -> Message {
    Message {
        stream: head.stream,
        ssn: head.ssn(),
        ppid: head.ppid,
        tsn: Tsn(0),
        unordered: head.flags.unordered(),
        part,
        payload,
    }
}

/// End of a message that was handed out in parts and given up, for the application.
pub(super) fn end_of_abandoned(head: &Fragment) -> Message {
    message(head, Part::Abandoned, Payload::Fragments(Vec::new()))
}

/// Part that begins or does not, and ends or does not.
pub(super) fn part_of(begins: bool, ends: bool) -> Part {
    match (begins, ends) {
        (true, true) => Part::Whole,
        (true, false) => Part::First,
        (false, false) => Part::Middle,
        (false, true) => Part::Last,
    }
}

/// Data that leaves the receive buffer undelivered.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    pub(super) bytes: usize,
    pub(super) chunks: usize,
    /// Ends of the messages that were handed out in parts.
    pub(super) ends: Vec<Message>,
}

/// The reader for the chunk that was agreed on.
#[derive(Debug)]
pub(super) enum Reader {
    Consecutive(Consecutive),
    Interleaved(Box<Interleaved>),
}

impl Reader {
    /// Bytes and chunks of what is held of incomplete messages.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn held(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), (bytes, chunks)| (sum.0 + bytes, sum.1 + chunks);
        match self {
            Reader::Consecutive(reader) => reader.held().fold((0, 0), add),
            Reader::Interleaved(reader) => reader.held().fold((0, 0), add),
        }
    }

    /// Nothing has arrived. A message of which `point` bytes are here is handed out in parts;
    /// `lenient` says whether the peer may give up a message that it began to send.
    pub(super) fn new(data_format: DataFormat, point: usize, lenient: bool) -> Self {
        match data_format {
            DataFormat::Data => Reader::Consecutive(Consecutive::new(point, lenient)),
            DataFormat::IData => Reader::Interleaved(Box::new(Interleaved::new(point, lenient))),
        }
    }

    /// Looks at a chunk that carries a whole message, which is not kept here: whether it is wanted. It is not where
    /// its message was given up.
    ///
    /// # Errors
    /// How it contradicts what arrived before.
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

    /// Bytes by which a chunk continues the only message that is incomplete, in the middle, so that it only has to be
    /// kept with it: `len` bytes. Mostly there is such a message, and nothing more to do for it.
    #[inline]
    pub(super) fn grown_by(&mut self, index: u64, chunk: &Fragment, len: usize) -> Option<&mut Run> {
        match self {
            Reader::Consecutive(reader) => reader.grown_by(index, chunk, len),
            Reader::Interleaved(_) => None,
        }
    }

    /// Takes a chunk that does not carry a whole message, when everything up to `cumulative` has arrived before it: only
    /// a message that begins there or next may go out in parts. `ordered` knows whose turn it is: an ordered one may
    /// only then.
    ///
    /// # Errors
    /// How it contradicts what arrived before.
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

    /// Hands out what is here of a message that is not complete, from its beginning; the rest of it will
    /// follow in parts. `None` when there is none of which this can be done; `cumulative` as for [`add`](Self::add).
    pub(super) fn begin_partial_delivery(&mut self, cumulative: u64, ordered: &Ordered) -> Option<Joined> {
        match self {
            Reader::Consecutive(reader) => reader.begin_partial_delivery(cumulative, ordered),
            Reader::Interleaved(reader) => reader.begin_partial_delivery(cumulative, ordered),
        }
    }

    /// Drops what is here of the messages of a stream, of one order, up to `number`: they were given up. For
    /// DATA that concerns what is handed out in parts; the rest goes by its indices.
    pub(super) fn skip(&mut self, stream: StreamId, unordered: bool, number: u32) -> Dropped {
        match self {
            Reader::Consecutive(reader) if !unordered => reader.skip(stream, Ssn(number as u16)),
            Reader::Consecutive(_) => Dropped::default(),
            Reader::Interleaved(reader) => reader.skip(stream, unordered, number),
        }
    }

    /// Drops what is here of messages whose turn is over, since they were skipped; of what is handed out in parts that is
    /// done before.
    pub(super) fn drop_skipped(&mut self, ordered: &Ordered) -> Dropped {
        match self {
            Reader::Consecutive(reader) => reader.drop_skipped(ordered),
            // They are found by their numbers.
            Reader::Interleaved(_) => Dropped::default(),
        }
    }

    /// Drops what is incomplete and came in part before `epoch`: the peer has begun anew and forgotten it.
    pub(super) fn forget(&mut self, epoch: u64) -> Dropped {
        match self {
            Reader::Consecutive(reader) => reader.forget(epoch),
            Reader::Interleaved(reader) => reader.forget(epoch),
        }
    }

    /// Ends of the messages that are handed out in parts, when nothing more comes of them.
    pub(super) fn into_open_ends(self) -> Vec<Message> {
        match self {
            Reader::Consecutive(reader) => reader.into_open_ends(),
            Reader::Interleaved(reader) => reader.into_open_ends(),
        }
    }

    /// Returns whether [`check_progress`](Self::check_progress) has something to find.
    #[inline]
    pub(super) fn is_stuck(&self, cumulative: u64) -> bool {
        match self {
            Reader::Consecutive(reader) => reader.is_stuck(cumulative),
            // An incomplete message among others is no contradiction: its rest may have any later TSN. But what came late of
            // one that was given up stays for ever.
            Reader::Interleaved(reader) => reader.is_stuck(cumulative),
        }
    }

    /// Drops what can never become a message now that nothing up to `cumulative` is missing or will still
    /// come.
    ///
    /// # Errors
    /// What is missing, of a peer that may give nothing up.
    pub(super) fn check_progress(&mut self, cumulative: u64) -> Result<Dropped, &'static str> {
        match self {
            Reader::Consecutive(reader) => reader.check_progress(cumulative),
            Reader::Interleaved(reader) => Ok(reader.drop_late(cumulative)),
        }
    }
}
