//! Control chunks that wait to be sent, each with its path.

use std::net::IpAddr;

use crate::extensions::drop_report::DropReport;
use bytes::Bytes;
use tresse_policy::PathId;
use tresse_wire::{
    Abort, Asconf, AsconfAck, CHUNK_HEADER_LEN, Cause, Causes, Chunk, ChunkKind, Cwr, ErrorChunk, Heartbeat,
    NoRoom, PacketWriter, Pad, Params, Reconfig, Shutdown, Tsn,
};

/// Most control chunks that may wait. A peer that floods this side with requests gets fewer answers.
const LIMIT: usize = 64;

/// Most control chunks that may wait when another report of an error is queued.
const MOST_REPORTS: usize = 8;

/// A control chunk, owned until it is written.
#[derive(Clone, Debug)]
pub(super) enum Control {
    CookieAck,
    /// The TLVs of a HEARTBEAT of this side.
    Heartbeat(Vec<u8>),
    /// The TLVs of a HEARTBEAT that is padded to fill a packet of `len` bytes.
    MtuProbe {
        body: Vec<u8>,
        len: usize,
    },
    /// The TLVs of the peer's HEARTBEAT.
    HeartbeatAck(Bytes),
    /// The parameters of RE-CONFIG.
    Reconfig(Vec<u8>),
    /// The report of a damaged packet of the peer.
    DropReport(Box<DropReport>),
    /// The serial number of ASCONF, the address by which the peer finds the association, and the requests.
    Asconf {
        serial: u32,
        address: IpAddr,
        body: Vec<u8>,
    },
    /// The serial number of ASCONF-ACK, and the responses.
    AsconfAck {
        serial: u32,
        body: Vec<u8>,
    },
    /// The window was reduced for the congestion mark on this TSN.
    Cwr(Tsn),
    /// The cumulative TSN ack is filled in when the chunk is written.
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Error(Reason),
    /// With a cause, if one fits.
    Abort(Option<Reason>),
}

/// An error cause, owned.
#[derive(Clone, Debug)]
pub(super) enum Reason {
    InvalidStream(tresse_wire::StreamId),
    UnrecognisedChunk(Bytes),
    NoUserData(Tsn),
    ProtocolViolation(&'static str),
    User(Vec<u8>),
    CookieWhileShuttingDown,
    UnsupportedHmac(u16),
    IllegalAsconfAck,
}

impl Reason {
    fn cause(&self) -> Cause<'_> {
        match self {
            Reason::InvalidStream(stream) => Cause::InvalidStream(*stream),
            Reason::UnrecognisedChunk(whole) => Cause::UnrecognisedChunk(whole),
            Reason::NoUserData(tsn) => Cause::NoUserData(*tsn),
            Reason::ProtocolViolation(text) => Cause::ProtocolViolation(text.as_bytes()),
            Reason::User(text) => Cause::UserAbort(text),
            Reason::CookieWhileShuttingDown => Cause::CookieWhileShuttingDown,
            Reason::UnsupportedHmac(id) => Cause::UnsupportedHmac(*id),
            Reason::IllegalAsconfAck => Cause::IllegalAsconfAck,
        }
    }
}

/// The queue of control chunks.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    /// In the order of sending; in most cases few.
    waiting: Vec<(PathId, Control)>,
    /// Number of chunks that were dropped instead of being sent.
    unsent: u32,
}

impl ControlQueue {
    /// Queues a chunk for `path`. If too many chunks wait, it is dropped, as if the network had lost it. SHUTDOWN and SHUTDOWN
    /// ACK are always queued, because T2 starts when they leave.
    pub(super) fn push(&mut self, path: PathId, control: Control) {
        if self.is_queued(path, &control) {
            return;
        }
        let ends = matches!(control, Control::Shutdown | Control::ShutdownAck);
        if ends || self.waiting.len() < LIMIT {
            // RFC 9260 §5.1: COOKIE ACK comes first in its packet.
            let place = if matches!(control, Control::CookieAck) { 0 } else { self.waiting.len() };
            self.waiting.insert(place, (path, control));
        } else {
            self.unsent = self.unsent.saturating_add(1);
        }
    }

