//! Outstanding chunks: the ring that holds them, and their bytes on each path.
//!
//! Owns the sums and lists of every path, which follow the ring: bytes in flight, bytes kept, lost chunks that wait for
//! retransmission. Independent of SACKs and timeouts, which `Transmission` processes.

use std::collections::BTreeSet;

use tresse_policy::sharing::reinject::HeadOfLine;
use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use super::assigned::Assigned;
use super::detector::LossDetector;
use super::reinjected::Reinjected;
use super::ring::{ChunkState, Mark, Ring, SendOrder, Sent};
use crate::collections::{LazyBox, LazyState};
use crate::config::BufferPolicy;
use crate::fragment::{DataFormat, Fragment, Numbered};
use crate::interface::stats::Limit;

/// The chunks on the ring and what they load each path with.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// The chunk that user data travels in.
    pub(super) data_format: DataFormat,
    pub(super) initial_tsn: Tsn,
    pub(super) ring: Ring,
    pub(super) loads: Vec<PathLoad>,
    /// Bytes in flight, each chunk once.
    pub(super) flight: usize,
    /// Bytes queued and promised, of all paths.
    pub(super) held: usize,
    /// Chunks that wait for the window of their path; made with the first.
    pub(super) assigned: Option<Box<Assigned>>,
}

/// Sums and lists of the chunks of one path.
#[derive(Debug, Default)]
pub(super) struct PathLoad {
    /// Bytes in flight, copies included.
    pub(super) flight: usize,
    /// Bytes last sent here, or assigned, and not released, whether or not a gap block acknowledged them.
    pub(super) queued: usize,
    /// Bytes of ordered messages, last sent here and released before the cumulative acknowledgement has come to
    /// them (NR-SACK).
    pub(super) promised: usize,
    /// In flight, sent once: in TSN order too.
    pub(super) fresh: SendOrder,
    /// In flight, sent again.
    pub(super) again: SendOrder,
    /// Declared lost, to be sent on this path, in TSN order.
    pub(super) lost: LazyBox<BTreeSet<u64>>,
    /// Sent here once, and again elsewhere before the path had answered.
    pub(super) reinjected: Reinjected,
    /// One packet of lost chunks may leave whatever the window says (RFC 9260 §7.2.4, §6.3.3 E3).
    pub(super) free_packet: bool,
    /// Most bytes that the path may own of the buffer `allocated_of`, where buffers are allocated by demand; 0 where it is
    /// suspended.
    pub(super) allocated: usize,
    pub(super) allocated_of: Option<Limit>,
    /// The chunk whose round trip is being timed.
    pub(super) timed: Mark,
    pub(super) history: LazyBox<History>,
    pub(super) repairs: LazyBox<RetransmissionCounts>,
}

/// Counters of what a path has sent, and what its answers say of losses.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) chunks_sent: u64,
    /// User data of these.
    pub(super) bytes_sent: u64,
    pub(super) detector: LossDetector,
}

impl LazyState for History {
    const INITIAL: &Self = &History { chunks_sent: 0, bytes_sent: 0, detector: LossDetector::NEW };
}

/// Counters of what went again, and why, as `PathStats` has it.
#[derive(Debug, Default)]
pub(super) struct RetransmissionCounts {
    pub(super) chunks_resent: u64,
    pub(super) fast_retransmits: u64,
    pub(super) drop_reports: u64,
    pub(super) copies_sent: u64,
}

impl LazyState for RetransmissionCounts {
    const INITIAL: &Self =
        &RetransmissionCounts { chunks_resent: 0, fast_retransmits: 0, drop_reports: 0, copies_sent: 0 };
}

impl PathLoad {
    /// Most bytes that the path may own where buffers are allocated by demand, and of which buffer.
    #[inline]
    pub(super) fn allocation(&self) -> Option<(usize, Limit)> {
        self.allocated_of.map(|limit| (self.allocated, limit))
    }

    /// Buffer that the path leaves to the others, if `policy` suspends it.
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

    /// Returns whether nothing waits for an acknowledgement.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes in flight on all paths, each chunk once.
    pub(crate) fn flight(&self) -> usize {
        self.flight
    }

    /// Bytes in flight on all paths, copies included.
    pub(crate) fn flight_with_copies(&self) -> usize {
        self.loads.iter().map(|load| load.flight).sum()
    }

    /// Bytes in flight on `path`, copies included.
    pub(crate) fn flight_on(&self, path: PathId) -> usize {
        self.load(path).map_or(0, |load| load.flight)
    }

