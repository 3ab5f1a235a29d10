//! Duplicates ("copies"): chunks that are sent on other paths too while one has them in flight, for a path scheduler that
//! requests it, for latency-critical streams, or while full buffers block new data.
//!
//! The ring has one transmission of each chunk; this module has the others, for each path in TSN order. Each occupies the
//! window of its path until it is acknowledged there. A SACK names no path: it is attributed to one transmission of a chunk
//! (`answers.rs`), and the list of duplicates to the others. Independent of the selection of paths.

use std::collections::VecDeque;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::StreamId;

use super::Transmission;
use super::loss::MISSING_REPORTS;
use super::outstanding::{Outstanding, PathLoad};
use super::ring::{ChunkState, Ring, Sent};
use super::sack::PathNote;
use crate::fragment::Numbered;

/// The copies of an association; in no memory where none are wanted.
#[derive(Debug, Default)]
pub(crate) struct Copying(pub(super) Option<Box<Copies>>);

/// Duplicates in flight, and the chunks that are duplicated.
#[derive(Debug, Default)]
pub(super) struct Copies {
    extent: CopyScope,
    pub(super) lanes: Vec<Lane>,
    /// Time of the acknowledgement that is being processed, and the path that brought it.
    pub(super) now: Instant,
    pub(super) via: PathId,
}

/// Extent of duplication.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum CopyScope {
    /// All chunks, before new data leaves on the path, for a path scheduler.
    Everything,
    /// Short messages of latency-critical streams, before new data leaves on the path.
    Latency,
    /// Chunks that the sharing policy selects one by one, while no new data can leave.
    #[default]
    Chosen,
}

/// A chunk in flight that could be duplicated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) stream: StreamId,
    pub(crate) bytes: usize,
    /// Path on which it is in flight, or will be again.
    pub(crate) from: PathId,
    pub(crate) sent_at: Instant,
    /// It was sent once, and does not count as lost.
    pub(crate) fresh: bool,
    /// It is a message by itself.
    pub(crate) whole: bool,
}

/// The copies of one path.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The lowest index that has not had its turn to be copied here.
    next: u64,
    /// By index, which is also the order of sending. The first is open.
    pub(super) under_way: VecDeque<Copy>,
    /// Of open ones.
    pub(super) bytes: usize,
    /// Time that the path takes to answer.
    pub(super) response_time: ResponseTime,
    /// Time at which a round trip was last measured by a copy: the next measures what was sent since.
    pub(super) measured: Instant,
    /// The lowest index that the path had not answered before the acknowledgement came.
    earliest: Option<u64>,
}

/// A sending that the ring does not know.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) index: u64,
    pub(super) sent_at: Instant,
    pub(super) bytes: u32,
    /// Answers for later sendings on the path.
    pub(super) misses: u8,
    /// Neither answered nor given up.
    pub(super) open: bool,
    /// The chunk was acknowledged, and every one of its sendings is known: what the duplicates say is exact.
    pub(super) settled: bool,
}

/// Time that a path takes to answer; nothing before it has been measured.
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
    /// The open copy of `index`.
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

    /// Takes a sending into account; false when there is no place for it.
    pub(super) fn enter(&mut self, copy: Copy) -> bool {
        let Err(position) = self.position(copy.index) else { return false };
        if self.under_way.len() >= MOST {
            return false;
        }
        self.bytes += copy.bytes as usize;
        self.under_way.insert(position, copy);
        true
    }

    /// The copy of `index` is open no longer; returns its bytes.
    pub(super) fn close(&mut self, index: u64) -> usize {
        let Some(copy) = self.find_mut(index) else { return 0 };
        copy.open = false;
        let bytes = copy.bytes as usize;
        self.bytes -= bytes;
        self.forget_closed();
        bytes
    }

    /// Closes what has as many strikes as a lost chunk, after answers for what was sent up to `bound` and `until`; tells
    /// how many bytes that were. What left at that very instant did so in TSN order where everything is copied, else
    /// after new data. Where bulk data fills the paths too, round trips change by the queues, and an acknowledgement may be
    /// taken for that of the other sending: what is left counts as lost only a quarter of a round trip after it was due.
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
        while self.under_way.pop_front_if(|copy| !copy.open).is_some() {}
    }
}

impl Copying {
    /// From now on chunks may be copied on `paths` paths.
    fn start(&mut self, extent: CopyScope, paths: usize) {
        let copies = self.0.get_or_insert_default();
        copies.extent = extent;
        copies.cover(paths);
    }

    /// Duplication ends, unless all chunks are duplicated; duplicates in flight are tracked to their end.
    pub(crate) fn stop(&mut self) {
        let idle = |copies: &Copies| {
            copies.extent != CopyScope::Everything
                && copies.lanes.iter().all(|lane| lane.under_way.is_empty())
        };
        if self.0.as_deref().is_some_and(idle) {
            self.0 = None;
        }
    }

    /// Returns whether chunks may be copied.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether so many chunks are copied that few answers are sure: losses are then found by missing reports.
    #[inline]
    pub(super) fn are_losses_ambiguous(&self) -> bool {
        self.extent().is_some_and(|extent| extent != CopyScope::Latency)
    }

    /// Returns whether an acknowledgement of the chunk `index` may be for another sending than the ring knows.
    pub(super) fn is_ambiguous(&self, index: u64) -> bool {
        self.are_losses_ambiguous() || self.0.as_deref().is_some_and(|copies| copies.open(index) > 0)
    }

    /// Returns whether everything is copied.
    #[inline]
    pub(crate) fn is_of_everything(&self) -> bool {
        self.extent() == Some(CopyScope::Everything)
    }

