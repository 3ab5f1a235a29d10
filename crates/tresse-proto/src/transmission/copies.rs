//! Duplicates ("copies"): chunks in flight on one path that are sent on other paths too, for a path scheduler that requests it
//! or for latency-critical streams.
//!
//! The ring has one transmission of each chunk; this module has the others, for each path in TSN order. Each occupies the
//! window of its path until it is acknowledged there. A SACK names no path: `answers.rs` attributes it to one transmission of a
//! chunk, and the reported duplicates to the others. Independent of the selection of paths.

use std::collections::VecDeque;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::StreamId;

use super::Transmission;
use super::detector::MISSING_REPORTS;
use super::note::PathNote;
use super::outstanding::{Outstanding, PathLoad};
use super::ring::{ChunkState, Ring, Sent};
use crate::fragment::Numbered;

/// Duplicates of an association; allocated when a policy begins to duplicate.
#[derive(Debug, Default)]
pub(crate) struct Copying(pub(super) Option<Box<Copies>>);

/// Duplicates in flight on each path, and the extent of duplication.
#[derive(Debug, Default)]
pub(super) struct Copies {
    extent: CopyScope,
    pub(super) lanes: Vec<Lane>,
    /// Time of the acknowledgement that is being processed; `via` is the path that it came over.
    pub(super) now: Instant,
    pub(super) via: PathId,
}

/// Extent of duplication.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum CopyScope {
    /// All chunks, for a path scheduler.
    Everything,
    /// Short messages of latency-critical streams.
    #[default]
    Latency,
}

/// A chunk in flight, or lost, that could be duplicated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) stream: StreamId,
    pub(crate) bytes: usize,
    /// Path on which the chunk is in flight, or will be retransmitted.
    pub(crate) from: PathId,
    pub(crate) sent_at: Instant,
    /// True if the chunk was sent once and does not count as lost.
    pub(crate) fresh: bool,
    /// True if the chunk is a whole message.
    pub(crate) whole: bool,
}

/// Duplicates on one path.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The lowest index that was not yet considered for a duplicate here.
    next: u64,
    /// Duplicates in the order of their indices, which is also the order of sending. The first is open.
    pub(super) under_way: VecDeque<Copy>,
    /// Bytes of the open duplicates.
    pub(super) bytes: usize,
    /// Time from a transmission on the path to its acknowledgement.
    pub(super) response_time: ResponseTime,
    /// Time at which a duplicate last gave a round-trip sample: only a duplicate sent since then gives the next one.
    pub(super) measured: Instant,
    /// The path's lowest index that was sent once and not acknowledged, before the current acknowledgement.
    earliest: Option<u64>,
}

/// A transmission that is not in the ring.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) index: u64,
    pub(super) sent_at: Instant,
    pub(super) bytes: u32,
    /// Missing reports: acknowledgements of later transmissions on the path.
    pub(super) misses: u8,
    /// True until the duplicate is acknowledged or given up.
    pub(super) open: bool,
    /// True if the chunk was acknowledged and each of its transmissions is known: reported duplicates can be attributed
    /// exactly.
    pub(super) settled: bool,
}

/// Time from a transmission on a path to its acknowledgement; zero and `None` before the first measurement.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ResponseTime {
    pub(crate) shortest: Duration,
    pub(crate) usual: Option<Duration>,
}

impl Copies {
    fn cover(&mut self, count: usize) {
        if self.lanes.len() < count {
            self.lanes.resize_with(count, Lane::default);
        }
    }
}

impl Lane {
    /// The open duplicate of `index`.
    pub(super) fn find(&self, index: u64) -> Option<&Copy> {
        let position = self.position(index).ok()?;
        self.under_way.get(position).filter(|copy| copy.open)
    }

    pub(super) fn find_mut(&mut self, index: u64) -> Option<&mut Copy> {
        let position = self.position(index).ok()?;
        self.under_way.get_mut(position).filter(|copy| copy.open)
    }

    fn position(&self, index: u64) -> Result<usize, usize> {
        self.under_way.binary_search_by_key(&index, |copy| copy.index)
    }

