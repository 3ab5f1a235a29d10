//! Partial delivery: parts of messages that are not complete (RFC 9260 §6.9, RFC 6458 §8.1.21).
//!
//! A message is delivered in parts if more of it has arrived than the switch `partial_delivery_point`, or if the buffer is full
//! and has no complete message, because it would stay full for ever. No data before its beginning is missing then: the end of a
//! message beyond a gap may need room that only a message before it could free, and two messages in parts at a time could not
//! be distinguished.

use std::ops::Range;

use super::{Inbound, Joined};
use crate::interface::event::{Message, Part, Payload};

/// A chunk that found no room.
#[derive(Copy, Clone, Debug)]
pub(super) struct Starved {
    /// Its size in bytes, header included.
    pub(super) len: usize,
    pub(super) fills_gap: bool,
}

impl Inbound {
    /// Returns whether a chunk has found no room since another one was accepted.
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.is_some()
    }

    /// Begins to deliver an incomplete message in parts if a chunk found no room and nothing is ready, so that nothing would
    /// ever make room. Everything up to `cumulative` has arrived; `gaps` is true if an index below the highest is missing: a
    /// chunk that fills a gap finds room, and may complete a message. Appends to `deliverable` as [`Self::accept`] does. To be
    /// called at the end of a packet and after [`Self::recv`].
    pub(crate) fn deliver_partially(
        &mut self,
        cumulative: u64,
        gaps: bool,
        deliverable: &mut Vec<Range<u64>>,
    ) {
        if let Some(starved) = self.starved
            && self.ready.is_empty()
            && (starved.fills_gap || !gaps)
        {
            self.starved = None;
            self.make_room(starved, cumulative, deliverable);
        }
    }

    fn make_room(&mut self, starved: Starved, cumulative: u64, deliverable: &mut Vec<Range<u64>>) {
        if !self.window.fits(starved.len, starved.fills_gap)
            && let Some(part) = self.reader.begin_partial_delivery(cumulative, &self.ordered)
        {
            self.deliver_part(part, deliverable);
        }
    }

    /// Delivers a part that is not the last.
    pub(super) fn deliver_part(&mut self, mut part: Joined, deliverable: &mut Vec<Range<u64>>) {
        part.message.tsn = self.tsn_of(part.indices.first());
        part.indices.append_to(deliverable);
        self.rejoin(&mut part.message);
        self.ready.push_back(part.message);
    }

    /// Joins a part with the part before it, if that was not taken yet; the result may even be the whole message.
    pub(super) fn rejoin(&mut self, part: &mut Message) {
        if self.ready.back().is_some_and(|earlier| goes_on(earlier, part))
            && let Some(mut earlier) = self.ready.pop_back()
        {
            std::mem::swap(&mut earlier, part);
            append(part, earlier);
        }
    }
}

/// Returns whether `later` is the next part of the message that `earlier` is a part of.
fn goes_on(earlier: &Message, later: &Message) -> bool {
    (earlier.stream, earlier.unordered) == (later.stream, later.unordered)
        && matches!(earlier.part, Part::First | Part::Middle)
        && matches!(later.part, Part::Middle | Part::Last)
}

/// Joins a part to the one before it.
fn append(earlier: &mut Message, later: Message) {
    earlier.part = match (earlier.part, later.part) {
        (Part::First, Part::Last) => Part::Whole,
        (_, Part::Last) => Part::Last,
        (part, _) => part,
    };
    let mut pieces = match std::mem::replace(&mut earlier.payload, Payload::Fragments(Vec::new())) {
        Payload::Whole(piece) => vec![piece],
        Payload::Fragments(pieces) => pieces,
    };
    match later.payload {
        Payload::Whole(piece) => pieces.push(piece),
        Payload::Fragments(more) => pieces.extend(more),
    }
    earlier.payload = Payload::Fragments(pieces);
}
