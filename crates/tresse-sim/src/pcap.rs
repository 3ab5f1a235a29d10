//! Captures: every packet handed to a link, as pcapng with virtual time.
//!
//! Each link is an interface, and a packet is recorded where it enters the link, as a capture on the sending host
//! would; a packet that the link then drops says so in its comment. Packets are sealed here with their real
//! checksums, in a copy: the simulation goes on with what it had. What a queue drops later, when the packet's turn has
//! come, is not yet known here.

use std::borrow::Cow;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use tresse_proto::{Ecn, Instant};

use crate::link::Verdict;
use crate::network::{Packet, Protocol};
use crate::route::LinkId;
use crate::topology::Topology;

/// Length of the IPv4 header that every simulated packet has.
pub(crate) const IPV4_HEADER_LEN: usize = 20;
/// Protocol numbers (IANA).
const SCTP: u8 = 132;
const TCP: u8 = 6;
/// Timestamps count 10^-9 s.
const NANOSECONDS: u8 = 9;

/// A capture being written.
pub(crate) struct Capture<'w> {
    writer: PcapNgWriter<&'w mut dyn Write>,
    packet: Vec<u8>,
    failed: Option<std::io::Error>,
}

impl<'w> Capture<'w> {
    /// Starts a capture with one interface for each link.
    pub(crate) fn new(output: &'w mut dyn Write, topology: &Topology) -> Result<Self, std::io::Error> {
        let mut writer = PcapNgWriter::new(output).map_err(io_error)?;
        for edge in &topology.edges {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(edge.name.as_str())),
                    InterfaceDescriptionOption::IfSpeed(edge.spec.rate),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(io_error)?;
        }
        Ok(Capture { writer, packet: Vec::new(), failed: None })
    }

    /// Records a packet that was handed to `link`. The first failure to write is kept, and nothing follows it.
    pub(crate) fn record(&mut self, now: Instant, link: LinkId, packet: &Packet, verdict: Verdict) {
        if self.failed.is_some() {
            return;
        }
        write_packet(&mut self.packet, packet);
        let comment = match verdict {
            Verdict::Arrives(_) | Verdict::Waits => None,
            Verdict::Altered { damaged, twice, marked, .. } => {
                let fates = [(damaged, "damaged"), (twice, "doubled"), (marked, "marked")];
                let fates: Vec<&str> = fates.iter().filter(|(met, _)| *met).map(|(_, fate)| *fate).collect();
                Some(format!("will be {}", fates.join(" and ")))
            }
            Verdict::Dropped(cause) => Some(format!("dropped: {}", cause.name())),
        };
        let options = comment.map(|text| EnhancedPacketOption::Comment(text.into())).into_iter().collect();
        let block = EnhancedPacketBlock {
            interface_id: u32::from(link.0),
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(&self.packet),
            options,
        };
        if let Err(error) = self.writer.write_pcapng_block(block) {
            self.failed = Some(io_error(error));
        }
    }

    /// What went wrong since the last call, if something did.
    pub(crate) fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }
}

/// Writes a packet behind an IPv4 header, with a sealed checksum unless it came damaged from another link.
/// Addresses of the other family, which no topology has so far, are written as 0.0.0.0.
fn write_packet(buffer: &mut Vec<u8>, packet: &Packet) {
    let payload = &packet.payload;
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => [0; 4],
    };
    let length = (IPV4_HEADER_LEN + payload.len()) as u16;
    let mut header = [0; IPV4_HEADER_LEN];
    header[0] = 0x45; // version 4, five words of header
    header[1] = codepoint(packet.ecn);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6] = 0x40; // do not fragment
    header[8] = 64; // time to live
    header[9] = match packet.protocol {
        Protocol::Sctp | Protocol::SealedSctp => SCTP,
        Protocol::Tcp => TCP,
    };
    header[12..16].copy_from_slice(&octets(packet.source));
    header[16..20].copy_from_slice(&octets(packet.destination));
    let checksum = internet_checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    buffer.clear();
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
    if packet.damaged {
        return;
    }
    match packet.protocol {
        Protocol::Sctp => tresse_wire::seal(&mut buffer[IPV4_HEADER_LEN..]),
        Protocol::SealedSctp => {}
        Protocol::Tcp => seal_tcp(buffer),
    }
}

