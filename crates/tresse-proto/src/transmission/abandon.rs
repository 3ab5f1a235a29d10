//! Abandoning of sent messages under partial reliability: the selection of messages, and the buffer that they release
//! (RFC 3758 §3.5 A2, A3).
//!
//! Owns the list of messages with partial reliability on the ring. Independent of unsent parts of a message, and of
//! FORWARD TSN (`forward`).

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
use super::ring::{ChunkState, Ring, Sent};
use crate::fragment::Fragment;
use crate::interface::reliability::{DeliveryTerms, Reliability};

/// Messages that need not arrive and of which something is on the ring.
#[derive(Debug, Default)]
pub(super) struct Revocable {
    messages: BTreeMap<u64, Message>,
    chunks: ChunkTable,
    /// Those with a priority; the last is the first to go: the oldest of the lowest priority.
    by_priority: BTreeSet<(u32, Reverse<u64>)>,
    /// Those that lost a chunk since it was last asked who is condemned.
    struck: BTreeSet<u64>,
    /// Those of which a chunk waited to be sent, the first time or again, by the end of their lifetime.
    expiring: BTreeSet<(Instant, u64)>,
    pub(super) forward: Forward,
}

#[derive(Debug)]
struct Message {
    terms: Arc<DeliveryTerms>,
    /// Index of the fragment cut last.
    last: u64,
    /// The path that it was cut for.
    path: PathId,
    /// That fragment without its payload, where it has left the ring and is not the end of the message.
    left: Option<Fragment>,
}

/// The chunks of these messages, in step with the ring: one entry for each chunk from the first of theirs to the last.
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
    /// Index of the message's chunk before this one; 0 for none.
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
        // Chunks of reliable messages, and ends of messages that were cut short, have no entry.
        self.entries.resize((index - self.first) as usize, None);
        self.entries.push_back(Some(entry));
    }

    /// Takes the entry of the chunk `index`, and drops those before it.
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

    /// The chunks of the message whose last one is `last`, from there on to lower indices; of those that have left the
    /// table only the highest.
    fn of_message(&self, last: u64) -> impl Iterator<Item = u64> {
        successors(Some(last), |&index| {
            self.get(index).map(|entry| entry.previous).filter(|&index| index > 0)
        })
    }
}

impl Revocable {
    /// Returns whether the chunk `index` may not go again without evidence that it was lost: its message's lifetime is over,
    /// or its retransmissions are counted.
    pub(super) fn is_spared(&self, index: u64, now: Instant) -> bool {
        self.terms_of(index).is_some_and(|terms| {
            terms.is_expired(now) || matches!(terms.reliability, Reliability::Retransmissions(_))
        })
    }

    /// Number that the application gave with the message of the chunk `index`.
    pub(super) fn context_of(&self, index: u64) -> u64 {
        self.terms_of(index).map_or(0, |terms| terms.context)
    }

    fn terms_of(&self, index: u64) -> Option<&DeliveryTerms> {
        let message = self.chunks.get(index).and_then(|entry| self.messages.get(&entry.message));
        message.map(|message| &*message.terms)
    }

