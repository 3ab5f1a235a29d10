//! First message on a stream: the kind of connection or flow, its class, and its destination.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tresse::config::StreamClass;

/// Message of the side that opened a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    pub(super) kind: Kind,
    /// Class that both sides give to the stream.
    pub(super) class: StreamClass,
    /// Tag that distinguishes the datagrams of this flow from late ones of an earlier flow on the stream.
    pub(super) tag: u16,
    pub(super) to: Destination,
}

/// Kind of traffic that is carried.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A TCP connection.
    Tcp,
    /// Datagrams between two UDP ports.
    Udp,
    /// IP packets, in order.
    Packets,
}

/// Target at the other side.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Destination {
    /// The default target of the other side.
    Default,
    /// `HOST:PORT`, if the other side permits it.
    Named(String),
    /// The target that the other side has for the listener of this number.
    Listener(u16),
    /// A name that no host can have. It affects this connection only, because a program may have given the name.
    Nowhere,
}

/// Reason for which a connection was not made, or ended early.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The connection broke.
    Broke,
    /// The other side does not permit the destination.
    Forbidden,
    /// The destination refused the connection.
    Refused,
    /// The destination does not answer, or cannot be reached.
    Unreachable,
}

impl Refusal {
    pub(super) fn code(self) -> u8 {
        match self {
            Refusal::Broke => 0,
            Refusal::Forbidden => 1,
            Refusal::Refused => 2,
            Refusal::Unreachable => 3,
        }
    }

    pub(super) fn of_code(code: u8) -> Self {
        match code {
            1 => Refusal::Forbidden,
            2 => Refusal::Refused,
            3 => Refusal::Unreachable,
            _ => Refusal::Broke,
        }
    }
}

impl Opening {
    /// Encodes the message: kind (1 byte), class (1), tag (2), and the destination, as its kind (1) and its content.
    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(match self.kind {
            Kind::Tcp => 0,
            Kind::Udp => 1,
            Kind::Packets => 2,
        });
        bytes.put_u8(match self.class {
            StreamClass::Latency => 1,
            StreamClass::Background => 2,
            _ => 0,
        });
        bytes.put_u16(self.tag);
        match &self.to {
            Destination::Default => bytes.put_u8(0),
            Destination::Named(name) => {
                bytes.put_u8(1);
                bytes.put_slice(name.as_bytes());
            }
            Destination::Listener(number) => {
                bytes.put_u8(2);
                bytes.put_u16(*number);
            }
            // `Destination::Nowhere` is encoded as an empty name.
            Destination::Nowhere => bytes.put_u8(1),
        }
        bytes.freeze()
    }

    /// Decodes the message; `None` if the bytes are none.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        let kind = match bytes.try_get_u8().ok()? {
            0 => Kind::Tcp,
            1 => Kind::Udp,
            2 => Kind::Packets,
            _ => return None,
        };
        let class = match bytes.try_get_u8().ok()? {
            1 => StreamClass::Latency,
            2 => StreamClass::Background,
            _ => StreamClass::Bulk,
        };
        let tag = bytes.try_get_u16().ok()?;
        let to = match bytes.try_get_u8().ok()? {
            0 if bytes.is_empty() => Destination::Default,
            1 => named(&bytes),
            2 if bytes.len() == 2 => Destination::Listener(bytes.get_u16()),
            _ => return None,
        };
        Some(Opening { kind, class, tag, to })
    }
}

fn named(bytes: &[u8]) -> Destination {
    let name = std::str::from_utf8(bytes).ok();
    let name = name.filter(|name| name.len() <= LONGEST_NAME && printable(name));
    name.map_or(Destination::Nowhere, |name| Destination::Named(name.to_owned()))
}

/// Returns whether a host can have this name, and the other side accepts it with any port.
pub(super) fn is_host(name: &str) -> bool {
    // IPv6 addresses are sent in brackets.
    let brackets = if name.contains(':') { 2 } else { 0 };
    name.len() + brackets <= LONGEST_HOST && printable(name)
}

/// Returns whether the name can be shown in terminals and logs: without control characters and spaces, and not empty.
fn printable(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Longest domain name, in bytes (RFC 1035 section 2.3.4).
const LONGEST_HOST: usize = 253;
/// Longest name with a colon and a port, in bytes.
const LONGEST_NAME: usize = LONGEST_HOST + 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_survive_the_way_and_nothing_else_does() {
        for to in [
            Destination::Default,
            Destination::Named("host:22".to_owned()),
            Destination::Listener(40_000),
            Destination::Nowhere,
        ] {
            for (kind, class) in [
                (Kind::Tcp, StreamClass::Latency),
                (Kind::Udp, StreamClass::Bulk),
                (Kind::Packets, StreamClass::Background),
            ] {
                let opening = Opening { kind, class, tag: 9, to: to.clone() };
                assert_eq!(Opening::decode(opening.encode()), Some(opening));
            }
        }
        for bytes in [&[][..], &[7, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 1]] {
            assert_eq!(Opening::decode(Bytes::copy_from_slice(bytes)), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_that_no_host_has_leads_nowhere_and_is_not_sent() {
        for name in ["a b", "a\x1b", "", &"a".repeat(300)] {
            let bytes = [&[0, 0, 0, 0, 1][..], name.as_bytes()].concat();
            let opening = Opening::decode(bytes.into()).expect("an opening");
            assert_eq!(opening.to, Destination::Nowhere, "{name:?}");
            assert!(!is_host(name), "{name:?}");
        }
        let not_text = Opening::decode(Bytes::from_static(b"\0\0\0\0\x01\xff")).expect("an opening");
        assert_eq!(not_text.to, Destination::Nowhere);
        for name in ["host", "b\u{fc}cher.example", "fe80::1%eth0", &"a".repeat(253)] {
            let sent = Destination::Named(format!("{name}:65535"));
            let opening = Opening { kind: Kind::Tcp, class: StreamClass::Bulk, tag: 0, to: sent.clone() };
            assert!(is_host(name), "{name}");
            assert_eq!(Opening::decode(opening.encode()).expect("an opening").to, sent);
        }
        let [long, longest] = [254, 255].map(|len| "a".repeat(len));
        assert!(!is_host(&long) && !is_host(&longest) && !is_host(&format!("{}:", &long[..251])));
    }
}
