//! Loss detection: by missing reports, separately for each path (SFR), or by time (RACK); and by timeouts.

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::detector::{LossState, MISSING_REPORTS, Sending};
use super::note::PathNote;
use super::reinjected::Reinjected;
use super::ring::Mark;
use super::sack::SackView;
use super::{ChunkState, Dropped, Transmission, undo};
use crate::config::LossDetection;

/// Evidence of a loss.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Evidence {
    /// Missing reports, or later transmissions that arrived (RACK).
    Missing,
    /// Expiration of T3; or the window probe was probably dropped.
    Timeout,
    /// The peer reported the packet as damaged.
    Report,
    /// None: the chunk is reinjected, or retransmitted as a tail loss probe.
    Early,
}

impl Transmission {
    /// Detects the losses that a SACK shows: by time, chunks that were overtaken on their own path; otherwise by missing
    /// reports, of which three make a loss. Missing reports are also used while so many chunks are duplicated that few
    /// acknowledgements can be attributed.
    ///
    /// With split fast retransmit, only the acknowledgement of a later chunk of the same path is a missing report, since only
    /// on one path does later mean overtaken (Iyengar et al., §III). Without it, the acknowledgement of any later chunk is one;
    /// and with `all`, each SACK that reports the chunk missing: in fast recovery, when the cumulative TSN advances (RFC 9260
    /// §7.2.4). Retransmitted chunks get missing reports with MFR only. If the sharing policy duplicates chunks, the
    /// acknowledgement of a duplicate that was sent later on the same path is a missing report too.
    pub(super) fn find_losses(
        &mut self,
        now: Instant,
        sack: &SackView<'_>,
        all: bool,
        notes: &mut [PathNote],
    ) {
        let by_time = self.rules.loss_detection == LossDetection::Rack;
        if by_time {
            undo::judge_duplicates(self, now, sack.duplicates);
            for (position, note) in notes.iter_mut().enumerate() {
                let Some(load) = self.outstanding.loads.get_mut(position) else { break };
                if note.answered.is_any() {
                    load.history.detector.on_answers(now, &note.answered);
                }
                if note.is_any() && !self.copies.is_of_everything() {
                    (note.lost, note.lost_retransmission, note.look_again) =
                        self.look_again(now, PathId(position as u8));
                }
            }
            if !self.copies.is_of_everything() {
                self.find_repaired(now, sack.duplicates, notes);
                for position in 0..self.outstanding.loads.len() {
                    self.copies.strike(&mut self.outstanding.loads, position, notes);
                }
                return;
            }
        }
        let dac_count = sack.dac_count;
        for position in 0..self.outstanding.loads.len() {
            let bound = if self.rules.split_fast_retransmit {
                notes.get(position).map_or(0, |note| note.highest_new)
            } else {
                let reported = self.acked.iter().next_back().filter(|_| all).map_or(0, |last| last.end);
                notes.iter().map(|note| note.highest_new).fold(reported, u64::max)
            };
            self.strike_path(position, bound, notes, dac_count);
            if self.rules.multiple_fast_retransmit {
                self.strike_again(position, notes);
            }
            if self.copies.is_on() {
                self.copies.strike(&mut self.outstanding.loads, position, notes);
            }
        }
    }

    /// Finds the losses that a tail loss probe has repaired: the peer has received the chunk, and only once. The window is to
    /// be reduced for them as for others (RFC 8985 §7.4.2).
    fn find_repaired(&mut self, now: Instant, duplicates: List<'_, Tsn>, notes: &mut [PathNote]) {
        for (position, note) in notes.iter_mut().enumerate() {
            let Some((index, bytes)) = note.probe else { continue };
            let tsn = self.outstanding.tsn(index);
            if note.lost || duplicates.iter().any(|duplicate| duplicate == tsn) {
                continue;
            }
            let Some(load) = self.outstanding.loads.get_mut(position) else { break };
            load.history.detector.spurious_check.begin();
            load.history.detector.on_lost(now, index, true);
            (note.lost, note.repaired) = (true, bytes);
        }
    }

