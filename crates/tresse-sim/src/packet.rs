//! Packet on its way between hosts: the payload, and the fields of its header that the simulation needs.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_proto::Ecn;

use crate::ip::IPV4_HEADER_LEN;
use crate::link::LinkPacket;

/// Protocol of an IPv4 packet's payload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Sctp,
    /// SCTP from a host outside the simulator, with its checksum.
    SealedSctp,
    Tcp,
}

/// The payload of an IPv4 packet, and the fields of its header.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) ecn: Ecn,
    pub(crate) may_fragment: bool,
    pub(crate) protocol: Protocol,
    pub(crate) payload: Bytes,
    /// True if bits were flipped on the way. The packet got its checksum before that, and the checksum has to be verified.
    pub(crate) damaged: bool,
}

impl Packet {
    /// Returns the properties of the packet that links use.
    pub(crate) fn for_link(&self) -> LinkPacket {
        let markable = self.ecn != Ecn::NotEct;
        LinkPacket { bytes: self.ip_len(), may_fragment: self.may_fragment, markable }
    }

    /// Takes the packet; the remaining value has no payload and must not be sent.
    pub(crate) fn take(&mut self) -> Packet {
        Packet { payload: std::mem::take(&mut self.payload), ..*self }
    }

    /// Returns the length of the IP packet in bytes.
    pub(crate) fn ip_len(&self) -> u32 {
        (IPV4_HEADER_LEN + self.payload.len()) as u32
    }

    /// Flips bits of the payload, counted from its start. An SCTP packet gets its checksum before that, because hosts
    /// omit checksums of undamaged packets. TCP hosts verify no checksum: they use `damaged` instead.
    pub(crate) fn flip(&mut self, bits: &[u32]) {
        let mut bytes = self.payload.to_vec();
        if !self.damaged && self.protocol == Protocol::Sctp {
            tresse_wire::seal(&mut bytes);
        }
        for bit in bits {
            if let Some(byte) = bytes.get_mut(*bit as usize / 8) {
                *byte ^= 0x80 >> (bit % 8);
            }
        }
        self.payload = bytes.into();
        self.damaged = true;
    }
}
