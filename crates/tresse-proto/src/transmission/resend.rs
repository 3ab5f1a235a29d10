//! Retransmissions: their chunks, paths and times; and chunks that are moved to another path before they count as lost.
//!
//! Independent of the reason for which a chunk is moved, and of the window of its old path.

use tresse_policy::{Instant, PathId};

use super::loss::Evidence;
use super::{ChunkState, PathLoad, Transmission};
use crate::config::LossDetection;
use crate::fragment::Numbered;

/// A chunk that waits for retransmission.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PendingChunk {
    pub(crate) index: u64,
    pub(crate) bytes: usize,
    /// True if the chunk was moved before it counted as lost, and T3 of its old path keeps running.
    pub(crate) early: bool,
}

/// A chunk that was taken off a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MovedChunk {
    /// The path that the chunk left; it may wait for the same path.
    pub(crate) from: PathId,
    /// Size of the chunk in bytes.
    pub(crate) bytes: usize,
    /// Bytes in flight on `from` without the chunk.
    pub(crate) flight: usize,
    /// Highest index in flight on `from`.
    pub(crate) exit_point: u64,
}

impl Transmission {
    /// The first lost chunk that waits for retransmission on `path`.
    pub(crate) fn next_resend(&self, path: PathId) -> Option<PendingChunk> {
        let index = *self.outstanding.load(path)?.lost.first()?;
        let sent = self.outstanding.ring.get(index)?;
        Some(PendingChunk { index, bytes: sent.bytes(), early: sent.early && self.rules.reinjection_t3 })
    }

    /// Returns whether lost chunks wait for `path`, and its window `cwnd` or a free packet lets them leave.
    pub(crate) fn may_resend(&self, path: PathId, cwnd: usize) -> bool {
        // As for new data, duplicates that await an acknowledgement of their path block nothing if no chunk of the ring is in
        // flight.
        let has_room =
            |load: &PathLoad| load.free_packet || load.flight < cwnd || self.outstanding.flight == 0;
        self.outstanding.load(path).is_some_and(|load| !load.lost.is_empty() && has_room(load))
    }

    /// Records that the lost chunk `index` is retransmitted on its path; returns the chunk to write, or `None` if it is not
    /// lost.
    pub(crate) fn resend(&mut self, now: Instant, index: u64) -> Option<Numbered<'_>> {
        let tsn = self.outstanding.tsn(index);
        let sent = self.outstanding.ring.get_mut(index).filter(|sent| sent.standing == ChunkState::Lost)?;
        sent.standing = ChunkState::InFlight;
        sent.sends = sent.sends.saturating_add(1);
        sent.sent_at = now;
        let (path, bytes, sends) = (sent.path, sent.bytes(), sent.sends);
        let load = self.outstanding.loads.get_mut(path.index())?;
        load.lost.remove(&index);
        load.again.append(&mut self.outstanding.ring, index);
        load.repairs.chunks_resent += 1;
        load.flight += bytes;
        self.outstanding.flight += bytes;
        // Karn's rule (RFC 9260 §6.3.1 C5): the acknowledgement of this TSN or a later one may have waited for the
        // retransmission.
        load.timed.end_if(|timed| timed >= index);
        self.outstanding.note_highest_sent(path, index);
        if sends > 2 {
            self.outstanding.loads.iter_mut().for_each(|load| load.reinjected.on_sent_again(index));
        }
        // A SACK at once shows soonest whether the retransmission was spurious.
        if self.rules.loss_detection == LossDetection::Rack || self.wants_report(0, bytes) {
            self.outstanding.ring.content_mut(index)?.flags.request_report();
        }
        self.outstanding.ring.content(index).map(|fragment| Numbered { tsn, fragment })
    }

    /// Moves the chunks that wait for retransmission on `from` to `to`. With `at_once`, one packet of them leaves there
    /// regardless of the window.
    pub(crate) fn redirect(&mut self, from: PathId, to: PathId, at_once: bool) {
        if from == to || to.index() >= self.outstanding.loads.len() {
            return;
        }
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward.on_lost(&self.outstanding.ring, from);
        }
        let Some(load) = self.outstanding.loads.get_mut(from.index()) else { return };
        let lost = std::mem::take(&mut load.lost);
        // A chunk that now belongs to another path gives no round-trip sample.
        load.timed.end_if(|timed| lost.contains(&timed));
        for &index in lost.iter() {
            if let Some(sent) = self.outstanding.ring.get_mut(index) {
                sent.path = to;
                sent.moved = true;
                self.outstanding.loads[from.index()].queued -= sent.bytes();
                self.outstanding.loads[to.index()].queued += sent.bytes();
            }
        }
        if !lost.is_empty() {
            self.outstanding.loads[to.index()].free_packet |= at_once;
            self.outstanding.loads[to.index()].lost.extend(lost.iter());
        }
    }

    /// Takes the chunk `index`, which must be in flight, off its path; it waits to leave on `to`. Its acknowledgement can no
    /// longer be attributed to one transmission, so no path's window grows by it.
    pub(crate) fn move_chunk(&mut self, index: u64, to: PathId) -> Option<MovedChunk> {
        let sent =
            self.outstanding.ring.get_mut(index).filter(|sent| sent.standing == ChunkState::InFlight)?;
        sent.early = true;
        let (from, bytes, sends, sent_at) = (sent.path, sent.bytes(), sent.sends, sent.sent_at);
        // A free packet that was granted for lost chunks, which did not need it, must not carry a chunk that is not lost.
        if let Some(load) = self.outstanding.loads.get_mut(to.index()) {
            load.free_packet &= !load.lost.is_empty();
        }
        self.mark_lost(index, to, Evidence::Early);
        if from != to {
            self.outstanding.cancel_timing(from, index);
        }
        if let Some(load) = self.outstanding.loads.get_mut(from.index()).filter(|_| self.rules.reinjection_t3)
        {
            load.reinjected.push((sends == 1 && from != to).then_some(index), sent_at);
        }
        Some(MovedChunk {
            from,
            bytes,
            flight: self.outstanding.flight_on(from),
            exit_point: self.outstanding.highest_on(from),
        })
    }
}