    /// Marks chunks on `path` as lost that were overtaken and are overdue. Returns whether there were any, whether one of them
    /// had been sent three times or more, and the time of the next check.
    pub(crate) fn look_again(&mut self, now: Instant, path: PathId) -> (bool, bool, Option<Instant>) {
        let (mut any, mut lost_retransmission, mut again, mut overtaken) = (false, false, None, false);
        let Some(load) = self.outstanding.loads.get_mut(path.index()) else { return (false, false, None) };
        load.history.detector.spurious_check.begin();
        for head in [load.fresh.head(), load.again.head()] {
            let mut next = head;
            while let Some((index, sent)) =
                next.and_then(|index| Some((index, *self.outstanding.ring.get(index)?)))
            {
                let load = &mut self.outstanding.loads[path.index()];
                let state = load
                    .history
                    .detector
                    .judge(now, Sending { at: sent.sent_at, index, again: sent.sends > 1 });
                overtaken |= state != LossState::Open;
                if let LossState::Until(due) = state {
                    again = Some(again.map_or(due, |other: Instant| other.min(due)));
                }
                if state != LossState::Lost {
                    break;
                }
                let order = if sent.sends == 1 { load.fresh } else { load.again };
                next = order.after(&self.outstanding.ring, index);
                load.history.detector.on_lost(now, index, sent.sends == 1);
                self.mark_lost(index, path, Evidence::Missing);
                any = true;
                lost_retransmission |= sent.transmissions() > 2;
            }
        }
        if !overtaken {
            self.outstanding.loads[path.index()].history.detector.on_order();
        }
        (any, lost_retransmission, again)
    }

    /// Retransmits the last chunk sent on `path` as a tail loss probe, regardless of the window: the SACK for it shows the
    /// missing chunks. Returns false if nothing is in flight there, if a loss is known already, if only a window probe is in
    /// flight, if an acknowledgement would be ambiguous, or if the message's lifetime is over or the application limits its
    /// retransmissions.
    pub(crate) fn probe_tail(&mut self, now: Instant, path: PathId) -> bool {
        let probes_window = self.is_probing_window();
        let Some(load) = self.outstanding.loads.get_mut(path.index()) else { return false };
        let sending = |index| Some((self.outstanding.ring.get(index)?.sent_at, index));
        let last = [load.fresh.last(), load.again.last()].into_iter().flatten().filter_map(sending).max();
        let is_spared = |index| self.revocable.as_deref().is_some_and(|all| all.is_spared(index, now));
        let may_go = |index| {
            load.lost.is_empty() && !self.copies.is_ambiguous(index) && !probes_window && !is_spared(index)
        };
        let Some((at, index)) = last.filter(|&(_, index)| may_go(index)) else { return false };
        let again = load.again.last() == Some(index);
        load.free_packet = true;
        load.history.detector.probe = Mark::of(index);
        load.history.detector.probed = Some(Sending { at, index, again });
        self.mark_lost(index, path, Evidence::Early);
        true
    }

    /// Multiple fast retransmissions (Caro et al.): newly acknowledged chunks that were sent once on the same path, and later
    /// than a retransmission, are one missing report for it in each SACK. Chunks sent at the same instant have no known order.
    fn strike_again(&mut self, position: usize, notes: &mut [PathNote]) {
        let Some(latest) = notes.get(position).and_then(|note| note.latest_new) else { return };
        let mut next = self.outstanding.loads[position].again.head();
        while let Some(index) = next {
            next = self.outstanding.loads[position].again.after(&self.outstanding.ring, index);
            let Some(sent) = self.outstanding.ring.get_mut(index).filter(|sent| sent.sent_at < latest) else {
                break;
            };
            sent.misses = sent.misses.saturating_add(1);
            if sent.misses >= MISSING_REPORTS {
                self.mark_lost(index, PathId(position as u8), Evidence::Missing);
                if let Some(note) = notes.get_mut(position) {
                    note.lost = true;
                }
            }
        }
    }

    /// Counts missing reports for the chunks in flight on a path that were sent once and are below `bound`.
    fn strike_path(&mut self, position: usize, bound: u64, notes: &mut [PathNote], dac_count: u8) {
        let mut next = self.outstanding.loads[position].fresh.head();
        while let Some(index) = next.filter(|&index| index < bound) {
            next = self.outstanding.loads[position].fresh.after(&self.outstanding.ring, index);
            let strikes = self.rules.strikes(index, notes, dac_count);
            let Some(sent) = self.outstanding.ring.get_mut(index) else { break };
            sent.misses = sent.misses.saturating_add(strikes);
            if sent.misses >= MISSING_REPORTS {
                self.mark_lost(index, PathId(position as u8), Evidence::Missing);
                if let Some(note) = notes.get_mut(position) {
                    note.lost = true;
                }
            }
        }
    }

