//! Received TSNs: arrivals, duplicates, the time at which a SACK is due, and its contents.
//!
//! Owns the peer's TSNs: only this module knows the first one, the other modules see indices. Independent of
//! the data, its stream and the room in the buffer: the association provides the accepted TSNs and the window to
//! announce.

mod delay;
mod latest;
mod report;
mod tsn_map;

use std::ops::Range;

use tresse_policy::{Instant, PathId};
use tresse_wire::{NoRoom, PacketWriter, Tsn};

use crate::config::{AssociationConfig, NrSack};

pub(crate) use delay::{PacketSummary, Sources};
pub(crate) use tsn_map::Arrival;

use delay::Delay;
use report::Report;
use tsn_map::TsnMap;

/// The receiving side of one association, below streams.
///
/// An *index* is a TSN unwrapped: the peer's initial TSN has index 1, and a cumulative index of 0 means
/// that nothing has arrived.
#[derive(Debug)]
pub(crate) struct Receiver {
    map: TsnMap,
    delay: Delay,
    report: Report,
}

impl Receiver {
    /// Nothing has arrived yet; the peer's first DATA will carry `peer_initial_tsn`. `delayed_ack` says whether both
    /// sides know DAC.
    pub(crate) fn new(peer_initial_tsn: Tsn, config: &AssociationConfig, delayed_ack: bool) -> Self {
        Receiver {
            map: TsnMap::new(peer_initial_tsn, config.nr_sack == NrSack::Delivered),
            delay: Delay::new(config, delayed_ack),
            report: Report::new(config),
        }
    }

    /// Delays reports by these settings from the next packet on.
    pub(crate) fn set_delay(&mut self, config: &AssociationConfig) {
        self.delay.adjust(config);
    }

    /// Classifies a DATA chunk with `tsn`. A duplicate is noted for the next report (RFC 9260 §6.2); nothing else
    /// changes.
    #[inline]
    pub(crate) fn classify(&mut self, tsn: Tsn) -> Arrival {
        let arrival = self.map.classify(tsn);
        if arrival == Arrival::Duplicate {
            self.on_duplicate(tsn);
        }
        arrival
    }

    /// The chunk with `index`, classified as new, is in the receive buffer.
    #[inline]
    pub(crate) fn record(&mut self, index: u64) {
        self.map.record(index);
    }

    /// The chunks with `indices` can be delivered: complete, and in sequence within their stream or
    /// unordered. They will never be dropped, and [`NrSack::Delivered`] reports them so from now on.
    #[inline]
    pub(crate) fn mark_deliverable(&mut self, indices: Range<u64>) {
        self.map.mark_deliverable(indices);
    }

    /// The peer has given up what is missing up to `tsn`: it counts as arrived (RFC 3758 §3.6). The index of
    /// `tsn`; `None` when nothing up to there was missing.
    pub(crate) fn skip_to(&mut self, tsn: Tsn) -> Option<u64> {
        self.map.skip_to(tsn)
    }

    /// The highest index that has arrived.
    pub(crate) fn highest(&self) -> u64 {
        self.map.highest()
    }

    /// The index up to which everything has arrived.
    pub(crate) fn cumulative(&self) -> u64 {
        self.map.cumulative()
    }

    /// The TSN of index 0.
    pub(crate) fn origin(&self) -> Tsn {
        self.map.origin()
    }

    /// The Cumulative TSN Ack: the TSN of [`Self::cumulative`].
    pub(crate) fn cumulative_tsn(&self) -> Tsn {
        self.map.cumulative_tsn()
    }

    /// The index of `tsn`; `None` when it is too far away to be one that the peer has reached, or will soon.
    pub(crate) fn index_near(&self, tsn: Tsn) -> Option<u64> {
        self.map.index_near(tsn)
    }

    /// Numbers the peer's DATA anew: `next` comes next, and nothing before it is waited for (RFC 6525 §5.2.4).
    pub(crate) fn renumber(&mut self, next: Tsn) {
        self.map.renumber(next);
        self.report.forget_duplicates();
    }

    /// The peer has numbered its DATA anew, beginning with `next`, and some of it may have arrived before that was known.
    /// Returns the index that `next` has.
    pub(crate) fn adopt(&mut self, next: Tsn) -> u64 {
        let after = self.cumulative() + 1;
        if let Some(index) = self.index_near(next).filter(|&index| index <= after) {
            return index;
        }
        self.renumber(next);
        self.cumulative() + 1
    }

    /// Returns whether something arrived beyond a missing TSN.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.map.received().is_empty()
    }

    /// A packet with DATA came over `path`; called once for each, after its chunks. Decides when the
    /// next report is due.
    pub(crate) fn on_packet(&mut self, now: Instant, path: PathId, what: PacketSummary) {
        self.delay.on_packet(now, path, what);
    }

    /// A report is due at once, whatever has arrived: window update, SHUTDOWN-SENT, after COOKIE ECHO.
    pub(crate) fn demand(&mut self) {
        self.delay.demand();
    }

    /// The report left on `path`. The peer is heard there by then, or else the report may be lost.
    pub(crate) fn on_reported_over(&mut self, path: PathId, heard_by: Instant) {
        self.delay.on_reported_over(path, heard_by);
    }

    /// The path of the last report, once, when the time has come to ask whether it was heard.
    pub(crate) fn pop_watched(&mut self, now: Instant) -> Option<PathId> {
        self.delay.pop_watched(now)
    }

    /// Makes the last report due again, over another path if its data came over others too: so it is repeated no more
    /// often than there are paths, however long the silence lasts.
    pub(crate) fn demand_elsewhere(&mut self) {
        self.delay.demand_elsewhere();
    }

    /// Lets the SACK timer run out, if its time has come.
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.delay.on_time(now);
    }

    /// Returns whether a report should leave at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.delay.is_due(now)
    }

    /// Time at which the SACK timer runs out or the last report is to be asked after; `None` when neither is so or a
    /// report is due already.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.delay.deadline()
    }

    /// Returns whether something is unreported, so that a report should be bundled with DATA that leaves (RFC 9260
    /// §6.1).
    pub(crate) fn is_pending(&self) -> bool {
        self.delay.is_pending()
    }

    /// Paths that brought the DATA since the last report.
    pub(crate) fn sources(&self) -> Sources {
        self.delay.sources()
    }

    /// Returns whether no full packet fits into a window of `window` bytes.
    pub(crate) fn leaves_no_packet(&self, window: usize) -> bool {
        self.report.leaves_no_packet(window)
    }

    /// Returns whether it is worth a report of its own that `window` of `buffer` bytes are free now: silence could keep
    /// the peer from sending (RFC 9260 §6.2).
    pub(crate) fn wants_window_update(&self, window: usize, buffer: usize) -> bool {
        self.report.wants_window_update(window, buffer)
    }

    /// Appends a SACK, or an NR-SACK when `nr` says that it was negotiated, cut to the room in the
    /// packet; from then on everything counts as reported.
    ///
    /// # Errors
    /// Not even a report without any block fits; nothing changes.
    pub(crate) fn write_report(
        &mut self,
        window: u32,
        nr: bool,
        writer: &mut PacketWriter<'_>,
    ) -> Result<(), NoRoom> {
        self.report.write(&self.map, window, self.delay.counted_packets(), nr, writer)?;
        self.delay.on_reported();
        Ok(())
    }

    fn on_duplicate(&mut self, tsn: Tsn) {
        self.report.note_duplicate(tsn);
        self.map.on_repeated(tsn);
    }
}

#[cfg(test)]
mod tests;
