//! Search for the SCTP packet in a captured frame: behind the link layer, IPv4 or IPv6, and UDP if there is any.
//!
//! Any bytes give a result. IP fragments are reported, and not reassembled.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pcap_file::DataLink;

/// Content of a frame.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum FrameContent<'a> {
    Sctp(SctpPacket<'a>),
    /// A packet that may be SCTP and cannot be shown, with the reason.
    Unreadable(&'static str),
    /// Anything else.
    Other,
}

/// An SCTP packet with its source and destination.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct SctpPacket<'a> {
    pub(super) from: Place,
    pub(super) to: Place,
    pub(super) packet: &'a [u8],
}

/// An address, with the UDP port if the packet is encapsulated.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Place {
    address: IpAddr,
    udp: Option<u16>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.udp {
            Some(port) => write!(f, "{}", std::net::SocketAddr::new(self.address, port)),
            None => write!(f, "{}", self.address),
        }
    }
}

/// Returns the content of `frame`. A UDP datagram counts as encapsulated SCTP if one of its ports is `udp_port`.
pub(super) fn find(link: DataLink, frame: &[u8], udp_port: u16) -> FrameContent<'_> {
    let packet = match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(frame),
        DataLink::ETHERNET => ethernet(frame),
        // Skips the address family: four bytes in host or network byte order. The IP version has the same information.
        DataLink::NULL | DataLink::LOOP => frame.get(4..),
        DataLink::LINUX_SLL => frame.get(16..).filter(|_| is_ip(frame.get(14..16))),
        DataLink::LINUX_SLL2 => frame.get(20..).filter(|_| is_ip(frame.get(..2))),
        _ => return FrameContent::Unreadable("a link layer that is not known here"),
    };
    match packet.and_then(|packet| Some((packet, packet.first()? >> 4))) {
        Some((packet, 4)) => {
            ipv4(packet, udp_port).unwrap_or(FrameContent::Unreadable("a damaged IPv4 header"))
        }
        Some((packet, 6)) => {
            ipv6(packet, udp_port).unwrap_or(FrameContent::Unreadable("a damaged IPv6 header"))
        }
        _ => FrameContent::Other,
    }
}

/// Returns the IP packet behind the Ethernet header and its VLAN tags, if there is one.
fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    frame.get(at + 2..).filter(|_| is_ip(frame.get(at..at + 2)))
}

fn is_ip(ether_type: Option<&[u8]>) -> bool {
    matches!(ether_type, Some([0x08, 0x00] | [0x86, 0xdd]))
}

fn ipv4(packet: &[u8], udp_port: u16) -> Option<FrameContent<'_>> {
    let header = packet.first_chunk::<20>()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let protocol = header[9];
    if !matches!(protocol, SCTP | UDP) {
        return Some(FrameContent::Other);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if fragment != 0 {
        return Some(FrameContent::Unreadable("an IP fragment; fragments are not put together"));
    }
    // Hosts that leave segmentation to their network card write a length of 0.
    let end = if total == 0 { packet.len() } else { packet.len().min(total) };
    let payload = packet.get(header_len.max(20)..end)?;
    let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
    Some(transport(protocol, payload, address(12)?, address(16)?, udp_port))
}

fn ipv6(packet: &[u8], udp_port: u16) -> Option<FrameContent<'_>> {
    let header = packet.first_chunk::<40>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = if length == 0 { packet.len() } else { packet.len().min(40 + length) };
    let (mut next, mut at) = (header[6], 40);
    // Extension headers: hop-by-hop, routing, destination options (RFC 8200 §4).
    while matches!(next, 0 | 43 | 60) {
        let [following, units] = *packet.get(at..end)?.first_chunk::<2>()?;
        next = following;
        at += (usize::from(units) + 1) * 8;
    }
    if next == 44 {
        return Some(FrameContent::Unreadable("an IP fragment; fragments are not put together"));
    }
    let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
    Some(transport(next, packet.get(at..end)?, address(8)?, address(24)?, udp_port))
}

