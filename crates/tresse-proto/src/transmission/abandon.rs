//! Abandoning of sent messages under partial reliability: the selection of messages, and the buffer that they release
//! (RFC 3758 §3.5 A2, A3).
//!
//! Owns the list of messages with delivery terms of which chunks are on the ring. Independent of unsent parts of a message,
//! and of FORWARD TSN (`forward`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse_policy::{Instant, PathId};
use tresse_wire::{DataFlags, PacketWriter};

use super::Transmission;
use super::forward::Forward;
use super::outstanding::Outstanding;
use super::ring::{ChunkState, Mark, Ring, Sent};
use crate::fragment::Fragment;
use crate::interface::reliability::{DeliveryTerms, Reliability};

/// Messages with delivery terms of which chunks are on the ring.
#[derive(Debug, Default)]
pub(super) struct Revocable {
    messages: BTreeMap<u64, Message>,
    chunks: ChunkTable,
    /// Messages with a priority. The last is evicted first: the oldest one of the lowest priority.
    by_priority: BTreeSet<(u32, Reverse<u64>)>,
    /// Messages that lost a chunk since `next_condemned` last returned `None`.
    struck: BTreeSet<u64>,
    /// Messages of which a chunk waited for transmission or retransmission, by the end of their lifetime.
    expiring: BTreeSet<(Instant, u64)>,
    /// Path and size in bytes of a window probe that was abandoned. As if it were in flight, the next probe leaves after T3 of
    /// the path has expired: the timer sets the interval of probes, not the lifetime of messages (RFC 9260 §6.1 A).
    probe: Option<(PathId, usize)>,
    pub(super) forward: Forward,
}

#[derive(Debug)]
struct Message {
    terms: Arc<DeliveryTerms>,
    /// Index of the fragment that was cut last.
    last: u64,
    /// Path of that fragment.
    path: PathId,
    /// That fragment without its payload, if it has left the ring and is not the end of the message.
    left: Option<Fragment>,
}

/// Chunks of these messages, parallel to the ring: one entry for each index from the first of these chunks to the last.
#[derive(Debug, Default)]
struct ChunkTable {
    entries: VecDeque<Option<Entry>>,
    /// Index on the ring of the first entry.
    first: u64,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    /// Number of the message.
    message: u64,
    /// Index of the previous chunk of the message; 0 for none.
    previous: u64,
}

impl ChunkTable {
    fn get(&self, index: u64) -> Option<Entry> {
        *self.entries.get(index.checked_sub(self.first)? as usize)?
    }

    /// Adds the chunk `index`, which is higher than all before.
    fn push(&mut self, index: u64, entry: Entry) {
        if self.entries.is_empty() {
            self.first = index;
        }
        // Chunks of messages without delivery terms, and those that close off a message that was cut short, have no entry.
        self.entries.resize((index - self.first) as usize, None);
        self.entries.push_back(Some(entry));
    }

    /// Removes and returns the entry of the chunk `index`; also drops the entries before it.
    fn leave(&mut self, index: u64) -> Option<Entry> {
        let mut entry = None;
        while self.first <= index && !self.entries.is_empty() {
            entry = self.entries.pop_front().flatten().filter(|_| self.first == index);
            self.first += 1;
        }
        entry
    }

    fn remove(&mut self, index: u64) {
        if let Some(entry) =
            index.checked_sub(self.first).and_then(|position| self.entries.get_mut(position as usize))
        {
            *entry = None;
        }
    }

    /// The chunks of the message whose last one is `last`, in descending order. Of the chunks that have left the table, only
    /// the highest is included.
    fn of_message(&self, last: u64) -> impl Iterator<Item = u64> {
        successors(Some(last), |&index| {
            self.get(index).map(|entry| entry.previous).filter(|&index| index > 0)
        })
    }
}

impl Revocable {
    /// Returns whether the chunk `index` may not be retransmitted without evidence of its loss: its message's lifetime is over,
    /// or its retransmissions are limited.
    pub(super) fn is_spared(&self, index: u64, now: Instant) -> bool {
        self.terms_of(index).is_some_and(|terms| {
            terms.is_expired(now) || matches!(terms.reliability, Reliability::Retransmissions(_))
        })
    }

    /// The context that the application gave with the message of the chunk `index`; 0 for none.
    pub(super) fn context_of(&self, index: u64) -> u64 {
        self.terms_of(index).map_or(0, |terms| terms.context)
    }

    fn terms_of(&self, index: u64) -> Option<&DeliveryTerms> {
        let message = self.chunks.get(index).and_then(|entry| self.messages.get(&entry.message));
        message.map(|message| &*message.terms)
    }

