//! Outstanding data: the path and time of each TSN's transmission, whether the chunk is in flight, lost or acknowledged, and
//! the amount of new data that may follow.
//!
//! Bytes are sizes of DATA chunks, headers included (outstanding data, RFC 9260 §1.3), unless a comment names another unit.
//! Only the send buffer counts user data.
//!
//! Independent of streams' queues, windows and timers: this module keeps the chunks that were sent, and returns a report for
//! each SACK or timeout.

mod abandon;
mod answers;
mod assigned;
mod blocking;
mod budget;
mod copies;
mod detector;
mod dropped;
mod forward;
#[cfg(any(test, feature = "invariants"))]
mod invariants;
mod loss;
mod marked;
mod note;
mod outstanding;
mod path_queues;
mod reinjected;
mod resend;
mod ring;
mod sack;
mod spurious_check;
#[cfg(test)]
mod tests;
mod unacknowledged;
mod undo;

use std::sync::Arc;

use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use crate::collections::{LazyBox, RangeSet};
use crate::config::{
    AssociationConfig, BufferPolicy, ChunkRescheduling, CwndUpdate, LossDetection, PeerWindowTest,
};
use crate::fragment::{DataFormat, Fragment};
use crate::interface::reliability::DeliveryTerms;
use crate::interface::stats::PathStats;

pub(crate) use budget::Verdict;
pub(crate) use copies::{Candidate, CopyScope, ResponseTime};
pub(crate) use dropped::Dropped;
pub(crate) use forward::Forward;
#[cfg(any(test, feature = "invariants"))]
pub(crate) use invariants::check_transmission;
#[cfg(feature = "invariants")]
pub(crate) use invariants::{UserData, user_data};
pub(crate) use resend::PendingChunk;
pub(crate) use sack::{AckReport, SackFault, SackView};
pub(crate) use unacknowledged::unacknowledged;
pub(crate) use undo::{empty_path, move_flight, watch_timeout};

use abandon::Revocable;
use copies::Copying;
use outstanding::{Outstanding, PathLoad};
use reinjected::Reinjected;
use ring::{ChunkState, Mark, Sent};

/// Sent chunks of an association, and the sums and lists of each path.
#[derive(Debug)]
pub(crate) struct Transmission {
    rules: Rules,
    pub(crate) outstanding: Outstanding,
    /// Indices that gap ack blocks acknowledged, except those that the peer reneged on since.
    acked: RangeSet,
    /// Indices of `acked` that the peer may still renege on: none where all blocks are non-renegable (NR-SACK).
    renegable: RangeSet,
    /// Window that the peer advertised last (a_rwnd), in bytes.
    announced: u32,
    /// True if the last SACK left room for less than two packets: with `PeerWindowTest::Sack`, only a path with nothing in
    /// flight may then send a packet of new data before the next SACK.
    window_full: bool,
    /// Largest window that the peer ever advertised, taken as the size of its receive buffer.
    widest: u32,
    /// The window probe, until the window opens: the first chunk that was sent although the peer's window had no room for it
    /// (RFC 9260 §6.1 A). The peer has probably dropped the chunk.
    probe: Mark,
    /// Path of the last SACK that newly acknowledged a chunk by a gap ack block.
    acked_via: PathId,
    /// True if the peer reported a duplicate of a chunk that was sent once: then its reports of duplicates do not prove that a
    /// retransmission was spurious.
    doubled: bool,
    /// Messages with delivery terms (PR-SCTP, or a context of the application); allocated with the first.
    revocable: Option<Box<Revocable>>,
    /// Duplicates in flight, if a policy sends duplicates.
    pub(crate) copies: Copying,
}

