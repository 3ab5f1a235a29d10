//! Chunks queued on a path: they have a TSN, and wait for the congestion window of the path.
//!
//! A path scheduler may assign TSNs to a path whose window is full, so that chunks with later TSNs can leave on another path at
//! once. An assigned chunk was never sent: it is not in flight, has no T3, and is neither acknowledged nor reported missing. It
//! counts in the send buffer, and a part of the peer's window is reserved for it. Independent of the scheduler and its bound.

use std::ops::Range;
use std::sync::Arc;

use tresse_policy::{Instant, PathId};

use super::Transmission;
use super::outstanding::{Outstanding, PathLoad};
use super::path_queues::{Assigned, Queue};
use super::ring::{ChunkState, Mark, Sent};
use crate::collections::{RangeSet, difference};
use crate::config::LossDetection;
use crate::fragment::{Fragment, Numbered};
use crate::interface::reliability::DeliveryTerms;

impl Outstanding {
    /// Bytes that wait for the window of `path`.
    #[inline]
    pub(crate) fn assigned_on(&self, path: PathId) -> usize {
        self.queue(path).map_or(0, |queue| queue.bytes)
    }

    /// Bytes that wait for the windows of all paths.
    #[inline]
    pub(crate) fn assigned(&self) -> usize {
        self.assigned.as_deref().map_or(0, |assigned| assigned.bytes)
    }

    /// The first chunk that waits for the window of `path`, with its size.
    pub(crate) fn next_assigned(&self, path: PathId) -> Option<(u64, usize)> {
        let index = *self.queue(path)?.chunks.first()?;
        self.ring.get(index).map(|sent| (index, sent.bytes()))
    }

    /// Moves the chunks that wait for the window of `from` to the queue of `to`.
    pub(crate) fn hand_over(&mut self, from: PathId, to: PathId) {
        let Some(assigned) = self.assigned.as_deref_mut() else { return };
        if from == to || to.index() >= self.loads.len() {
            return;
        }
        // A path that was added later may have no queue yet.
        assigned.cover(self.loads.len(), self.ring.highest());
        let Some(queue) = assigned.queue_mut(from) else { return };
        let (chunks, bytes) = (std::mem::take(&mut queue.chunks), std::mem::take(&mut queue.bytes));
        for &index in &chunks {
            if let Some(sent) = self.ring.get_mut(index) {
                sent.reassign(to);
            }
        }
        if let Some(queue) = assigned.queue_mut(to) {
            queue.chunks.extend(chunks);
            queue.bytes += bytes;
        }
        self.loads[from.index()].queued -= bytes;
        self.loads[to.index()].queued += bytes;
    }

    /// Returns whether a chunk in `range` is assigned and was never sent, so that the peer cannot have it.
    #[inline]
    pub(super) fn is_unsent(&self, range: Range<u64>) -> bool {
        let any = |assigned: &Assigned| {
            let unsent = |queue: &Queue| queue.chunks.range(range.clone()).next().is_some();
            !range.is_empty() && assigned.queues.iter().any(unsent)
        };
        self.assigned.as_deref().is_some_and(any)
    }

    /// Removes the indices that are assigned and were never sent from `ranges`, which are ascending; returns whether there were
    /// any.
    pub(super) fn leave_out_unsent(&self, ranges: &mut Vec<Range<u64>>) -> bool {
        let Some(assigned) = self.assigned.as_deref() else { return false };
        let mut unsent = RangeSet::default();
        for queue in &assigned.queues {
            let named = ranges.iter().flat_map(|range| queue.chunks.range(range.clone()));
            for &index in named {
                unsent.insert(index);
            }
        }
        if !unsent.is_empty() {
            let named = std::mem::take(ranges);
            difference(named.into_iter(), unsent.iter(), ranges);
        }
        !unsent.is_empty()
    }

    /// Takes the chunk `index` out of its queue: it leaves, or is abandoned.
    pub(super) fn unassign(&mut self, path: PathId, index: u64, bytes: usize) {
        if let Some(assigned) = self.assigned.as_deref_mut() {
            assigned.leave(path, index, bytes);
        }
    }

    /// The highest index that was sent on `path`, or an upper bound.
    pub(super) fn highest_sent(&self, path: PathId) -> u64 {
        self.queue(path).map_or(self.ring.highest(), |queue| queue.highest_sent.max(self.ring.cumulative()))
    }

