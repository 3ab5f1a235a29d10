//! Files of captured IP packets (pcapng), with times in nanoseconds.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

/// An interface on which packets are captured.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Interface<'a> {
    /// Name of the interface.
    pub name: Option<&'a str>,
    /// Bits per second.
    pub rate: Option<u64>,
}

/// A capture being written to `W`.
pub struct CaptureWriter<W: Write> {
    writer: PcapNgWriter<W>,
}

impl<W: Write> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter").finish_non_exhaustive()
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture on these interfaces.
    ///
    /// # Errors
    /// Error of the output.
    pub fn new<'a>(output: W, interfaces: impl IntoIterator<Item = Interface<'a>>) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(output).map_err(io_error)?;
        for Interface { name, rate } in interfaces {
            let name = name.map(|name| InterfaceDescriptionOption::IfName(Cow::Borrowed(name)));
            let rate = rate.map(InterfaceDescriptionOption::IfSpeed);
            let resolution = InterfaceDescriptionOption::IfTsResol(NANOSECONDS);
            let options = name.into_iter().chain(rate).chain([resolution]).collect();
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_pcapng_block(interface).map_err(io_error)?;
        }
        Ok(CaptureWriter { writer })
    }

    /// Writes an IP packet that was on the interface at this position at the time `at`.
    ///
    /// # Errors
    /// Error of the output.
    pub fn write(
        &mut self,
        interface: u32,
        at: Duration,
        packet: &[u8],
        comment: Option<String>,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: at,
            original_len: packet.len() as u32,
            data: Cow::Borrowed(packet),
            options: comment.map(|text| EnhancedPacketOption::Comment(text.into())).into_iter().collect(),
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(io_error)
    }

    /// Returns the output.
    pub fn output(&mut self) -> &mut W {
        self.writer.get_mut()
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Timestamps count 10^-9 s.
const NANOSECONDS: u8 = 9;