    /// The next message that lost a chunk which its policy does not allow to be sent again, to be asked until
    /// there is none.
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
            // Meanwhile its chunks may have been sent again: then they have their last chance.
            if let Some(message) = self.messages.get(&number)
                && self.is_condemned(message, ring, now)
            {
                return Some(Arc::clone(&message.terms));
            }
        }
        None
    }

    /// Messages with the priority `priority` or a lower one that the peer may still lack, in the order in which they go.
    fn evictions<'a>(&'a self, ring: &'a Ring, priority: u32) -> impl Iterator<Item = &'a Message> {
        let from = (priority, Reverse(u64::MAX));
        self.by_priority
            .range(from..)
            .rev()
            .filter_map(|(_, Reverse(number))| self.messages.get(number))
            .filter(|message| self.held(message, ring) > 0 && !self.has_arrived(message, ring))
    }

    fn was_sent(&self, ring: &Ring, terms: &DeliveryTerms) -> bool {
        // What has left the ring was acknowledged, and so was sent.
        let sent = |index: u64| ring.get(index).is_none_or(|sent| sent.sends > 0);
        let message = self.messages.get(&terms.number);
        message.is_some_and(|message| self.chunks.of_message(message.last).any(sent))
    }

    /// A chunk of a message that need not arrive got its TSN, for `path`.
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

    /// The chunk `index` waits to be sent, but not beyond the end of its message's lifetime.
    pub(super) fn note_expiring(&mut self, index: u64, expires: Instant) {
        if let Some(Entry { message, .. }) = self.chunks.get(index)
            && expires < Instant::FAR_FUTURE
        {
            self.expiring.insert((expires, message));
        }
    }

    /// The chunk `index` was lost.
    #[cold]
    pub(super) fn note_lost(&mut self, index: u64) {
        if let Some(Entry { message, .. }) = self.chunks.get(index) {
            self.struck.insert(message);
        }
    }

    /// The chunk `index` leaves the ring, as the lowest: if it is its message's last, that has arrived.
    pub(super) fn note_leaving(&mut self, ring: &Ring, index: u64) {
        let Some(Entry { message: number, .. }) = self.chunks.leave(index) else { return };
        let Some(content) = ring.content(index) else { return };
        if content.flags.ending() {
            self.remove(number);
        } else if let Some(message) = self.messages.get_mut(&number).filter(|message| message.last == index) {
            message.left = Some(without_payload(content));
        }
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

    /// Returns whether the peer has all of a message, or says so.
    fn has_arrived(&self, message: &Message, ring: &Ring) -> bool {
        let is_complete = ring.content(message.last).is_some_and(|content| content.flags.ending());
        is_complete && self.sent(message, ring).all(|sent| sent.standing == ChunkState::Acked)
    }

    /// Returns whether a message must not be sent again although a chunk of it would have to be.
    fn is_condemned(&self, message: &Message, ring: &Ring, now: Instant) -> bool {
        let expired = message.terms.is_expired(now);
        self.sent(message, ring).any(|sent| match sent.standing {
            ChunkState::Lost => expired || message.terms.is_exhausted(sent.sends),
            ChunkState::Assigned => expired,
            ChunkState::InFlight | ChunkState::Acked | ChunkState::Abandoned => false,
        })
    }

    /// User data of a message that is on the ring and in the send buffer.
    fn held(&self, message: &Message, ring: &Ring) -> usize {
        self.sent(message, ring).filter(|sent| !sent.released).map(Sent::user_data).sum()
    }

    /// The indices of a message's chunks, ascending; takes them out of the table.
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
    /// Returns whether there are messages that need not arrive, or the peer has yet to hear of some.
    pub(crate) fn has_revocable(&self) -> bool {
        self.revocable.is_some()
    }

    /// Returns whether the chunk `index` is of a message that may not be sent once more.
    pub(crate) fn is_spent(&self, index: u64, now: Instant) -> bool {
        let revocable = self.revocable.as_deref();
        let (terms, sent) = (revocable.and_then(|all| all.terms_of(index)), self.outstanding.ring.get(index));
        terms.zip(sent).is_some_and(|(terms, sent)| terms.is_expired(now) || terms.is_exhausted(sent.sends))
    }

    /// The next message that lost a chunk which its policy does not allow to be sent again, to be asked until
    /// there is none.
    pub(crate) fn next_condemned(&mut self, now: Instant) -> Option<Arc<DeliveryTerms>> {
        self.revocable.as_deref_mut()?.next_condemned(&self.outstanding.ring, now)
    }

    /// Bytes of messages with this priority or a lower one that the peer may still lack; counts no further
    /// than `wanted`.
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

    /// The oldest message of the lowest priority that the peer may still lack, if that priority is
    /// `priority` or lower.
    pub(crate) fn next_eviction(&self, priority: u32) -> Option<Arc<DeliveryTerms>> {
        let mut messages = self.revocable.as_deref()?.evictions(&self.outstanding.ring, priority);
        messages.next().map(|message| Arc::clone(&message.terms))
    }

    /// Gives up a message: all its chunks count as finally acknowledged, in no flight and no buffer, and no
    /// window grows by them (RFC 3758 §3.5 A2, A3). `cut_short` says that its last fragment was never cut.
    /// Returns the bytes that no buffer has to keep any more; what was not acknowledged is added to `pieces`.
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

    /// Returns whether any of a message that need not arrive was sent.
    pub(crate) fn was_sent(&self, terms: &DeliveryTerms) -> bool {
        self.revocable.as_deref().is_some_and(|all| all.was_sent(&self.outstanding.ring, terms))
    }

    /// Moves the Advanced.Peer.Ack.Point over what is acknowledged and given up (C1, C2); a FORWARD TSN is due
    /// when it got beyond what the peer was told. Called after whatever gives up or acknowledges.
    pub(crate) fn advance(&mut self) {
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward.advance(&self.outstanding.ring);
        }
    }

    /// The FORWARD TSN that the peer is to be sent or has been sent, once there was one.
    pub(crate) fn forward(&self) -> Option<&Forward> {
        self.revocable.as_deref().map(|revocable| &revocable.forward)
    }

    /// Returns whether a FORWARD TSN wants to leave.
    pub(crate) fn forward_is_due(&self) -> bool {
        self.forward().is_some_and(Forward::is_due)
    }

    /// The path of a FORWARD TSN that waits for its acknowledgement: its T3 has to run (C5).
    pub(crate) fn forward_path(&self) -> Option<PathId> {
        self.forward()?.path(&self.outstanding.ring)
    }

    /// A SACK says that the peer is not yet where it was told to be. Told again after `pause`, about a round
    /// trip: before, the SACK may be older than the FORWARD TSN (C3, F2).
    pub(crate) fn repeat_forward(&mut self, now: Instant, pause: Duration) {
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward.repeat(&self.outstanding.ring, now, pause);
        }
    }

    /// Writes a FORWARD TSN that is due and leaves on `path`; returns whether it did.
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
    /// The chunk `index` counts as finally acknowledged: it is in no flight and no buffer. Returns the user data that no
    /// buffer has to keep any more, and `None` for a chunk that has left the ring.
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

    /// Uses up a TSN for the end of a message that is never sent, whose `last` fragment that was cut went to `path`. Else the
    /// next message would seem to begin before this one has ended to a peer that hears of it before it hears that this one
    /// was given up; and when all that was sent of it has been acknowledged, there would be nothing to forward the peer over.
    fn close_off(&mut self, last: Fragment, path: PathId) {
        let flags = DataFlags { beginning: false, ending: true, ..last.flags.unpacked() }.into();
        let end = Fragment { flags, ..last };
        let mut sent = Sent::new(&end, self.data_format, path, Instant::ZERO);
        sent.standing = ChunkState::Abandoned;
        sent.empty();
        self.ring.push(sent, end);
    }
}
