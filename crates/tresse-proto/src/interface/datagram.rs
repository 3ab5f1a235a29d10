//! Packets that the lower layer has received, and packets for it to send.

use std::net::IpAddr;

use bytes::Bytes;

/// The codepoint of explicit congestion notification in an IP header (RFC 3168 §5).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not-ECT: the sender does not react to marks, so a congested router drops the packet instead.
    #[default]
    NotEct,
    /// ECT(1): the sender reacts to marks; RFC 8311 leaves this codepoint to experiments.
    Ect1,
    /// ECT(0): the sender reacts to marks.
    Ect0,
    /// CE: a router marked the packet because of congestion.
    Ce,
}

impl Ecn {
    /// Returns the ECN field of the IP header (RFC 3168 §5).
    pub fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// A packet that arrived, with the information of the lower layer.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Own address at which the packet arrived.
    pub local: IpAddr,
    /// The peer's address, from which the packet was sent.
    pub remote: IpAddr,
    /// The peer's UDP port if the packet was encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// The ECN codepoint of the IP header. If the lower layer cannot read it, `NotEct`; then the setting `ecn` must be
    /// off.
    pub ecn: Ecn,
    /// The SCTP packet, from its common header on.
    pub payload: Bytes,
}

/// One or more packets to send, which `poll_transmit` appended to the caller's buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Own address to send from.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port if SCTP is encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// The ECN codepoint to send it with.
    pub ecn: Ecn,
    /// True if the packet is larger than the path is known to carry, and may be fragmented by IP. No other packet may
    /// be fragmented (DF bit in IPv4).
    pub may_fragment: bool,
    /// Number of bytes appended.
    pub size: usize,
    /// Length in bytes of each packet but the last, which may be shorter; `None` for a single packet.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// One packet of `size` bytes between these addresses, the own one first: not ECN-capable, and not to be fragmented.
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