    /// Adds a transmission. Returns false if there is no room, or one with this index exists.
    pub(super) fn enter(&mut self, copy: Copy) -> bool {
        let Err(position) = self.position(copy.index) else { return false };
        if self.under_way.len() >= MAX_DUPLICATES {
            return false;
        }
        self.bytes += copy.bytes as usize;
        self.under_way.insert(position, copy);
        true
    }

    /// Closes the duplicate of `index`; returns its bytes.
    pub(super) fn close(&mut self, index: u64) -> usize {
        let Some(copy) = self.find_mut(index) else { return 0 };
        copy.open = false;
        let bytes = copy.bytes as usize;
        self.bytes -= bytes;
        self.forget_closed();
        bytes
    }

    /// Counts a missing report for each open duplicate below `bound` that was sent before `until`, and closes those that have
    /// as many as make a loss; returns the bytes of these. A duplicate that left exactly at `until` counts if everything is
    /// duplicated, because the packets then left in TSN order; otherwise duplicates left after new data. With
    /// `CopyScope::Latency`, bulk data fills the paths too: queues change the round trips, and an acknowledgement may be
    /// attributed to the wrong transmission. Then a duplicate counts as lost only a quarter of a round trip after it was due.
    fn strike(&mut self, bound: u64, until: Instant, extent: CopyScope, now: Instant) -> usize {
        let before = self.bytes;
        let due = self
            .response_time
            .usual
            .filter(|_| extent == CopyScope::Latency)
            .map_or(Duration::ZERO, |usual| usual + usual / 4);
        let overtaken = |at: Instant| {
            (at < until || (at == until && extent == CopyScope::Everything)) && now.since(at) >= due
        };
        let lower = self.under_way.iter_mut().take_while(|copy| copy.index < bound);
        for copy in lower.filter(|copy| copy.open && overtaken(copy.sent_at)) {
            copy.misses = copy.misses.saturating_add(1);
            if copy.misses >= MISSING_REPORTS {
                copy.open = false;
                self.bytes -= copy.bytes as usize;
            }
        }
        self.forget_closed();
        before - self.bytes
    }

    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn front_is_open(&self) -> bool {
        self.under_way.front().is_none_or(|copy| copy.open)
    }

    fn forget_closed(&mut self) {
        while self.under_way.front().is_some_and(|copy| !copy.open) {
            self.under_way.pop_front();
        }
    }
}

impl Copying {
    /// Allows duplicates on `paths` paths.
    fn start(&mut self, extent: CopyScope, paths: usize) {
        let copies = self.0.get_or_insert_default();
        copies.extent = extent;
        copies.cover(paths);
    }

    /// Ends duplication, unless all chunks are duplicated or duplicates are in flight.
    pub(crate) fn stop(&mut self) {
        let idle = |copies: &Copies| {
            copies.extent != CopyScope::Everything
                && copies.lanes.iter().all(|lane| lane.under_way.is_empty())
        };
        if self.0.as_deref().is_some_and(idle) {
            self.0 = None;
        }
    }

    /// Returns whether chunks may be duplicated.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether an acknowledgement of the chunk `index` may be for another transmission than the one in the ring.
    pub(super) fn is_ambiguous(&self, index: u64) -> bool {
        self.is_of_everything() || self.0.as_deref().is_some_and(|copies| copies.open(index) > 0)
    }

    /// Returns whether all chunks are duplicated. Few acknowledgements are unambiguous then, so losses are found by missing
    /// reports.
    #[inline]
    pub(crate) fn is_of_everything(&self) -> bool {
        self.extent() == Some(CopyScope::Everything)
    }

    /// Returns whether messages of latency-critical streams are duplicated.
    #[inline]
    pub(crate) fn is_of_latency(&self) -> bool {
        self.extent() == Some(CopyScope::Latency)
    }

    #[inline]
    fn extent(&self) -> Option<CopyScope> {
        self.0.as_deref().map(|copies| copies.extent)
    }

    /// Sets the current response time of `path`.
    pub(crate) fn tell_trip(&mut self, path: PathId, trip: ResponseTime) {
        if let Some(lane) = self.lane_mut(path) {
            lane.response_time = trip;
        }
    }

