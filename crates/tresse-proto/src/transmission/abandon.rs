//! Giving up what was sent: which messages that need not arrive are due for it, and what that frees
//! (RFC 3758 §3.5 A2, A3).
//!
//! Owns the list of those messages as far as they are on the ring. Refuses to know what of a message was
//! never cut, and how the peer hears of it: that is `forward`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::{Instant, PathId};
use tresse_wire::DataFlags;

use super::forward::Forward;
use super::ring::Ring;
use super::{Sent, Standing, Transmission};
use crate::fragment::Fragment;
use crate::interface::reliability::Pledge;

/// Messages that need not arrive and of which something is on the ring.
#[derive(Debug, Default)]
pub(super) struct Revocable {
    messages: BTreeMap<u64, Message>,
    /// Which of them each chunk of them is of, by the index on the ring.
    chunks: BTreeMap<u64, u64>,
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
    pledge: Arc<Pledge>,
    /// The fragment cut last, without its payload.
    last: Fragment,
    path: PathId,
    /// The indices of its fragments, some of which may have left the ring at its front.
    chunks: Vec<u64>,
}

impl Revocable {
    /// Whether the chunk `index` is of one of them.
    pub(super) fn has_chunk(&self, index: u64) -> bool {
        self.chunks.contains_key(&index)
    }

    /// What the application gave with the message of the chunk `index`.
    pub(super) fn context_of(&self, index: u64) -> u64 {
        let message = self.chunks.get(&index).and_then(|number| self.messages.get(number));
        message.map_or(0, |message| message.pledge.context)
    }

    fn remove(&mut self, number: u64) -> Option<Message> {
        let message = self.messages.remove(&number)?;
        self.expiring.remove(&(message.pledge.expires, number));
        if let Some(priority) = message.pledge.priority() {
            self.by_priority.remove(&(priority, Reverse(number)));
        }
        for index in &message.chunks {
            self.chunks.remove(index);
        }
        Some(message)
    }
}

impl Message {
    fn chunks<'a>(&'a self, ring: &'a Ring) -> impl Iterator<Item = &'a Sent> {
        self.chunks.iter().filter_map(|&index| ring.get(index))
    }

    /// Whether the peer has all of it, or says so.
    fn has_arrived(&self, ring: &Ring) -> bool {
        self.last.flags.ending() && self.chunks(ring).all(|sent| sent.standing == Standing::Acked)
    }

    /// Whether it must not be sent again although a chunk of it would have to be.
    fn is_condemned(&self, ring: &Ring, now: Instant) -> bool {
        let expired = self.pledge.is_expired(now);
        self.chunks(ring).any(|sent| match sent.standing {
            Standing::Lost => expired || self.pledge.is_exhausted(sent.sends),
            Standing::Assigned => expired,
            Standing::InFlight | Standing::Acked | Standing::Abandoned => false,
        })
    }

    /// User data of it that is on the ring and in the send buffer.
    fn held(&self, ring: &Ring) -> usize {
        self.chunks(ring).filter(|sent| !sent.released).map(Sent::user_data).sum()
    }
}

impl Transmission {
    /// Whether there are messages that need not arrive, or the peer has yet to hear of some.
    pub(crate) fn has_revocable(&self) -> bool {
        self.revocable.is_some()
    }

    /// The next message that lost a chunk which its policy does not allow to be sent again, to be asked until
    /// there is none.
    pub(crate) fn next_condemned(&mut self, now: Instant) -> Option<Arc<Pledge>> {
        let revocable = self.revocable.as_deref_mut()?;
        while let Some(number) = revocable.struck.pop_first() {
            let Some(message) = revocable.messages.get(&number) else { continue };
            if message.is_condemned(&self.outstanding.ring, now) {
                return Some(Arc::clone(&message.pledge));
            }
            if message.pledge.expires < Instant::FAR_FUTURE {
                revocable.expiring.insert((message.pledge.expires, number));
            }
        }
        while let Some(&(expires, number)) = revocable.expiring.first().filter(|(expires, _)| *expires <= now)
        {
            revocable.expiring.remove(&(expires, number));
            // Meanwhile its chunks may have been sent again: then they have their last chance.
            if let Some(message) = revocable.messages.get(&number)
                && message.is_condemned(&self.outstanding.ring, now)
            {
                return Some(Arc::clone(&message.pledge));
            }
        }
        None
    }

    /// Bytes of messages with this priority or a lower one that the peer may still lack; counts no further
    /// than `wanted`.
    pub(crate) fn evictable(&self, priority: u32, wanted: usize) -> usize {
        let mut bytes = 0;
        for message in self.evictions(priority) {
            if bytes >= wanted {
                break;
            }
            bytes += message.held(&self.outstanding.ring);
        }
        bytes
    }

    /// The oldest message of the lowest priority that the peer may still lack, if that priority is
    /// `priority` or lower.
    pub(crate) fn next_eviction(&self, priority: u32) -> Option<Arc<Pledge>> {
        self.evictions(priority).next().map(|message| Arc::clone(&message.pledge))
    }

    fn evictions(&self, priority: u32) -> impl Iterator<Item = &Message> {
        let numbers = self.revocable.iter().flat_map(move |revocable| {
            let from = (priority, Reverse(u64::MAX));
            revocable
                .by_priority
                .range(from..)
                .rev()
                .filter_map(|(_, Reverse(number))| revocable.messages.get(number))
        });
        numbers.filter(|message| {
            message.held(&self.outstanding.ring) > 0 && !message.has_arrived(&self.outstanding.ring)
        })
    }

