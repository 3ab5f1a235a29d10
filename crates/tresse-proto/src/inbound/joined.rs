//! Messages that fragments were joined to, and what a fragment does to one. Both readers use them.

use std::ops::Range;

use bytes::{Buf, Bytes};
use tresse_wire::Tsn;

use super::indices::Indices;
use crate::fragment::Fragment;
use crate::interface::event::{Message, Part, Payload};

/// Effect of a fragment.
#[derive(Debug)]
pub(super) enum Step {
    /// The fragment is held until its message is complete.
    Held,
    /// The fragment belongs to an abandoned message, and is not kept.
    Dropped,
    /// The fragment completed a message, or a message of which parts were delivered.
    Complete(Joined),
    /// The fragment continued a message that is delivered in parts.
    Part(Joined),
}

/// A joined message, or a joined part of one.
#[derive(Debug)]
pub(super) struct Joined {
    /// SSN or MID of the message.
    pub(super) number: u32,
    pub(super) indices: Indices,
    pub(super) message: Message,
}

impl Joined {
    /// Returns the message of a chunk that carries all of it.
    pub(super) fn whole(index: u64, tsn: Tsn, chunk: Fragment) -> Self {
        Joined { number: chunk.mid.0, indices: Indices::of(index), message: whole(tsn, chunk) }
    }
}

/// Reduces a buffer to its user data, which is at `at` if that is given.
///
/// The buffer is best changed in its final place: a processor that reads at once what it has written in parts stalls until all
/// parts have left its store buffer.
#[inline]
pub(super) fn cut(holding: &mut Bytes, at: Option<Range<usize>>) {
    if let Some(at) = at {
        holding.truncate(at.end);
        holding.advance(at.start.min(holding.len()));
    }
}

/// Returns the message of a chunk that carries all of it.
#[inline]
pub(super) fn whole(tsn: Tsn, chunk: Fragment) -> Message {
    let ssn = chunk.ssn();
    let Fragment { stream, ppid, flags, payload, .. } = chunk;
    let payload = Payload::Whole(payload);
    Message { stream, ssn, ppid, tsn, unordered: flags.unordered(), part: Part::Whole, payload }
}

/// Returns a message, or a part of one, whose fragments have the fields of `head`; the caller sets its TSN.
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

/// Returns the end of an abandoned message that was delivered in parts, for the application.
pub(super) fn end_of_abandoned(head: &Fragment) -> Message {
    message(head, Part::Abandoned, Payload::Fragments(Vec::new()))
}

/// Returns the kind of a part by whether it begins and ends its message.
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
    /// Ends of the messages that were delivered in parts.
    pub(super) ends: Vec<Message>,
}