    /// Returns the next message whose policy does not allow the transmission of a chunk that waits for it. The caller repeats
    /// the call until it returns `None`.
    fn next_condemned(&mut self, ring: &Ring, now: Instant) -> Option<Arc<DeliveryTerms>> {
        while let Some(number) = self.struck.pop_first() {
            let Some(message) = self.messages.get(&number) else { continue };
            if self.is_condemned(message, ring, now) {
                return Some(Arc::clone(&message.terms));
            }
            if message.terms.expires < Instant::FAR_FUTURE {
                self.expiring.insert((message.terms.expires, number));
            }
        }
        while let Some(&(expires, number)) = self.expiring.first().filter(|(expires, _)| *expires <= now) {
            self.expiring.remove(&(expires, number));
            // If its chunks were retransmitted meanwhile, the message is not abandoned unless they are lost again.
            if let Some(message) = self.messages.get(&number)
                && self.is_condemned(message, ring, now)
            {
                return Some(Arc::clone(&message.terms));
            }
        }
        None
    }

    /// Messages with the priority `priority` or a lower one that the peer may still lack, in the order of eviction.
    fn evictions<'a>(&'a self, ring: &'a Ring, priority: u32) -> impl Iterator<Item = &'a Message> {
        let from = (priority, Reverse(u64::MAX));
        self.by_priority
            .range(from..)
            .rev()
            .filter_map(|(_, Reverse(number))| self.messages.get(number))
            .filter(|message| self.held(message, ring) > 0 && !self.has_arrived(message, ring))
    }

    fn was_sent(&self, ring: &Ring, terms: &DeliveryTerms) -> bool {
        // A chunk that has left the ring was acknowledged, so it was sent.
        let sent = |index: u64| ring.get(index).is_none_or(|sent| sent.sends > 0);
        let message = self.messages.get(&terms.number);
        message.is_some_and(|message| self.chunks.of_message(message.last).any(sent))
    }

    /// Notes that a chunk of a message with delivery terms got its TSN, for `path`.
    pub(super) fn note(&mut self, index: u64, path: PathId, terms: Arc<DeliveryTerms>) {
        let number = terms.number;
        if let Some(priority) = terms.priority() {
            self.by_priority.insert((priority, Reverse(number)));
        }
        let message =
            self.messages.entry(number).or_insert_with(|| Message { terms, last: 0, path, left: None });
        self.chunks.push(index, Entry { message: number, previous: message.last });
        (message.last, message.path, message.left) = (index, path, None);
    }

    /// Notes that the chunk `index` waits to be sent, at most until its message's lifetime ends.
    pub(super) fn note_expiring(&mut self, index: u64, expires: Instant) {
        if let Some(Entry { message, .. }) = self.chunks.get(index)
            && expires < Instant::FAR_FUTURE
        {
            self.expiring.insert((expires, message));
        }
    }

    /// Notes that the chunk `index` was marked as lost.
    #[cold]
    pub(super) fn note_lost(&mut self, index: u64) {
        if let Some(Entry { message, .. }) = self.chunks.get(index) {
            self.struck.insert(message);
        }
    }

    /// Notes that the chunk `index`, the lowest one, leaves the ring. If it ends its message, the message has arrived.
    pub(super) fn note_leaving(&mut self, ring: &Ring, index: u64) {
        let Some(Entry { message: number, .. }) = self.chunks.leave(index) else { return };
        let Some(content) = ring.content(index) else { return };
        if content.flags.ending() {
            self.remove(number);
        } else if let Some(message) = self.messages.get_mut(&number).filter(|message| message.last == index) {
            message.left = Some(without_payload(content));
        }
    }

    /// Forgets a window probe that was abandoned, if `ends` holds for its path and size; returns whether there was one.
    pub(super) fn end_probe_if(&mut self, ends: impl FnOnce(PathId, usize) -> bool) -> bool {
        self.probe.take_if(|(path, bytes)| ends(*path, *bytes)).is_some()
    }

    fn remove(&mut self, number: u64) -> Option<Message> {
        let message = self.messages.remove(&number)?;
        self.expiring.remove(&(message.terms.expires, number));
        if let Some(priority) = message.terms.priority() {
            self.by_priority.remove(&(priority, Reverse(number)));
        }
        Some(message)
    }

    fn sent<'a>(&'a self, message: &Message, ring: &'a Ring) -> impl Iterator<Item = &'a Sent> {
        self.chunks.of_message(message.last).filter_map(|index| ring.get(index))
    }

    /// Returns whether the peer has acknowledged all of a message, by gap ack blocks or cumulatively.
    fn has_arrived(&self, message: &Message, ring: &Ring) -> bool {
        let is_complete = ring.content(message.last).is_some_and(|content| content.flags.ending());
        is_complete && self.sent(message, ring).all(|sent| sent.standing == ChunkState::Acked)
    }