    /// Advances to the first chunk in flight on another path that was not considered for a duplicate on `path`.
    pub(super) fn seek(&mut self, ring: &Ring, path: PathId) {
        let Some(lane) = self.lane_mut(path) else { return };
        lane.next = lane.next.max(ring.cumulative() + 1);
        let may_be = |index| ring.get(index).is_some_and(|sent| can_be_copied(sent, path));
        while lane.next <= ring.highest() && !may_be(lane.next) {
            lane.next += 1;
        }
    }

    /// The next chunk that may be duplicated on `path`, as [`seek`](Self::seek) left it, with its index.
    #[inline]
    fn next<'r>(&self, ring: &'r Ring, path: PathId) -> Option<(u64, &'r Sent)> {
        let index = self.lane(path)?.next;
        ring.get(index).filter(|sent| can_be_copied(sent, path)).map(|sent| (index, sent))
    }

    /// Skips the next chunk that could be duplicated on `path`.
    pub(crate) fn skip(&mut self, path: PathId) {
        if let Some(lane) = self.lane_mut(path) {
            lane.next += 1;
        }
    }

    /// Returns whether `path` has the maximum number of duplicates in flight.
    fn is_full(&self, path: PathId) -> bool {
        self.lane(path).is_none_or(|lane| lane.under_way.len() >= MAX_DUPLICATES)
    }

    /// Records that the next chunk leaves as a duplicate on `path`; returns its index.
    fn send(&mut self, outstanding: &mut Outstanding, now: Instant, path: PathId) -> Option<u64> {
        let (index, sent) = self.next(&outstanding.ring, path)?;
        let bytes = sent.bytes();
        let lane = self.lane_mut(path)?;
        let load = outstanding.loads.get_mut(path.index())?;
        lane.next += 1;
        let copy = Copy { index, sent_at: now, bytes: bytes as u32, misses: 0, open: true, settled: false };
        if lane.enter(copy) {
            load.flight += bytes;
        }
        load.repairs.copies_sent += 1;
        outstanding.note_highest_sent(path, index);
        Some(index)
    }

    /// The lowest index of a duplicate on `path` that is not acknowledged.
    pub(super) fn earliest(&self, path: PathId) -> Option<u64> {
        self.lane(path)?.under_way.front().map(|copy| copy.index)
    }

    /// Bytes of duplicates in flight on `path`.
    #[inline]
    pub(super) fn flight_on(&self, path: PathId) -> usize {
        self.lane(path).map_or(0, |lane| lane.bytes)
    }

    /// Drops the duplicates on `path`: T3 expired there, or the path is replaced by another.
    pub(super) fn give_up(&mut self, outstanding: &mut Outstanding, path: PathId) {
        let Some(lane) = self.lane_mut(path) else { return };
        lane.under_way.clear();
        let bytes = std::mem::take(&mut lane.bytes);
        if let Some(load) = outstanding.loads.get_mut(path.index()) {
            load.flight -= bytes;
        }
    }

    /// Closes the duplicates of the chunk `index`, which was abandoned.
    pub(super) fn abandon(&mut self, outstanding: &mut Outstanding, index: u64) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        for (lane, load) in copies.lanes.iter_mut().zip(&mut outstanding.loads) {
            load.flight -= lane.close(index);
        }
    }

    /// Makes room for `paths` paths.
    pub(super) fn cover(&mut self, paths: usize) {
        if let Some(copies) = self.0.as_deref_mut() {
            copies.cover(paths);
        }
    }

    /// Begins the processing of an acknowledgement.
    pub(super) fn begin_answers(&mut self, loads: &[PathLoad], now: Instant, via: PathId) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        (copies.now, copies.via) = (now, via);
        for (lane, load) in copies.lanes.iter_mut().zip(loads) {
            lane.earliest = earliest(lane, load);
        }
    }

    /// Counts missing reports for the duplicates on a path by acknowledgements of later transmissions there; three are a loss.
    pub(super) fn strike(&mut self, loads: &mut [PathLoad], position: usize, notes: &mut [PathNote]) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        let (extent, now) = (copies.extent, copies.now);
        let (Some(lane), Some(load)) = (copies.lanes.get_mut(position), loads.get_mut(position)) else {
            return;
        };
        if let Some(note) = notes.get_mut(position) {
            let lost = note.answered_at.map_or(0, |at| lane.strike(note.highest_new, at, extent, now));
            load.flight -= lost;
            note.lost |= lost > 0;
        }
    }

    /// Ends the processing of an acknowledgement. If the path's earliest chunk that was sent once, duplicates included, was
    /// acknowledged, T3 restarts and the window may grow.
    pub(super) fn end_answers(&self, loads: &[PathLoad], notes: &mut [PathNote]) {
        let Some(copies) = self.0.as_deref() else { return };
        for ((lane, load), note) in copies.lanes.iter().zip(loads).zip(notes) {
            let moved = lane.earliest.is_some() && earliest(lane, load) != lane.earliest;
            note.copy_moved |= moved;
            note.pseudo_moved = moved || note.pseudo_moved && lane.under_way.is_empty();
        }
    }

    #[inline]
    pub(super) fn lane(&self, path: PathId) -> Option<&Lane> {
        self.0.as_deref()?.lanes.get(path.index())
    }

    fn lane_mut(&mut self, path: PathId) -> Option<&mut Lane> {
        self.0.as_deref_mut()?.lanes.get_mut(path.index())
    }
}

