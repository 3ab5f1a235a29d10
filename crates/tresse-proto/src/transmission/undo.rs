//! Spurious losses: late chunks, and the undoing of losses that a spurious T3 declared; and chunks that are moved from a path
//! without acknowledgements before a loss is known.

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::outstanding::Outstanding;
use super::ring::Sent;
use super::spurious_check::{SpuriousCheck, SpuriousCut};
use super::{ChunkState, Transmission};
use crate::config::LossDetection;

/// T3 of `path` expired, and its window is reduced; the chunks that it declares lost follow. While duplicates are in flight,
/// no answer could show that it was spurious.
pub(crate) fn watch_timeout(room: &mut Transmission, now: Instant, path: PathId) {
    let blind = room.copies.is_on() || room.rules.loss_detection != LossDetection::Rack;
    if let Some(load) = room.outstanding.loads.get_mut(path.index()).filter(|_| !blind) {
        load.history.detector.spurious_check.on_timeout(now);
    }
}

/// The peer had these before (RFC 3708 §3). One that went once was doubled by the network, which says that no report of
/// this kind means anything.
pub(super) fn judge_duplicates(room: &mut Transmission, now: Instant, duplicates: List<'_, Tsn>) {
    for tsn in duplicates.iter() {
        let Some(index) = room.outstanding.index_of(tsn) else { continue };
        let once = |sent: &Sent| sent.sends == 1 && sent.standing != ChunkState::Abandoned;
        room.doubled |= !room.copies.is_on() && room.outstanding.ring.get(index).is_some_and(once);
        if room.doubled {
            return;
        }
        room.outstanding.loads.iter_mut().for_each(|load| load.history.detector.on_late(now, index, None));
    }
}

impl Outstanding {
    /// The window of `path` was cut for what was found lost last.
    pub(crate) fn watch_cut(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.history.detector.spurious_check.on_cut();
        }
    }

    /// A chunk was acknowledged that had counted as lost: `sent` is how it stood. It was late if it did not go again, or
    /// went so lately that the answer comes too soon.
    pub(super) fn judge_late(&mut self, now: Instant, index: u64, sent: &Sent) {
        let flying = sent.standing == ChunkState::InFlight;
        let shortest = self.loads.get(sent.path.index()).map(|load| load.history.detector.shortest());
        let too_soon = || shortest.is_some_and(|shortest| now.since(sent.sent_at) < shortest / 2);
        let late = if flying { sent.sends == 2 && !sent.early && too_soon() } else { sent.sends == 1 };
        let origin = sent.origin.filter(|_| late);
        if let Some(load) = origin.and_then(|origin| self.loads.get_mut(origin.index())) {
            let detector = &mut load.history.detector;
            detector.on_late(now, index, (!flying).then_some(sent.sent_at));
            if !flying {
                detector.spurious_check.on_unrepeated(now, sent.sent_at);
            }
        }
    }

    /// Paths with a spurious window reduction, and the time at which the late chunk was sent, if that is certain. Chunks that T3
    /// declared lost there and that were not retransmitted are in flight again.
    pub(super) fn find_spurious(&mut self, spurious: &mut Vec<(PathId, Option<Instant>)>) {
        for position in 0..self.loads.len() {
            let Some(load) = self.loads.get_mut(position) else { break };
            let Some(verdict) =
                load.history.changed().and_then(|history| history.detector.spurious_check.take_verdict())
            else {
                continue;
            };
            let SpuriousCut { sent_at, timeout } = verdict;
            let path = PathId(position as u8);
            if timeout {
                self.cancel_retransmissions(path);
            }
            spurious.push((path, sent_at));
        }
    }

    /// Lets what was sent once on `path` and waits to go again stay as it is.
    fn cancel_retransmissions(&mut self, path: PathId) {
        let waits_here = |sent: &Sent| sent.sends == 1 && sent.origin == Some(path) && !sent.early;
        let waiting = self.loads.iter().flat_map(|load| load.lost.iter().copied());
        let mut revived: Vec<u64> =
            waiting.filter(|&index| self.ring.get(index).is_some_and(waits_here)).collect();
        revived.sort_unstable_by(|one, other| other.cmp(one));
        for index in revived {
            // All that follows in the order of sending has left since.
            let follows =
                self.load(path).is_some_and(|load| load.fresh.head().is_none_or(|head| index < head));
            let Some(sent) = self.ring.get_mut(index).filter(|_| follows) else { continue };
            let (waited, bytes) = (sent.path, sent.bytes());
            (sent.standing, sent.path, sent.moved) = (ChunkState::InFlight, path, false);
            if let Some(load) = self.loads.get_mut(waited.index()) {
                load.lost.remove(&index);
                load.queued -= bytes;
            }
            if let Some(load) = self.loads.get_mut(path.index()) {
                load.fresh.prepend(&mut self.ring, index);
                load.queued += bytes;
                load.flight += bytes;
                self.flight += bytes;
            }
        }
    }
}

/// Takes everything off `path`, which is to carry nothing any more; it waits to leave on `to`. Late acknowledgements neither
/// restore the window of `path` nor what was in flight there.
pub(crate) fn empty_path(room: &mut Transmission, path: PathId, to: PathId) {
    room.redirect(path, to, true);
    room.on_timeout(path, to);
    room.outstanding.hand_over(path, to);
    room.outstanding.ring.forget_origin(path);
    if let Some(history) =
        room.outstanding.loads.get_mut(path.index()).and_then(|load| load.history.changed())
    {
        history.detector.spurious_check = SpuriousCheck::NEW;
    }
}

/// Takes everything in flight off `path`, which is silent; it waits to leave on `to`.
pub(crate) fn move_flight(room: &mut Transmission, path: PathId, to: PathId) {
    while let Some(index) =
        room.outstanding.load(path).and_then(|load| load.fresh.head().or_else(|| load.again.head()))
    {
        room.move_chunk(index, to);
        // It is as good as lost, and earns its new path a larger window as any other.
        if let Some(sent) = room.outstanding.ring.get_mut(index) {
            sent.early = false;
        }
    }
    room.redirect(path, to, true);
    if let Some(load) = room.outstanding.loads.get_mut(to.index()) {
        load.free_packet |= !load.lost.is_empty();
    }
}
