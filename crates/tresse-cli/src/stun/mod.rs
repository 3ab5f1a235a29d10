//! Binding requests and responses of STUN (RFC 8489), with the attributes that reveal the behaviour of a NAT (RFC 5780).
//!
//! Other attributes are ignored. Nothing is authenticated: an answer only has the source address of a packet.

mod reflector;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(crate) use reflector::Reflector;

/// The registered port, and the second port of a server.
pub(crate) const PORTS: [u16; 2] = [3478, 3479];
/// Length of a request in bytes: that of the longest answer, so that requests with a forged source are not amplified.
pub(crate) const REQUEST: usize = HEADER + 3 * (ATTRIBUTE + 20);

/// Transaction identifier, which the answer repeats.
pub(crate) type Transaction = [u8; 12];

/// Request of a client.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Request {
    pub(crate) transaction: Transaction,
    /// Asks for an answer from another address, or port, than the request was sent to (RFC 5780, section 7.2).
    pub(crate) change_address: bool,
    pub(crate) change_port: bool,
    /// Asks for an answer to another port than the request came from (RFC 5780, section 7.5).
    pub(crate) response_port: Option<u16>,
}

/// Answer of a server.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) transaction: Transaction,
    /// Source address of the request.
    pub(crate) mapped: SocketAddr,
    /// Source address of the answer.
    pub(crate) origin: SocketAddr,
    /// Source of answers from another address and port, if the server has two addresses.
    pub(crate) other: Option<SocketAddr>,
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut attributes = Vec::new();
        let change =
            u32::from(self.change_address) * CHANGE_ADDRESS + u32::from(self.change_port) * CHANGE_PORT;
        if change != 0 {
            push(&mut attributes, CHANGE_REQUEST, &change.to_be_bytes());
        }
        if let Some(port) = self.response_port {
            let [high, low] = port.to_be_bytes();
            push(&mut attributes, RESPONSE_PORT, &[high, low, 0, 0]);
        }
        let left = REQUEST - HEADER - ATTRIBUTE - attributes.len();
        push(&mut attributes, PADDING, &vec![0; left]);
        message(BINDING_REQUEST, self.transaction, &attributes)
    }

    /// Decodes a request; `None` if the bytes are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (transaction, attributes) = parts(BINDING_REQUEST, bytes)?;
        let mut request = Request { transaction, ..Request::default() };
        for (kind, value) in attributes {
            match (kind, value) {
                (CHANGE_REQUEST, &[a, b, c, d]) => {
                    let change = u32::from_be_bytes([a, b, c, d]);
                    request.change_address = change & CHANGE_ADDRESS != 0;
                    request.change_port = change & CHANGE_PORT != 0;
                }
                (RESPONSE_PORT, &[high, low, ..]) => {
                    request.response_port = Some(u16::from_be_bytes([high, low]));
                }
                _ => {}
            }
        }
        Some(request)
    }
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut attributes = Vec::new();
        push(&mut attributes, XOR_MAPPED_ADDRESS, &address_bytes(self.mapped, Some(self.transaction)));
        push(&mut attributes, RESPONSE_ORIGIN, &address_bytes(self.origin, None));
        if let Some(other) = self.other {
            push(&mut attributes, OTHER_ADDRESS, &address_bytes(other, None));
        }
        message(BINDING_ANSWER, self.transaction, &attributes)
    }

    /// Decodes an answer; `None` if the bytes are none. The origin is `from` if the answer has none.
    pub(crate) fn decode(bytes: &[u8], from: SocketAddr) -> Option<Self> {
        let (transaction, attributes) = parts(BINDING_ANSWER, bytes)?;
        let (mut mapped, mut origin, mut other) = (None, from, None);
        for (kind, value) in attributes {
            match kind {
                XOR_MAPPED_ADDRESS => mapped = address_of(value, Some(transaction)),
                RESPONSE_ORIGIN => origin = address_of(value, None)?,
                OTHER_ADDRESS => other = address_of(value, None),
                _ => {}
            }
        }
        Some(Answer { transaction, mapped: mapped?, origin, other })
    }
}

fn push(attributes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    attributes.extend(kind.to_be_bytes());
    attributes.extend((value.len() as u16).to_be_bytes());
    attributes.extend(value);
    attributes.resize(attributes.len().next_multiple_of(4), 0);
}

fn message(kind: u16, transaction: Transaction, attributes: &[u8]) -> Vec<u8> {
    let length = attributes.len() as u16;
    [&kind.to_be_bytes()[..], &length.to_be_bytes(), &COOKIE, &transaction, attributes].concat()
}