    /// Returns whether `control` is a COOKIE ACK, SHUTDOWN or SHUTDOWN ACK that already waits for `path`: several packets of the
    /// peer may require one before the next packet of this side leaves.
    fn is_queued(&self, path: PathId, control: &Control) -> bool {
        matches!(control, Control::CookieAck | Control::Shutdown | Control::ShutdownAck)
            && self.waiting.iter().any(|(wanted, waiting)| {
                *wanted == path && std::mem::discriminant(waiting) == std::mem::discriminant(control)
            })
    }

    /// Queues an ERROR that requires no action. It is dropped if many chunks wait: a few reports are enough to find the fault of
    /// a peer that sends nothing but chunks to be reported.
    pub(super) fn report(&mut self, path: PathId, reason: impl FnOnce() -> Reason) {
        if self.waiting.len() < MOST_REPORTS {
            self.waiting.push((path, Control::Error(reason())));
        } else {
            self.unsent = self.unsent.saturating_add(1);
        }
    }

    /// Number of chunks that were dropped instead of being sent.
    pub(super) fn unsent(&self) -> u64 {
        self.unsent.into()
    }

    /// Queues a CWR; it replaces one that still waits for `path`.
    pub(super) fn push_cwr(&mut self, path: PathId, tsn: Tsn) {
        let waits = |(wanted, control): &&mut (PathId, Control)| {
            *wanted == path && matches!(control, Control::Cwr(_))
        };
        match self.waiting.iter_mut().find(waits) {
            Some((_, control)) => *control = Control::Cwr(tsn),
            None => self.push(path, Control::Cwr(tsn)),
        }
    }

    /// Drops all waiting chunks: the association ends with the chunk that is queued next.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Drops the waiting probes of the path MTU.
    pub(super) fn forget_mtu_probes(&mut self) {
        self.waiting.retain(|(_, control)| !matches!(control, Control::MtuProbe { .. }));
    }

    /// Moves chunks that wait for the path `from`, which is no longer used, to the path `to`. Heartbeats, MTU probes and answers
    /// to heartbeats are dropped, because they concern `from` only.
    pub(super) fn move_on(&mut self, from: PathId, to: PathId) {
        let probes = |control: &Control| {
            matches!(control, Control::Heartbeat(_) | Control::HeartbeatAck(_) | Control::MtuProbe { .. })
        };
        self.waiting.retain(|(path, control)| *path != from || !probes(control));
        for (path, _) in &mut self.waiting {
            if *path == from {
                *path = to;
            }
        }
    }

    /// The path of the first chunk.
    pub(super) fn next_path(&self) -> Option<PathId> {
        self.waiting.first().map(|(path, _)| *path)
    }

    /// Length of the packet that the first chunk requires, if it requires any.
    pub(super) fn next_len(&self) -> Option<usize> {
        match self.waiting.first() {
            Some((_, Control::MtuProbe { len, .. })) => Some(*len),
            _ => None,
        }
    }

    /// Writes the chunks that wait for `path`, in order, as far as they fit. Returns whether anything was written, and whether it
    /// forbids DATA in the same packet (RFC 9260 §6.10).
    #[inline]
    pub(super) fn write(&mut self, path: PathId, cumulative: Tsn, writer: &mut PacketWriter<'_>) -> Written {
        if self.waiting.is_empty() {
            Written::default()
        } else {
            self.write_waiting(path, cumulative, writer)
        }
    }

