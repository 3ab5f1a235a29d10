//! Encoding of control messages. Integers are big-endian. Invalid bytes are refused and never cause a panic.
//!
//! | message | layout |
//! | --- | --- |
//! | Announce | 1, version, id (16), size (8; all ones: not known), name (the rest, UTF-8) |
//! | Accept | 2, then start (8) and end (8) of every range that the receiver has |
//! | Finish | 3, size (8), BLAKE3 digest (32) |
//! | Verdict | 4, then nothing: stored; or the reason why not (the rest, UTF-8) |

use bytes::{BufMut, Bytes, BytesMut};

use super::ranges::{MAX_RANGES, Ranges};

/// Identifier of a transfer.
pub(crate) type TransferId = [u8; 16];

/// A control message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    /// The sender offers a file.
    Announce { id: TransferId, size: Option<u64>, name: String },
    /// The receiver accepts the file. The ranges `have` need not be sent.
    Accept { have: Ranges },
    /// The sender has sent everything.
    Finish { size: u64, digest: [u8; 32] },
    /// The receiver has stored the file, or has not, for this reason.
    Verdict(Result<(), String>),
}

/// Reason for which bytes are no control message.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("a control message of unknown kind {0}")]
    Kind(u8),
    #[error("protocol version {0}, where version {VERSION} is spoken")]
    Version(u8),
    #[error("a control message is cut short or too long")]
    Length,
    #[error("a text is not UTF-8")]
    Text,
    #[error("a range ends before it starts, or there are too many")]
    Range,
}

impl Control {
    /// Encodes the message.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        match self {
            Control::Announce { id, size, name } => {
                bytes.put_slice(&[ANNOUNCE, VERSION]);
                bytes.put_slice(id);
                bytes.put_u64(size.unwrap_or(UNKNOWN_SIZE));
                bytes.put_slice(name.as_bytes());
            }
            Control::Accept { have } => {
                bytes.put_u8(ACCEPT);
                for range in have.iter() {
                    bytes.put_u64(range.start);
                    bytes.put_u64(range.end);
                }
            }
            Control::Finish { size, digest } => {
                bytes.put_u8(FINISH);
                bytes.put_u64(*size);
                bytes.put_slice(digest);
            }
            Control::Verdict(verdict) => {
                bytes.put_u8(VERDICT);
                if let Err(reason) = verdict {
                    bytes.put_slice(if reason.is_empty() { b"no reason given" } else { reason.as_bytes() });
                }
            }
        }
        bytes.freeze()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The bytes are no control message.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (&kind, rest) = bytes.split_first().ok_or(MessageError::Length)?;
        match kind {
            ANNOUNCE => announce(rest),
            ACCEPT => accept(rest),
            FINISH => {
                let (size, rest) = number(rest)?;
                let digest = rest.try_into().map_err(|_| MessageError::Length)?;
                Ok(Control::Finish { size, digest })
            }
            VERDICT if rest.is_empty() => Ok(Control::Verdict(Ok(()))),
            VERDICT => Ok(Control::Verdict(Err(text(rest)?))),
            _ => Err(MessageError::Kind(kind)),
        }
    }
}

fn announce(bytes: &[u8]) -> Result<Control, MessageError> {
    let (&version, rest) = bytes.split_first().ok_or(MessageError::Length)?;
    if version != VERSION {
        return Err(MessageError::Version(version));
    }
    let (&id, rest) = rest.split_first_chunk().ok_or(MessageError::Length)?;
    let (size, rest) = number(rest)?;
    Ok(Control::Announce { id, size: Some(size).filter(|&size| size != UNKNOWN_SIZE), name: text(rest)? })
}

fn accept(bytes: &[u8]) -> Result<Control, MessageError> {
    let (pairs, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(MessageError::Length);
    }
    if pairs.len() > MAX_RANGES {
        return Err(MessageError::Range);
    }
    let mut have = Ranges::default();
    for pair in pairs {
        let (start, rest) = number(pair)?;
        let (end, _) = number(rest)?;
        if end < start {
            return Err(MessageError::Range);
        }
        have.insert(start..end).map_err(|_| MessageError::Range)?;
    }
    Ok(Control::Accept { have })
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), MessageError> {
    let (&head, rest) = bytes.split_first_chunk().ok_or(MessageError::Length)?;
    Ok((u64::from_be_bytes(head), rest))
}

fn text(bytes: &[u8]) -> Result<String, MessageError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| MessageError::Text)
}

const VERSION: u8 = 1;
const ANNOUNCE: u8 = 1;
const ACCEPT: u8 = 2;
const FINISH: u8 = 3;
const VERDICT: u8 = 4;
const UNKNOWN_SIZE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut have = Ranges::default();
        have.insert(0..7).expect("few");
        have.insert(9..u64::MAX).expect("few");
        for message in [
            Control::Announce { id: [7; 16], size: Some(0), name: "naïve.txt".to_owned() },
            Control::Announce { id: [0; 16], size: None, name: String::new() },
            Control::Accept { have: Ranges::default() },
            Control::Accept { have },
            Control::Finish { size: 1 << 40, digest: [3; 32] },
            Control::Verdict(Ok(())),
            Control::Verdict(Err("disk full".to_owned())),
        ] {
            assert_eq!(Control::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn damaged_messages_are_refused() {
        let announce = Control::Announce { id: [7; 16], size: Some(5), name: "a".to_owned() }.encode();
        for len in 0..26 {
            assert_eq!(Control::decode(&announce[..len]), Err(MessageError::Length), "{len} bytes");
        }
        assert_eq!(Control::decode(&[1, 9]), Err(MessageError::Version(9)));
        assert_eq!(Control::decode(&[99]), Err(MessageError::Kind(99)));
        assert_eq!(Control::decode(&[3, 0, 0]), Err(MessageError::Length));
        assert_eq!(Control::decode(&[4, 0xff]), Err(MessageError::Text));
        assert_eq!(Control::decode(&[&[2][..], &[0; 15]].concat()), Err(MessageError::Length));
        let backwards = [&[2][..], &2_u64.to_be_bytes(), &1_u64.to_be_bytes()].concat();
        assert_eq!(Control::decode(&backwards), Err(MessageError::Range));
    }
}