    /// Gives up a message: all its chunks count as finally acknowledged, in no flight and no buffer, and no
    /// window grows by them (RFC 3758 §3.5 A2, A3). `cut_short` says that its last fragment was never cut.
    /// Answers the bytes that no buffer has to keep any more; what was not acknowledged is added to `pieces`.
    pub(crate) fn abandon(&mut self, pledge: &Pledge, cut_short: bool, pieces: &mut Vec<Bytes>) -> usize {
        let Some(message) = self.revocable.as_deref_mut().and_then(|all| all.remove(pledge.number)) else {
            return 0;
        };
        let mut freed = 0;
        for &index in &message.chunks {
            freed += self.abandon_chunk(index, pieces);
        }
        if cut_short {
            self.close_off(message);
        }
        freed
    }

    fn abandon_chunk(&mut self, index: u64, pieces: &mut Vec<Bytes>) -> usize {
        let Some(sent) = self.outstanding.ring.get_mut(index) else { return 0 };
        let standing = std::mem::replace(&mut sent.standing, Standing::Abandoned);
        let (path, sends, bytes, waiting) = (sent.path, sent.sends, sent.bytes(), sent.waiting_bytes());
        let released = sent.released;
        let user_data = sent.user_data();
        sent.empty();
        if let Some(content) = self.outstanding.ring.content_mut(index) {
            let payload = std::mem::take(&mut content.payload);
            if standing != Standing::Acked {
                pieces.push(payload);
            }
        }
        if standing == Standing::Assigned {
            self.outstanding.unassign(path, index, bytes);
        }
        self.abandon_copies(index);
        let Some(load) = self.outstanding.loads.get_mut(path.index()) else { return 0 };
        match standing {
            Standing::InFlight => {
                let order = if sends == 1 { &mut load.fresh } else { &mut load.again };
                order.unlink(&mut self.outstanding.ring, index);
                load.flight -= bytes;
                self.outstanding.flight -= bytes;
            }
            Standing::Lost => {
                load.lost.remove(&index);
                load.free_packet &= !load.lost.is_empty();
            }
            Standing::Acked | Standing::Abandoned | Standing::Assigned => {}
        }
        load.timed.end_if(|timed| timed == index);
        if released {
            load.promised -= waiting;
            self.outstanding.held -= waiting;
            return 0;
        }
        load.queued -= bytes;
        self.outstanding.held -= bytes;
        user_data
    }

    /// Uses up a TSN for the end of a message that is never sent. Else the next message would seem to begin
    /// before this one has ended to a peer that hears of it before it hears that this one was given up; and
    /// when all that was sent of it has been acknowledged, there would be nothing to forward the peer over.
    fn close_off(&mut self, message: Message) {
        let mut end = message.last;
        end.flags = DataFlags { beginning: false, ending: true, ..end.flags.unpacked() }.into();
        let mut sent = Sent::new(&end, self.outstanding.carrier, message.path, Instant::ZERO);
        sent.standing = Standing::Abandoned;
        sent.empty();
        self.outstanding.ring.push(sent, end);
    }

    /// Whether any of a message that need not arrive was sent.
    pub(crate) fn was_sent(&self, pledge: &Pledge) -> bool {
        let message = self.revocable.as_deref().and_then(|all| all.messages.get(&pledge.number));
        // What has left the ring was acknowledged, and so was sent.
        let sent = |&index: &u64| self.outstanding.ring.get(index).is_none_or(|sent| sent.sends > 0);
        message.is_some_and(|message| message.chunks.iter().any(sent))
    }

    /// A chunk of a message that need not arrive got its TSN.
    #[cold]
    pub(super) fn note_revocable(&mut self, index: u64, pledge: Arc<Pledge>) {
        let (Some(sent), Some(content)) =
            (self.outstanding.ring.get(index), self.outstanding.ring.content(index))
        else {
            return;
        };
        let last = Fragment { payload: Bytes::new(), ..content.clone() };
        let revocable = self.revocable.get_or_insert_default();
        revocable.chunks.insert(index, pledge.number);
        if let Some(priority) = pledge.priority() {
            revocable.by_priority.insert((priority, Reverse(pledge.number)));
        }
        let message = revocable.messages.entry(pledge.number).or_insert_with(|| Message {
            pledge,
            last: last.clone(),
            path: sent.path,
            chunks: Vec::new(),
        });
        message.chunks.push(index);
        message.last = last;
        message.path = sent.path;
    }

    /// The chunk `index` waits to be sent, but not beyond the end of its message's lifetime.
    pub(super) fn note_expiring(&mut self, index: u64, expires: Instant) {
        if let Some(revocable) = self.revocable.as_deref_mut()
            && let Some(&number) = revocable.chunks.get(&index)
            && expires < Instant::FAR_FUTURE
        {
            revocable.expiring.insert((expires, number));
        }
    }

    /// The chunk `index` was lost.
    #[cold]
    pub(super) fn note_struck(&mut self, index: u64) {
        if let Some(revocable) = self.revocable.as_deref_mut()
            && let Some(&number) = revocable.chunks.get(&index)
        {
            revocable.struck.insert(number);
        }
    }

    /// The chunk `index` leaves the ring: if it is its message's last, that has arrived.
    #[cold]
    pub(super) fn note_leaving(&mut self, index: u64) {
        if let Some(revocable) = self.revocable.as_deref_mut()
            && let Some(number) = revocable.chunks.remove(&index)
            && self.outstanding.ring.content(index).is_some_and(|content| content.flags.ending())
        {
            revocable.remove(number);
        }
    }
}