    /// User data that was sent or assigned, and not released.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn user_data(&self) -> usize {
        self.ring.iter().filter(|(_, sent)| !sent.released).map(|(_, sent)| sent.user_data()).sum()
    }

    /// The cumulative TSN acknowledged by the peer.
    pub(crate) fn cumulative_tsn(&self) -> Tsn {
        self.tsn(self.ring.cumulative())
    }

    /// The index acknowledged cumulatively by the peer, and the one given out last.
    pub(crate) fn indices(&self) -> (u64, u64) {
        (self.ring.cumulative(), self.ring.highest())
    }

    /// The TSN given out last.
    pub(crate) fn last_tsn(&self) -> Tsn {
        self.tsn(self.ring.highest())
    }

    /// The chunk that `fragment` becomes: it gets the next TSN.
    #[inline]
    pub(crate) fn number<'a>(&self, fragment: &'a Fragment) -> Numbered<'a> {
        Numbered { tsn: self.tsn(self.ring.highest() + 1), fragment }
    }

    /// The highest index in flight on `path`, or the cumulative one when there is none.
    pub(crate) fn highest_on(&self, path: PathId) -> u64 {
        // New data has ever higher TSNs; that of the whole association is a safe upper bound.
        if self.flight_on(path) > 0 { self.highest_sent(path) } else { self.ring.cumulative() }
    }

    pub(super) fn load(&self, path: PathId) -> Option<&PathLoad> {
        self.loads.get(path.index())
    }

    /// The index that a TSN of the peer names, counted from the cumulative one, sent or not.
    pub(super) fn index_of(&self, tsn: Tsn) -> Option<u64> {
        let ahead = tsn.0.wrapping_sub(self.cumulative_tsn().0) as i32;
        self.ring.cumulative().checked_add_signed(i64::from(ahead))
    }

    pub(super) fn tsn(&self, index: u64) -> Tsn {
        Tsn(self.initial_tsn.0.wrapping_add(index as u32).wrapping_sub(1))
    }

    /// Returns whether no outstanding TSN of `path` is below `index`: none in flight there, and none that is lost and
    /// will leave there.
    pub(crate) fn is_lowest_on(&self, path: PathId, index: u64) -> bool {
        let Some(load) = self.load(path) else { return false };
        // Nothing at all is outstanding below the chunk that the peer waits for: in most cases that spares the walk.
        if index <= self.ring.cumulative() + 1 {
            return true;
        }
        let earliest = [load.lost.first().copied(), load.fresh.head()];
        // What went again did so in any order.
        let again = std::iter::successors(load.again.head(), |&index| load.again.after(&self.ring, index));
        index != u64::MAX && earliest.into_iter().flatten().chain(again).all(|other| other >= index)
    }

    /// Returns whether lost chunks wait for any path.
    pub(crate) fn has_lost(&self) -> bool {
        self.loads.iter().any(|load| !load.lost.is_empty())
    }

    /// A packet with lost chunks left on `path`: its free packet is used.
    pub(crate) fn on_resent(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.free_packet = false;
        }
    }

    /// Returns whether the peer may hold back its report on what is in flight on `path`: one packet, which asks for
    /// none at once.
    pub(crate) fn is_answered_late(&self, path: PathId) -> bool {
        let Some(load) = self.load(path).filter(|load| load.flight <= PACKET) else { return false };
        let mut chunks = [load.fresh.last(), load.again.last()].into_iter().flatten();
        let (Some(last), None) = (chunks.next(), chunks.next()) else { return false };
        let sent_at = |index| self.ring.get(index).map(|sent: &Sent| sent.sent_at);
        let head = load.fresh.head().or(load.again.head());
        head.and_then(sent_at) == sent_at(last)
            && self.ring.content(last).is_some_and(|content| !content.flags.unpacked().immediate)
    }

    /// Lets `path` send one packet of lost chunks whatever its window says: it just entered fast recovery.
    pub(crate) fn grant_free_packet(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.free_packet = true;
        }
    }

    /// The chunk that keeps the cumulative acknowledgement where it is, when it is in flight and was not moved before,
    /// or may be moved `again`.
    pub(crate) fn head_of_line(&self, now: Instant, again: bool) -> Option<HeadOfLine> {
        let index = self.ring.cumulative() + 1;
        let sent = self
            .ring
            .get(index)
            .filter(|sent| sent.standing == ChunkState::InFlight && (again || !sent.early))?;
        let (bytes, age) = (sent.bytes(), now.since(sent.sent_at));
        Some(HeadOfLine { index, path: sent.path, bytes, age })
    }

    /// Once a chunk is another path's, its old one measures nothing by it.
    pub(super) fn cancel_timing(&mut self, path: PathId, index: u64) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.timed.end_if(|timed| timed == index);
        }
    }
}

/// No packet on usual paths has more bytes.
const PACKET: usize = 1500;
