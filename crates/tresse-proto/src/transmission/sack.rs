//! Processing of a SACK or NR-SACK in one pass over the chunks that it newly acknowledges, releases or shows as reneged; and
//! the report for each path.

use std::ops::Range;

use tresse_policy::engine::PathAck;
use tresse_policy::{Instant, PathId};
use tresse_wire::{GapBlock, List, Tsn};

use super::answers::Answer;
use super::note::PathNote;
use super::{ChunkState, PathLoad, Rules, Sent, Transmission};
use crate::collections::{difference, intersection};
use crate::config::{CwndUpdate, LossDetection};
use crate::paths::PathProgress;

/// Content of a SACK or an NR-SACK, in the same form.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SackView<'a> {
    pub(crate) cumulative_tsn: Tsn,
    pub(crate) a_rwnd: u32,
    /// Gap ack blocks that the peer may still renege on.
    pub(crate) renegable: List<'a, GapBlock>,
    /// Non-renegable gap ack blocks (NR-SACK).
    pub(crate) non_renegable: List<'a, GapBlock>,
    /// TSNs that arrived more than once.
    pub(crate) duplicates: List<'a, Tsn>,
    /// Number of packets that this SACK reports (CMT-DAC); 1 without DAC.
    pub(crate) dac_count: u8,
}

impl SackView<'_> {
    /// Returns whether the SACK has both renegable and non-renegable blocks.
    fn is_mixed(&self) -> bool {
        !self.renegable.is_empty() && !self.non_renegable.is_empty()
    }
}

/// Room in the peer's window, in bytes, below which a SACK closes it under `PeerWindowTest::Sack`: two packets of
/// 1,500 bytes, the silly window limit of the papers' model.
const LEAST_PEER_WINDOW: usize = 3000;

/// Reason for which a SACK was not processed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SackFault {
    /// The cumulative TSN ack is lower than an earlier one.
    Stale,
    /// The cumulative TSN ack covers a TSN that was never sent.
    Unsent,
}

/// Report on the changes by a SACK. The caller keeps it and passes it again for each SACK.
#[derive(Debug, Default)]
pub(crate) struct AckReport {
    /// True if the cumulative TSN ack advanced.
    pub(crate) advanced: bool,
    /// True if gap ack blocks that cannot be true were ignored.
    pub(crate) unsound: bool,
    /// Bytes of user data that leave the send buffer.
    pub(crate) released: usize,
    /// One entry for each path with a chunk newly acknowledged or lost.
    pub(crate) acks: Vec<PathAck>,
    /// Entries for the same paths as in `acks`.
    pub(crate) progress: Vec<PathProgress>,
    /// Paths with a reneged chunk: their T3 must run (RFC 9260 §6.3.2 R4).
    pub(crate) reneged: Vec<PathId>,
    /// Paths with a spurious window reduction, and the time at which the late chunk was sent, if that is certain.
    pub(crate) spurious: Vec<(PathId, Option<Instant>)>,
    /// The peer's window has opened: the window probes are no longer in flight, and are retransmitted at once.
    pub(crate) reopened: bool,
    /// Vectors of the pass that fills the report; taken out while it runs.
    scratch: Option<Box<Scratch>>,
}

/// Vectors that are kept between SACKs, so that no SACK allocates them.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) notes: Vec<PathNote>,
    /// Ranges of indices in the blocks of both kinds.
    blocks: Vec<Range<u64>>,
    /// Ranges of indices in the non-renegable blocks, if the SACK has blocks of both kinds.
    promises: Vec<Range<u64>>,
    newly_acked: Vec<Range<u64>>,
    reneged: Vec<Range<u64>>,
}

