//! Processing of a SACK or NR-SACK in one pass over the chunks that it changed: newly acknowledged, released
//! or reneged; and the report for each path.

use std::ops::Range;

use tresse_policy::engine::PathAck;
use tresse_policy::{Instant, PathId};
use tresse_wire::{GapBlock, List, Tsn};

use super::answers::Answer;
use super::detector::NewlyAcked;
use super::{ChunkState, PathLoad, Rules, Sent, Transmission};
use crate::collections::{difference, intersection};
use crate::config::{CwndUpdate, LossDetection};
use crate::paths::PathProgress;

/// Content of a SACK or an NR-SACK, in one shape.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SackView<'a> {
    pub(crate) cumulative_tsn: Tsn,
    pub(crate) a_rwnd: u32,
    /// Blocks that the peer may still take back.
    pub(crate) renegable: List<'a, GapBlock>,
    /// Blocks that it may not (NR-SACK).
    pub(crate) non_renegable: List<'a, GapBlock>,
    /// TSNs that came more than once.
    pub(crate) duplicates: List<'a, Tsn>,
    /// Packets that this SACK stands for (CMT-DAC); 1 without.
    pub(crate) dac_count: u8,
}

impl SackView<'_> {
    /// Returns whether some blocks may be taken back, and some may not.
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
    /// Its cumulative TSN is older than one already seen.
    Stale,
    /// Its cumulative TSN was never sent.
    Unsent,
}

/// Changes by a SACK. Kept by the caller and filled anew for each SACK.
#[derive(Debug, Default)]
pub(crate) struct AckReport {
    /// The cumulative acknowledgement moved.
    pub(crate) advanced: bool,
    /// Gap blocks that cannot be true were left out.
    pub(crate) unsound: bool,
    /// User data that no buffer has to keep any more.
    pub(crate) released: usize,
    /// One entry for each path with something newly acknowledged or lost.
    pub(crate) acks: Vec<PathAck>,
    /// In step with `acks`.
    pub(crate) progress: Vec<PathProgress>,
    /// Paths with a reneged chunk: their T3 must run (RFC 9260 §6.3.2 R4).
    pub(crate) reneged: Vec<PathId>,
    /// Paths with a spurious window reduction, and the time at which the late chunk was sent, if that is certain.
    pub(crate) spurious: Vec<(PathId, Option<Instant>)>,
    /// The peer's window has opened: the window probe on this path is no longer in flight, and is retransmitted at once.
    pub(crate) reopened: Option<PathId>,
    /// Of the pass that fills the rest, which has it meanwhile.
    scratch: Option<Box<Scratch>>,
}

/// Per-path notes of one pass.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNote {
    /// Of what may earn the path a larger window.
    pub(super) acked: usize,
    /// Of chunks that were moved before they counted as lost.
    pub(super) uncredited: usize,
    /// User data of both.
    pub(super) user_data: usize,
    pub(super) flight_before: usize,
    /// The earliest copy of the path was answered.
    pub(super) copy_moved: bool,
    /// Lowest index newly acknowledged on the path.
    pub(super) lowest_acked: u64,
    /// The path's pseudo-cumulative acknowledgement moved (CUC).
    pub(super) pseudo_moved: bool,
    /// Highest index newly acknowledged on the path that counts for missing reports (SFR).
    pub(super) highest_new: u64,
    pub(super) lowest_new: u64,
    /// Time at which the latest of that left which was sent once; known where there are copies.
    pub(super) answered_at: Option<Instant>,
    /// Time at which the latest of what was newly acknowledged and sent once was sent.
    pub(super) latest_new: Option<Instant>,
    pub(super) rtt_from: Option<Instant>,
    /// Chunks that were sent on this path alone, for those who go by time.
    pub(super) answered: NewlyAcked,
    /// Time at which what was overtaken on the path will count as lost.
    pub(super) look_again: Option<Instant>,
    /// A tail probe that was acknowledged, no sooner than by its answer, and its bytes.
    pub(super) probe: Option<(u64, usize)>,
    /// Bytes that were lost, and have arrived by a tail probe.
    pub(super) repaired: usize,
    /// True if what was lost now had been sent three times and more.
    pub(super) stubborn: bool,
    pub(super) lost: bool,
    /// A chunk was acknowledged that was sent on this path alone.
    pub(super) proven: bool,
    /// The longest of those that were sent once.
    pub(super) longest_proven: usize,
}

impl PathNote {
    /// Returns whether anything of the path is newly acknowledged.
    pub(super) fn is_any(&self) -> bool {
        self.acked + self.uncredited > 0
    }
}

/// Vectors that are kept between SACKs so that none is allocated for one.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) notes: Vec<PathNote>,
    /// Ranges in the blocks of both kinds.
    blocks: Vec<Range<u64>>,
    /// Ranges in those that the peer may not take back, where there are some of either kind.
    promises: Vec<Range<u64>>,
    newly_acked: Vec<Range<u64>>,
    gone: Vec<Range<u64>>,
}

impl Transmission {
    /// Processes a SACK that arrived over `via`; `recovering` says whether a path is in fast recovery.
    ///
    /// # Errors
    /// A SACK that is stale, or acknowledges everything up to what was never sent, changes nothing.
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

    /// A report that is older than another all the same tells of duplicates; returns whether any was a copy.
    ///
    /// Reports over unlike paths overtake each other, and what this one says of duplicates no other repeats.
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

