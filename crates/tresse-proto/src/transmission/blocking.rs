//! How much of a buffer is held by what arrived early: chunks that are acknowledged, and kept all the same until what
//! was sent before them has arrived (GLOBECOM 2010 paper, §IV-C).

use tresse_policy::PathId;

use super::{PathLoad, Transmission};
use crate::config::{BufferSplit, ChunkRescheduling};

impl Transmission {
    /// How many bytes may still be sent before one of the buffers is full.
    pub(crate) fn headroom(&self) -> usize {
        let kept: usize = self.loads.iter().map(|load| load.queued).sum();
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
        self.flight <= FEW_PACKETS * full || self.held_early() > 0 || self.mends_by_copies()
    }

    /// Whether chunks of `path` that arrived early hold more than the settings' share of one of the watched buffers,
    /// or of the path's part of it where buffers are split between `paths` paths.
    ///
    /// The sender keeps what was not acknowledged for good, the receiver also what it promised to keep, less what
    /// the application has taken. Which ordered data that is cannot be told from here, so all of it counts.
    pub(crate) fn blocks(&self, path: PathId, paths: usize) -> bool {
        let Some(load) = self.load(path) else { return false };
        let parts = if self.rules.buffer_split == BufferSplit::None { 1 } else { paths };
        let exceeds = |held: usize, buffer: usize| {
            100 * parts * held > usize::from(self.rules.rescheduling_threshold) * buffer
        };
        let (kept, promised) = (self.kept(path, load), load.promised);
        if kept + promised == 0 {
            return false;
        }
        let sender = || exceeds(kept, self.rules.send_buffer);
        let receiver =
            || exceeds(kept + promised, self.peer_window() + self.held.saturating_sub(self.assigned()));
        match self.rules.chunk_rescheduling {
            ChunkRescheduling::Off | ChunkRescheduling::InTime => false,
            ChunkRescheduling::Sender => sender(),
            ChunkRescheduling::Receiver => receiver(),
            ChunkRescheduling::Both => sender() || receiver(),
        }
    }

    /// Bytes of `path` that arrived before something with a lower TSN, as far as the peer says so.
    pub(crate) fn early_on(&self, path: PathId) -> usize {
        self.load(path).map_or(0, |load| self.kept(path, load) + load.promised)
    }

    /// Bytes that the sender keeps although they are neither under way nor about to be.
    fn kept(&self, path: PathId, load: &PathLoad) -> usize {
        (load.queued + self.copied_on(path)).saturating_sub(load.flight + self.assigned_on(path))
    }
}

/// With so few full packets under way, every second of which is reported, the last one may be alone.
const FEW_PACKETS: usize = 2;