impl Transmission {
    /// Processes a SACK that arrived over `via`. `recovering` is true if a path is in fast recovery.
    ///
    /// # Errors
    /// A SACK that is stale, or whose cumulative TSN ack covers a TSN that was never sent, changes nothing.
    pub(crate) fn on_sack(
        &mut self,
        now: Instant,
        sack: SackView<'_>,
        via: PathId,
        recovering: bool,
        report: &mut AckReport,
    ) -> Result<(), SackFault> {
        let cumulative = self.unwrap_cumulative(sack.cumulative_tsn)?;
        let mut scratch = report.begin(&self.outstanding.loads);
        report.unsound = !self.collect_blocks(cumulative, &sack, &mut scratch);
        self.copies.begin_answers(&self.outstanding.loads, now, via);
        self.copies.answer_duplicates(&mut self.outstanding, sack.duplicates, &mut scratch.notes);
        self.announced = sack.a_rwnd;
        self.widest = self.widest.max(sack.a_rwnd);
        report.advanced = cumulative > self.outstanding.ring.cumulative();
        self.acknowledge_up_to(now, cumulative, &mut scratch.notes, report);
        self.acknowledge_blocks(now, &sack, &mut scratch, via, report);
        self.copies.end_answers(&self.outstanding.loads, &mut scratch.notes);
        self.find_losses(now, &sack, recovering && report.advanced, &mut scratch.notes);
        if self.rules.loss_detection == LossDetection::Rack {
            self.outstanding.find_spurious(&mut report.spurious);
        }
        report.reopened = self.retransmit_probe();
        self.window_full = self.peer_window() < LEAST_PEER_WINDOW;
        self.fill_report(now, &scratch.notes, via, report);
        report.end(scratch);
        Ok(())
    }

    /// Processes the duplicates that a stale SACK reports. Returns false, with nothing changed, if there are none or if
    /// duplication is off.
    ///
    /// SACKs over paths with different delays overtake each other, and no other SACK repeats these duplicates.
    pub(crate) fn on_late_duplicates(
        &mut self,
        now: Instant,
        duplicates: List<'_, Tsn>,
        via: PathId,
        report: &mut AckReport,
    ) -> bool {
        if !self.copies.is_on() || duplicates.is_empty() {
            return false;
        }
        let mut scratch = report.begin(&self.outstanding.loads);
        self.copies.begin_answers(&self.outstanding.loads, now, via);
        self.copies.answer_duplicates(&mut self.outstanding, duplicates, &mut scratch.notes);
        self.copies.end_answers(&self.outstanding.loads, &mut scratch.notes);
        for position in 0..self.outstanding.loads.len() {
            self.copies.strike(&mut self.outstanding.loads, position, &mut scratch.notes);
        }
        self.fill_report(now, &scratch.notes, via, report);
        report.end(scratch);
        true
    }

    /// Processes the cumulative TSN ack of a SHUTDOWN, like that of a SACK without blocks, but no chunk counts as reneged (RFC
    /// 9260 §9.2).
    ///
    /// # Errors
    /// As for `on_sack`.
    pub(crate) fn on_shutdown(
        &mut self,
        now: Instant,
        cumulative_tsn: Tsn,
        via: PathId,
        report: &mut AckReport,
    ) -> Result<(), SackFault> {
        let cumulative = self.unwrap_cumulative(cumulative_tsn)?;
        let mut scratch = report.begin(&self.outstanding.loads);
        self.copies.begin_answers(&self.outstanding.loads, now, via);
        report.advanced = cumulative > self.outstanding.ring.cumulative();
        self.acknowledge_up_to(now, cumulative, &mut scratch.notes, report);
        self.copies.end_answers(&self.outstanding.loads, &mut scratch.notes);
        self.fill_report(now, &scratch.notes, via, report);
        report.end(scratch);
        Ok(())
    }

    /// Returns whether a cumulative TSN ack covers a TSN that was never sent.
    pub(crate) fn is_beyond_sent(&self, cumulative_tsn: Tsn) -> bool {
        self.unwrap_cumulative(cumulative_tsn) == Err(SackFault::Unsent)
    }

    fn unwrap_cumulative(&self, tsn: Tsn) -> Result<u64, SackFault> {
        let ahead = tsn.0.wrapping_sub(self.outstanding.cumulative_tsn().0) as i32;
        let cumulative = self
            .outstanding
            .ring
            .cumulative()
            .checked_add_signed(i64::from(ahead))
            .ok_or(SackFault::Stale)?;
        if ahead < 0 {
            return Err(SackFault::Stale);
        }
        let unsent = cumulative > self.outstanding.ring.highest()
            || self.outstanding.is_unsent(self.outstanding.ring.cumulative() + 1..cumulative + 1);
        if unsent { Err(SackFault::Unsent) } else { Ok(cumulative) }
    }