impl Transmission {
    /// Allows duplicates, to this extent.
    pub(crate) fn start_copying(&mut self, extent: CopyScope) {
        self.copies.start(extent, self.outstanding.loads.len());
    }

    /// The next chunk to duplicate on `path`: the first one on another path that was not considered yet.
    pub(crate) fn copy_candidate(&mut self, path: PathId) -> Option<Candidate> {
        self.copies.seek(&self.outstanding.ring, path);
        self.next_candidate(path)
    }

    /// The same without a search: the chunk at which [`copy_candidate`](Self::copy_candidate) stopped, if it may still be
    /// duplicated.
    pub(crate) fn next_candidate(&self, path: PathId) -> Option<Candidate> {
        let ring = &self.outstanding.ring;
        let (index, sent) = self.copies.next(ring, path)?;
        let fragment = ring.content(index)?;
        Some(Candidate {
            stream: fragment.stream,
            whole: fragment.flags.beginning() && fragment.flags.ending(),
            bytes: sent.bytes(),
            from: sent.path,
            sent_at: sent.sent_at,
            fresh: sent.standing == ChunkState::InFlight && sent.sends == 1,
        })
    }

    /// Size of that chunk in bytes. A function of its own, because it is called for every packet.
    #[inline]
    pub(crate) fn next_copy(&self, path: PathId) -> Option<usize> {
        self.copies.next(&self.outstanding.ring, path).map(|(_, sent)| sent.bytes())
    }

    /// Returns whether a duplicate may leave on `path`, whose congestion window is `cwnd`. Lost chunks leave first.
    pub(crate) fn may_copy(&self, path: PathId, cwnd: usize) -> bool {
        let open = |load: &PathLoad| load.flight < cwnd && load.lost.is_empty();
        !self.copies.is_full(path)
            && self.next_copy(path).is_some()
            && self.outstanding.load(path).is_some_and(open)
    }

    /// Records that the next chunk leaves as a duplicate on `path`; returns the chunk to write.
    pub(crate) fn send_copy(&mut self, now: Instant, path: PathId) -> Option<Numbered<'_>> {
        let index = self.copies.send(&mut self.outstanding, now, path)?;
        let tsn = self.outstanding.tsn(index);
        self.outstanding.ring.content(index).map(|fragment| Numbered { tsn, fragment })
    }
}

/// Returns whether a chunk may be duplicated on `path`: it is in flight, or lost, on another path.
fn can_be_copied(sent: &Sent, path: PathId) -> bool {
    matches!(sent.standing, ChunkState::InFlight | ChunkState::Lost) && sent.path != path
}

/// The lowest index that was sent once on a path, in the ring or as a duplicate, and is not acknowledged.
fn earliest(lane: &Lane, load: &PathLoad) -> Option<u64> {
    let copied = lane.under_way.front().map(|copy| copy.index);
    [copied, load.fresh.head()].into_iter().flatten().min()
}

/// Largest number of duplicates in flight on a path: a full window of 10 MB in packets of 1280 bytes.
const MAX_DUPLICATES: usize = 8192;
