//! ICMP messages about undelivered packets: their meaning, and the SCTP packet that they quote.
//!
//! Reads the messages of both IP versions, with SCTP in IP or in UDP. The endpoint validates them, by their association.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An ICMP message about a packet that this host sent. Drivers create one from received bytes, or from a report of the operating
/// system.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct IcmpError<'a> {
    /// Own address, the source of the quoted packet.
    pub local: IpAddr,
    /// The peer's address, the destination of the quoted packet.
    pub remote: IpAddr,
    /// Reason for which the packet was not delivered.
    pub kind: IcmpKind,
    /// The part of the SCTP packet that the message quotes.
    pub quoted: &'a [u8],
}

/// Reason for which a packet was not delivered, as an ICMP message reports it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IcmpKind {
    /// The packet is larger than the MTU of a router's next link.
    PacketTooBig {
        /// The link's MTU in bytes, IP header included; 0 from a router that does not report it.
        mtu: usize,
    },
    /// The host does not support SCTP; with SCTP in UDP, no socket receives at the port (RFC 6951 §5.5).
    NoReceiver,
    /// The packet could not be delivered for another reason.
    Unreachable,
}

impl<'a> IcmpError<'a> {
    /// Reads an ICMP message from its type on. `None` unless it is a Destination Unreachable that quotes the beginning of an SCTP
    /// packet, in IP or in UDP (RFC 9260 §10, rule ICMP1).
    pub fn parse_v4(message: &'a [u8]) -> Option<Self> {
        let (&[kind, code, _, _, _, _, high, low], packet) = message.split_first_chunk::<8>()?;
        if kind != V4_DESTINATION_UNREACHABLE {
            return None;
        }
        let header = packet.first_chunk::<20>()?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let is_first_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
        if header[0] >> 4 != 4 || header_len < header.len() || !is_first_fragment {
            return None;
        }
        let (quoted, in_udp) = sctp_in(header[9], packet.get(header_len..)?)?;
        let kind = match code {
            V4_FRAGMENTATION_NEEDED => IcmpKind::PacketTooBig { mtu: u16::from_be_bytes([high, low]).into() },
            V4_PROTOCOL_UNREACHABLE => IcmpKind::NoReceiver,
            V4_PORT_UNREACHABLE if in_udp => IcmpKind::NoReceiver,
            _ => IcmpKind::Unreachable,
        };
        let address =
            |at: usize| Ipv4Addr::from(u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
        Some(IcmpError { local: address(12).into(), remote: address(16).into(), kind, quoted })
    }

    /// Does the same as [`Self::parse_v4`] for an ICMPv6 message: Destination Unreachable, Packet Too Big, or Parameter Problem
    /// (rules ICMP2 and ICMP4).
    pub fn parse_v6(message: &'a [u8]) -> Option<Self> {
        let (&[kind, code, _, _, mtu @ ..], packet) = message.split_first_chunk::<8>()?;
        let (header, rest) = packet.split_first_chunk::<40>()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let (quoted, in_udp) = sctp_in(header[6], rest)?;
        let kind = match (kind, code) {
            (V6_PACKET_TOO_BIG, _) => {
                IcmpKind::PacketTooBig { mtu: usize::try_from(u32::from_be_bytes(mtu)).unwrap_or(usize::MAX) }
            }
            (V6_PARAMETER_PROBLEM, V6_UNRECOGNISED_NEXT_HEADER) => IcmpKind::NoReceiver,
            (V6_DESTINATION_UNREACHABLE, V6_PORT_UNREACHABLE) if in_udp => IcmpKind::NoReceiver,
            (V6_DESTINATION_UNREACHABLE, _) => IcmpKind::Unreachable,
            _ => return None,
        };
        let address = |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|byte| header[at + byte]));
        Some(IcmpError { local: address(8).into(), remote: address(24).into(), kind, quoted })
    }
}

/// Returns the SCTP packet in an IP payload, and whether it is in UDP.
fn sctp_in(protocol: u8, payload: &[u8]) -> Option<(&[u8], bool)> {
    match protocol {
        SCTP => Some((payload, false)),
        UDP => payload.get(UDP_HEADER_LEN..).map(|packet| (packet, true)),
        _ => None,
    }
}

const SCTP: u8 = 132;
const UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;