    /// Collects the blocks of both kinds, and the non-renegable ones separately if the SACK has both. Returns whether all can
    /// be true.
    fn collect_blocks(&self, cumulative: u64, sack: &SackView<'_>, scratch: &mut Scratch) -> bool {
        if sack.is_mixed() {
            self.collect(cumulative, &[sack.non_renegable], &mut scratch.promises);
        }
        self.collect(cumulative, &[sack.renegable, sack.non_renegable], &mut scratch.blocks)
    }

    /// Collects the blocks of some lists as ascending disjoint ranges of indices. Ignores blocks that end before they start,
    /// and TSNs that were never sent. Returns whether nothing was ignored.
    fn collect(&self, cumulative: u64, lists: &[List<'_, GapBlock>], blocks: &mut Vec<Range<u64>>) -> bool {
        let beyond = self.outstanding.ring.highest() + 1;
        let named =
            |block: GapBlock| cumulative + u64::from(block.start)..cumulative + u64::from(block.end) + 1;
        blocks.clear();
        let (mut sound, mut end) = (true, cumulative);
        for list in lists {
            let start = blocks.len();
            blocks.resize(start + list.len(), 0..0);
            blocks[start..].iter_mut().zip(list.iter().map(named)).for_each(|(place, range)| {
                sound &= end < range.start && range.start < range.end && range.end <= beyond;
                end = range.end;
                *place = range;
            });
        }
        // In nearly all SACKs the blocks are valid and ascending.
        if !sound {
            sound = merge_blocks(lists.iter().flatten().map(named), cumulative + 1..beyond, blocks);
        }
        if self.outstanding.assigned() > 0 {
            sound &= !self.outstanding.leave_out_unsent(blocks);
        }
        sound
    }

    fn acknowledge_up_to(
        &mut self,
        now: Instant,
        cumulative: u64,
        notes: &mut [PathNote],
        report: &mut AckReport,
    ) {
        for index in self.outstanding.ring.cumulative() + 1..cumulative + 1 {
            self.acknowledge(now, index, notes, true);
            self.forget(index, report);
        }
        self.outstanding.ring.drop_up_to(cumulative);
        self.acked.remove_below(cumulative + 1);
        self.renegable.remove_below(cumulative + 1);
    }

    /// Removes a chunk that is cumulatively acknowledged from all sums, and releases its user data.
    #[inline]
    fn forget(&mut self, index: u64, report: &mut AckReport) {
        let Some(sent) = self.outstanding.ring.get(index) else { return };
        if let Some(load) = self.outstanding.loads.get_mut(sent.path.index()) {
            if sent.released {
                load.promised -= sent.waiting_bytes();
                self.outstanding.held -= sent.waiting_bytes();
            } else {
                load.queued -= sent.bytes();
                self.outstanding.held -= sent.bytes();
                report.released += sent.user_data();
            }
        }
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.note_leaving(&self.outstanding.ring, index);
        }
    }

