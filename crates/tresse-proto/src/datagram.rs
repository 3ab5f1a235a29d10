//! Packets at the front door: as they come in from the lower layer, and as they go out to it.

use std::net::IpAddr;

use bytes::Bytes;

/// A packet that arrived, with what the lower layer knows of it.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Own address that it came to.
    pub local: IpAddr,
    /// The peer's address that it came from.
    pub remote: IpAddr,
    /// The peer's UDP port, when it came encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// The SCTP packet.
    pub payload: Bytes,
}

/// One or more packets to send, which `poll_transmit` appended to the caller's buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Own address to send from.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port, when SCTP is to be encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// Bytes appended.
    pub size: usize,
    /// When there are several packets: the length of each but the last, which may be shorter.
    pub segment_size: Option<usize>,
}