/// Returns the transaction and the attributes of a message of this kind; `None` for other bytes.
fn parts(kind: u16, bytes: &[u8]) -> Option<(Transaction, Attributes<'_>)> {
    let (head, rest) = bytes.split_first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let fits = head[..2] == kind.to_be_bytes() && head[4..8] == COOKIE && length == rest.len();
    fits.then(|| (std::array::from_fn(|at| head[8 + at]), Attributes(rest)))
}

/// Iterator over attributes, with the bytes that are left.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[a, b, c, d], rest) = self.0.split_first_chunk::<ATTRIBUTE>()?;
        let length = usize::from(u16::from_be_bytes([c, d]));
        let value = rest.get(..length)?;
        self.0 = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_be_bytes([a, b]), value))
    }
}

/// Encodes an address. With a transaction, the bytes are XORed, so that a NAT which rewrites addresses does not recognise them (RFC 8489,
/// section 14.2).
fn address_bytes(address: SocketAddr, hidden: Option<Transaction>) -> Vec<u8> {
    let (family, mut octets) = match address.ip() {
        IpAddr::V4(v4) => (1, v4.octets().to_vec()),
        IpAddr::V6(v6) => (2, v6.octets().to_vec()),
    };
    let mut port = address.port().to_be_bytes();
    hide(&mut port, &mut octets, hidden);
    [&[0, family], &port[..], &octets].concat()
}

fn address_of(value: &[u8], hidden: Option<Transaction>) -> Option<SocketAddr> {
    let (&[_, family, high, low], octets) = value.split_first_chunk()?;
    let (mut port, mut octets) = ([high, low], octets.to_vec());
    hide(&mut port, &mut octets, hidden);
    let ip: IpAddr = match family {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into(),
        2 => Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into(),
        _ => return None,
    };
    Some((ip, u16::from_be_bytes(port)).into())
}

fn hide(port: &mut [u8; 2], octets: &mut [u8], hidden: Option<Transaction>) {
    let Some(transaction) = hidden else { return };
    let mask = [&COOKIE[..], &transaction].concat();
    port.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte ^= mask);
    octets.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte ^= mask);
}

const HEADER: usize = 20;
/// Bytes before the value of an attribute.
const ATTRIBUTE: usize = 4;
const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
/// Message types (RFC 8489, section 5).
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_ANSWER: u16 = 0x0101;
/// Attributes (RFC 8489, section 18.3; RFC 5780, section 9.1).
const CHANGE_REQUEST: u16 = 0x0003;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const PADDING: u16 = 0x0026;
const RESPONSE_PORT: u16 = 0x0027;
const RESPONSE_ORIGIN: u16 = 0x802b;
const OTHER_ADDRESS: u16 = 0x802c;
const CHANGE_ADDRESS: u32 = 4;
const CHANGE_PORT: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// RFC 5769, section 2.2.
    #[test]
    fn the_sample_answer_is_read() {
        let sample = b"\x01\x01\x00\x3c\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae\
            \x80\x22\x00\x0b\x74\x65\x73\x74\x20\x76\x65\x63\x74\x6f\x72\x20\
            \x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43\
            \x00\x08\x00\x14\x2b\x91\xf5\x99\xfd\x9e\x90\xc3\x8c\x74\x89\xf9\x2a\xf9\xba\x53\xf0\x6b\xe7\xd7\
            \x80\x28\x00\x04\xc0\x7d\x4c\x96";
        let answer = Answer::decode(sample, address("198.51.100.7:3478")).expect("an answer");
        assert_eq!(answer.mapped, address("192.0.2.1:32853"));
        assert_eq!((answer.origin, answer.other), (address("198.51.100.7:3478"), None));
    }

    #[test]
    fn messages_survive_the_way_and_no_answer_is_longer_than_its_request() {
        let transaction = *b"twelve bytes";
        for (change_address, change_port, response_port) in
            [(false, false, None), (true, true, None), (false, true, Some(4711))]
        {
            let request = Request { transaction, change_address, change_port, response_port };
            let bytes = request.encode();
            assert_eq!((bytes.len(), Request::decode(&bytes)), (REQUEST, Some(request)));
        }
        for [mapped, origin, other] in [
            ["192.0.2.1:5", "192.0.2.2:3478", "192.0.2.3:3479"],
            ["[2001:db8::1]:5", "[2001:db8::2]:3478", "[2001:db8::3]:3479"],
        ] {
            let (mapped, origin, other) = (address(mapped), address(origin), Some(address(other)));
            let answer = Answer { transaction, mapped, origin, other };
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes, mapped), Some(answer));
            assert!(bytes.len() <= REQUEST, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_none() {
        let whole = Request::default().encode();
        for length in 0..whole.len() {
            assert_eq!(Request::decode(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(Answer::decode(&whole, address("192.0.2.1:1")), None);
        for at in 0..8 {
            let mut other = whole.clone();
            other[at] ^= 0x40;
            assert_eq!(Request::decode(&other), None, "byte {at}");
        }
    }
}