    /// Returns whether a chunk of a message waits to be sent although the message's policy does not allow that.
    fn is_condemned(&self, message: &Message, ring: &Ring, now: Instant) -> bool {
        let expired = message.terms.is_expired(now);
        self.sent(message, ring).any(|sent| match sent.standing {
            ChunkState::Lost => expired || message.terms.is_exhausted(sent.transmissions()),
            ChunkState::Assigned => expired,
            ChunkState::InFlight | ChunkState::Acked | ChunkState::Abandoned => false,
        })
    }

    /// Bytes of user data of a message that are on the ring and in the send buffer.
    fn held(&self, message: &Message, ring: &Ring) -> usize {
        self.sent(message, ring).filter(|sent| !sent.released).map(Sent::user_data).sum()
    }

    /// Removes a message's chunks from the table; returns their indices, ascending.
    fn take_chunks(&mut self, message: &Message) -> Vec<u64> {
        let mut indices: Vec<u64> = self.chunks.of_message(message.last).collect();
        indices.iter().for_each(|&index| self.chunks.remove(index));
        indices.reverse();
        indices
    }
}

fn without_payload(fragment: &Fragment) -> Fragment {
    let &Fragment { stream, mid, fsn, ppid, flags, .. } = fragment;
    Fragment { stream, mid, fsn, ppid, flags, payload: Bytes::new() }
}

impl Transmission {
    /// Returns whether chunks of messages with delivery terms were ever sent or assigned.
    pub(crate) fn has_revocable(&self) -> bool {
        self.revocable.is_some()
    }

    /// Returns whether the policy of the message of the chunk `index` does not allow another transmission.
    pub(crate) fn is_spent(&self, index: u64, now: Instant) -> bool {
        let revocable = self.revocable.as_deref();
        let (terms, sent) = (revocable.and_then(|all| all.terms_of(index)), self.outstanding.ring.get(index));
        terms
            .zip(sent)
            .is_some_and(|(terms, sent)| terms.is_expired(now) || terms.is_exhausted(sent.transmissions()))
    }

    /// Returns the next message whose policy does not allow the transmission of a chunk that waits for it. The caller repeats
    /// the call until it returns `None`.
    pub(crate) fn next_condemned(&mut self, now: Instant) -> Option<Arc<DeliveryTerms>> {
        self.revocable.as_deref_mut()?.next_condemned(&self.outstanding.ring, now)
    }

    /// Bytes of messages with this priority or a lower one that the peer may still lack. The count stops once it reaches
    /// `wanted`.
    pub(crate) fn evictable(&self, priority: u32, wanted: usize) -> usize {
        let (Some(revocable), ring) = (self.revocable.as_deref(), &self.outstanding.ring) else { return 0 };
        let mut bytes = 0;
        for message in revocable.evictions(ring, priority) {
            if bytes >= wanted {
                break;
            }
            bytes += revocable.held(message, ring);
        }
        bytes
    }

    /// The oldest message of the lowest priority among those that the peer may still lack, if that priority is `priority` or
    /// lower.
    pub(crate) fn next_eviction(&self, priority: u32) -> Option<Arc<DeliveryTerms>> {
        let mut messages = self.revocable.as_deref()?.evictions(&self.outstanding.ring, priority);
        messages.next().map(|message| Arc::clone(&message.terms))
    }

    /// Abandons a message: all its chunks count as acknowledged, in no flight and no buffer, and no window grows by them (RFC
    /// 3758 §3.5 A2, A3). `cut_short` is true if its last fragment was never cut. Returns the bytes of user data to release
    /// from the send buffer, and appends the payloads that were not acknowledged to `pieces`.
    pub(crate) fn abandon(
        &mut self,
        terms: &DeliveryTerms,
        cut_short: bool,
        pieces: &mut Vec<Bytes>,
    ) -> usize {
        let Some(revocable) = self.revocable.as_deref_mut() else { return 0 };
        let Some(message) = revocable.remove(terms.number) else { return 0 };
        let mut freed = 0;
        for index in revocable.take_chunks(&message) {
            let probes =
                |sent: &&Sent| sent.standing == ChunkState::InFlight && self.probe == Mark::of(index);
            if let Some(probe) = self.outstanding.ring.get(index).filter(probes) {
                revocable.probe = Some((probe.path, probe.bytes()));
            }
            if let Some(user_data) = self.outstanding.abandon(index, pieces) {
                self.copies.abandon(&mut self.outstanding, index);
                freed += user_data;
            }
        }
        let on_ring = self.outstanding.ring.content(message.last).map(without_payload);
        if let Some(last) = message.left.or(on_ring).filter(|_| cut_short) {
            self.outstanding.close_off(last, message.path);
        }
        freed
    }

    /// Path and size in bytes of a window probe that was abandoned: new data waits until T3 of the path expires or the window
    /// opens.
    pub(crate) fn abandoned_probe(&self) -> Option<(PathId, usize)> {
        self.revocable.as_deref()?.probe
    }

