//! Map of the TSNs that have arrived, of the latest among them, and of those that are deliverable.
//!
//! Owns the conversion of TSNs to indices, and the bounds that keep the map small whatever the peer sends. Independent of the
//! time and the contents of SACKs.

use std::ops::Range;

use tresse_wire::Tsn;

use super::latest::Latest;
use crate::collections::RangeSet;

/// Classification of a TSN that arrives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The TSN was missing; with its index.
    New(u64),
    /// The TSN arrived before.
    Duplicate,
    /// The TSN is too far from the cumulative TSN to be reported, or would open one gap too many: its chunk is dropped.
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
    /// Indices that arrived above the first gap, which begins after `cumulative`.
    received: RangeSet,
    /// The latest of them, for SACKs that have no room for all.
    pub(super) latest: Latest,
    /// Indices above `cumulative` that were marked as deliverable.
    deliverable: RangeSet,
    /// True if `deliverable` is kept at all.
    splits: bool,
}

impl TsnMap {
    /// An empty map. `splits` is true if it is to keep the deliverable indices.
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
        // In most cases no packet was lost or overtaken, and the next TSN arrives.
        let next = self.cumulative_tsn().next();
        if tsn == next { Arrival::New(self.cumulative + 1) } else { self.classify_out_of_order(tsn) }
    }

    fn classify_out_of_order(&self, tsn: Tsn) -> Arrival {
        let cumulative = self.cumulative_tsn();
        let ahead = u64::from(tsn.distance_from(cumulative));
        if ahead == 0 || tsn.is_before(cumulative) {
            let behind = u64::from(cumulative.distance_from(tsn));
            // TSNs below the initial one were never sent, so they are no duplicates.
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
            // There is no gap.
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

    /// Notes a duplicate with `tsn`: the peer has not received a SACK that reports the first arrival, so the next SACK should.
    pub(super) fn on_repeated(&mut self, tsn: Tsn) {
        let ahead = u64::from(tsn.distance_from(self.cumulative_tsn()));
        if ahead <= REACH {
            self.note_latest(self.cumulative + ahead);
        }
    }

    /// Notes the latest arrival, if there are more ranges than every SACK has room for.
    fn note_latest(&mut self, index: u64) {
        if self.received.len() > FEW_RANGES {
            self.latest.note(index);
        }
    }

    /// Counts everything up to `tsn` as arrived; returns its index. Returns `None` if `tsn` is not ahead, or further ahead than
    /// [`LEAP`]. The cost depends only on the number of ranges up to `tsn`.
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
        // An index without room here is reported as renegable, which is always correct.
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

    /// Counts everything up to the highest index as arrived; `next` gets the index that follows.
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
        // TSNs count modulo 2^32, as the low 32 bits of indices do.
        self.origin.advance(self.cumulative as u32)
    }

    /// Indices that arrived above the first gap.
    pub(super) fn received(&self) -> &RangeSet {
        &self.received
    }

    /// Lists at most `limit` ranges above the first gap, in ascending order: the lowest ones, and above these the ranges that
    /// grew last, which are at most half. The latter are collected in `latest`.
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

    /// Indices above the cumulative one that were marked as deliverable.
    pub(super) fn deliverable(&self) -> &RangeSet {
        &self.deliverable
    }
}

/// Furthest distance from the cumulative TSN that a gap block can express (RFC 9260 §3.3.4).
const REACH: u64 = 65_535;
/// Largest distance over which the peer may abandon missing TSNs. After a renumbering, TSNs continue half of the number space
/// further (RFC 6525 §5.2.4), so that late TSNs from before it seem to be as far ahead as possible: TSNs in the further half of
/// those ahead are such ones.
const LEAP: u32 = 1 << 30;
/// Number of ranges that fit every SACK in a packet of its own, whatever the settings.
const FEW_RANGES: usize = 8;
/// Most ranges above the first gap. A packet of 1,500 bytes reports about 360. Only an attacker opens more than this, and each
/// of its chunks costs a move of at most half of the ranges.
pub(super) const MAX_RANGES: usize = 4096;