    /// The cumulative TSN of SHUTDOWN acknowledges like a SACK without blocks, which takes nothing
    /// back (RFC 9260 §9.2).
    ///
    /// # Errors
    /// As `on_sack`.
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

    /// Returns whether a cumulative TSN Ack covers what was never sent.
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

    /// The blocks of both kinds, and those that promise to keep what they name. Returns whether all can be true.
    fn collect_blocks(&self, cumulative: u64, sack: &SackView<'_>, scratch: &mut Scratch) -> bool {
        if sack.is_mixed() {
            self.collect(cumulative, &[sack.non_renegable], &mut scratch.promises);
        }
        self.collect(cumulative, &[sack.renegable, sack.non_renegable], &mut scratch.blocks)
    }

    /// All blocks of some lists as ascending disjoint ranges of indices. A block that ends before it starts is left out,
    /// and of the others what was never sent. Returns whether that leaves everything.
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
        // Nearly always they are as they should be.
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

    /// The chunk is acknowledged non-renegably, and need not be kept.
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
        let Scratch { notes, blocks, promises, newly_acked: news, gone } = scratch;
        if blocks.is_empty() && self.acked.is_empty() {
            return;
        }
        // What an earlier SACK acknowledged and this one does not: reneged, unless this SACK is only
        // older than that one, or was cut to fit its packet. Nor is what the peer promised to keep ever reneged:
        // reports may leave that out, and much of it.
        let believed = via == self.acked_via || self.outstanding.flight == 0;
        gone.clear();
        if believed && !self.renegable.is_empty() {
            difference(self.renegable.iter(), blocks.iter().cloned(), gone);
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
        for index in gone.iter().flat_map(|range| range.start..range.end.min(reach)) {
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

    /// Frees what an NR-SACK block promises to keep (draft-tuexen-tsvwg-sctp-multipath §4).
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

    /// Takes a chunk out of flight, or out of what is to be sent again.
    // Always: called for every chunk, mostly in one place.
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
            // What was given up moves no window when it arrives all the same.
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
        // What was given up meanwhile is missed by nobody.
        let acked = |sent: &&mut Sent| sent.standing == ChunkState::Acked;
        let Some(sent) = self.outstanding.ring.get_mut(index).filter(acked) else { return };
        sent.standing = ChunkState::InFlight;
        // It was sent once or more; either way its place in the order of first sending is gone.
        sent.sends = sent.sends.max(2);
        sent.misses = 1;
        if by_time {
            // As late as the news of it: else a peer that takes back and gives again in turn would be sent a copy each time.
            sent.sent_at = now;
        }
        let (path, bytes) = (sent.path, sent.bytes());
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
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
            if note.proven {
                load.reinjected.answer_again();
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
                // A SACK that came over another path mixes the delays of two paths. That blurs the picture of
                // the path, but T3 has to wait for just such SACKs.
                rtt: note
                    .rtt_from
                    .filter(|_| self.rules.rtt_over_any_path || via == path)
                    .map(|sent_at| now.since(sent_at)),
                shortest: newest,
                via,
                // Nothing is left of the path below what was acknowledged: its earliest TSN was among that.
                earliest_acked: note.copy_moved || self.outstanding.is_lowest_on(path, note.lowest_acked),
                proven: note.proven,
                longest_proven: note.longest_proven,
                uncredited: note.uncredited,
                user_data: note.user_data,
                flight_after,
                awaits: self.awaits(path),
                late: self.outstanding.is_answered_late(path),
                look_again: note.look_again,
                stubborn: note.stubborn,
            });
        }
    }
}

/// Puts the part of `named` within `sent` into `blocks`, ascending and disjoint, but for what ends before it starts. Answers
/// whether that leaves everything: ranges of two lists may be in any order.
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
    // A broken peer may let blocks overlap; as ranges of a set that does no harm.
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
    /// Up to where a fast recovery may count everything as repaired, where `copy` is the earliest copy on the path.
    fn settled_up_to(&self, copy: Option<u64>, (cumulative, highest): (u64, u64)) -> u64 {
        let pending = [self.fresh.head(), self.again.head(), self.lost.first().copied(), copy];
        let before = |index: Option<u64>| index.map_or(u64::MAX, |index| index - 1);
        let settled = pending.into_iter().map(before).fold(highest, u64::min);
        cumulative.max(settled)
    }

    /// Returns whether acknowledging `index`, in flight here, moves the path's pseudo-cumulative acknowledgement:
    /// whether nothing that v1, or v2 among chunks sent as often, follows was sent before it and is still in flight.
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
    /// Nothing is reported yet; the notes of the pass that will report.
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
        self.reopened = None;
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
    /// Number of missing reports that one SACK amounts to for a chunk at `index` (CMT-DAC).
    pub(super) fn strikes(&self, index: u64, notes: &[PathNote], dac_count: u8) -> u8 {
        if !self.delayed_ack || dac_count <= 1 {
            return 1;
        }
        let mut touched = notes.iter().filter(|note| note.highest_new > 0);
        match (touched.next(), touched.next()) {
            // All newly acknowledged chunks are of one path and later than the missing one: each of
            // the packets that the SACK stands for would have reported it.
            (Some(only), None) if index < only.lowest_new => dac_count,
            _ => 1,
        }
    }
}
