//! Received TSNs: arrivals, duplicates, the time at which a SACK is due, and its contents.
//!
//! Owns the peer's TSNs: only this module knows the first one, the other modules use indices. Independent of the data, its
//! stream and the room in the buffer: the association provides the accepted TSNs and the window to advertise.

mod delay;
mod latest;
mod pattern;
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

/// Receiving side of one association, below the streams.
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
    /// A receiver without data; the peer's first DATA will have the TSN `peer_initial_tsn`. `delayed_ack` is true if both sides
    /// support DAC.
    pub(crate) fn new(peer_initial_tsn: Tsn, config: &AssociationConfig, delayed_ack: bool) -> Self {
        Receiver {
            map: TsnMap::new(peer_initial_tsn, config.nr_sack == NrSack::Delivered),
            delay: Delay::new(config, delayed_ack),
            report: Report::new(config),
        }
    }

    /// Sets the delay of reports by these settings from the next packet on.
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

    /// Records that the chunk with `index`, classified as new, is in the receive buffer.
    #[inline]
    pub(crate) fn record(&mut self, index: u64) {
        self.map.record(index);
    }

    /// Marks the chunks with `indices` as deliverable: complete, and in sequence within their stream or unordered. They will
    /// never be dropped, and with [`NrSack::Delivered`] they are reported as non-renegable from now on.
    #[inline]
    pub(crate) fn mark_deliverable(&mut self, indices: Range<u64>) {
        self.map.mark_deliverable(indices);
    }

    /// Counts the missing TSNs up to `tsn`, which the peer abandoned, as arrived (RFC 3758 §3.6). Returns the index of `tsn`,
    /// or `None` if nothing up to there was missing.
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

    /// The index of `tsn`; `None` if `tsn` is further from the cumulative TSN than a gap ack block reaches.
    pub(crate) fn index_near(&self, tsn: Tsn) -> Option<u64> {
        self.map.index_near(tsn)
    }

    /// Renumbers the peer's DATA: `next` is expected next, and no earlier TSN is missing any more (RFC 6525 §5.2.4).
    pub(crate) fn renumber(&mut self, next: Tsn) {
        self.map.renumber(next);
        self.report.forget_duplicates();
    }

    /// Notes that the peer has renumbered its DATA, beginning with `next`; some of it may have arrived before that was known.
    /// Returns the index of `next`.
    pub(crate) fn adopt(&mut self, next: Tsn) -> u64 {
        let after = self.cumulative() + 1;
        if let Some(index) = self.index_near(next).filter(|&index| index <= after) {
            return index;
        }
        self.renumber(next);
        self.cumulative() + 1
    }

    /// Returns whether a TSN is missing below one that arrived.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.map.received().is_empty()
    }

    /// Processes the summary of a packet with DATA that arrived over `path`; called once for each packet, after its chunks.
    /// Decides when the next report is due.
    pub(crate) fn on_packet(&mut self, now: Instant, path: PathId, what: PacketSummary) {
        self.delay.on_packet(now, path, what);
    }

    /// Makes a report due at once, whatever has arrived: a window update, in SHUTDOWN-SENT, after COOKIE ECHO.
    pub(crate) fn demand(&mut self) {
        self.delay.demand();
    }

    /// Notes that the report left on `path`. If no packet arrives there by `heard_by`, the report may be lost.
    pub(crate) fn on_reported_over(&mut self, path: PathId, heard_by: Instant) {
        self.delay.on_reported_over(path, heard_by);
    }

    /// Returns the path of the last report, once, at the time to check whether packets still arrive there.
    pub(crate) fn pop_watched(&mut self, now: Instant) -> Option<PathId> {
        self.delay.pop_watched(now)
    }

    /// Makes the last report due again, on another path if its data came over others too. Its number of repetitions is at most
    /// the number of paths, however long no packet arrives.
    pub(crate) fn demand_elsewhere(&mut self) {
        self.delay.demand_elsewhere();
    }

    /// Lets the SACK timer expire, if its time has come.
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.delay.on_time(now);
    }

    /// Returns whether a report should leave at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.delay.is_due(now)
    }

    /// Time at which the SACK timer expires or the path of the last report is to be checked; `None` if neither is pending, or a
    /// report is due already.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.delay.deadline()
    }

    /// Returns whether something is unreported, so that a report should be bundled with DATA that leaves (RFC 9260
    /// §6.1).
    pub(crate) fn is_pending(&self) -> bool {
        self.delay.is_pending()
    }

    /// Paths over which DATA arrived since the last report.
    pub(crate) fn sources(&self) -> Sources {
        self.delay.sources()
    }

    /// Returns whether no full packet fits into a window of `window` bytes.
    pub(crate) fn leaves_no_packet(&self, window: usize) -> bool {
        self.report.leaves_no_packet(window)
    }

    /// Returns whether `window` free bytes of `buffer` deserve a report of their own: without it the peer might not be able to
    /// send (RFC 9260 §6.2).
    pub(crate) fn wants_window_update(&self, window: usize, buffer: usize) -> bool {
        self.report.wants_window_update(window, buffer)
    }

    /// Appends a SACK, or an NR-SACK if `nr` is true because that was negotiated, cut to the room in the packet. From then on
    /// everything counts as reported.
    ///
    /// # Errors
    /// Not even a report without blocks fits; then nothing changes.
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