const V4_DESTINATION_UNREACHABLE: u8 = 3;
const V4_PROTOCOL_UNREACHABLE: u8 = 2;
const V4_PORT_UNREACHABLE: u8 = 3;
const V4_FRAGMENTATION_NEEDED: u8 = 4;

const V6_DESTINATION_UNREACHABLE: u8 = 1;
const V6_PORT_UNREACHABLE: u8 = 4;
const V6_PACKET_TOO_BIG: u8 = 2;
const V6_PARAMETER_PROBLEM: u8 = 4;
const V6_UNRECOGNISED_NEXT_HEADER: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTED: [u8; 8] = [0x13, 0x88, 0x13, 0x89, 1, 2, 3, 4];

    fn v4(kind: u8, code: u8, mtu: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        // Four bytes of IP options.
        message
            .extend([0x46, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0]);
        message.extend(payload);
        message
    }

    fn v6(kind: u8, code: u8, mtu: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut message = vec![kind, code, 0, 0];
        message.extend(mtu.to_be_bytes());
        message.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
        message.extend("fd00::1".parse::<Ipv6Addr>().expect("an address").octets());
        message.extend("fd00::2".parse::<Ipv6Addr>().expect("an address").octets());
        message.extend(payload);
        message
    }

    fn in_udp() -> Vec<u8> {
        [&[0x26, 0xab, 0x26, 0xab, 0, 0, 0, 0][..], &QUOTED].concat()
    }

    #[test]
    fn messages_of_both_versions_say_what_became_of_a_packet() {
        use IcmpKind::{NoReceiver, PacketTooBig, Unreachable};
        let udp = in_udp();
        for (message, expected) in [
            (v4(3, 4, 1400, 132, &QUOTED), Some(PacketTooBig { mtu: 1400 })),
            (v4(3, 4, 1400, 17, &udp), Some(PacketTooBig { mtu: 1400 })),
            (v4(3, 2, 0, 132, &QUOTED), Some(NoReceiver)),
            (v4(3, 3, 0, 132, &QUOTED), Some(Unreachable)),
            (v4(3, 3, 0, 17, &udp), Some(NoReceiver)),
            (v4(3, 1, 0, 132, &QUOTED), Some(Unreachable)),
            (v4(11, 0, 0, 132, &QUOTED), None),
            (v4(3, 2, 0, 6, &QUOTED), None),
            (v6(2, 0, 1400, 132, &QUOTED), Some(PacketTooBig { mtu: 1400 })),
            (v6(4, 1, 0, 132, &QUOTED), Some(NoReceiver)),
            (v6(4, 0, 0, 132, &QUOTED), None),
            (v6(1, 4, 0, 132, &QUOTED), Some(Unreachable)),
            (v6(1, 4, 0, 17, &udp), Some(NoReceiver)),
            (v6(1, 0, 0, 132, &QUOTED), Some(Unreachable)),
            (v6(3, 0, 0, 132, &QUOTED), None),
            (v6(1, 0, 0, 58, &QUOTED), None),
        ] {
            let is_v4 = message[8] >> 4 == 4;
            let error = if is_v4 { IcmpError::parse_v4(&message) } else { IcmpError::parse_v6(&message) };
            assert_eq!(error.map(|error| error.kind), expected, "{message:02x?}");
            let Some(error) = error else { continue };
            assert_eq!(error.quoted, QUOTED);
            let addresses = if is_v4 { ["10.0.0.1", "10.0.0.2"] } else { ["fd00::1", "fd00::2"] };
            assert_eq!([error.local, error.remote].map(|address| address.to_string()), addresses);
        }
    }

    #[test]
    fn a_message_that_is_cut_short_or_quotes_a_later_fragment_says_nothing() {
        let udp = in_udp();
        for message in [v4(3, 2, 0, 17, &udp), v6(1, 4, 0, 17, &udp)] {
            let headers = message.len() - QUOTED.len();
            for len in 0..headers {
                assert_eq!(IcmpError::parse_v4(&message[..len]), None);
                assert_eq!(IcmpError::parse_v6(&message[..len]), None);
            }
        }
        let mut later = v4(3, 2, 0, 132, &QUOTED);
        later[8 + 7] = 1;
        assert_eq!(IcmpError::parse_v4(&later), None);
    }
}