    /// Returns whether messages of latency-critical streams are copied.
    #[inline]
    pub(crate) fn is_of_latency(&self) -> bool {
        self.extent() == Some(CopyScope::Latency)
    }

    /// Returns whether duplicates are possible, because a short buffer and losses block new data.
    #[inline]
    pub(crate) fn may_duplicate(&self) -> bool {
        self.extent() == Some(CopyScope::Chosen)
    }

    #[inline]
    fn extent(&self) -> Option<CopyScope> {
        self.0.as_deref().map(|copies| copies.extent)
    }

    /// Sets the time that `path` takes to answer, as of now.
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

    /// The chunk whose turn it is to be copied on `path`, as [`seek`](Self::seek) left it, and its index.
    #[inline]
    fn next<'r>(&self, ring: &'r Ring, path: PathId) -> Option<(u64, &'r Sent)> {
        let index = self.lane(path)?.next;
        ring.get(index).filter(|sent| can_be_copied(sent, path)).map(|sent| (index, sent))
    }

    /// The chunk whose turn it is goes without a copy on `path`.
    pub(crate) fn skip(&mut self, path: PathId) {
        if let Some(lane) = self.lane_mut(path) {
            lane.next += 1;
        }
    }

    /// Returns whether `path` has the largest number of duplicates in flight.
    fn is_full(&self, path: PathId) -> bool {
        self.lane(path).is_none_or(|lane| lane.under_way.len() >= MOST)
    }

    /// The chunk whose turn it is leaves on `path` too; returns its index.
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

    /// The lowest index of a copy that `path` has not answered.
    pub(super) fn earliest(&self, path: PathId) -> Option<u64> {
        self.lane(path)?.under_way.front().map(|copy| copy.index)
    }

    /// Bytes of copies in flight on `path`.
    #[inline]
    pub(super) fn flight_on(&self, path: PathId) -> usize {
        self.lane(path).map_or(0, |lane| lane.bytes)
    }

    /// The copies on `path` are given up: T3 expired there, or it is another path from now on.
    pub(super) fn give_up(&mut self, outstanding: &mut Outstanding, path: PathId) {
        let Some(lane) = self.lane_mut(path) else { return };
        lane.under_way.clear();
        let bytes = std::mem::take(&mut lane.bytes);
        if let Some(load) = outstanding.loads.get_mut(path.index()) {
            load.flight -= bytes;
        }
    }

    /// The chunk `index` was given up, and its copies with it.
    pub(super) fn abandon(&mut self, outstanding: &mut Outstanding, index: u64) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        for (lane, load) in copies.lanes.iter_mut().zip(&mut outstanding.loads) {
            load.flight -= lane.close(index);
        }
    }

    /// There are `paths` paths now.
    pub(super) fn cover(&mut self, paths: usize) {
        if let Some(copies) = self.0.as_deref_mut() {
            copies.cover(paths);
        }
    }

    /// An acknowledgement begins to be processed.
    pub(super) fn begin_answers(&mut self, loads: &[PathLoad], now: Instant, via: PathId) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        (copies.now, copies.via) = (now, via);
        for (lane, load) in copies.lanes.iter_mut().zip(loads) {
            lane.earliest = earliest(lane, load);
        }
    }

    /// Copies on a path are struck by answers for what was sent there later; three are a loss.
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

    /// Ends the answers. The path may have waited longest for a copy: T3 starts over, and the window may grow, when
    /// that was answered.
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
    /// From now on chunks may be copied.
    pub(crate) fn start_copying(&mut self, extent: CopyScope) {
        self.copies.start(extent, self.outstanding.loads.len());
    }

    /// The next chunk to duplicate on `path`: the first in flight on another path that was not considered yet.
    pub(crate) fn copy_candidate(&mut self, path: PathId) -> Option<Candidate> {
        self.copies.seek(&self.outstanding.ring, path);
        self.next_candidate(path)
    }

    /// The same, as [`copy_candidate`](Self::copy_candidate) left it.
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

    /// Its size alone: asked for every packet.
    #[inline]
    pub(crate) fn next_copy(&self, path: PathId) -> Option<usize> {
        self.copies.next(&self.outstanding.ring, path).map(|(_, sent)| sent.bytes())
    }

    /// Returns whether a copy may leave on `path`, where the path's congestion window is `cwnd`. Lost chunks go first.
    pub(crate) fn may_copy(&self, path: PathId, cwnd: usize) -> bool {
        let open = |load: &PathLoad| load.flight < cwnd && load.lost.is_empty();
        !self.copies.is_full(path)
            && self.next_copy(path).is_some()
            && self.outstanding.load(path).is_some_and(open)
    }

    /// Remembers that the chunk whose turn it is leaves on `path` too; returns the chunk to write.
    pub(crate) fn send_copy(&mut self, now: Instant, path: PathId) -> Option<Numbered<'_>> {
        let index = self.copies.send(&mut self.outstanding, now, path)?;
        let tsn = self.outstanding.tsn(index);
        self.outstanding.ring.content(index).map(|fragment| Numbered { tsn, fragment })
    }
}

/// Returns whether a chunk may leave on `path` as well.
fn can_be_copied(sent: &Sent, path: PathId) -> bool {
    matches!(sent.standing, ChunkState::InFlight | ChunkState::Lost) && sent.path != path
}

/// The lowest index that was sent once on a path, by the ring or as a copy, and is not answered.
fn earliest(lane: &Lane, load: &PathLoad) -> Option<u64> {
    let copied = lane.under_way.front().map(|copy| copy.index);
    [copied, load.fresh.head()].into_iter().flatten().min()
}

/// Largest number of duplicates in flight on a path: a full window of 10 MB in packets of 1280 bytes.
const MOST: usize = 8192;
