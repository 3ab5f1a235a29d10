//! Reassembly of messages that are delivered in parts (partial delivery), as happens if the receive buffer cannot hold all incomplete
//! messages.
//!
//! Owns the parts of incomplete messages, and bounds them. A datagram without room is dropped as a whole, like one that its sender
//! abandoned.

use std::collections::BTreeSet;

use tresse::{Joiner, Message, Part, Payload, StreamId};

use super::message::{LONGEST_DATAGRAM, StreamMessage};

/// Parts received of messages that are not complete.
#[derive(Default)]
pub(super) struct Parts {
    joiner: Joiner,
    /// Messages whose remaining parts are discarded, by stream and whether they are unordered.
    given_up: BTreeSet<(StreamId, bool)>,
}

/// Outcome of a part.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Reassembled {
    /// A complete message, or any part of a message with bytes of a connection.
    Message(Message),
    /// The message is not complete yet, or is discarded.
    Nothing,
    /// A datagram is dropped, because too many bytes wait already.
    Dropped,
}

impl Parts {
    /// Adds a part, and returns the message that is complete with it.
    ///
    /// # Errors
    /// Incomplete messages that are no datagrams have more bytes than the protocol needs.
    pub(super) fn take(&mut self, mut part: Message) -> Result<Reassembled, String> {
        let key = (part.stream, part.unordered);
        match part.part {
            Part::Whole => return Ok(Reassembled::Message(part)),
            Part::First => drop(self.given_up.remove(&key)),
            Part::Middle if self.given_up.contains(&key) => return Ok(Reassembled::Nothing),
            Part::Last | Part::Abandoned if self.given_up.remove(&key) => return Ok(Reassembled::Nothing),
            Part::Middle | Part::Last | Part::Abandoned => {}
        }
        let ends = matches!(part.part, Part::Last | Part::Abandoned);
        if part.part != Part::Abandoned && StreamMessage::is_bytes(part.ppid) {
            return Ok(Reassembled::Message(part));
        }
        let datagram = StreamMessage::is_datagram(part.ppid);
        let most = if datagram { MOST_HELD } else { 2 * MOST_HELD };
        if ends || self.joiner.held() + part.payload.len() <= most {
            return Ok(self.joiner.join(part).map_or(Reassembled::Nothing, Reassembled::Message));
        }
        if !datagram {
            return Err("a word without end".to_owned());
        }
        (part.part, part.payload) = (Part::Abandoned, Payload::Fragments(Vec::new()));
        self.joiner.join(part);
        self.given_up.insert(key);
        Ok(Reassembled::Dropped)
    }
}

/// Most bytes of incomplete datagrams: one of the longest for each flow that a side opens by default.
const MOST_HELD: usize = 256 * LONGEST_DATAGRAM;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn part(stream: u16, part: Part, word: StreamMessage, bytes: std::ops::Range<usize>) -> Message {
        let (ppid, payload) = word.encode();
        let mut message = Message::whole(StreamId(stream), ppid, payload.slice(bytes));
        (message.part, message.unordered) = (part, true);
        message
    }

    fn datagram() -> StreamMessage {
        StreamMessage::Datagram(7, Bytes::from(vec![1; LONGEST_DATAGRAM]))
    }

    #[test]
    fn a_datagram_in_parts_is_handed_on_whole_or_not_at_all() {
        let mut parts = Parts::default();
        for (which, range) in [(Part::First, 0..1), (Part::Middle, 1..9)] {
            assert_eq!(parts.take(part(1, which, datagram(), range)), Ok(Reassembled::Nothing));
        }
        let Ok(Reassembled::Message(whole)) =
            parts.take(part(1, Part::Last, datagram(), 9..LONGEST_DATAGRAM + 2))
        else {
            panic!("it is complete")
        };
        assert_eq!(StreamMessage::decode(whole), Ok(datagram()));
        for (which, range) in [(Part::First, 0..9), (Part::Abandoned, 0..0)] {
            assert_eq!(parts.take(part(1, which, datagram(), range)), Ok(Reassembled::Nothing));
        }
        let empty = part(1, Part::Abandoned, StreamMessage::End, 0..0);
        assert_eq!(
            parts.take(empty),
            Ok(Reassembled::Nothing),
            "of a message of which nothing was delivered"
        );
    }

    #[test]
    fn what_waits_for_ends_that_never_come_is_bounded() {
        let mut parts = Parts::default();
        let all = || 0..LONGEST_DATAGRAM;
        let dropped = (0..1000).filter(|&stream| {
            parts.take(part(stream, Part::First, datagram(), all())) == Ok(Reassembled::Dropped)
        });
        assert_eq!(dropped.count(), 1000 - 256);
        assert_eq!(parts.joiner.held(), MOST_HELD);
        // The rest of a dropped datagram gives nothing; that of another one completes it.
        for (stream, complete) in [(999, false), (0, true)] {
            let last = part(stream, Part::Last, datagram(), LONGEST_DATAGRAM..LONGEST_DATAGRAM + 2);
            let taken = parts.take(last).expect("a datagram");
            assert_eq!(matches!(taken, Reassembled::Message(_)), complete, "{stream}");
        }
        assert_eq!(
            parts.take(part(999, Part::First, datagram(), all())),
            Ok(Reassembled::Nothing),
            "there is room"
        );
    }
}
