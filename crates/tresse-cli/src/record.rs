//! Recordings of what an endpoint does: a capture of its packets, and a trace of its data as simulations write one.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use tresse::{AssociationId, AssociationStats, Endpoint, PathStats, Tap, Tapped};
use tresse_sim::{DataSeen, Instant, Trace, reports_in, user_data_in};
use tresse_wire::Tsn;

use crate::failure::Failure;
use crate::output;
use crate::written::Written;

/// What is to be recorded.
#[derive(Args, Clone, Default)]
pub(crate) struct RecordArgs {
    /// Write a capture of all packets of this side, as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a trace: what happens to this side's data in its first association, one JSON object a line (docs/scenarios.md)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Whether an endpoint is being recorded: a tunnel that reconnects has further ones.
    #[arg(skip)]
    begun: Arc<AtomicBool>,
}

impl RecordArgs {
    /// Records what `endpoint` does from now on; only the first endpoint is recorded.
    ///
    /// # Errors
    /// Files that cannot be written, or exist.
    pub(crate) fn watch(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        let create = |option, path: &Option<PathBuf>| {
            path.as_deref().map(|path| Written::create(option, path, self.force)).transpose()
        };
        if self.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (pcap, trace) = (create("--pcap", &self.pcap)?, create("--trace", &self.trace)?);
        if pcap.is_none() && trace.is_none() {
            return Ok(());
        }
        let failed = |error| Failure::running(format!("the capture could not be written: {error}"));
        let capture = pcap.map(|file| Capture::new(file, endpoint.udp_port())).transpose().map_err(failed)?;
        endpoint.watch(Box::new(Recorder {
            capture,
            following: trace.map(Following::new),
            written_out: Duration::ZERO,
        }));
        Ok(())
    }
}

/// Writes both.
struct Recorder {
    capture: Option<Capture>,
    following: Option<Following>,
    /// When the files were last written out.
    written_out: Duration,
}

impl Recorder {
    fn note(&mut self, at: Duration, tapped: &Tapped<'_>, leaves: bool) {
        if let Some(capture) = &mut self.capture
            && let Err(error) = capture.record(at, tapped, leaves)
        {
            output::say(&format!("the capture ends here: {error}"));
            self.capture = None;
        }
        if let Some(following) = &mut self.following {
            following.note(at, tapped, leaves);
        }
    }
}

impl Tap for Recorder {
    fn on_sent(&mut self, at: Duration, packet: &Tapped<'_>) {
        self.note(at, packet, true);
    }

    fn on_received(&mut self, at: Duration, packet: &Tapped<'_>) {
        self.note(at, packet, false);
    }

    fn on_state(
        &mut self,
        at: Duration,
        id: AssociationId,
        association: &AssociationStats,
        paths: &[PathStats],
    ) {
        if let Some(following) = &mut self.following {
            following.on_state(at, id, association, paths);
            if let Some(error) = following.trace.as_mut().and_then(Trace::take_failure) {
                output::say(&format!("the trace ends here: {error}"));
                self.following = None;
            }
        }
        if at.saturating_sub(self.written_out) >= WRITTEN_OUT_EVERY {
            self.written_out = at;
            // What fails now fails again with the next packet.
            let _ = self.capture.as_mut().map(|capture| capture.writer.get_mut().flush());
            let _ = self.following.as_mut().and_then(|one| Some(one.trace.as_mut()?.flush()));
        }
    }
}

/// A capture of IP packets, of which the headers are made up: the system does not show them.
struct Capture {
    writer: PcapNgWriter<Written>,
    /// The own UDP port; 0 over raw IP.
    udp_port: u16,
    /// When the endpoint was bound, since 1970.
    begin: Duration,
    packet: Vec<u8>,
}

impl Capture {
    fn new(file: Written, udp_port: u16) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(file).map_err(io_error)?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)],
        };
        writer.write_pcapng_block(interface).map_err(io_error)?;
        writer.get_mut().keep();
        let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Capture { writer, udp_port, begin, packet: Vec::new() })
    }

    fn record(&mut self, at: Duration, tapped: &Tapped<'_>, leaves: bool) -> io::Result<()> {
        let (own, peers) = ((tapped.local, self.udp_port), (tapped.remote, tapped.udp_port.unwrap_or(0)));
        let (from, to) = if leaves { (own, peers) } else { (peers, own) };
        self.packet.clear();
        write_packet(&mut self.packet, from, to, tapped);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: self.begin + at,
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(&self.packet),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(io_error)
    }
}

