//! Reassembly of messages that were delivered in parts, for applications that need whole messages of any length.
//!
//! The joiner owns the parts of incomplete messages. Their memory is unbounded: the application decides to join messages that the
//! receive buffer cannot hold.

use std::collections::BTreeMap;

use bytes::Bytes;
use tresse_wire::StreamId;

use crate::interface::event::{Message, Part, Payload};

/// Joins parts of messages ([`Part`]) to whole ones.
///
/// ```
/// # use tresse_proto::{Joiner, Message, Part, Ppid, StreamId};
/// # let part = |part, text: &'static str| {
/// #     let mut message = Message::whole(StreamId(0), Ppid(0), text.into());
/// #     message.part = part;
/// #     message
/// # };
/// let mut joiner = Joiner::default();
/// assert!(joiner.join(part(Part::First, "to be ")).is_none());
/// let message = joiner.join(part(Part::Last, "continued")).expect("the whole message");
/// assert_eq!((message.part, message.payload.into_bytes()), (Part::Whole, "to be continued".into()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    /// Parts of incomplete messages, by stream and whether the message is unordered.
    begun: BTreeMap<(StreamId, bool), Vec<Bytes>>,
}

impl Joiner {
    /// Adds a part. Returns a message if the part is a whole one or completes one. Parts of an abandoned message are dropped.
    pub fn join(&mut self, message: Message) -> Option<Message> {
        let key = (message.stream, message.unordered);
        match message.part {
            Part::Whole => return Some(message),
            Part::Abandoned => {
                self.begun.remove(&key);
                return None;
            }
            // A message of a peer that restarted can remain without its end, and nothing reports that.
            Part::First => {
                self.begun.remove(&key);
            }
            Part::Middle | Part::Last => {}
        }
        let begun = self.begun.entry(key).or_default();
        match message.payload {
            Payload::Whole(piece) => begun.push(piece),
            Payload::Fragments(ref pieces) => begun.extend_from_slice(pieces),
        }
        if message.part != Part::Last {
            return None;
        }
        let pieces = self.begun.remove(&key).unwrap_or_default();
        Some(Message { part: Part::Whole, payload: Payload::Fragments(pieces), ..message })
    }

    /// Returns the number of bytes in incomplete messages.
    pub fn held(&self) -> usize {
        self.begun.values().flatten().map(Bytes::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use tresse_wire::{Ppid, Ssn, Tsn};

    use super::*;

    fn part(stream: u16, unordered: bool, part: Part, text: &'static str) -> Message {
        Message {
            stream: StreamId(stream),
            ssn: Ssn(0),
            ppid: Ppid(0),
            tsn: Tsn(0),
            unordered,
            part,
            payload: Payload::Whole(Bytes::from_static(text.as_bytes())),
        }
    }

    fn joined(joiner: &mut Joiner, message: Message) -> Option<Bytes> {
        joiner.join(message).map(|message| message.payload.into_bytes())
    }

    #[test]
    fn parts_of_different_streams_and_orders_are_kept_apart() {
        let mut joiner = Joiner::default();
        for (stream, unordered, text) in [(0, false, "a"), (0, true, "b"), (1, false, "c")] {
            assert_eq!(joined(&mut joiner, part(stream, unordered, Part::First, text)), None);
            assert_eq!(joined(&mut joiner, part(stream, unordered, Part::Middle, text)), None);
        }
        assert_eq!(joiner.held(), 6);
        assert_eq!(joined(&mut joiner, part(0, true, Part::Whole, "x")), Some("x".into()));
        for (stream, unordered, text) in [(1, false, "ccc"), (0, true, "bbb"), (0, false, "aaa")] {
            let whole = joined(&mut joiner, part(stream, unordered, Part::Last, &text[..1]));
            assert_eq!(whole, Some(text.into()));
        }
        assert_eq!(joiner.held(), 0);
    }

    #[test]
    fn a_message_without_an_end_gives_way_to_the_next_one_of_its_stream() {
        let mut joiner = Joiner::default();
        assert!(joiner.join(part(0, false, Part::First, "of the peer before it restarted")).is_none());
        assert!(joiner.join(part(0, false, Part::First, "a")).is_none());
        assert_eq!(joined(&mut joiner, part(0, false, Part::Last, "b")), Some("ab".into()));
        assert_eq!(joiner.held(), 0);
    }

    #[test]
    fn what_was_abandoned_leaves_nothing_behind() {
        let mut joiner = Joiner::default();
        assert!(joiner.join(part(0, false, Part::First, "lost")).is_none());
        assert!(joiner.join(part(0, false, Part::Abandoned, "")).is_none());
        assert_eq!(joiner.held(), 0);
        assert_eq!(joined(&mut joiner, part(0, false, Part::Whole, "next")), Some("next".into()));
    }
}