    fn acknowledge_blocks(
        &mut self,
        now: Instant,
        sack: &SackView<'_>,
        scratch: &mut Scratch,
        via: PathId,
        report: &mut AckReport,
    ) {
        let Scratch { notes, blocks, promises, newly_acked: news, reneged } = scratch;
        if blocks.is_empty() && self.acked.is_empty() {
            return;
        }
        // A chunk that an earlier SACK acknowledged and this one does not is reneged, unless this SACK is only older than that
        // one, or was cut to fit its packet. Non-renegable chunks are never reneged: SACKs may omit them.
        let believed = via == self.acked_via || self.outstanding.flight == 0;
        reneged.clear();
        if believed && !self.renegable.is_empty() {
            difference(self.renegable.iter(), blocks.iter().cloned(), reneged);
        }
        self.acked.missing_of(blocks, news);
        let promised = sack.renegable.is_empty();
        for range in news.iter() {
            self.acked_via = via;
            for index in range.clone() {
                self.acknowledge(now, index, notes, false);
                if promised {
                    self.release(index, report);
                }
            }
            self.acked.insert_range(range.clone());
            if !promised {
                self.renegable.insert_range(range.clone());
            }
        }
        let reach = blocks.last().map_or(u64::MAX, |last| last.end);
        for index in reneged.iter().flat_map(|range| range.start..range.end.min(reach)) {
            self.renege(now, index, report);
        }
        if !sack.non_renegable.is_empty() && !self.renegable.is_empty() {
            let promises = if promised { blocks } else { promises };
            intersection(self.renegable.iter(), promises.iter().cloned(), news);
            for index in news.iter().cloned().flatten() {
                self.release(index, report);
                self.renegable.remove(index);
            }
        }
    }

