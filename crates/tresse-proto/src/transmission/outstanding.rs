//! Outstanding chunks: the ring that holds them, and their bytes on each path.
//!
//! Owns the sums and lists of every path, which agree with the ring: bytes in flight, bytes kept, lost chunks that wait for
//! retransmission. Independent of SACKs and timeouts, which `Transmission` processes.

use std::collections::BTreeSet;

use tresse_policy::sharing::reinject::HeadOfLine;
use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use super::detector::LossDetector;
use super::path_queues::Assigned;
use super::reinjected::Reinjected;
use super::ring::{ChunkState, Mark, Ring, SendOrder, Sent};
use crate::collections::{LazyBox, LazyState};
use crate::config::BufferPolicy;
use crate::fragment::{DataFormat, Fragment, Numbered};
use crate::interface::stats::Limit;

/// Chunks on the ring, and the sums and lists of each path.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// Type of the chunks that carry user data.
    pub(super) data_format: DataFormat,
    pub(super) initial_tsn: Tsn,
    pub(super) ring: Ring,
    pub(super) loads: Vec<PathLoad>,
    /// Bytes in flight on all paths, duplicates excluded.
    pub(super) flight: usize,
    /// Bytes `queued` and `promised` on all paths.
    pub(super) held: usize,
    /// Chunks that wait for the window of their path; allocated with the first.
    pub(super) assigned: Option<Box<Assigned>>,
}

/// Sums and lists of the chunks of one path.
#[derive(Debug, Default)]
pub(super) struct PathLoad {
    /// Bytes in flight, duplicates included.
    pub(super) flight: usize,
    /// Bytes of the chunks last sent here, to be retransmitted here or assigned, and not released. Chunks acknowledged by
    /// renegable gap ack blocks count.
    pub(super) queued: usize,
    /// Bytes of the chunks of ordered messages that were last sent here and are released (NR-SACK), but not yet cumulatively
    /// acknowledged.
    pub(super) promised: usize,
    /// Chunks in flight that were sent once; also in TSN order.
    pub(super) fresh: SendOrder,
    /// Other chunks in flight, mostly retransmissions.
    pub(super) again: SendOrder,
    /// Lost chunks that wait for retransmission on this path, in TSN order.
    pub(super) lost: LazyBox<BTreeSet<u64>>,
    /// Chunks that were reinjected from this path before they were acknowledged.
    pub(super) reinjected: Reinjected,
    /// True if one packet of lost chunks may leave regardless of the window (RFC 9260 §7.2.4, §6.3.3 E3).
    pub(super) free_packet: bool,
    /// Most bytes of the buffer `allocated_of` that the path may own, where buffers are allocated by demand; 0 if the path is
    /// suspended.
    pub(super) allocated: usize,
    pub(super) allocated_of: Option<Limit>,
    /// The chunk that measures the round trip, if any.
    pub(super) timed: Mark,
    pub(super) history: LazyBox<History>,
    pub(super) repairs: LazyBox<RetransmissionCounts>,
}

/// Counters of the chunks that a path has sent, and its loss detection.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) chunks_sent: u64,
    /// Bytes of user data in these chunks.
    pub(super) bytes_sent: u64,
    pub(super) detector: LossDetector,
}

impl LazyState for History {
    const INITIAL: &Self = &History { chunks_sent: 0, bytes_sent: 0, detector: LossDetector::NEW };
}

/// Counters of retransmissions by cause, and of duplicates, as in `PathStats`.
#[derive(Debug, Default)]
pub(super) struct RetransmissionCounts {
    pub(super) chunks_resent: u64,
    pub(super) fast_retransmits: u64,
    pub(super) drop_reports: u64,
    pub(super) copies_sent: u64,
    pub(super) bytes_reneged: u64,
}

impl LazyState for RetransmissionCounts {
    const INITIAL: &Self = &RetransmissionCounts {
        chunks_resent: 0,
        fast_retransmits: 0,
        drop_reports: 0,
        copies_sent: 0,
        bytes_reneged: 0,
    };
}

impl PathLoad {
    /// Returns whether the path awaits an acknowledgement of a chunk that was sent here.
    pub(super) fn awaits(&self) -> bool {
        self.flight > 0 || !self.reinjected.is_empty()
    }

    /// Most bytes that the path may own and the buffer that they are part of, where buffers are allocated by demand.
    #[inline]
    pub(super) fn allocation(&self) -> Option<(usize, Limit)> {
        self.allocated_of.map(|limit| (self.allocated, limit))
    }

    /// The buffer that the path leaves to the other paths, if `policy` suspends it.
    #[inline]
    pub(super) fn suspended_by(&self, policy: BufferPolicy) -> Option<Limit> {
        self.allocation().filter(|&(bytes, _)| policy.suspends() && bytes == 0).map(|(_, limit)| limit)
    }
}

impl Outstanding {
    pub(super) fn new(initial_tsn: Tsn, data_format: DataFormat) -> Self {
        Outstanding {
            data_format,
            initial_tsn,
            ring: Ring::new(),
            loads: Vec::new(),
            flight: 0,
            held: 0,
            assigned: None,
        }
    }

    /// Returns whether every chunk with a TSN is cumulatively acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes in flight on all paths, duplicates excluded.
    pub(crate) fn flight(&self) -> usize {
        self.flight
    }

    /// Bytes in flight on all paths, duplicates included.
    pub(crate) fn flight_with_copies(&self) -> usize {
        self.loads.iter().map(|load| load.flight).sum()
    }

    /// Bytes in flight on `path`, duplicates included.
    pub(crate) fn flight_on(&self, path: PathId) -> usize {
        self.load(path).map_or(0, |load| load.flight)
    }

