//! Messages on a connection's stream: kinds are payload protocol identifiers, "trt0" to "trt5". An SCTP message has
//! at least one byte, so words without content have a zero.

use bytes::{Buf, Bytes};
use tresse::{Message, Payload, Ppid};

/// A word on a connection's stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// A connection begins here.
    Open,
    /// Bytes of it.
    Data(Payload),
    /// So many bytes were taken.
    Credit(u32),
    /// There is no more data this way.
    End,
    /// Everything is done: the speaker's last word.
    Closed,
    /// The connection broke: the speaker's last word.
    Reset,
}

impl Word {
    /// What is to be sent.
    pub(super) fn encode(self) -> (Ppid, Bytes) {
        match self {
            Word::Open => (OPEN, Bytes::from_static(&[VERSION])),
            Word::Data(payload) => (DATA, payload.into_bytes()),
            Word::Credit(bytes) => (CREDIT, Bytes::copy_from_slice(&bytes.to_be_bytes())),
            Word::End => (END, Bytes::from_static(&[0])),
            Word::Closed => (CLOSED, Bytes::from_static(&[0])),
            Word::Reset => (RESET, Bytes::from_static(&[0])),
        }
    }

    /// Data may come in parts, as any bytes may.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn decode(message: Message) -> Result<Self, String> {
        let (ppid, payload) = (message.ppid, message.payload);
        if ppid == DATA {
            return Ok(Word::Data(payload));
        }
        let mut bytes = payload.into_bytes();
        match ppid {
            OPEN if bytes.first() == Some(&VERSION) => Ok(Word::Open),
            OPEN => Err(format!("a connection of another version than {VERSION}")),
            CREDIT if bytes.len() == 4 => Ok(Word::Credit(bytes.get_u32())),
            END => Ok(Word::End),
            CLOSED => Ok(Word::Closed),
            RESET => Ok(Word::Reset),
            _ => Err(format!("a message of unknown kind {:#010x}", ppid.0)),
        }
    }
}

const OPEN: Ppid = Ppid(0x7472_7430);
const DATA: Ppid = Ppid(0x7472_7431);
const CREDIT: Ppid = Ppid(0x7472_7432);
const END: Ppid = Ppid(0x7472_7433);
const CLOSED: Ppid = Ppid(0x7472_7434);
const RESET: Ppid = Ppid(0x7472_7435);
/// What is spoken.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use tresse::{Part, Ssn, StreamId, Tsn};

    use super::*;

    fn message(ppid: Ppid, payload: Bytes) -> Message {
        let (stream, ssn, part) = (StreamId(1), Ssn(0), Part::Whole);
        Message { stream, ssn, ppid, tsn: Tsn(0), unordered: false, part, payload: Payload::Whole(payload) }
    }

    #[test]
    fn words_survive_the_way() {
        let data = Word::Data(Payload::Whole(Bytes::from_static(b"bytes")));
        for word in [Word::Open, data, Word::Credit(70_000), Word::End, Word::Closed, Word::Reset] {
            let (ppid, payload) = word.clone().encode();
            assert!(!payload.is_empty(), "no SCTP message is empty");
            assert_eq!(Word::decode(message(ppid, payload)), Ok(word));
        }
    }

    #[test]
    fn what_is_no_word_is_refused() {
        let refused = |ppid, bytes: &'static [u8]| {
            Word::decode(message(ppid, Bytes::from_static(bytes))).expect_err("no word")
        };
        assert!(refused(OPEN, &[9]).contains("another version"));
        assert!(refused(CREDIT, &[1]).contains("unknown kind"));
        assert!(refused(Ppid(7), b"x").contains("0x00000007"));
    }
}