fn transport(protocol: u8, payload: &[u8], from: IpAddr, to: IpAddr, udp_port: u16) -> FrameContent<'_> {
    let carried = |packet, ports: Option<(u16, u16)>| {
        let place = |address, udp| Place { address, udp };
        let (from, to) = (place(from, ports.map(|ports| ports.0)), place(to, ports.map(|ports| ports.1)));
        FrameContent::Sctp(SctpPacket { from, to, packet })
    };
    match (protocol, payload.split_first_chunk::<8>()) {
        (SCTP, _) => carried(payload, None),
        (UDP, Some((header, packet))) => {
            let ports =
                (u16::from_be_bytes([header[0], header[1]]), u16::from_be_bytes([header[2], header[3]]));
            if ports.0 == udp_port || ports.1 == udp_port {
                carried(packet, Some(ports))
            } else {
                FrameContent::Other
            }
        }
        (UDP, None) => FrameContent::Unreadable("a damaged UDP header"),
        _ => FrameContent::Other,
    }
}

/// Protocol numbers (IANA).
const SCTP: u8 = 132;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet of `protocol` from 10.0.0.1 to 10.0.0.2.
    fn ipv4_packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let total = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
        [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 4], payload].concat()
    }

    fn found(link: DataLink, frame: &[u8]) -> Option<(String, Vec<u8>)> {
        match find(link, frame, 9899) {
            FrameContent::Sctp(carried) => {
                Some((format!("{} > {}", carried.from, carried.to), carried.packet.to_vec()))
            }
            _ => None,
        }
    }

    #[test]
    fn sctp_is_found_under_every_link_layer() {
        let packet = ipv4_packet(SCTP, b"sctp");
        let expected = Some(("10.0.0.1 > 10.0.0.2".to_owned(), b"sctp".to_vec()));
        let behind = |header: &[u8]| [header, &packet].concat();
        let ethernet = [&[0; 12][..], &[0x08, 0]].concat();
        let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 0x08, 0]].concat();
        assert_eq!(found(DataLink::RAW, &packet), expected);
        assert_eq!(found(DataLink::ETHERNET, &behind(&ethernet)), expected);
        assert_eq!(found(DataLink::ETHERNET, &behind(&tagged)), expected);
        assert_eq!(found(DataLink::NULL, &behind(&[2, 0, 0, 0])), expected);
        assert_eq!(found(DataLink::LINUX_SLL, &behind(&[&[0; 14][..], &[8, 0]].concat())), expected);
        assert_eq!(found(DataLink::LINUX_SLL2, &behind(&[&[8, 0][..], &[0; 18]].concat())), expected);
        // The trailer that Ethernet pads short frames with is no part of the packet.
        assert_eq!(found(DataLink::ETHERNET, &[&behind(&ethernet)[..], &[0; 9]].concat()), expected);
    }

    #[test]
    fn udp_counts_when_a_port_says_so() {
        let expected = Some(("10.0.0.1:4000 > 10.0.0.2:9899".to_owned(), b"sctp".to_vec()));
        assert_eq!(found(DataLink::RAW, &ipv4_packet(UDP, &udp(4000, 9899, b"sctp"))), expected);
        assert_eq!(find(DataLink::RAW, &ipv4_packet(UDP, &udp(53, 4000, b"dns")), 9899), FrameContent::Other);
        assert_eq!(find(DataLink::RAW, &ipv4_packet(6, b"tcp"), 9899), FrameContent::Other);
    }

    #[test]
    fn ipv6_extension_headers_are_skipped() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 12, 60, 64];
        packet.extend([Ipv6Addr::LOCALHOST.octets(), Ipv6Addr::LOCALHOST.octets()].concat());
        packet.extend([SCTP, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(b"sctp");
        assert_eq!(found(DataLink::RAW, &packet), Some(("::1 > ::1".to_owned(), b"sctp".to_vec())));
    }

    #[test]
    fn fragments_are_named() {
        let mut packet = ipv4_packet(SCTP, b"sctp");
        packet[6] = 0x20;
        assert!(matches!(find(DataLink::RAW, &packet, 9899), FrameContent::Unreadable(_)));
    }

    #[test]
    fn any_prefix_of_a_frame_gives_an_answer() {
        let frame =
            [&[0; 12][..], &[0x81, 0, 0, 5, 0x08, 0], &ipv4_packet(UDP, &udp(9899, 9899, b"sctp"))].concat();
        for len in 0..frame.len() {
            for link in [DataLink::ETHERNET, DataLink::RAW, DataLink::LINUX_SLL2, DataLink::NULL] {
                find(link, &frame[..len], 9899);
            }
        }
    }
}