    /// Releases a chunk that an NR-SACK reports as non-renegable (draft-tuexen-tsvwg-sctp-multipath §4).
    fn release(&mut self, index: u64, report: &mut AckReport) {
        let Some(sent) = self.outstanding.ring.get_mut(index).filter(|sent| !sent.released) else { return };
        sent.released = true;
        report.released += sent.user_data();
        let (path, bytes, waiting) = (sent.path, sent.bytes(), sent.waiting_bytes());
        if let Some(content) = self.outstanding.ring.content_mut(index) {
            content.payload = bytes::Bytes::new();
        }
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
            load.queued -= bytes;
            load.promised += waiting;
            self.outstanding.held = self.outstanding.held - bytes + waiting;
        }
    }

    /// Marks a chunk as acknowledged: it is no longer in flight, nor waits for retransmission.
    // `always`: called for every chunk, mostly from one place.
    #[inline(always)]
    fn acknowledge(&mut self, now: Instant, index: u64, notes: &mut [PathNote], by_cumulative: bool) {
        let sure = match self.copies.attribute(&mut self.outstanding, index, notes) {
            Answer::Ring { sure } => sure,
            Answer::Copy => return,
        };
        let Some(sent) = self.outstanding.ring.get(index) else { return };
        if (sent.sends > 1 || sent.standing == ChunkState::Lost)
            && self.rules.loss_detection == LossDetection::Rack
            && !self.copies.is_ambiguous(index)
        {
            let sent = *sent;
            self.outstanding.judge_late(now, index, &sent);
        }
        let Some(sent) = self.outstanding.ring.get_mut(index) else { return };
        let flying = match sent.standing {
            ChunkState::InFlight => true,
            ChunkState::Lost => false,
            // A chunk that arrives although it was abandoned changes no window.
            ChunkState::Acked | ChunkState::Abandoned | ChunkState::Assigned => return,
        };
        sent.standing = ChunkState::Acked;
        let (path, bytes, user_data) = (sent.path, sent.bytes(), sent.user_data());
        let (sends, sent_at, moved, early) = (sent.sends, sent.sent_at, sent.moved, sent.early);
        let (Some(load), Some(note)) =
            (self.outstanding.loads.get_mut(path.index()), notes.get_mut(path.index()))
        else {
            return;
        };
        note.pseudo_moved |=
            by_cumulative || flying && load.pseudo_cumulative_moves(index, sends, self.rules.cwnd_update);
        note.lowest_acked = note.lowest_acked.min(index);
        if flying {
            let order = if sends == 1 { &mut load.fresh } else { &mut load.again };
            order.unlink(&mut self.outstanding.ring, index);
            load.flight -= bytes;
            self.outstanding.flight -= bytes;
        } else {
            load.lost.remove(&index);
        }
        *if early { &mut note.uncredited } else { &mut note.acked } += bytes;
        note.user_data += user_data;
        note.proven |= sure && !moved;
        if sure && sends == 1 {
            note.longest_proven = note.longest_proven.max(bytes);
            note.latest_new = note.latest_new.max(Some(sent_at));
        }
        if sure && !moved {
            note.answered.add(sent_at, index, sends, bytes);
        }
        if sends > 1 && flying && load.history.detector.is_answer_to_probe(now, index, sent_at) {
            note.probe = Some((index, bytes));
        }
        if load.timed.end_if(|timed| timed == index).is_some() {
            note.rtt_from = (sure && sends == 1).then_some(sent_at);
        }
        if !(self.rules.smart_fast_retransmit && moved) {
            note.highest_new = note.highest_new.max(index);
            note.lowest_new = note.lowest_new.min(index);
        }
    }

    fn renege(&mut self, now: Instant, index: u64, report: &mut AckReport) {
        let by_time = self.rules.loss_detection == LossDetection::Rack;
        self.acked.remove(index);
        self.renegable.remove(index);
        // A chunk that was abandoned meanwhile needs no retransmission.
        let acked = |sent: &&mut Sent| sent.standing == ChunkState::Acked;
        let Some(sent) = self.outstanding.ring.get_mut(index).filter(acked) else { return };
        sent.standing = ChunkState::InFlight;
        sent.leave_order();
        sent.misses = 1;
        if by_time {
            // RACK takes now as the time of sending: otherwise a peer that reneges and acknowledges in turn would cause a
            // retransmission each time.
            sent.sent_at = now;
        }
        let (path, bytes, user_data) = (sent.path, sent.bytes(), sent.user_data());
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
            load.repairs.bytes_reneged += user_data as u64;
            load.again.append(&mut self.outstanding.ring, index);
            load.flight += bytes;
            self.outstanding.flight += bytes;
        }
        if !report.reneged.contains(&path) {
            report.reneged.push(path);
        }
    }

    pub(super) fn fill_report(
        &mut self,
        now: Instant,
        notes: &[PathNote],
        via: PathId,
        report: &mut AckReport,
    ) {
        for (position, note) in notes.iter().enumerate() {
            if !note.is_any() && !note.lost {
                continue;
            }
            let Some(load) = self.outstanding.loads.get_mut(position) else { continue };
            if let Some(sent_at) = note.latest_new {
                load.reinjected.answer(sent_at);
            }
            if let Some(sent_at) = note.answered.latest() {
                load.reinjected.answer_again(sent_at);
            }
            let (path, flight_after) = (PathId(position as u8), load.flight);
            let newest = note.latest_new.map(|sent_at| now.since(sent_at));
            let copy = if self.copies.is_on() { self.copies.earliest(path) } else { None };
            let recovered_to = match self.outstanding.load(path) {
                Some(load) if self.rules.pseudo_cumulative_recovery => {
                    load.settled_up_to(copy, self.outstanding.indices())
                }
                _ => self.outstanding.ring.cumulative(),
            };
            report.acks.push(PathAck {
                path,
                acked: note.acked,
                lost_bytes: note.repaired
                    + note.flight_before.saturating_sub(flight_after + note.acked + note.uncredited),
                rtt: newest,
                flight_before: note.flight_before,
                flight_after,
                may_grow: note.pseudo_moved || self.rules.cwnd_update == CwndUpdate::Off,
                lost: note.lost,
                exit_point: self.outstanding.highest_on(path),
                recovered_to,
            });
            report.progress.push(PathProgress {
                path,
                // A SACK over another path mixes the delays of two paths. Such a sample does not describe the path alone, but
                // T3 has to wait for just such SACKs.
                rtt: note
                    .rtt_from
                    .filter(|_| self.rules.rtt_over_any_path || via == path)
                    .map(|sent_at| now.since(sent_at)),
                shortest: newest,
                via,
                // If nothing of the path is outstanding below the lowest newly acknowledged chunk, that chunk was the earliest.
                earliest_acked: note.copy_moved || self.outstanding.is_lowest_on(path, note.lowest_acked),
                proven: note.proven,
                longest_proven: note.longest_proven,
                uncredited: note.uncredited,
                user_data: note.user_data,
                flight_after,
                awaits: self.awaits(path),
                late: self.outstanding.is_answered_late(path),
                look_again: note.look_again,
                lost_retransmission: note.lost_retransmission,
            });
        }
    }
}

