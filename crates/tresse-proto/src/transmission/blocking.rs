//! Buffer held by early arrivals: chunks that are acknowledged, and kept until what
//! was sent before them has arrived (GLOBECOM 2010 paper, §IV-C).

use tresse_policy::PathId;
use tresse_policy::sharing::reinject::chunk_rescheduling::{EarlyArrivals, Threshold};

use super::{PathLoad, Transmission};
use crate::config::{BufferPolicy, ChunkRescheduling};

impl Transmission {
    /// How many bytes may still be sent before one of the buffers is full.
    pub(crate) fn headroom(&self) -> usize {
        let kept: usize = self.outstanding.loads.iter().map(|load| load.queued).sum();
        self.peer_window().min(self.rules.send_buffer.saturating_sub(kept))
    }

    /// Whether the report on a chunk of `len` bytes is wanted at once (RFC 7053 §4.2): the buffers are full, so that
    /// nothing follows it, and the peer would wait for a second packet. Where many are under way, and the buffers are
    /// not held by early arrivals, the reports on those let others follow. But where losses keep everybody waiting behind
    /// few packets, any report that waits for one more costs too much; also that on a chunk that `fills` its path's window.
    pub(crate) fn hurries(&self, len: usize, full: usize, fills: impl FnOnce() -> bool) -> bool {
        if !self.rules.immediate_sack_when_full {
            return false;
        }
        if self.headroom() >= len + full {
            return self.mends_by_copies() && fills();
        }
        self.outstanding.flight <= FEW_PACKETS * full
            || self.outstanding.held_early() > 0
            || self.mends_by_copies()
    }

    /// Whether chunks of `path` that arrived early fill one of the watched buffers beyond the settings' threshold, or the
    /// path's part of it where buffers are split between `paths` paths.
    pub(crate) fn fills_buffer_early(&self, path: PathId, paths: usize) -> bool {
        let Some(load) = self.outstanding.load(path) else { return false };
        let early = EarlyArrivals {
            kept: self.kept(path, load),
            promised: load.promised,
            send_buffer: self.rules.send_buffer,
            receive_buffer: self.peer_window()
                + self.outstanding.held.saturating_sub(self.outstanding.assigned()),
        };
        let parts = if self.rules.buffers == BufferPolicy::None { 1 } else { paths };
        let threshold = Threshold { percent: self.rules.rescheduling_threshold, parts };
        match self.rules.chunk_rescheduling {
            ChunkRescheduling::Off | ChunkRescheduling::InTime => false,
            ChunkRescheduling::Sender => early.fill_sender(threshold),
            ChunkRescheduling::Receiver => early.fill_receiver(threshold),
            ChunkRescheduling::Both => early.fill_sender(threshold) || early.fill_receiver(threshold),
        }
    }

    /// Bytes of `path` that arrived before something with a lower TSN, as far as the peer says so.
    pub(crate) fn early_on(&self, path: PathId) -> usize {
        self.outstanding.load(path).map_or(0, |load| self.kept(path, load) + load.promised)
    }

    /// Bytes that the sender keeps although they are neither under way nor about to be.
    fn kept(&self, path: PathId, load: &PathLoad) -> usize {
        (load.queued + self.copied_on(path)).saturating_sub(load.flight + self.outstanding.assigned_on(path))
    }
}

/// With so few full packets under way, every second of which is reported, the last one may be alone.
const FEW_PACKETS: usize = 2;
