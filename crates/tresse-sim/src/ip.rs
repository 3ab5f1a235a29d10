//! IP packets as in captures: headers, and the checksum that UDP and TCP use, too.

use std::net::IpAddr;

use tresse_proto::Ecn;

/// Length of an IPv4 header without options.
pub const IPV4_HEADER_LEN: usize = 20;
/// Protocol numbers (IANA).
pub(crate) const SCTP: u8 = 132;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;

/// Source and destination address.
pub type Ends = (IpAddr, IpAddr);

/// Appends the header of an IP packet with so many bytes of payload: of IPv4 (RFC 791) if both ends have IPv4
/// addresses, else of IPv6 (RFC 8200). The header forbids fragmentation and has a hop limit of 64.
pub fn write_header(buffer: &mut Vec<u8>, ends: Ends, protocol: u8, ecn: Ecn, payload_len: usize) {
    let IpAddr::V4(_) = ends.0 else { return write_ipv6_header(buffer, ends, protocol, ecn, payload_len) };
    let IpAddr::V4(_) = ends.1 else { return write_ipv6_header(buffer, ends, protocol, ecn, payload_len) };
    let begin = buffer.len();
    buffer.extend([0x45, ecn.bits()]);
    buffer.extend(((IPV4_HEADER_LEN + payload_len) as u16).to_be_bytes());
    buffer.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    buffer.extend(octets(ends));
    let sum = internet_checksum(&buffer[begin..]);
    buffer[begin + 10..begin + 12].copy_from_slice(&sum.to_be_bytes());
}

fn write_ipv6_header(buffer: &mut Vec<u8>, ends: Ends, protocol: u8, ecn: Ecn, payload_len: usize) {
    buffer.extend([0x60, ecn.bits() << 4, 0, 0]);
    buffer.extend((payload_len as u16).to_be_bytes());
    buffer.extend([protocol, 64]);
    buffer.extend(octets(ends));
}

/// Appends an SCTP packet in IP, or in UDP between these ports (RFC 6951).
pub fn write_sctp(buffer: &mut Vec<u8>, ends: Ends, ports: Option<(u16, u16)>, ecn: Ecn, packet: &[u8]) {
    let Some((source, destination)) = ports else {
        write_header(buffer, ends, SCTP, ecn, packet.len());
        return buffer.extend(packet);
    };
    let length = UDP_HEADER_LEN + packet.len();
    write_header(buffer, ends, UDP, ecn, length);
    let begin = buffer.len();
    buffer.extend([source, destination, length as u16, 0].map(u16::to_be_bytes).concat());
    buffer.extend(packet);
    // Zero would mean that there is no checksum (RFC 768).
    let sum = match transport_checksum(ends, UDP, &buffer[begin..]) {
        0 => 0xffff,
        sum => sum,
    };
    buffer[begin + 6..begin + 8].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the checksum of a UDP packet or TCP segment whose checksum field is 0, with its pseudo header (RFC 9293 §3.1).
pub(crate) fn transport_checksum(ends: Ends, protocol: u8, segment: &[u8]) -> u16 {
    let mut summed = octets(ends);
    summed.extend([0, protocol]);
    summed.extend((segment.len() as u16).to_be_bytes());
    summed.extend(segment);
    internet_checksum(&summed)
}

/// Returns the one's complement sum of RFC 1071 over bytes in which the checksum field is 0.
pub(crate) fn internet_checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Returns the octets of both addresses: of IPv4 if both are, else of IPv6.
fn octets(ends: Ends) -> Vec<u8> {
    let mapped = |address| match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => [source.octets(), destination.octets()].concat(),
        (source, destination) => [mapped(source), mapped(destination)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_sums_that_come_out() {
        for (own, peer) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let ends: Ends = (own.parse().expect("an address"), peer.parse().expect("an address"));
            let header = if ends.0.is_ipv4() { IPV4_HEADER_LEN } else { 40 };
            let mut packet = Vec::new();
            write_sctp(&mut packet, ends, Some((7, 9899)), Ecn::NotEct, &[1, 2, 3, 4, 5]);
            assert_eq!(packet.len(), header + UDP_HEADER_LEN + 5);
            // Over a packet with its checksum, the sum is 0 (RFC 1071).
            assert_eq!(transport_checksum(ends, UDP, &packet[header..]), 0, "{own}");
            assert!(header != IPV4_HEADER_LEN || internet_checksum(&packet[..header]) == 0);
            packet.clear();
            write_sctp(&mut packet, ends, None, Ecn::Ce, &[6; 12]);
            assert_eq!(packet[header..], [6; 12]);
        }
    }

    #[test]
    fn the_checksum_notices_a_bit() {
        let mut header = Vec::new();
        write_header(&mut header, ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), SCTP, Ecn::NotEct, 16);
        assert_eq!((&header[..4], header[9]), (&[0x45, 0, 0, 36][..], 132));
        assert_eq!(internet_checksum(&header), 0);
        header[15] ^= 1;
        assert_ne!(internet_checksum(&header), 0);
    }
}
