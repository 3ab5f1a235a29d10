//! Control messages on stream 0: for the tunnel as a whole, and for the client's listeners at the server.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A control message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Control {
    /// First message of the client. It names the previous session, to learn whether the server still has it.
    Hello { previous: Option<u64> },
    /// Answer of the server: the number of this session, and whether the previous one still exists.
    Welcome { session: u64, previous_lives: bool },
    /// The client requests a listener for TCP connections at this address of the server's host.
    Listen { number: u16, address: SocketAddr },
    /// The server listens at this address.
    Listening { number: u16, address: SocketAddr },
    /// The server does not listen, or does not any more.
    NotListening { number: u16, reason: String },
    /// The client does not need the listener any more.
    Unlisten { number: u16 },
}

impl Control {
    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        match self {
            Control::Hello { previous } => {
                bytes.put_slice(&[0, VERSION]);
                if let Some(session) = previous {
                    bytes.put_u64(*session);
                }
            }
            Control::Welcome { session, previous_lives } => {
                bytes.put_slice(&[1, VERSION]);
                bytes.put_u64(*session);
                bytes.put_u8((*previous_lives).into());
            }
            Control::Listen { number, address } => put_numbered(&mut bytes, 2, *number, &address.to_string()),
            Control::Listening { number, address } => {
                put_numbered(&mut bytes, 3, *number, &address.to_string());
            }
            Control::NotListening { number, reason } => put_numbered(&mut bytes, 4, *number, reason),
            Control::Unlisten { number } => put_numbered(&mut bytes, 5, *number, ""),
        }
        bytes.freeze()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The fault of the message.
    pub(super) fn decode(mut bytes: Bytes) -> Result<Self, String> {
        let unknown = || "a word about the tunnel that is none".to_owned();
        let kind = bytes.try_get_u8().map_err(|_| unknown())?;
        if kind < 2 && bytes.try_get_u8().ok() != Some(VERSION) {
            return Err(format!("a tunnel of another version than {VERSION}"));
        }
        match kind {
            0 if bytes.is_empty() => return Ok(Control::Hello { previous: None }),
            0 if bytes.len() == 8 => return Ok(Control::Hello { previous: Some(bytes.get_u64()) }),
            1 if bytes.len() == 9 => {
                return Ok(Control::Welcome {
                    session: bytes.get_u64(),
                    previous_lives: bytes.get_u8() != 0,
                });
            }
            _ => {}
        }
        let number = bytes.try_get_u16().map_err(|_| unknown())?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| unknown())?;
        let address = || text.parse().map_err(|_| unknown());
        match kind {
            2 => Ok(Control::Listen { number, address: address()? }),
            3 => Ok(Control::Listening { number, address: address()? }),
            4 => Ok(Control::NotListening { number, reason: text }),
            5 => Ok(Control::Unlisten { number }),
            _ => Err(unknown()),
        }
    }
}

fn put_numbered(bytes: &mut BytesMut, kind: u8, number: u16, text: &str) {
    bytes.put_u8(kind);
    bytes.put_u16(number);
    bytes.put_slice(text.as_bytes());
}

/// Version of the protocol, on all streams.
const VERSION: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_way_and_others_are_refused() {
        let address: SocketAddr = "[::1]:80".parse().expect("an address");
        for word in [
            Control::Hello { previous: None },
            Control::Hello { previous: Some(u64::MAX) },
            Control::Welcome { session: 7, previous_lives: true },
            Control::Listen { number: 3, address },
            Control::Listening { number: 3, address },
            Control::NotListening { number: 3, reason: "taken".to_owned() },
            Control::Unlisten { number: 3 },
        ] {
            assert_eq!(Control::decode(word.encode()), Ok(word));
        }
        let refused = |bytes: &'static [u8]| Control::decode(Bytes::from_static(bytes)).expect_err("no word");
        assert!(refused(&[0, 1]).contains("another version"));
        for bytes in [&[][..], &[9], &[2, 0], b"\x02\0\0nowhere", &[1, VERSION, 0]] {
            refused(bytes);
        }
    }
}
