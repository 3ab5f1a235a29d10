//! Captures: every packet passed to a link, as pcapng with virtual time.
//!
//! Each link is an interface. A packet is recorded where it enters the link, as by a capture on the sending host. A
//! packet that the link then drops has a comment about that. The record is a copy with the real checksum; the
//! simulation continues with its own packet. A queue may drop the packet later, which is not yet known here.

use std::io::Write;
use std::time::Duration;

use tresse_proto::Instant;

use crate::ip::{self, SCTP, TCP};
use crate::link::PacketFate;
use crate::packet::{Packet, Protocol};
use crate::pcapng::{CaptureWriter, Interface};
use crate::route::LinkId;
use crate::topology::Topology;

/// A capture being written.
pub(crate) struct Capture<'w> {
    writer: CaptureWriter<&'w mut dyn Write>,
    packet: Vec<u8>,
    failed: Option<std::io::Error>,
}

impl<'w> Capture<'w> {
    /// Starts a capture with one interface for each link.
    pub(crate) fn new(output: &'w mut dyn Write, topology: &Topology) -> Result<Self, std::io::Error> {
        let interfaces = topology
            .edges
            .iter()
            .map(|edge| Interface { name: Some(edge.name.as_str()), rate: Some(edge.spec.rate) });
        let writer = CaptureWriter::new(output, interfaces)?;
        Ok(Capture { writer, packet: Vec::new(), failed: None })
    }

    /// Records a packet that was passed to `link`. After the first failure to write, which is kept, nothing is recorded.
    pub(crate) fn record(&mut self, now: Instant, link: LinkId, packet: &Packet, verdict: PacketFate) {
        if self.failed.is_some() {
            return;
        }
        write_packet(&mut self.packet, packet);
        let comment = match verdict {
            PacketFate::Arrives(_) | PacketFate::Waits => None,
            PacketFate::Altered { damaged, twice, marked, .. } => {
                let fates = [(damaged, "damaged"), (twice, "doubled"), (marked, "marked")];
                let fates: Vec<&str> = fates.iter().filter(|(met, _)| *met).map(|(_, fate)| *fate).collect();
                Some(format!("will be {}", fates.join(" and ")))
            }
            PacketFate::Dropped(cause) => Some(format!("dropped: {}", cause.name())),
        };
        let at = Duration::from_nanos(now.as_nanos());
        self.failed = self.writer.write(u32::from(link.0), at, &self.packet, comment).err();
    }

    /// Returns the failure since the last call, if there was one.
    pub(crate) fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }
}

/// Writes a packet behind its IP header, with its checksum unless another link damaged the packet.
fn write_packet(buffer: &mut Vec<u8>, packet: &Packet) {
    let ends = (packet.source, packet.destination);
    let protocol = match packet.protocol {
        Protocol::Sctp | Protocol::SealedSctp => SCTP,
        Protocol::Tcp => TCP,
    };
    buffer.clear();
    ip::write_header(buffer, ends, protocol, packet.ecn, packet.payload.len());
    let begin = buffer.len();
    buffer.extend_from_slice(&packet.payload);
    if packet.damaged {
        return;
    }
    match packet.protocol {
        Protocol::Sctp => tresse_wire::seal(&mut buffer[begin..]),
        Protocol::SealedSctp => {}
        Protocol::Tcp => {
            let sum = ip::transport_checksum(ends, TCP, &buffer[begin..]);
            if let Some(field) = buffer.get_mut(begin + 16..begin + 18) {
                field.copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tresse_proto::Ecn;

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
        assert!(tresse_wire::Packet::parse(&packet[20..], tresse_wire::ChecksumRule::Verify).is_ok());
    }

    #[test]
    fn tcp_segments_get_the_sum_over_addresses_and_all() {
        // A segment made by hand: ports 1 and 2, a header length of 5 words, all else 0; 17 bytes of payload.
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
        capture.record(Instant::ZERO, LinkId(0), &packet, PacketFate::Arrives(Instant::ZERO));
        assert!(capture.take_failure().is_some());
    }
}