/// Settings that this module reads, copied from the configuration once.
#[derive(Clone, Debug)]
struct Rules {
    loss_detection: LossDetection,
    split_fast_retransmit: bool,
    cwnd_update: CwndUpdate,
    delayed_ack: bool,
    pseudo_cumulative_recovery: bool,
    smart_fast_retransmit: bool,
    multiple_fast_retransmit: bool,
    rtt_over_any_path: bool,
    buffers: BufferPolicy,
    peer_window_test: PeerWindowTest,
    chunk_rescheduling: ChunkRescheduling,
    /// Part of a buffer, in percent.
    rescheduling_threshold: u16,
    reinjection_t3: bool,
    immediate_sack_when_full: bool,
    send_buffer: usize,
}

impl Transmission {
    pub(crate) fn new(
        initial_tsn: Tsn,
        peer_window: u32,
        data_format: DataFormat,
        config: &AssociationConfig,
        delayed_ack: bool,
    ) -> Self {
        Transmission {
            rules: Rules {
                loss_detection: config.loss_detection,
                split_fast_retransmit: config.experiment.split_fast_retransmit,
                cwnd_update: config.experiment.cwnd_update,
                delayed_ack,
                pseudo_cumulative_recovery: config.experiment.pseudo_cumulative_recovery,
                smart_fast_retransmit: config.experiment.smart_fast_retransmit,
                multiple_fast_retransmit: config.experiment.multiple_fast_retransmit,
                rtt_over_any_path: config.experiment.rtt_over_any_path,
                buffers: config.buffer_policy(),
                peer_window_test: config.experiment.peer_window_test,
                chunk_rescheduling: config.chunk_rescheduling,
                rescheduling_threshold: config.experiment.rescheduling_threshold,
                // Deadline-based reinjection may move a chunk each time it is overdue: without T3, a failure of its path would
                // never be detected.
                reinjection_t3: config.experiment.reinjection_t3
                    || config.chunk_rescheduling == ChunkRescheduling::ByDeadline,
                immediate_sack_when_full: config.immediate_sack_when_full,
                send_buffer: config.send_buffer.0,
            },
            outstanding: Outstanding::new(initial_tsn, data_format),
            acked: RangeSet::default(),
            renegable: RangeSet::default(),
            announced: peer_window,
            window_full: false,
            widest: peer_window,
            probe: Mark::default(),
            acked_via: PathId::default(),
            doubled: false,
            revocable: None,
            copies: Copying::default(),
        }
    }

    /// Sets the size of the send buffer, which the paths share.
    pub(crate) fn set_send_buffer(&mut self, bytes: usize) {
        self.rules.send_buffer = bytes;
    }

    /// Sets the receiver window of a peer that has not acknowledged anything yet.
    pub(crate) fn begin_again(&mut self, peer_window: u32) {
        (self.announced, self.widest, self.window_full) = (peer_window, peer_window, false);
    }

    /// Makes room for paths up to `count`.
    pub(crate) fn cover_paths(&mut self, count: usize) {
        if self.outstanding.loads.len() < count {
            self.outstanding.loads.reserve_exact(count - self.outstanding.loads.len());
            self.outstanding.loads.resize_with(count, PathLoad::default);
            self.copies.cover(count);
        }
    }

