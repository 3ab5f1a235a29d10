//! Messages on streams. The payload protocol identifier, "trt0" to "trt8", is the kind of a message. An SCTP message has at least one
//! byte, so a message without content is a zero byte.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tresse::{Message, Payload, Ppid};

use super::control::Control;
use super::opening::{Opening, Refusal};

/// A message on a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StreamMessage {
    /// A connection, or a flow of datagrams, begins here.
    Open(Opening),
    /// The destination has accepted the connection.
    Ready,
    /// Bytes of a connection.
    Data(Payload),
    /// A datagram of the flow with this tag.
    Datagram(u16, Bytes),
    /// The receiver has consumed this number of bytes.
    Credit(u32),
    /// There is no more data in this direction.
    End,
    /// Final message of a side: the connection ended regularly.
    Closed,
    /// Final message of a side: the connection broke, or was never made.
    Reset(Refusal),
    /// A control message, on stream 0.
    Control(Control),
}

impl StreamMessage {
    /// Encodes the message for sending.
    pub(super) fn encode(self) -> (Ppid, Bytes) {
        match self {
            StreamMessage::Open(opening) => (OPEN, opening.encode()),
            StreamMessage::Ready => (READY, Bytes::from_static(&[0])),
            StreamMessage::Data(payload) => (DATA, payload.into_bytes()),
            StreamMessage::Datagram(tag, payload) => {
                let mut bytes = BytesMut::with_capacity(2 + payload.len());
                bytes.put_u16(tag);
                bytes.put_slice(&payload);
                (DATAGRAM, bytes.freeze())
            }
            StreamMessage::Credit(bytes) => (CREDIT, Bytes::copy_from_slice(&bytes.to_be_bytes())),
            StreamMessage::End => (END, Bytes::from_static(&[0])),
            StreamMessage::Closed => (CLOSED, Bytes::from_static(&[0])),
            StreamMessage::Reset(why) => (RESET, Bytes::copy_from_slice(&[why.code()])),
            StreamMessage::Control(control) => (CONTROL, control.encode()),
        }
    }

    /// Returns whether messages of this kind are bytes of a connection, which may be processed in parts.
    pub(super) fn is_bytes(ppid: Ppid) -> bool {
        ppid == DATA
    }

    /// Returns whether messages of this kind are datagrams.
    pub(super) fn is_datagram(ppid: Ppid) -> bool {
        ppid == DATAGRAM
    }

    /// Decodes a complete message, or any part of a message with bytes of a connection.
    ///
    /// # Errors
    /// The fault of the message.
    pub(super) fn decode(message: Message) -> Result<Self, String> {
        let (ppid, payload) = (message.ppid, message.payload);
        if ppid == DATA {
            return Ok(StreamMessage::Data(payload));
        }
        let mut bytes = payload.into_bytes();
        match ppid {
            OPEN => Opening::decode(bytes)
                .map(StreamMessage::Open)
                .ok_or_else(|| "a connection that leads nowhere".to_owned()),
            READY => Ok(StreamMessage::Ready),
            DATAGRAM if bytes.len() >= 2 => Ok(StreamMessage::Datagram(bytes.get_u16(), bytes)),
            CREDIT if bytes.len() == 4 => Ok(StreamMessage::Credit(bytes.get_u32())),
            END => Ok(StreamMessage::End),
            CLOSED => Ok(StreamMessage::Closed),
            RESET if bytes.len() == 1 => Ok(StreamMessage::Reset(Refusal::of_code(bytes.get_u8()))),
            CONTROL => Control::decode(bytes).map(StreamMessage::Control),
            _ => Err(format!("a message of unknown kind {:#010x}", ppid.0)),
        }
    }
}

/// Longest datagram of UDP over IPv4, and over IPv6 without jumbograms, in bytes.
pub(super) const LONGEST_DATAGRAM: usize = 65_535;

const OPEN: Ppid = Ppid(0x7472_7430);
const DATA: Ppid = Ppid(0x7472_7431);
const CREDIT: Ppid = Ppid(0x7472_7432);
const END: Ppid = Ppid(0x7472_7433);
const CLOSED: Ppid = Ppid(0x7472_7434);
const RESET: Ppid = Ppid(0x7472_7435);
const READY: Ppid = Ppid(0x7472_7436);
const DATAGRAM: Ppid = Ppid(0x7472_7437);
const CONTROL: Ppid = Ppid(0x7472_7438);

#[cfg(test)]
mod tests {
    use tresse::StreamId;
    use tresse::config::StreamClass;

    use super::super::opening::{Destination, Kind};
    use super::*;

    fn message(ppid: Ppid, payload: Bytes) -> Message {
        Message::whole(StreamId(1), ppid, payload)
    }

    #[test]
    fn words_survive_the_way() {
        let opening = Opening { kind: Kind::Tcp, class: StreamClass::Bulk, tag: 0, to: Destination::Default };
        for word in [
            StreamMessage::Open(opening),
            StreamMessage::Ready,
            StreamMessage::Data(Payload::Whole(Bytes::from_static(b"bytes"))),
            StreamMessage::Datagram(7, Bytes::new()),
            StreamMessage::Datagram(7, Bytes::from_static(b"x")),
            StreamMessage::Credit(70_000),
            StreamMessage::End,
            StreamMessage::Closed,
            StreamMessage::Reset(Refusal::Forbidden),
            StreamMessage::Control(Control::Hello { previous: None }),
        ] {
            let (ppid, payload) = word.clone().encode();
            assert!(!payload.is_empty(), "no SCTP message is empty");
            assert_eq!(StreamMessage::decode(message(ppid, payload)), Ok(word));
        }
    }

    #[test]
    fn what_is_no_word_is_refused() {
        let refused = |ppid, bytes: &'static [u8]| {
            StreamMessage::decode(message(ppid, Bytes::from_static(bytes))).expect_err("no word")
        };
        assert!(refused(CONTROL, &[0, 9]).contains("another version"));
        assert!(refused(CREDIT, &[1]).contains("unknown kind"));
        assert!(refused(DATAGRAM, &[1]).contains("unknown kind"));
        assert!(refused(Ppid(7), b"x").contains("0x00000007"));
    }
}
