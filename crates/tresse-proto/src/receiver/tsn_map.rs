//! Map of TSNs that have arrived, of the latest among them, and of those that are non-renegable.
//!
//! Owns the unwrapping of TSNs to indices and the bounds that keep the map small whatever the peer
//! sends. Independent of the time and the contents of SACKs.

use std::ops::Range;

use tresse_wire::Tsn;

use super::latest::Latest;
use crate::collections::RangeSet;

/// Standing of a TSN with the receiver.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It was missing; its index.
    New(u64),
    /// It arrived before.
    Duplicate,
    /// Too far from the cumulative TSN to be reported, or one gap too many: to be dropped.
    Outside,
}

/// The TSNs that have arrived.
#[derive(Debug)]
pub(super) struct TsnMap {
    /// TSN of index 0: the one before the peer's initial TSN.
    origin: Tsn,
    /// Everything up to this index has arrived.
    cumulative: u64,
    highest: u64,
    /// Indices that arrived beyond the index after `cumulative`, which is missing.
    received: RangeSet,
    /// Those of them that came last, where a report may not have room for all.
    pub(super) latest: Latest,
    /// Indices beyond `cumulative` that were marked deliverable.
    deliverable: RangeSet,
    /// True if `deliverable` is kept at all.
    splits: bool,
}

impl TsnMap {
    /// An empty map; `splits` says whether to remember what is deliverable.
    pub(super) fn new(initial_tsn: Tsn, splits: bool) -> Self {
        TsnMap {
            origin: initial_tsn.prev(),
            cumulative: 0,
            highest: 0,
            received: RangeSet::default(),
            latest: Latest::default(),
            deliverable: RangeSet::default(),
            splits,
        }
    }

    /// The TSN of index 0.
    pub(super) fn origin(&self) -> Tsn {
        self.origin
    }

    #[inline]
    pub(super) fn classify(&self, tsn: Tsn) -> Arrival {
        // Nearly always: nothing is lost or overtaken.
        let next = self.cumulative_tsn().next();
        if tsn == next { Arrival::New(self.cumulative + 1) } else { self.classify_out_of_order(tsn) }
    }

    fn classify_out_of_order(&self, tsn: Tsn) -> Arrival {
        let cumulative = self.cumulative_tsn();
        let ahead = u64::from(tsn.distance_from(cumulative));
        if ahead == 0 || tsn.is_before(cumulative) {
            let behind = u64::from(cumulative.distance_from(tsn));
            // Before the initial TSN there was nothing that could come twice.
            return if behind < self.cumulative { Arrival::Duplicate } else { Arrival::Outside };
        }
        if ahead > REACH {
            return Arrival::Outside;
        }
        let index = self.cumulative + ahead;
        if self.received.contains(index) {
            Arrival::Duplicate
        } else if self.received.len() >= MAX_RANGES && self.received.opens_range(index) {
            Arrival::Outside
        } else {
            Arrival::New(index)
        }
    }

    #[inline]
    pub(super) fn record(&mut self, index: u64) {
        if index == self.highest + 1 && index == self.cumulative + 1 && self.deliverable.is_empty() {
            // Nothing is beyond a gap.
            (self.cumulative, self.highest) = (index, index);
        } else {
            self.record_early(index);
        }
    }

    fn record_early(&mut self, index: u64) {
        self.highest = self.highest.max(index);
        if index > self.cumulative + 1 {
            self.received.insert(index);
            self.note_latest(index);
            return;
        }
        if index <= self.cumulative {
            return;
        }
        self.cumulative = index;
        if !self.received.is_empty()
            && let Some(end) = self.received.take_first_at(index + 1)
        {
            self.cumulative = end - 1;
        }
        if self.received.is_empty() {
            self.latest.forget();
        }
        if !self.deliverable.is_empty() {
            self.deliverable.remove_below(self.cumulative + 1);
        }
    }

    /// A chunk with `tsn` came again: the peer has not heard of the first.
    pub(super) fn on_repeated(&mut self, tsn: Tsn) {
        let ahead = u64::from(tsn.distance_from(self.cumulative_tsn()));
        if ahead <= REACH {
            self.note_latest(self.cumulative + ahead);
        }
    }

    /// Notes what just came where a report may not have room for all.
    fn note_latest(&mut self, index: u64) {
        if self.received.len() > FEW_RANGES {
            self.latest.note(index);
        }
    }

