//! Recordings of an endpoint: a capture of its packets, and a trace of its data in the format of simulations.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use tresse::{AssociationId, AssociationStats, Endpoint, PathStats, Tap, Tapped};
use tresse_sim::pcapng::{CaptureWriter, Interface};
use tresse_sim::{DataSeen, Instant, Trace, ip, reports_in, user_data_in};
use tresse_wire::Tsn;

use crate::failure::Failure;
use crate::output;
use crate::written::{Written, capture_and_trace};

/// Files that are to be recorded.
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
    /// True once an endpoint is being recorded: a tunnel that reconnects has further ones.
    #[arg(skip)]
    begun: Arc<AtomicBool>,
}

impl RecordArgs {
    /// Records `endpoint` from now on; only the first endpoint is recorded.
    ///
    /// # Errors
    /// A file cannot be written, or exists and must not be overwritten.
    pub(crate) fn watch(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        if self.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (pcap, trace) = capture_and_trace(self.pcap.as_deref(), self.trace.as_deref(), self.force)?;
        if pcap.is_none() && trace.is_none() {
            return Ok(());
        }
        let failed = |error| Failure::running(format!("the capture could not be written: {error}"));
        let capture = pcap.map(|file| Capture::new(file, endpoint.udp_port())).transpose().map_err(failed)?;
        endpoint.watch(Box::new(Recorder {
            capture,
            association_trace: trace.map(AssociationTrace::new),
            written_out: Duration::ZERO,
        }));
        Ok(())
    }
}

/// Writer of the capture and the trace.
struct Recorder {
    capture: Option<Capture>,
    association_trace: Option<AssociationTrace>,
    /// Time at which the files were last written out.
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
        if let Some(association_trace) = &mut self.association_trace {
            association_trace.note(at, tapped, leaves);
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
        if let Some(association_trace) = &mut self.association_trace {
            association_trace.on_state(at, id, association, paths);
            if let Some(error) = association_trace.trace.as_mut().and_then(Trace::take_failure) {
                output::say(&format!("the trace ends here: {error}"));
                self.association_trace = None;
            }
        }
        if at.saturating_sub(self.written_out) >= WRITTEN_OUT_EVERY {
            self.written_out = at;
            // A failure now occurs again with the next packet, and is reported then.
            let _ = self.capture.as_mut().map(|capture| capture.writer.output().flush());
            let _ = self.association_trace.as_mut().and_then(|one| Some(one.trace.as_mut()?.flush()));
        }
    }
}

/// A capture of IP packets. Their IP and UDP headers are synthetic, because the system does not show the real ones.
struct Capture {
    writer: CaptureWriter<Written>,
    /// The own UDP port; 0 over raw IP.
    udp_port: u16,
    /// Time at which the endpoint was bound, since 1970.
    begin: Duration,
    packet: Vec<u8>,
}

impl Capture {
    fn new(file: Written, udp_port: u16) -> io::Result<Self> {
        let mut writer = CaptureWriter::new(file, [Interface::default()])?;
        writer.output().keep();
        let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Capture { writer, udp_port, begin, packet: Vec::new() })
    }

    fn record(&mut self, at: Duration, tapped: &Tapped<'_>, leaves: bool) -> io::Result<()> {
        let (local, remote) = (tapped.local, tapped.remote);
        let ports = tapped.udp_port.map(|peers| (self.udp_port, peers));
        let (ends, ports) = match leaves {
            true => ((local, remote), ports),
            false => ((remote, local), ports.map(|(own, peers)| (peers, own))),
        };
        self.packet.clear();
        ip::write_sctp(&mut self.packet, ends, ports, tapped.ecn, tapped.packet);
        self.writer.write(0, self.begin + at, &self.packet, None)
    }
}

/// The trace of the first association.
struct AssociationTrace {
    /// The file, until the first association exists.
    file: Option<Written>,
    trace: Option<Trace<Written>>,
    id: Option<AssociationId>,
    /// The ends of its paths, the own one first.
    ends: Vec<(IpAddr, IpAddr)>,
    /// The first TSN of this side, and of the peer: a trace counts from 1.
    first: [Option<Tsn>; 2],
    last_state: Duration,
}

impl AssociationTrace {
    fn new(mut file: Written) -> Self {
        file.keep();
        let last_state = Duration::ZERO;
        AssociationTrace {
            file: Some(file),
            trace: None,
            id: None,
            ends: Vec::new(),
            first: [None; 2],
            last_state,
        }
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

/// Least time between two states in the trace: one for each packet would add little.
const BETWEEN_STATES: Duration = Duration::from_millis(1);
/// Interval at which recordings are written to the files, also for a command that is killed later.
const WRITTEN_OUT_EVERY: Duration = Duration::from_millis(500);
