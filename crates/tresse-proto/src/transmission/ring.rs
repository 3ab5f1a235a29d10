//! Ring of all chunks that have a TSN and are not cumulatively acknowledged, in TSN order. No other place holds a sent chunk.
//!
//! TSNs are unwrapped to indices: 1 is the first TSN of the association, 0 means "none". The chunks in flight on a path are
//! linked into two lists of that path, in the order of sending: chunks sent once, and retransmitted chunks. So a SACK touches
//! only the chunks that it changes.

use std::collections::VecDeque;

use tresse_policy::{Instant, PathId};

use crate::fragment::{DataFormat, Fragment};

/// State of a chunk that has a TSN.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// In flight; linked in one of its path's lists.
    InFlight,
    /// Marked as lost; waits for retransmission on its path.
    Lost,
    /// Not sent yet; waits for the congestion window of its path.
    Assigned,
    /// Acknowledged by a gap ack block.
    Acked,
    /// Abandoned: counts as acknowledged (RFC 3758 §3.5 A2). Its length is 0.
    Abandoned,
}

/// Transmission record of a chunk that has a TSN. The content is stored separately: a record without a payload is `Copy` and is
/// built in its place. A record with a payload would first be built on the stack, and moving it would stall until the stores of
/// the packet that was just written have reached the cache.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sent {
    /// Time of the last transmission.
    pub(crate) sent_at: Instant,
    /// Length of the user data in bytes, also after the payload was dropped.
    pub(crate) len: u32,
    /// Length of the chunk header in bytes.
    pub(crate) header: u8,
    /// Missing reports since the last transmission.
    pub(crate) misses: u8,
    /// Number of transmissions; saturates. One more if the chunk is `out_of_order`: it is then listed with the retransmissions of
    /// its path.
    pub(crate) sends: u16,
    /// True if the chunk has no place in TSN order among the first transmissions on its path, although it was sent once.
    pub(crate) out_of_order: bool,
    /// Path of the last transmission; for a lost or assigned chunk, the path of the next one.
    pub(crate) path: PathId,
    /// Path of the first transmission; [`REMOVED`] if that path was removed. As an `Option` it would take one byte more, and with
    /// it the chunk a fifth more memory.
    origin: PathId,
    pub(crate) standing: ChunkState,
    /// True if an NR-SACK acknowledged the chunk as non-renegable: it no longer counts in the send buffer.
    pub(crate) released: bool,
    /// True if the chunk was sent, or is to be sent, on another path than the first.
    pub(crate) moved: bool,
    /// True if the chunk was taken off its path before it counted as lost (reinjection).
    pub(crate) early: bool,
    /// True if the message is unordered.
    unordered: bool,
    previous: u64,
    next: u64,
}

/// No path of an association has this number.
const REMOVED: PathId = PathId(u8::MAX);

impl Sent {
    /// Record of a chunk with `content`, which leaves in a `data_format` chunk at `now` on `path` for the first time.
    #[inline]
    pub(crate) fn new(content: &Fragment, data_format: DataFormat, path: PathId, now: Instant) -> Self {
        Sent {
            len: content.payload.len() as u32,
            header: data_format.header_len() as u8,
            sent_at: now,
            misses: 0,
            sends: 1,
            path,
            out_of_order: false,
            origin: path,
            standing: ChunkState::InFlight,
            released: false,
            moved: false,
            early: false,
            unordered: content.flags.unordered(),
            previous: NONE,
            next: NONE,
        }
    }

    /// Size of the chunk in bytes, header included and padding not, as outstanding data counts it (RFC 9260 §1.3). This is the
    /// Chunk Length, which §3.2 calls the size of a chunk: a receiver that joins fragments can still compute the size of each,
    /// and both sides count alike.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.len as usize + usize::from(self.header)
    }

    /// Returns the path of the first transmission; `None` if that path was removed.
    pub(crate) fn origin(&self) -> Option<PathId> {
        if self.origin == REMOVED { None } else { Some(self.origin) }
    }

    /// Moves a chunk that was never sent to `path`.
    pub(crate) fn reassign(&mut self, path: PathId) {
        (self.path, self.origin) = (path, path);
    }

    /// Returns how often the chunk was sent.
    pub(crate) fn transmissions(&self) -> u16 {
        self.sends - u16::from(self.out_of_order)
    }

    /// Takes a chunk out of the TSN order of the first transmissions on its path.
    pub(crate) fn leave_order(&mut self) {
        if self.sends == 1 {
            (self.sends, self.out_of_order) = (2, true);
        }
    }

    /// Bytes of user data, as the send buffer counts them.
    #[inline]
    pub(crate) fn user_data(&self) -> usize {
        self.len as usize
    }

    /// Sets the size of an abandoned chunk to 0, so that no sum counts it.
    pub(crate) fn empty(&mut self) {
        (self.len, self.header) = (0, 0);
    }

    /// Bytes of a released chunk that the peer holds until the lower TSNs have arrived; 0 for an unordered message, which the
    /// peer delivers when it is complete.
    pub(crate) fn waiting_bytes(&self) -> usize {
        if self.unordered { 0 } else { self.bytes() }
    }
}

/// Ring of the chunks, in TSN order.
#[derive(Debug)]
pub(crate) struct Ring {
    chunks: VecDeque<Sent>,
    /// Contents of the chunks, at the same positions. A payload is dropped once no retransmission can need it.
    contents: VecDeque<Fragment>,
    /// Index of the first chunk: the one after the cumulative TSN ack.
    first: u64,
}

/// List of a path's chunks in flight, in the order of sending, linked through the ring.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct SendOrder {
    head: u64,
    tail: u64,
}