/// The last two bits of the octet that was the type of service (RFC 3168 §5).
fn codepoint(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// Writes the checksum of the TCP segment in an IPv4 packet: over addresses, protocol, length and the segment.
fn seal_tcp(packet: &mut [u8]) {
    let length = (packet.len() - IPV4_HEADER_LEN) as u16;
    let mut summed = packet[12..20].to_vec();
    summed.extend([0, TCP]);
    summed.extend(length.to_be_bytes());
    summed.extend(&packet[IPV4_HEADER_LEN..]);
    if let Some(field) = packet.get_mut(IPV4_HEADER_LEN + 16..IPV4_HEADER_LEN + 18) {
        field.copy_from_slice(&internet_checksum(&summed).to_be_bytes());
    }
}

/// The one's complement sum of RFC 1071 over bytes among which the checksum field is 0.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn io_error(error: PcapError) -> std::io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => std::io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sctp: Vec<u8>) -> Packet {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        Packet {
            source,
            destination,
            ecn: Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::Sctp,
            payload: sctp.into(),
            damaged: false,
        }
    }

    #[test]
    fn packets_get_a_valid_header_and_checksum() {
        let mut sctp = vec![0; 16];
        sctp[..4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
        let sent = packet(sctp);
        let mut packet = Vec::new();
        write_packet(&mut packet, &sent);
        assert_eq!(packet.len(), 36);
        assert_eq!(packet[..4], [0x45, 0, 0, 36]);
        assert_eq!(packet[9], 132);
        assert_eq!(packet[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        let mut header: [u8; IPV4_HEADER_LEN] = packet[..20].try_into().expect("20 bytes");
        // Summed over a header that holds its checksum, the result is 0 (RFC 1071).
        assert_eq!(internet_checksum(&header), 0);
        header[15] ^= 1;
        assert_ne!(internet_checksum(&header), 0);
        assert!(tresse_wire::Packet::parse(&packet[20..], tresse_wire::ChecksumRule::Verify).is_ok());
    }

    #[test]
    fn tcp_segments_get_the_sum_over_addresses_and_all() {
        // Made by hand: ports 1 and 2, nothing else but a header length of 5 words; 17 bytes of payload.
        let mut segment = vec![0; 37];
        (segment[1], segment[3], segment[12], segment[36]) = (1, 2, 0x50, 0x80);
        let mut packet = Packet { protocol: Protocol::Tcp, ..packet(segment) };
        let mut written = Vec::new();
        write_packet(&mut written, &packet);
        // 0a00 + 0001 + 0a00 + 0002 + 0006 + 0025 + 0001 + 0002 + 5000 + 8000 = e431.
        assert_eq!((written[9], &written[36..38]), (6, &(!0xe431_u16).to_be_bytes()[..]));
        packet.payload = Vec::new().into();
        write_packet(&mut written, &packet);
        assert_eq!(written.len(), 20, "no room for a checksum");
    }

    #[test]
    fn a_full_disk_is_reported_once_and_stops_the_capture() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                if self.0 < bytes.len() {
                    return Err(std::io::ErrorKind::StorageFull.into());
                }
                self.0 -= bytes.len();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut disk = Full(50);
        let mut capture = Capture::new(&mut disk, &Topology::default()).expect("room for the section header");
        let packet = packet(vec![0; 1000]);
        capture.record(Instant::ZERO, LinkId(0), &packet, Verdict::Arrives(Instant::ZERO));
        assert!(capture.take_failure().is_some());
    }
}
