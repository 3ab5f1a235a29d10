//! `tresse dissect`: one line for every SCTP packet of a capture.
//!
//! Reads pcap and pcapng. Packets that are not SCTP are only counted. A packet that cannot be read gets a line with the reason.

mod decrypt;
mod link;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

use crate::failure::{Failure, words};
use crate::output;
use link::{FrameContent, SctpPacket};
use tresse::security::Opener;

#[derive(Args)]
pub(crate) struct DissectArgs {
    /// The capture, pcap or pcapng
    pub(crate) file: PathBuf,
    /// UDP port of encapsulated SCTP
    #[arg(long, value_name = "UDP", default_value_t = tresse::DEFAULT_UDP_PORT)]
    pub(crate) port: u16,
    /// Show what is in encrypted packets, with the keys that --key-log wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) key_log: Option<PathBuf>,
}

pub(crate) fn run(args: &DissectArgs) -> Result<(), Failure> {
    let shown = args.file.display().to_string();
    let open = |error: io::Error| Failure::usage(format!("{shown}: {}", words(&error)));
    let mut file = File::open(&args.file).map_err(open)?;
    let mut magic = [0; 4];
    if file.read(&mut magic).map_err(open)? < magic.len() {
        return Err(Failure::usage(format!("{shown}: is no capture: it is shorter than the header of one")));
    }
    let whole = magic.chain(file);
    let opener = args.key_log.as_deref().map(decrypt::read).transpose()?;
    let mut printer = Printer::new(args.port, opener);
    let outcome =
        if magic == PCAPNG_MAGIC { read_pcapng(whole, &mut printer) } else { read_pcap(whole, &mut printer) };
    printer.finish()?;
    match outcome {
        Ok(()) | Err(Stop::Enough) => Ok(()),
        Err(Stop::Capture(error)) => {
            let (after, reason) = (printer.packets, reason(&error));
            Err(Failure::usage(match after {
                0 => format!("{shown}: is no capture in the format pcap or pcapng ({reason})"),
                _ => format!("{shown}: is damaged (after packet {after}: {reason})"),
            }))
        }
        Err(Stop::Output(failure)) => Err(failure),
    }
}

/// Reason for which reading ended early.
enum Stop {
    /// The reader has closed standard output.
    Enough,
    Capture(PcapError),
    Output(Failure),
}

fn read_pcap(file: impl Read, printer: &mut Printer) -> Result<(), Stop> {
    let mut reader = PcapReader::new(file).map_err(Stop::Capture)?;
    let link = reader.header().datalink;
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(Stop::Capture)?;
        printer.packet(Some(packet.timestamp), link, &packet.data)?;
    }
    Ok(())
}

fn read_pcapng(file: impl Read, printer: &mut Printer) -> Result<(), Stop> {
    let mut reader = PcapNgReader::new(file).map_err(Stop::Capture)?;
    let mut interfaces: Vec<(DataLink, Resolution)> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.map_err(Stop::Capture)? {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(interface) => {
                interfaces.push((interface.linktype, Resolution::of(&interface)));
            }
            Block::EnhancedPacket(packet) => {
                let interface = usize::try_from(packet.interface_id).ok().and_then(|id| interfaces.get(id));
                let Some((link, resolution)) = interface else {
                    return Err(Stop::Capture(PcapError::InvalidInterfaceId(packet.interface_id)));
                };
                // The library returns the number of units as if it were nanoseconds.
                let time = resolution.time(packet.timestamp.as_nanos());
                printer.packet(Some(time), *link, &packet.data)?;
            }
            Block::SimplePacket(packet) => {
                let Some((link, _)) = interfaces.first() else {
                    return Err(Stop::Capture(PcapError::InvalidInterfaceId(0)));
                };
                printer.packet(None, *link, &packet.data)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Resolution of the time stamps of one interface, in units a second.
struct Resolution(u128);

impl Resolution {
    fn of(interface: &InterfaceDescriptionBlock<'_>) -> Self {
        let option = interface.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
            _ => None,
        });
        let resolution = option.unwrap_or(MICROSECONDS);
        let exponent = u32::from(resolution & 0x7f);
        let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
        Resolution(base.checked_pow(exponent).unwrap_or(u128::MAX))
    }

    fn time(&self, units: u128) -> Duration {
        let nanos = units.saturating_mul(1_000_000_000) / self.0;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Printer of lines, with counters of packets.
struct Printer {
    port: u16,
    opener: Option<Opener>,
    out: BufWriter<io::Stdout>,
    packets: u64,
    sctp: u64,
    start: Option<Duration>,
}

impl Printer {
    fn new(port: u16, opener: Option<Opener>) -> Self {
        Printer { port, opener, out: BufWriter::new(io::stdout()), packets: 0, sctp: 0, start: None }
    }

    fn packet(&mut self, time: Option<Duration>, link: DataLink, frame: &[u8]) -> Result<(), Stop> {
        self.packets += 1;
        let text = match link::find(link, frame, self.port) {
            FrameContent::Sctp(SctpPacket { from, to, packet }) => {
                self.sctp += 1;
                let clear = self.opener.as_mut().and_then(|opener| decrypt::opened(opener, packet));
                let (packet, how) = clear.as_deref().map_or((packet, ""), |clear| (clear, "decrypted "));
                format!("{from} > {to}  {how}{}", tresse_wire::dissect(packet))
            }
            FrameContent::Unreadable(reason) => reason.to_owned(),
            FrameContent::Other => return Ok(()),
        };
        let since = time.map(|time| time.saturating_sub(*self.start.get_or_insert(time)));
        let since = since.map_or_else(|| "-".to_owned(), |since| format!("{:.6}", since.as_secs_f64()));
        let written = writeln!(self.out, "{:>6} {since:>12}  {text}", self.packets);
        match output::checked(written) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Stop::Enough),
            Err(failure) => Err(Stop::Output(failure)),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        output::checked(self.out.flush())?;
        let _ = writeln!(io::stderr(), "tresse: {} packets, {} of them SCTP", self.packets, self.sctp);
        Ok(())
    }
}

fn reason(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it is cut short".to_owned(),
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it is cut short".to_owned()
        }
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// First four bytes of a pcapng file.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Default resolution of time stamps, as a negative exponent of 10.
const MICROSECONDS: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_have_the_unit_of_their_interface() {
        let at = |resolution, units| {
            let options = vec![InterfaceDescriptionOption::IfTsResol(resolution)];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            Resolution::of(&interface).time(units)
        };
        assert_eq!(at(6, 1_500_000), Duration::from_millis(1500));
        assert_eq!(at(9, 1_500_000), Duration::from_micros(1500));
        assert_eq!(at(0, 3), Duration::from_secs(3));
        assert_eq!(at(0x80 | 10, 512), Duration::from_millis(500));
        assert_eq!(at(0x7f, u128::from(u64::MAX)), Duration::ZERO);
        let default = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
        assert_eq!(Resolution::of(&default).time(7), Duration::from_micros(7));
    }
}
