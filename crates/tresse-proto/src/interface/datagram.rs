//! Packets as they come in from the lower layer, and as they go out to it.

use std::net::IpAddr;

use bytes::Bytes;

/// The codepoint of explicit congestion notification in an IP header (RFC 3168 §5).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender would not understand a mark: congestion drops the packet.
    #[default]
    NotEct,
    /// Marks are understood; the codepoint that RFC 8311 leaves to experiments.
    Ect1,
    /// Marks are understood.
    Ect0,
    /// Congestion was met on the way.
    Ce,
}

impl Ecn {
    /// The ECN field of the IP header (RFC 3168 §5).
    pub fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// A packet that arrived, with what the lower layer knows of it.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Own address that it came to.
    pub local: IpAddr,
    /// The peer's address that it came from.
    pub remote: IpAddr,
    /// The peer's UDP port, when it came encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// The codepoint it came with. Where the lower layer cannot tell it is `NotEct`, and the setting `ecn` must be off.
    pub ecn: Ecn,
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
    /// The codepoint to send it with.
    pub ecn: Ecn,
    /// The packet is larger than the path is known to carry and may leave as IP fragments; any other has the
    /// bit set that forbids routers to fragment it.
    pub may_fragment: bool,
    /// Bytes appended.
    pub size: usize,
    /// Length of each packet but the last, which may be shorter, when there are several.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// One packet of `size` bytes between these addresses, own one first, with nothing special about it.
    pub fn single((local, remote): (IpAddr, IpAddr), encapsulation_port: Option<u16>, size: usize) -> Self {
        Transmit {
            local,
            remote,
            encapsulation_port,
            ecn: Ecn::NotEct,
            may_fragment: false,
            size,
            segment_size: None,
        }
    }
}