    /// Takes everything up to `tsn` as arrived; its index. `None` when that is nothing new. However far ahead it
    /// is, up to [`LEAP`], it costs no more than the ranges that it passes.
    pub(super) fn skip_to(&mut self, tsn: Tsn) -> Option<u64> {
        let ahead = tsn.distance_from(self.cumulative_tsn());
        if ahead == 0 || ahead > LEAP {
            return None;
        }
        let index = self.cumulative + u64::from(ahead);
        self.received.remove_below(index + 1);
        self.cumulative = self.received.take_first_at(index + 1).map_or(index, |end| end - 1);
        self.highest = self.highest.max(index);
        if self.received.is_empty() {
            self.latest.forget();
        }
        self.deliverable.remove_below(self.cumulative + 1);
        Some(index)
    }

    #[inline]
    pub(super) fn mark_deliverable(&mut self, indices: Range<u64>) {
        let beyond = indices.start.max(self.cumulative + 1)..indices.end;
        if !self.splits || beyond.is_empty() {
            return;
        }
        // What finds no place here is reported as renegable, which promises less and is never wrong.
        let touches =
            !self.deliverable.opens_range(beyond.start) || !self.deliverable.opens_range(beyond.end - 1);
        if self.deliverable.len() < MAX_RANGES || touches {
            self.deliverable.insert_range(beyond);
        }
    }

    /// The index of `tsn` if it lies at most [`REACH`] from the cumulative TSN.
    pub(super) fn index_near(&self, tsn: Tsn) -> Option<u64> {
        let cumulative = self.cumulative_tsn();
        let (ahead, behind) = (u64::from(tsn.distance_from(cumulative)), cumulative.distance_from(tsn));
        if ahead <= REACH {
            return Some(self.cumulative + ahead);
        }
        self.cumulative.checked_sub(u64::from(behind)).filter(|_| u64::from(behind) <= REACH)
    }

    /// Takes everything up to the highest index as arrived, and lets `next` follow it.
    pub(super) fn renumber(&mut self, next: Tsn) {
        self.cumulative = self.highest;
        self.received = RangeSet::default();
        self.latest = Latest::default();
        self.deliverable = RangeSet::default();
        self.origin = Tsn(next.0.wrapping_sub(self.cumulative as u32).wrapping_sub(1));
    }

    pub(super) fn cumulative(&self) -> u64 {
        self.cumulative
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    #[inline]
    pub(super) fn cumulative_tsn(&self) -> Tsn {
        // TSNs count modulo 2^32, and so do the low bits of indices.
        self.origin.advance(self.cumulative as u32)
    }

    /// Indices that arrived beyond a gap.
    pub(super) fn received(&self) -> &RangeSet {
        &self.received
    }

    /// Lists the indices that arrived beyond a gap, cut to `limit` ranges: the lowest, and where these end those that something
    /// came to last, which are at most half. They are found in `latest`; all are ascending.
    pub(super) fn excerpt(
        &self,
        limit: usize,
        latest: &mut Vec<Range<u64>>,
        mut list: impl FnMut(Range<u64>),
    ) {
        if self.received.len() <= limit {
            return self.received.iter().for_each(list);
        }
        self.latest.find(&self.received, limit / 2, latest);
        let lowest = limit - latest.len();
        let next = self.received.start_after(lowest).unwrap_or(u64::MAX);
        self.received.iter().take(lowest).for_each(&mut list);
        latest.iter().filter(|range| range.start >= next).cloned().for_each(list);
    }

    /// Indices beyond the cumulative one that were marked deliverable.
    pub(super) fn deliverable(&self) -> &RangeSet {
        &self.deliverable
    }
}

/// Furthest distance from the cumulative TSN that a gap block can express (RFC 9260 §3.3.4).
const REACH: u64 = 65_535;
/// Furthest that the peer may give up what is missing. Numbered anew, TSNs go on half of all TSNs further (RFC 6525
/// §5.2.4), so that what is late from before seems to be as far ahead as can be: what lies in the further half of those
/// ahead is that.
const LEAP: u32 = 1 << 30;
/// Ranges that every report has room for, whatever the settings, in a packet of its own.
const FEW_RANGES: usize = 8;
/// Most ranges beyond a gap. A packet of 1,500 bytes reports some 360; more than this only a peer sends that
/// wants to make work, and each of its chunks costs a move of at most half of them.
pub(super) const MAX_RANGES: usize = 4096;