/// Writes an IP packet, of UDP where the peer has a port.
fn write_packet(packet: &mut Vec<u8>, from: (IpAddr, u16), to: (IpAddr, u16), tapped: &Tapped<'_>) {
    let udp = tapped.udp_port.is_some();
    let protocol = if udp { UDP } else { SCTP };
    let length = (tapped.packet.len() + if udp { UDP_HEADER } else { 0 }) as u16;
    let mut pseudo = Vec::new();
    match (from.0, to.0) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let begin = packet.len();
            packet.extend([0x45, tapped.ecn]);
            packet.extend((length + IPV4_HEADER).to_be_bytes());
            // Not to be fragmented, 64 hops.
            packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            let sum = checksum(&packet[begin..]);
            packet[begin + 10..begin + 12].copy_from_slice(&sum.to_be_bytes());
            pseudo.extend([source.octets(), destination.octets()].concat());
        }
        (source, destination) => {
            let octets = |address| match address {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            packet.extend([0x60, tapped.ecn << 4, 0, 0]);
            packet.extend(length.to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend(octets(source));
            packet.extend(octets(destination));
            pseudo.extend([octets(source), octets(destination)].concat());
        }
    }
    if udp {
        let header = [from.1, to.1, length].map(u16::to_be_bytes).concat();
        pseudo.extend([0, protocol]);
        pseudo.extend(length.to_be_bytes());
        pseudo.extend(&header);
        pseudo.extend([0, 0]);
        pseudo.extend(tapped.packet);
        let sum = checksum(&pseudo);
        packet.extend(header);
        // Zero would say that there is none (RFC 768).
        packet.extend(if sum == 0 { [0xff; 2] } else { sum.to_be_bytes() });
    }
    packet.extend(tapped.packet);
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The trace of one association: the first there is.
struct Following {
    /// Until the association is there.
    file: Option<Written>,
    trace: Option<Trace<Written>>,
    id: Option<AssociationId>,
    /// The ends of its paths, the own one first.
    ends: Vec<(IpAddr, IpAddr)>,
    /// The first TSN of this side, and of the peer: a trace counts from 1.
    first: [Option<Tsn>; 2],
    last_state: Duration,
}

impl Following {
    fn new(mut file: Written) -> Self {
        file.keep();
        let last_state = Duration::ZERO;
        Following { file: Some(file), trace: None, id: None, ends: Vec::new(), first: [None; 2], last_state }
    }

    fn on_state(
        &mut self,
        at: Duration,
        id: AssociationId,
        association: &AssociationStats,
        paths: &[PathStats],
    ) {
        if *self.id.get_or_insert(id) != id {
            return;
        }
        self.ends = paths.iter().map(|path| (path.local, path.remote)).collect();
        if let Some(file) = self.file.take() {
            self.trace = Some(Trace::new(file, "measured", 0, paths.len()));
        } else if at.saturating_sub(self.last_state) < BETWEEN_STATES {
            return;
        }
        self.last_state = at;
        if let Some(trace) = &mut self.trace {
            trace.on_state(instant(at), association, paths);
        }
    }

    fn note(&mut self, at: Duration, tapped: &Tapped<'_>, leaves: bool) {
        let Some(trace) = &mut self.trace else { return };
        let Some(path) = self.ends.iter().position(|ends| *ends == (tapped.local, tapped.remote)) else {
            return;
        };
        let [own, peers] = &mut self.first;
        let first = if leaves { own } else { peers };
        for (tsn, bytes) in user_data_in(tapped.packet) {
            let first = *first.get_or_insert(tsn);
            let data = DataSeen { path, tsn: tsn.distance_from(first.prev()), bytes };
            match leaves {
                true => trace.on_sent(instant(at), data, false),
                false => trace.on_arrived(instant(at), data),
            }
        }
        if let Some(first) = self.first[0].filter(|_| !leaves) {
            for (cumulative, window) in reports_in(tapped.packet) {
                trace.on_report(instant(at), path, cumulative.distance_from(first.prev()), window);
            }
        }
    }
}

fn instant(at: Duration) -> Instant {
    Instant::ZERO + at
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// Timestamps count 10^-9 s.
const NANOSECONDS: u8 = 9;
const IPV4_HEADER: u16 = 20;
const UDP_HEADER: usize = 8;
/// Protocol numbers (IANA).
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// A state for each packet would say little more.
const BETWEEN_STATES: Duration = Duration::from_millis(1);
/// What was recorded is in the files so long after, also of a command that is killed.
const WRITTEN_OUT_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_sums_that_come_out() {
        for (own, peer) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let [local, remote]: [IpAddr; 2] = [own, peer].map(|text| text.parse().expect("an address"));
            let mut packet = Vec::new();
            let tapped = Tapped::new(local, remote, Some(9899), &[1, 2, 3, 4, 5]);
            write_packet(&mut packet, (local, 7), (remote, 9899), &tapped);
            let header = if local.is_ipv4() { 20 } else { 40 };
            assert_eq!(packet.len(), header + UDP_HEADER + 5);
            let ends = if local.is_ipv4() { 12..20 } else { 8..40 };
            let pseudo = [&packet[ends], &[0, UDP, 0, 13], &packet[header..]].concat();
            assert_eq!(checksum(&pseudo), 0, "{own}");
            if local.is_ipv4() {
                assert_eq!(checksum(&packet[..20]), 0);
            }
        }
    }
}
