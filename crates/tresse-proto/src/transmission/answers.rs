//! Attribution of an acknowledgement to one of a chunk's transmissions, where chunks are duplicated on several paths.
//!
//! A chunk that arrives k times is acknowledged once and reported as a duplicate k - 1 times (RFC 9260 §3.3.4, §6.2), so the
//! peer reports each arrival, but not its path. The first criterion is time: an acknowledgement cannot be for a transmission
//! that left less than its path's minimum RTT ago, and is probably for one whose path usually takes that long. The second is
//! order: a transmission that later ones overtook on its path was probably lost. An ambiguous acknowledgement gives no RTT
//! sample (Karn's rule), and does not prove that a path works. Independent of the reactions of windows and timers.

use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::copies::{Copies, Copy, Copying, Lane};
use super::note::PathNote;
use super::outstanding::Outstanding;
use super::ring::ChunkState;

/// Transmission that an acknowledgement is attributed to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The transmission in the ring. `sure` is true if the acknowledgement can be for no other.
    Ring { sure: bool },
    /// A duplicate. The duplicate and the chunk are accounted for already.
    Copy,
}

/// Fit of an acknowledgement to a transmission; the lowest is the best.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Fit {
    overtaken: bool,
    when: AnswerTiming,
    /// Difference between the expected and the actual time of the acknowledgement.
    off: Duration,
    path: PathId,
}

/// Time of an acknowledgement against its expected time, the likeliest first. Most peers send a SACK over the path that brought
/// the data (RFC 9260 §6.4).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum AnswerTiming {
    /// Near the expected time, or without one, over the path of the transmission.
    DueHere,
    /// Near the expected time, over another path.
    Due,
    /// Without an expected time, over another path.
    Unknown,
    /// Much earlier or later than expected.
    Off,
}

impl Copies {
    /// Fit of the current acknowledgement to a transmission on `path`; `None` if the transmission left too late to be
    /// acknowledged yet.
    fn fit(&self, path: PathId, sent_at: Instant, misses: u8) -> Option<Fit> {
        let trip = self.lanes.get(path.index())?.response_time;
        let taken = self.now.since(sent_at);
        if taken < trip.shortest {
            return None;
        }
        let off = trip.usual.map_or(Duration::ZERO, |usual| taken.abs_diff(usual));
        let due = trip.usual.is_none_or(|usual| off <= usual / 2);
        let when = match (due, trip.usual) {
            (false, _) => AnswerTiming::Off,
            (true, _) if path == self.via => AnswerTiming::DueHere,
            (true, Some(_)) => AnswerTiming::Due,
            (true, None) => AnswerTiming::Unknown,
        };
        Some(Fit { overtaken: misses > 0, when, off, path })
    }

    /// Fits of the open duplicates of a chunk that the current acknowledgement may be for.
    fn fits(&self, index: u64) -> impl Iterator<Item = Fit> {
        let open = move |(path, lane): (PathId, &Lane)| {
            let copy = lane.find(index)?;
            self.fit(path, copy.sent_at, copy.misses)
        };
        (0..).map(PathId).zip(&self.lanes).filter_map(open)
    }

    /// Number of open duplicates of a chunk.
    pub(super) fn open(&self, index: u64) -> usize {
        self.lanes.iter().filter(|lane| lane.find(index).is_some()).count()
    }

    /// Path of an open duplicate, for an acknowledgement that is too early for each of them: the RTT of the path must have
    /// become shorter.
    fn any(&self, index: u64) -> Option<PathId> {
        let position = self.lanes.iter().position(|lane| lane.find(index).is_some())?;
        Some(PathId(position as u8))
    }
}

impl Copying {
    /// Attributes reported duplicates: the peer had these chunks before, so another transmission of each has arrived.
    pub(super) fn answer_duplicates(
        &mut self,
        outstanding: &mut Outstanding,
        duplicates: List<'_, Tsn>,
        notes: &mut [PathNote],
    ) {
        if self.0.is_none() {
            return;
        }
        for tsn in duplicates.iter() {
            let Some(index) = outstanding.index_of(tsn) else { continue };
            let Some(copies) = self.0.as_deref() else { return };
            let best = copies.fits(index).min().map(|fit| fit.path).or_else(|| copies.any(index));
            let Some(path) = best else { continue };
            let alone = copies.open(index) == 1;
            // A chunk that is not acknowledged yet is acknowledged by this same SACK.
            let pending = outstanding.ring.get(index).filter(|sent| sent.standing != ChunkState::Acked);
            let settled = pending.map(|sent| sent.sends == 1);
            let copy = self.lane(path).and_then(|lane| lane.find(index));
            let settled = settled.or(copy.map(|copy| copy.settled)).unwrap_or(false);
            self.answer_copy(outstanding, index, path, alone && settled, notes);
        }
    }

    /// Attributes the first acknowledgement of the chunk `index` to one of its transmissions.
    #[inline]
    pub(super) fn attribute(
        &mut self,
        outstanding: &mut Outstanding,
        index: u64,
        notes: &mut [PathNote],
    ) -> Answer {
        if self.0.is_none() {
            Answer::Ring { sure: true }
        } else {
            self.attribute_copied(outstanding, index, notes)
        }
    }