/// Index that no chunk has.
const NONE: u64 = 0;

/// Index of a chunk that is remembered for a purpose, or none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mark(u64);

impl Mark {
    pub(crate) const NONE: Self = Mark(NONE);

    pub(crate) fn of(index: u64) -> Self {
        Mark(index)
    }

    pub(crate) fn index(self) -> Option<u64> {
        (self.0 != NONE).then_some(self.0)
    }

    /// Remembers `index` unless an index is remembered already.
    #[inline]
    pub(crate) fn begin(&mut self, index: u64) {
        if self.0 == NONE {
            self.0 = index;
        }
    }

    /// Forgets the remembered index if `matches` holds for it, and returns it then.
    pub(crate) fn end_if(&mut self, matches: impl FnOnce(u64) -> bool) -> Option<u64> {
        let ended = self.index().filter(|&index| matches(index))?;
        self.0 = NONE;
        Some(ended)
    }
}

impl Ring {
    pub(crate) fn new() -> Self {
        Ring { chunks: VecDeque::new(), contents: VecDeque::new(), first: 1 }
    }

    /// The highest index that is cumulatively acknowledged.
    pub(crate) fn cumulative(&self) -> u64 {
        self.first - 1
    }

    /// The last index that was assigned to a chunk.
    pub(crate) fn highest(&self) -> u64 {
        self.first + self.chunks.len() as u64 - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn get(&self, index: u64) -> Option<&Sent> {
        self.chunks.get(index.checked_sub(self.first)? as usize)
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Sent> {
        self.chunks.get_mut(index.checked_sub(self.first)? as usize)
    }

    /// Content of the chunk `index`.
    pub(crate) fn content(&self, index: u64) -> Option<&Fragment> {
        self.contents.get(index.checked_sub(self.first)? as usize)
    }

    pub(crate) fn content_mut(&mut self, index: u64) -> Option<&mut Fragment> {
        self.contents.get_mut(index.checked_sub(self.first)? as usize)
    }

    /// Appends a chunk that carries `content`; returns its index.
    // `always`: otherwise the record is copied through memory for every chunk.
    #[inline(always)]
    pub(crate) fn push(&mut self, sent: Sent, content: Fragment) -> u64 {
        self.chunks.push_back(sent);
        self.contents.push_back(content);
        self.highest()
    }

    /// Drops the chunks up to `index`, or all if `index` is higher: they are cumulatively acknowledged.
    pub(crate) fn drop_up_to(&mut self, index: u64) {
        let count = (index + 1).saturating_sub(self.first).min(self.chunks.len() as u64);
        for _ in 0..count {
            self.chunks.pop_front();
            self.contents.pop_front();
        }
        self.first += count;
    }

    /// The chunks with their indices.
    #[cfg(any(test, feature = "invariants"))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Sent)> {
        (self.first..).zip(&self.chunks)
    }

    /// Clears the origin of the chunks that were first sent on `path`: it is removed, and a new path may take its slot.
    pub(crate) fn forget_origin(&mut self, path: PathId) {
        self.chunks.iter_mut().filter(|sent| sent.origin == path).for_each(|sent| sent.origin = REMOVED);
    }
}

impl SendOrder {
    /// The chunk sent first, if any is in flight.
    pub(crate) fn head(&self) -> Option<u64> {
        (self.head != NONE).then_some(self.head)
    }

    /// Appends `sent` with its `content` to the ring and to this list; returns its index.
    #[inline(always)]
    pub(crate) fn push(&mut self, ring: &mut Ring, sent: Sent, content: Fragment) -> u64 {
        let index = ring.highest() + 1;
        match ring.get_mut(self.tail) {
            Some(tail) => tail.next = index,
            None => self.head = index,
        }
        let previous = std::mem::replace(&mut self.tail, index);
        ring.push(Sent { previous, ..sent }, content)
    }

    /// Appends `index`, which must be in the ring and in no list.
    pub(crate) fn append(&mut self, ring: &mut Ring, index: u64) {
        if let Some(tail) = ring.get_mut(self.tail) {
            tail.next = index;
        } else {
            self.head = index;
        }
        if let Some(sent) = ring.get_mut(index) {
            sent.previous = self.tail;
            sent.next = NONE;
        }
        self.tail = index;
    }

    /// Puts `index`, which must be in the ring and in no list, before all others.
    pub(crate) fn prepend(&mut self, ring: &mut Ring, index: u64) {
        match ring.get_mut(self.head) {
            Some(head) => head.previous = index,
            None => self.tail = index,
        }
        if let Some(sent) = ring.get_mut(index) {
            sent.previous = NONE;
            sent.next = self.head;
        }
        self.head = index;
    }

    /// Takes `index` out of the list that it is in.
    pub(crate) fn unlink(&mut self, ring: &mut Ring, index: u64) {
        let Some(sent) = ring.get_mut(index) else { return };
        let (previous, next) = (sent.previous, sent.next);
        sent.previous = NONE;
        sent.next = NONE;
        match ring.get_mut(previous) {
            Some(before) => before.next = next,
            None => self.head = next,
        }
        match ring.get_mut(next) {
            Some(after) => after.previous = previous,
            None => self.tail = previous,
        }
    }

    /// The chunk sent last, if any is in flight.
    pub(crate) fn last(&self) -> Option<u64> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// The chunk sent after `index`.
    pub(crate) fn after(&self, ring: &Ring, index: u64) -> Option<u64> {
        ring.get(index).map(|sent| sent.next).filter(|&next| next != NONE)
    }
}