    fn write_waiting(&mut self, path: PathId, cumulative: Tsn, writer: &mut PacketWriter<'_>) -> Written {
        let mut written = Written::default();
        while let Some((_, control)) = self.waiting.first().filter(|(wanted, _)| *wanted == path) {
            // SHUTDOWN COMPLETE must not be bundled (RFC 9260 §6.10), and an MTU probe is alone in its packet.
            let alone = matches!(control, Control::ShutdownComplete | Control::MtuProbe { .. });
            if alone && written.any {
                break;
            }
            let fits = write_one(control, cumulative, writer).is_ok();
            if !fits && written.any {
                break;
            }
            written.any = true;
            written.heartbeat |= matches!(control, Control::Heartbeat(_));
            written.mtu_probe |= matches!(control, Control::MtuProbe { .. });
            written.asconf |= matches!(control, Control::Asconf { .. });
            written.without_data |= !matches!(
                control,
                Control::CookieAck
                    | Control::Heartbeat(_)
                    | Control::HeartbeatAck(_)
                    | Control::Reconfig(_)
                    | Control::DropReport(_)
                    | Control::Asconf { .. }
                    | Control::AsconfAck { .. }
                    | Control::Cwr(_)
                    | Control::Error(_)
            );
            self.unsent = self.unsent.saturating_add(u32::from(!fits));
            self.waiting.remove(0);
            if alone {
                break;
            }
        }
        // Control chunks are rare: an idle association keeps no memory for them.
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        written
    }
}

/// Outcome of `ControlQueue::write`.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) any: bool,
    /// No DATA may be in this packet.
    pub(super) without_data: bool,
    pub(super) heartbeat: bool,
    /// The packet is an MTU probe: no other chunk may be added.
    pub(super) mtu_probe: bool,
    /// The packet has an ASCONF, so it needs a checksum (RFC 9653 §5.2).
    pub(super) asconf: bool,
}

fn write_one(control: &Control, cumulative: Tsn, writer: &mut PacketWriter<'_>) -> Result<(), NoRoom> {
    match control {
        Control::CookieAck => writer.push(&Chunk::CookieAck),
        Control::Heartbeat(body) => writer.push(&Chunk::Heartbeat(Heartbeat { body })),
        Control::MtuProbe { body, .. } => {
            writer.push(&Chunk::Heartbeat(Heartbeat { body }))?;
            // The probe shows only that its own length passes. So the padding leaves no bytes for chunks that the packet does not
            // have, such as AUTH.
            let room = writer.room_for(ChunkKind::PAD);
            let Some(padding) = room.checked_sub(CHUNK_HEADER_LEN) else { return Ok(()) };
            writer.push(&Chunk::Pad(Pad { len: u16::try_from(padding).unwrap_or(u16::MAX) }))
        }
        Control::HeartbeatAck(body) => write_whole(&Chunk::HeartbeatAck(Heartbeat { body }), writer),
        Control::Reconfig(body) => writer.push(&Chunk::Reconfig(Reconfig { params: Params::Wire(body) })),
        Control::DropReport(report) => writer.push(&Chunk::PacketDrop(report.chunk())),
        Control::Asconf { serial, address, body } => {
            let params = Params::Wire(body);
            writer.push(&Chunk::Asconf(Asconf { serial: *serial, address: *address, params }))
        }
        Control::AsconfAck { serial, body } => {
            writer.push(&Chunk::AsconfAck(AsconfAck { serial: *serial, params: Params::Wire(body) }))
        }
        Control::Cwr(tsn) => writer.push(&Chunk::Cwr(Cwr { lowest_tsn: *tsn })),
        Control::Shutdown => writer.push(&Chunk::Shutdown(Shutdown { cumulative_tsn: cumulative })),
        Control::ShutdownAck => writer.push(&Chunk::ShutdownAck),
        Control::ShutdownComplete => writer.push(&Chunk::ShutdownComplete { tag_reflected: false }),
        Control::Error(reason) => {
            write_whole(&Chunk::Error(ErrorChunk { causes: Causes::Values(&[reason.cause()]) }), writer)
        }
        Control::Abort(reason) => {
            let cause = reason.as_ref().map(Reason::cause);
            let causes = Causes::Values(cause.as_slice());
            writer.push(&Chunk::Abort(Abort { tag_reflected: false, causes }))
        }
    }
}

/// Writes a chunk that repeats all that the peer has sent (RFC 9260 §8.3, §3.3.10.6). If it is longer than a packet of the path,
/// it leaves in IP fragments, alone in its packet. It is hardly longer than the chunk that it answers.
fn write_whole(chunk: &Chunk<'_>, writer: &mut PacketWriter<'_>) -> Result<(), NoRoom> {
    writer.push(chunk).or_else(|full| if writer.is_empty() { writer.push_alone(chunk) } else { Err(full) })
}