    /// Makes room for paths up to `count`. `path` is new, and may take the slot of a removed path: its counters and duplicates
    /// start anew.
    pub(crate) fn renew_path(&mut self, path: PathId, count: usize) {
        self.cover_paths(count);
        self.copies.give_up(&mut self.outstanding, path);
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
            // Chunks acknowledged by gap ack blocks may still count in the sums of this slot, so the sums stay.
            load.history = LazyBox::default();
            load.repairs = LazyBox::default();
            load.reinjected = Reinjected::default();
        }
    }

    /// Fills in the statistics of `path` that this module has.
    pub(crate) fn fill_stats(&self, path: PathId, stats: &mut PathStats) {
        if let Some(load) = self.outstanding.load(path) {
            stats.flight = load.flight;
            stats.copied = self.copies.flight_on(path);
            stats.queued = load.queued;
            stats.chunks_sent = load.history.chunks_sent;
            stats.bytes_sent = load.history.bytes_sent;
            stats.chunks_resent = load.repairs.chunks_resent;
            stats.fast_retransmits = load.repairs.fast_retransmits;
            stats.drop_reports = load.repairs.drop_reports;
            stats.copies_sent = load.repairs.copies_sent;
            stats.bytes_reneged = load.repairs.bytes_reneged;
        }
    }

    /// Bytes that the peer can still accept, by the window that it advertised last and the bytes in flight (RFC 9260 §6.2.1).
    pub(crate) fn peer_window(&self) -> usize {
        self.announced().saturating_sub(self.outstanding.flight)
    }

    /// Window that the peer advertised last, in bytes.
    #[inline]
    fn announced(&self) -> usize {
        self.announced as usize
    }

    /// Returns whether the data in flight only probes the peer's window, which is closed or too small for it (RFC 9260 §6.1 A).
    pub(crate) fn is_probing_window(&self) -> bool {
        let probe = self.probe.index().and_then(|first| self.outstanding.ring.get(first));
        let probes = self.announced == 0 || probe.is_some_and(|probe| probe.bytes() > self.announced());
        // With `PeerWindowTest::Sack`, more may be in flight than the peer can accept. Then each path has a window probe of its
        // own, and the peer drops the chunks for which it has no room.
        let overruns = self.rules.peer_window_test == PeerWindowTest::Sack
            && self.window_full
            && self.outstanding.flight > self.announced();
        self.outstanding.flight > 0 && (probes || overruns)
    }

    /// Renumbers the data: the next chunk gets the TSN `next` (RFC 6525 §5.1.4). No chunk may be outstanding.
    pub(crate) fn renumber(&mut self, next: Tsn) {
        debug_assert!(self.outstanding.is_empty(), "what is outstanding would change its TSN");
        for position in 0..self.outstanding.loads.len() {
            self.outstanding.loads[position].reinjected = Reinjected::default();
            self.copies.give_up(&mut self.outstanding, PathId(position as u8));
        }
        self.outstanding.initial_tsn = Tsn(next.0.wrapping_sub(self.outstanding.ring.highest() as u32));
    }

    /// Records that `fragment` was sent on `path`, with the TSN from `Outstanding::number`. `terms` are the delivery terms of
    /// its message, if it has any.
    #[inline]
    pub(crate) fn record(
        &mut self,
        now: Instant,
        fragment: Fragment,
        terms: Option<Arc<DeliveryTerms>>,
        path: PathId,
    ) {
        let sent = Sent::new(&fragment, self.outstanding.data_format, path, now);
        let (bytes, user_data) = (sent.bytes(), sent.user_data());
        let Some(load) = self.outstanding.loads.get_mut(path.index()) else { return };
        let index = load.fresh.push(&mut self.outstanding.ring, sent, fragment);
        if bytes > self.announced as usize && self.outstanding.flight == 0 {
            self.probe = Mark::of(index);
        }
        load.flight += bytes;
        load.queued += bytes;
        let history = &mut *load.history;
        history.chunks_sent += 1;
        history.bytes_sent += user_data as u64;
        load.timed.begin(index);
        self.outstanding.flight += bytes;
        self.outstanding.held += bytes;
        self.outstanding.note_highest_sent(path, index);
        if let Some(terms) = terms {
            self.revocable.get_or_insert_default().note(index, path, terms);
        }
    }

    /// Returns whether `path` awaits an acknowledgement: of chunks in flight there, of chunks reinjected from it, of a FORWARD
    /// TSN, or of a window probe that was abandoned.
    pub(crate) fn awaits(&self, path: PathId) -> bool {
        self.outstanding.load(path).is_some_and(PathLoad::awaits)
            || self.forward_path() == Some(path)
            || self.abandoned_probe().is_some_and(|(probed, _)| probed == path)
    }
}