    /// Returns whether any chunk of a message was sent.
    pub(crate) fn was_sent(&self, terms: &DeliveryTerms) -> bool {
        self.revocable.as_deref().is_some_and(|all| all.was_sent(&self.outstanding.ring, terms))
    }

    /// Moves the Advanced.Peer.Ack.Point over acknowledged and abandoned chunks (RFC 3758 §3.5 C1, C2). A FORWARD TSN is due if
    /// the point passes the last FORWARD TSN. Called after chunks were abandoned or acknowledged.
    pub(crate) fn advance(&mut self) {
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward.advance(&self.outstanding.ring);
        }
    }

    /// State of the FORWARD TSN, if chunks of messages with delivery terms were ever sent or assigned.
    pub(crate) fn forward(&self) -> Option<&Forward> {
        self.revocable.as_deref().map(|revocable| &revocable.forward)
    }

    /// Returns whether a FORWARD TSN is due.
    pub(crate) fn forward_is_due(&self) -> bool {
        self.forward().is_some_and(Forward::is_due)
    }

    /// The path of a FORWARD TSN that awaits its acknowledgement: T3 of the path has to run (RFC 3758 §3.5 C5).
    pub(crate) fn forward_path(&self) -> Option<PathId> {
        self.forward()?.path(&self.outstanding.ring)
    }

    /// Returns the path of the last FORWARD TSN, once, if one that was sent there has been acknowledged.
    pub(crate) fn take_forward_answer(&mut self) -> Option<PathId> {
        self.revocable.as_deref_mut()?.forward.take_answer(&self.outstanding.ring)
    }

    /// Called after a SACK: makes the FORWARD TSN due again if it is unacknowledged and was sent `pause`, about a round trip,
    /// ago. An earlier SACK may have left before the FORWARD TSN arrived (RFC 3758 §3.5 C3, F2).
    pub(crate) fn repeat_forward(&mut self, now: Instant, pause: Duration) {
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward.repeat(&self.outstanding.ring, now, pause);
        }
    }

    /// Writes a FORWARD TSN that is due and leaves on `path`; returns whether it was written.
    pub(crate) fn write_forward(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let revocable = self.revocable.as_deref_mut();
        revocable.is_some_and(|all| all.forward.write(&self.outstanding, now, path, writer))
    }
}

impl Outstanding {
    /// Marks the chunk `index` as abandoned: it counts as acknowledged, in no flight and no buffer. Returns the bytes of user
    /// data to release from the send buffer, or `None` if the chunk has left the ring.
    fn abandon(&mut self, index: u64, pieces: &mut Vec<Bytes>) -> Option<usize> {
        let sent = self.ring.get_mut(index)?;
        let standing = std::mem::replace(&mut sent.standing, ChunkState::Abandoned);
        let (path, sends, bytes, waiting) = (sent.path, sent.sends, sent.bytes(), sent.waiting_bytes());
        let released = sent.released;
        let user_data = sent.user_data();
        sent.empty();
        if let Some(content) = self.ring.content_mut(index) {
            let payload = std::mem::take(&mut content.payload);
            if standing != ChunkState::Acked {
                pieces.push(payload);
            }
        }
        if standing == ChunkState::Assigned {
            self.unassign(path, index, bytes);
        }
        let load = self.loads.get_mut(path.index())?;
        match standing {
            ChunkState::InFlight => {
                let order = if sends == 1 { &mut load.fresh } else { &mut load.again };
                order.unlink(&mut self.ring, index);
                load.flight -= bytes;
                self.flight -= bytes;
            }
            ChunkState::Lost => {
                load.lost.remove(&index);
                load.free_packet &= !load.lost.is_empty();
            }
            ChunkState::Acked | ChunkState::Abandoned | ChunkState::Assigned => {}
        }
        load.timed.end_if(|timed| timed == index);
        if released {
            load.promised -= waiting;
            self.held -= waiting;
            return Some(0);
        }
        load.queued -= bytes;
        self.held -= bytes;
        Some(user_data)
    }

    /// Uses up a TSN for the end of a message that is never sent; `last` is its fragment that was cut last, for `path`. Without
    /// this TSN, a peer that receives the next message before the FORWARD TSN would see that message begin before this one has
    /// ended. And if all sent chunks of this message are acknowledged, no FORWARD TSN could cover its end.
    fn close_off(&mut self, last: Fragment, path: PathId) {
        let flags = DataFlags { beginning: false, ending: true, ..last.flags.unpacked() }.into();
        let end = Fragment { flags, ..last };
        let mut sent = Sent::new(&end, self.data_format, path, Instant::ZERO);
        sent.standing = ChunkState::Abandoned;
        sent.empty();
        self.ring.push(sent, end);
    }
}