/// Puts the parts of `named` within `sent` into `blocks`, ascending and disjoint; ignores ranges that end before they start.
/// Ranges of two lists may be in any order. Returns whether nothing was cut or ignored.
fn merge_blocks(
    named: impl Iterator<Item = Range<u64>>,
    sent: Range<u64>,
    blocks: &mut Vec<Range<u64>>,
) -> bool {
    blocks.clear();
    let mut sound = true;
    for range in named {
        sound &= range.start >= sent.start && range.start < range.end && range.end <= sent.end;
        let range = range.start.max(sent.start)..range.end.min(sent.end);
        if !range.is_empty() {
            blocks.push(range);
        }
    }
    blocks.sort_unstable_by_key(|block| block.start);
    // Blocks of a faulty peer may overlap: merging them does no harm.
    blocks.dedup_by(|later, earlier| {
        let joins = later.start <= earlier.end;
        if joins {
            earlier.end = earlier.end.max(later.end);
        }
        joins
    });
    sound
}

impl PathLoad {
    /// Index up to which a fast recovery may count the path's chunks as repaired; `copy` is the earliest duplicate on the path.
    fn settled_up_to(&self, copy: Option<u64>, (cumulative, highest): (u64, u64)) -> u64 {
        let pending = [self.fresh.head(), self.again.head(), self.lost.first().copied(), copy];
        let before = |index: Option<u64>| index.map_or(u64::MAX, |index| index - 1);
        let settled = pending.into_iter().map(before).fold(highest, u64::min);
        cumulative.max(settled)
    }

    /// Returns whether the acknowledgement of `index`, in flight here, advances the path's pseudo-cumulative TSN ack. With v1,
    /// the chunk must have the lower TSN of the heads of both lists; with v2, it must be the head of its own list, that of
    /// first transmissions or that of retransmissions.
    fn pseudo_cumulative_moves(&self, index: u64, sends: u16, rule: CwndUpdate) -> bool {
        match rule {
            CwndUpdate::Off => true,
            CwndUpdate::V1 => {
                [self.fresh.head(), self.again.head()].into_iter().flatten().min() == Some(index)
            }
            CwndUpdate::V2 if sends == 1 => self.fresh.head() == Some(index),
            CwndUpdate::V2 => self.again.head() == Some(index),
        }
    }
}

impl AckReport {
    /// Clears the report; returns the vectors for the pass that fills it.
    pub(super) fn begin(&mut self, loads: &[PathLoad]) -> Box<Scratch> {
        let mut scratch = self.scratch.take().unwrap_or_default();
        self.clear();
        scratch.begin(loads);
        scratch
    }

    /// Keeps the vectors of the pass for the next one.
    pub(super) fn end(&mut self, scratch: Box<Scratch>) {
        self.scratch = Some(scratch);
    }

    fn clear(&mut self) {
        (self.advanced, self.unsound) = (false, false);
        self.released = 0;
        self.acks.clear();
        self.progress.clear();
        self.reneged.clear();
        self.spurious.clear();
        self.reopened = false;
    }
}

impl Scratch {
    fn begin(&mut self, loads: &[PathLoad]) {
        self.notes.clear();
        self.notes.extend(loads.iter().map(|load| PathNote {
            flight_before: load.flight,
            lowest_acked: u64::MAX,
            lowest_new: u64::MAX,
            ..PathNote::default()
        }));
    }
}

impl Rules {
    /// Number of missing reports that one SACK counts as for the chunk `index` (CMT-DAC).
    pub(super) fn strikes(&self, index: u64, notes: &[PathNote], dac_count: u8) -> u8 {
        if !self.delayed_ack || dac_count <= 1 {
            return 1;
        }
        let mut touched = notes.iter().filter(|note| note.highest_new > 0);
        match (touched.next(), touched.next()) {
            // All newly acknowledged chunks are of one path and later than the missing one: a SACK for each of the packets that
            // this SACK reports would have reported the chunk missing.
            (Some(only), None) if index < only.lowest_new => dac_count,
            _ => 1,
        }
    }
}