    /// Notes that the chunk `index` was sent on `path`.
    #[inline]
    pub(super) fn note_highest_sent(&mut self, path: PathId, index: u64) {
        if let Some(queue) = self.assigned.as_deref_mut().and_then(|assigned| assigned.queue_mut(path)) {
            queue.highest_sent = queue.highest_sent.max(index);
        }
    }

    #[inline]
    fn queue(&self, path: PathId) -> Option<&Queue> {
        self.assigned.as_deref()?.queues.get(path.index())
    }
}

impl Transmission {
    /// Assigns the next TSN to `fragment`, which waits for the window of `path`.
    #[cold]
    pub(crate) fn assign(
        &mut self,
        now: Instant,
        fragment: Fragment,
        terms: Option<Arc<DeliveryTerms>>,
        path: PathId,
    ) {
        let Some(load) = self.outstanding.loads.get_mut(path.index()) else { return };
        let mut sent = Sent::new(&fragment, self.outstanding.data_format, path, now);
        let bytes = sent.bytes();
        load.queued += bytes;
        self.outstanding.held += bytes;
        let so_far = self.outstanding.ring.highest();
        (sent.standing, sent.sends) = (ChunkState::Assigned, 0);
        let index = self.outstanding.ring.push(sent, fragment);
        let assigned = self.outstanding.assigned.get_or_insert_default();
        assigned.cover(self.outstanding.loads.len(), so_far);
        assigned.enter(path, index, bytes);
        if let Some(terms) = terms {
            let expires = terms.expires;
            let revocable = self.revocable.get_or_insert_default();
            revocable.note(index, path, terms);
            revocable.note_expiring(index, expires);
        }
    }

    /// Returns whether a packet of assigned chunks may leave on `path`, whose congestion window is `cwnd`. Lost chunks leave
    /// first (RFC 9260 §6.1 C), and the peer must still have room, although some was reserved. The head-of-line chunk is an
    /// exception: it leaves before lost chunks and without room at the peer. Otherwise data could stop: a buffer full of early
    /// arrivals has room for no other chunk, and a peer that accepts nothing out of order while its streams are reset
    /// acknowledges none of the lost chunks.
    pub(crate) fn may_send_assigned(&self, path: PathId, cwnd: usize) -> bool {
        let Some((index, len)) = self.outstanding.next_assigned(path) else { return false };
        let awaited = index == self.outstanding.ring.cumulative() + 1;
        let fits = self.outstanding.flight == 0 || awaited || len <= self.peer_window();
        let leaves = |load: &PathLoad| {
            // Duplicates that await an acknowledgement of their path block nothing if no chunk of the ring is in flight.
            let open = load.flight < cwnd || (self.outstanding.flight == 0 && load.lost.is_empty());
            open && (awaited || load.lost.is_empty())
        };
        fits && self.outstanding.load(path).is_some_and(leaves)
    }

    /// Records that the assigned chunk `index` leaves on its path; returns the chunk to write, or `None` if it is not assigned.
    pub(crate) fn send_assigned(&mut self, now: Instant, index: u64) -> Option<Numbered<'_>> {
        let tsn = self.outstanding.tsn(index);
        let sent =
            self.outstanding.ring.get_mut(index).filter(|sent| sent.standing == ChunkState::Assigned)?;
        let (path, bytes, user_data) = (sent.path, sent.bytes(), sent.user_data());
        let load = self.outstanding.loads.get_mut(path.index())?;
        // A chunk that came from another path may have a lower TSN than one that left here before: it does not fit into the
        // order of first transmissions, and is listed with the retransmissions.
        let overtaken = load.fresh.last().is_some_and(|last| last > index);
        sent.standing = ChunkState::InFlight;
        sent.sends = 1;
        if overtaken {
            sent.leave_order();
        }
        sent.sent_at = now;
        let order = if overtaken { &mut load.again } else { &mut load.fresh };
        order.append(&mut self.outstanding.ring, index);
        if !overtaken {
            load.timed.begin(index);
        }
        load.flight += bytes;
        load.history.chunks_sent += 1;
        load.history.bytes_sent += user_data as u64;
        if bytes > self.announced() && self.outstanding.flight == 0 {
            self.probe = Mark::of(index);
        }
        self.outstanding.flight += bytes;
        self.outstanding.unassign(path, index, bytes);
        self.outstanding.note_highest_sent(path, index);
        if self.rules.loss_detection == LossDetection::Rack && self.outstanding.assigned() == 0 {
            self.outstanding.ring.content_mut(index)?.flags.request_report();
        }
        self.outstanding.ring.content(index).map(|fragment| Numbered { tsn, fragment })
    }
}