    /// Bytes of user data that were sent or assigned, and not released.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn user_data(&self) -> usize {
        self.ring.iter().filter(|(_, sent)| !sent.released).map(|(_, sent)| sent.user_data()).sum()
    }

    /// The cumulative TSN acknowledged by the peer.
    pub(crate) fn cumulative_tsn(&self) -> Tsn {
        self.tsn(self.ring.cumulative())
    }

    /// The index of the cumulative TSN ack, and the last index that was assigned to a chunk.
    pub(crate) fn indices(&self) -> (u64, u64) {
        (self.ring.cumulative(), self.ring.highest())
    }

    /// The last TSN that was assigned to a chunk.
    pub(crate) fn last_tsn(&self) -> Tsn {
        self.tsn(self.ring.highest())
    }

    /// The chunk that carries `fragment` with the next TSN.
    #[inline]
    pub(crate) fn number<'a>(&self, fragment: &'a Fragment) -> Numbered<'a> {
        Numbered { tsn: self.tsn(self.ring.highest() + 1), fragment }
    }

    /// An upper bound of the indices in flight on `path`; the cumulative index if nothing is in flight there.
    pub(crate) fn highest_on(&self, path: PathId) -> u64 {
        // TSNs of new data increase, so the last one of the whole association is a safe upper bound.
        if self.flight_on(path) > 0 { self.highest_sent(path) } else { self.ring.cumulative() }
    }

    pub(super) fn load(&self, path: PathId) -> Option<&PathLoad> {
        self.loads.get(path.index())
    }

    /// The index of `tsn`, relative to the cumulative TSN ack. The chunk may have left the ring, or may not exist yet.
    pub(super) fn index_of(&self, tsn: Tsn) -> Option<u64> {
        let ahead = tsn.0.wrapping_sub(self.cumulative_tsn().0) as i32;
        self.ring.cumulative().checked_add_signed(i64::from(ahead))
    }

    pub(super) fn tsn(&self, index: u64) -> Tsn {
        Tsn(self.initial_tsn.0.wrapping_add(index as u32).wrapping_sub(1))
    }

    /// Returns whether no outstanding TSN of `path` is below `index`: neither of a chunk in flight there, nor of a lost chunk
    /// that is to be retransmitted there.
    pub(crate) fn is_lowest_on(&self, path: PathId, index: u64) -> bool {
        let Some(load) = self.load(path) else { return false };
        // Nothing is outstanding below the head-of-line chunk: in most cases this test avoids the walk below.
        if index <= self.ring.cumulative() + 1 {
            return true;
        }
        let earliest = [load.lost.first().copied(), load.fresh.head()];
        // Retransmitted chunks may be in any TSN order.
        let again = std::iter::successors(load.again.head(), |&index| load.again.after(&self.ring, index));
        index != u64::MAX && earliest.into_iter().flatten().chain(again).all(|other| other >= index)
    }

    /// Returns whether lost chunks wait for retransmission on any path.
    pub(crate) fn has_lost(&self) -> bool {
        self.loads.iter().any(|load| !load.lost.is_empty())
    }

    /// Notes that a packet with lost chunks left on `path`, which uses up its free packet.
    pub(crate) fn on_resent(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.free_packet = false;
        }
    }

    /// Returns whether the peer may delay its SACK for the data in flight on `path`: the data is one packet, whose last chunk
    /// has no I bit (RFC 7053).
    pub(crate) fn is_answered_late(&self, path: PathId) -> bool {
        let Some(load) = self.load(path).filter(|load| load.flight <= PACKET) else { return false };
        let mut chunks = [load.fresh.last(), load.again.last()].into_iter().flatten();
        let (Some(last), None) = (chunks.next(), chunks.next()) else { return false };
        let sent_at = |index| self.ring.get(index).map(|sent: &Sent| sent.sent_at);
        let head = load.fresh.head().or(load.again.head());
        head.and_then(sent_at) == sent_at(last)
            && self.ring.content(last).is_some_and(|content| !content.flags.unpacked().immediate)
    }

    /// Lets `path` send one packet of lost chunks regardless of its window, as at the start of fast recovery (RFC 9260 §7.2.4).
    pub(crate) fn grant_free_packet(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.free_packet = true;
        }
    }

    /// The head-of-line chunk, if it is in flight and was not moved before. With `again`, a chunk that was moved before is
    /// returned too.
    pub(crate) fn head_of_line(&self, now: Instant, again: bool) -> Option<HeadOfLine> {
        let index = self.ring.cumulative() + 1;
        let sent = self
            .ring
            .get(index)
            .filter(|sent| sent.standing == ChunkState::InFlight && (again || !sent.early))?;
        let (bytes, age) = (sent.bytes(), now.since(sent.sent_at));
        Some(HeadOfLine { index, path: sent.path, bytes, age })
    }

    /// Ends the round-trip measurement of `path` by the chunk `index`, which now belongs to another path.
    pub(super) fn cancel_timing(&mut self, path: PathId, index: u64) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.timed.end_if(|timed| timed == index);
        }
    }

    /// Processes a reported duplicate. Returns the path that the chunk was reinjected from, which delivered one of its
    /// transmissions.
    pub(crate) fn on_duplicate(&mut self, tsn: Tsn) -> Option<PathId> {
        let index = self.index_of(tsn)?;
        let position = self.loads.iter_mut().position(|load| load.reinjected.answer_index(index))?;
        Some(PathId(position as u8))
    }

    /// Returns whether reported duplicates can have an effect, because chunks were reinjected.
    pub(crate) fn has_departed(&self) -> bool {
        self.loads.iter().any(|load| !load.reinjected.is_empty())
    }
}

/// Size of the largest packet on usual paths, in bytes.
const PACKET: usize = 1500;
