//! Late chunks: detection, and the restoration of chunks that a spurious T3 marked as lost. Also moves chunks off a path
//! without acknowledgements before a loss is known.

use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::outstanding::Outstanding;
use super::ring::Sent;
use super::spurious_check::{SpuriousCheck, SpuriousCut};
use super::{ChunkState, Transmission};
use crate::config::LossDetection;

/// Notes that T3 of `path` expired and its window is reduced, before the chunks in flight are marked as lost. While duplicates
/// are in flight, no acknowledgement could show that the timeout was spurious.
pub(crate) fn watch_timeout(transmission: &mut Transmission, now: Instant, path: PathId) {
    let blind = transmission.copies.is_on() || transmission.rules.loss_detection != LossDetection::Rack;
    if let Some(load) = transmission.outstanding.loads.get_mut(path.index()).filter(|_| !blind) {
        load.history.detector.spurious_check.on_timeout(now);
    }
}

/// Takes reported duplicates as evidence of late chunks (RFC 3708 §3). A duplicate of a chunk that was sent once was made by
/// the network: from then on, reported duplicates are no evidence.
pub(super) fn judge_duplicates(transmission: &mut Transmission, now: Instant, duplicates: List<'_, Tsn>) {
    for tsn in duplicates.iter() {
        let Some(index) = transmission.outstanding.index_of(tsn) else { continue };
        let once = |sent: &Sent| sent.sends == 1 && sent.standing != ChunkState::Abandoned;
        transmission.doubled |=
            !transmission.copies.is_on() && transmission.outstanding.ring.get(index).is_some_and(once);
        if transmission.doubled {
            return;
        }
        transmission
            .outstanding
            .loads
            .iter_mut()
            .for_each(|load| load.history.detector.on_late(now, index, None));
    }
}

impl Outstanding {
    /// Notes that the window of `path` was reduced for the losses found last.
    pub(crate) fn watch_cut(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.history.detector.spurious_check.on_cut();
        }
    }

    /// Decides whether a chunk that is acknowledged after it counted as lost was late; `sent` is its record before. It was late
    /// if it was not retransmitted, or was retransmitted too recently for that to be acknowledged.
    pub(super) fn judge_late(&mut self, now: Instant, index: u64, sent: &Sent) {
        let flying = sent.standing == ChunkState::InFlight;
        let shortest = self.loads.get(sent.path.index()).map(|load| load.history.detector.shortest());
        let too_soon = || shortest.is_some_and(|shortest| now.since(sent.sent_at) < shortest / 2);
        let late = if flying { sent.sends == 2 && !sent.early && too_soon() } else { sent.sends == 1 };
        let origin = sent.origin().filter(|_| late);
        if let Some(load) = origin.and_then(|origin| self.loads.get_mut(origin.index())) {
            let detector = &mut load.history.detector;
            detector.on_late(now, index, (!flying).then_some(sent.sent_at));
            if !flying {
                detector.spurious_check.on_unrepeated(now, sent.sent_at);
            }
        }
    }

    /// Collects the paths with a spurious window reduction, and the time at which the late chunk was sent, if that is certain.
    /// Chunks that T3 marked as lost there and that were not retransmitted are in flight again.
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

    /// Puts chunks that were sent once on `path` and wait for retransmission back in flight there.
    fn cancel_retransmissions(&mut self, path: PathId) {
        let waits_here = |sent: &Sent| sent.sends == 1 && sent.origin() == Some(path) && !sent.early;
        let waiting = self.loads.iter().flat_map(|load| load.lost.iter().copied());
        let mut revived: Vec<u64> =
            waiting.filter(|&index| self.ring.get(index).is_some_and(waits_here)).collect();
        revived.sort_unstable_by(|one, other| other.cmp(one));
        for index in revived {
            // The order of sending must be kept: all chunks in the list must have left after this one.
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

/// Takes all chunks off `path`, which is to carry no more data; they wait to leave on `to`. Late acknowledgements restore
/// neither the window of `path` nor its data in flight.
pub(crate) fn empty_path(transmission: &mut Transmission, path: PathId, to: PathId) {
    transmission.redirect(path, to, true);
    transmission.on_timeout(path, to);
    transmission.outstanding.hand_over(path, to);
    transmission.outstanding.ring.forget_origin(path);
    if let Some(history) =
        transmission.outstanding.loads.get_mut(path.index()).and_then(|load| load.history.changed())
    {
        history.detector.spurious_check = SpuriousCheck::NEW;
    }
}

/// Takes all chunks in flight off `path`, which gets no acknowledgements; they wait to leave on `to`.
pub(crate) fn move_flight(transmission: &mut Transmission, path: PathId, to: PathId) {
    while let Some(index) =
        transmission.outstanding.load(path).and_then(|load| load.fresh.head().or_else(|| load.again.head()))
    {
        transmission.move_chunk(index, to);
        // Such a chunk counts as lost, so the window of its new path may grow by it.
        if let Some(sent) = transmission.outstanding.ring.get_mut(index) {
            sent.early = false;
        }
    }
    transmission.redirect(path, to, true);
    if let Some(load) = transmission.outstanding.loads.get_mut(to.index()) {
        load.free_packet |= !load.lost.is_empty();
    }
}