    /// Marks everything in flight on `path` as lost, after T3 expired there: it is retransmitted on `target` (RFC 9260 §6.3.3).
    /// Returns the number of chunks.
    pub(crate) fn on_timeout(&mut self, path: PathId, target: PathId) -> usize {
        let mut count = 0;
        while let Some(index) =
            self.outstanding.load(path).and_then(|load| load.fresh.head().or_else(|| load.again.head()))
        {
            if let Some(sent) =
                self.outstanding.ring.get(index).filter(|_| self.rules.loss_detection == LossDetection::Rack)
            {
                let once = sent.sends == 1 && !sent.moved;
                self.outstanding.loads[path.index()].history.detector.spurious_check.on_lost(index, once);
            }
            self.mark_lost(index, target, Evidence::Timeout);
            count += 1;
        }
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
            load.timed = Mark::default();
            if let Some(history) = load.history.changed() {
                history.detector.probe = Mark::default();
            }
            load.reinjected = Reinjected::default();
        }
        self.copies.give_up(&mut self.outstanding, path);
        if let Some(load) = self.outstanding.loads.get_mut(target.index()) {
            load.free_packet |= count > 0;
        }
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.end_probe_if(|probed, _| probed == path);
            revocable.forward.on_lost(&self.outstanding.ring, path);
        }
        count
    }

    /// Marks a chunk that the peer reported as damaged as lost; it is retransmitted on `target`. No window changes: damage is
    /// not congestion.
    pub(crate) fn on_reported(&mut self, dropped: Dropped, target: PathId) {
        self.mark_lost(dropped.index, target, Evidence::Report);
        if dropped.path != target {
            self.outstanding.cancel_timing(dropped.path, dropped.index);
        }
    }

    /// Marks the window probes as lost when the peer's window has opened far enough for the first one: the peer has probably
    /// dropped them, and a backed-off T3 would leave the open window unused. Returns whether a probe waits for retransmission, or
    /// was abandoned.
    pub(super) fn retransmit_probe(&mut self) -> bool {
        let announced = self.announced();
        let revocable = self.revocable.as_deref_mut();
        let mut any = revocable.is_some_and(|all| all.end_probe_if(|_, bytes| bytes <= announced));
        let ring = &self.outstanding.ring;
        let opened = |first| announced > 0 && ring.get(first).is_none_or(|probe| probe.bytes() <= announced);
        let Some(first) = self.probe.end_if(opened) else { return any };
        // Newer chunks in flight can only be window probes of other paths.
        for index in first..=self.outstanding.ring.highest() {
            let flying =
                self.outstanding.ring.get(index).filter(|sent| sent.standing == ChunkState::InFlight);
            if let Some(path) = flying.map(|sent| sent.path) {
                self.mark_lost(index, path, Evidence::Timeout);
                self.outstanding.grant_free_packet(path);
                any = true;
            }
        }
        any
    }

    /// Marks a chunk in flight as lost; it waits for retransmission on `target`.
    pub(super) fn mark_lost(&mut self, index: u64, target: PathId, by: Evidence) {
        let Some(sent) = self.outstanding.ring.get_mut(index) else { return };
        if sent.standing != ChunkState::InFlight {
            return;
        }
        sent.standing = ChunkState::Lost;
        sent.misses = 0;
        let (path, bytes, sends) = (sent.path, sent.bytes(), sent.sends);
        sent.moved |= path != target;
        sent.path = target;
        if let Some(load) = self.outstanding.loads.get_mut(path.index()) {
            let order = if sends == 1 { &mut load.fresh } else { &mut load.again };
            order.unlink(&mut self.outstanding.ring, index);
            load.flight -= bytes;
            load.queued -= bytes;
            match by {
                Evidence::Missing => load.repairs.fast_retransmits += 1,
                Evidence::Report => load.repairs.drop_reports += 1,
                Evidence::Timeout | Evidence::Early => {}
            }
            self.outstanding.flight -= bytes;
        }
        if let Some(load) = self.outstanding.loads.get_mut(target.index()) {
            load.lost.insert(index);
            load.queued += bytes;
        }
        if by == Evidence::Early && sends > 1 && self.rules.loss_detection == LossDetection::Rack {
            self.outstanding
                .loads
                .iter_mut()
                .for_each(|load| load.history.detector.spurious_check.on_probed(index));
        }
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.note_lost(index);
        }
    }
}