    #[cold]
    fn attribute_copied(
        &mut self,
        outstanding: &mut Outstanding,
        index: u64,
        notes: &mut [PathNote],
    ) -> Answer {
        let (Some(copies), Some(sent)) = (self.0.as_deref(), outstanding.ring.get(index)) else {
            return Answer::Ring { sure: true };
        };
        let own = copies.fit(sent.path, sent.sent_at, sent.misses);
        let (best, possible) = (copies.fits(index).min(), copies.fits(index).count());
        let (path, sure) = match sent.standing {
            ChunkState::Lost => (best.map(|fit| fit.path).or_else(|| copies.any(index)), false),
            // Of a retransmitted chunk the ring has the last transmission only. If that left too late, it cannot be
            // acknowledged yet.
            ChunkState::InFlight if sent.sends > 1 => {
                (best.filter(|_| own.is_none()).map(|fit| fit.path), possible == 0)
            }
            ChunkState::InFlight => match best.filter(|&best| own.is_none_or(|own| best < own)) {
                Some(best) => (Some(best.path), own.is_none() && possible == 1),
                None => (None, own.is_some() && possible == 0),
            },
            ChunkState::Acked | ChunkState::Abandoned | ChunkState::Assigned => (None, true),
        };
        self.settle(outstanding, index);
        let Some(path) = path else {
            let once = outstanding.ring.get(index).filter(|sent| sent.sends == 1);
            if let Some((sent, note)) = once.and_then(|sent| Some((sent, notes.get_mut(sent.path.index())?)))
            {
                note.answered_at = note.answered_at.max(Some(sent.sent_at));
            }
            return Answer::Ring { sure };
        };
        self.answer_copy(outstanding, index, path, sure, notes);
        self.replace_by_copy(outstanding, index);
        Answer::Copy
    }

    /// Accounts for the arrival of the duplicate of `index` on `path`. `sure` is true if no other transmission can have
    /// arrived.
    fn answer_copy(
        &mut self,
        outstanding: &mut Outstanding,
        index: u64,
        path: PathId,
        sure: bool,
        notes: &mut [PathNote],
    ) {
        let Some(copies) = self.0.as_deref_mut() else { return };
        let (Some(lane), Some(load), Some(note)) = (
            copies.lanes.get_mut(path.index()),
            outstanding.loads.get_mut(path.index()),
            notes.get_mut(path.index()),
        ) else {
            return;
        };
        let Some(sent_at) = lane.find(index).map(|copy| copy.sent_at) else { return };
        let bytes = lane.close(index);
        load.flight -= bytes;
        note.acked += bytes;
        note.user_data += bytes.saturating_sub(outstanding.data_format.header_len());
        note.highest_new = note.highest_new.max(index);
        note.lowest_new = note.lowest_new.min(index);
        note.answered_at = note.answered_at.max(Some(sent_at));
        if sure {
            note.proven = true;
            note.longest_proven = note.longest_proven.max(bytes);
            note.latest_new = note.latest_new.max(Some(sent_at));
            note.answered.add(sent_at, index, 1, bytes);
            if sent_at >= lane.measured {
                lane.measured = copies.now;
                note.rtt_from = note.rtt_from.or(Some(sent_at));
            }
        }
    }

    /// Processes the acknowledgement of the chunk `index`: if each of its transmissions is known, later reports of duplicates
    /// can be attributed exactly.
    fn settle(&mut self, outstanding: &Outstanding, index: u64) {
        let Some(sent) = outstanding.ring.get(index).filter(|sent| sent.sends == 1 && !sent.moved) else {
            return;
        };
        let once = sent.standing != ChunkState::Lost;
        let Some(copies) = self.0.as_deref_mut() else { return };
        for lane in &mut copies.lanes {
            if let Some(copy) = lane.find_mut(index) {
                copy.settled = once;
            }
        }
    }

    /// Replaces the transmission of `index` in the ring after a duplicate has arrived: that transmission is now an open
    /// duplicate.
    fn replace_by_copy(&mut self, outstanding: &mut Outstanding, index: u64) {
        let Some(sent) = outstanding.ring.get_mut(index) else { return };
        let (path, bytes, sent_at, misses) = (sent.path, sent.bytes(), sent.sent_at, sent.misses);
        let once = sent.sends == 1;
        let flying = std::mem::replace(&mut sent.standing, ChunkState::Acked) == ChunkState::InFlight;
        let Some(load) = outstanding.loads.get_mut(path.index()) else { return };
        load.timed.end_if(|timed| timed == index);
        if !flying {
            load.lost.remove(&index);
            return;
        }
        let order = if once { &mut load.fresh } else { &mut load.again };
        order.unlink(&mut outstanding.ring, index);
        outstanding.flight -= bytes;
        let copy = Copy { index, sent_at, bytes: bytes as u32, misses, open: true, settled: once };
        let lane = self.0.as_deref_mut().and_then(|copies| copies.lanes.get_mut(path.index()));
        if !lane.is_some_and(|lane| lane.enter(copy)) {
            load.flight -= bytes;
        }
    }
}
