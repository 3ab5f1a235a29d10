//! Ring of all chunks that have a TSN and are not cumulatively acknowledged, in TSN order. Nothing else
//! holds a chunk that was sent.
//!
//! TSNs are unwrapped to indices: 1 is the first TSN of the association, 0 stands for "none yet".
//! The chunks in flight on a path are linked into two lists of that path, in the order of sending:
//! those sent once and those sent again. So a SACK touches only what it changes.

use std::collections::VecDeque;

use tresse_policy::{Instant, PathId};

use crate::fragment::{DataFormat, Fragment};

/// Standing of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// On its way; linked in one of its path's lists.
    InFlight,
    /// Declared lost; waits to be sent again on its path.
    Lost,
    /// Never sent: waits for the window of its path.
    Assigned,
    /// Acknowledged by a gap block.
    Acked,
    /// Given up: as good as acknowledged for good (RFC 3758 §3.5 A2). Its length is 0.
    Abandoned,
}

/// History of a chunk that was sent, or will be. Its content lies beside it: a record that can be copied is made where
/// it is to stay, while one with a payload in it is made on the stack first, and then waits there to be moved until all
/// of the packet that was just written has left for the cache.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sent {
    /// Time at which it was last sent.
    pub(crate) sent_at: Instant,
    /// Length of its user data, also after the payload was dropped.
    pub(crate) len: u32,
    /// Length of its header.
    pub(crate) header: u8,
    /// Missing reports since it was last sent.
    pub(crate) misses: u8,
    /// Times sent; saturates.
    pub(crate) sends: u16,
    /// The path it was last sent on, or is to be sent on again when lost.
    pub(crate) path: PathId,
    /// The path that it was first sent on, unless that is gone.
    pub(crate) origin: Option<PathId>,
    pub(crate) standing: ChunkState,
    /// Non-renegably acknowledged: it no longer counts in any buffer.
    pub(crate) released: bool,
    /// It was sent, or is to be, on another path than the first.
    pub(crate) moved: bool,
    /// It was sent again before it counted as lost.
    pub(crate) early: bool,
    /// Of a message that waits for no other.
    unordered: bool,
    previous: u64,
    next: u64,
}

impl Sent {
    /// `content` leaves in a `data_format` at `now` on `path`, for the first time.
    #[inline]
    pub(crate) fn new(content: &Fragment, data_format: DataFormat, path: PathId, now: Instant) -> Self {
        Sent {
            len: content.payload.len() as u32,
            header: data_format.header_len() as u8,
            sent_at: now,
            misses: 0,
            sends: 1,
            path,
            origin: Some(path),
            standing: ChunkState::InFlight,
            released: false,
            moved: false,
            early: false,
            unordered: content.flags.unordered(),
            previous: NONE,
            next: NONE,
        }
    }

    /// Its size as RFC 9260 counts outstanding data (§1.3): that of the chunk, header included. Padding is left out, as
    /// in the Chunk Length, which is what §3.2 calls the size of a chunk: so a receiver that joins fragments can still
    /// tell what each of them took, and both sides count alike.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.len as usize + usize::from(self.header)
    }

    /// Bytes of user data, as the send buffer counts them.
    #[inline]
    pub(crate) fn user_data(&self) -> usize {
        self.len as usize
    }

    /// It is given up: from here on it has no bytes that any sum could count.
    pub(crate) fn empty(&mut self) {
        (self.len, self.header) = (0, 0);
    }

    /// Bytes that wait at the peer for what was sent before them, once it has promised to keep them: unordered
    /// messages are delivered when they are complete.
    pub(crate) fn waiting_bytes(&self) -> usize {
        if self.unordered { 0 } else { self.bytes() }
    }
}

/// The chunks in TSN order.
#[derive(Debug)]
pub(crate) struct Ring {
    chunks: VecDeque<Sent>,
    /// Content of each of them, in step; the payload is dropped once it can never be needed again.
    contents: VecDeque<Fragment>,
    /// Index of the first chunk; one above the cumulative acknowledgement.
    first: u64,
}

/// Chunks in flight on a path in the order of sending, linked through the ring.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct SendOrder {
    head: u64,
    tail: u64,
}

/// No chunk has this index.
const NONE: u64 = 0;

/// The index of a chunk that is remembered for something, or none.
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

    /// Remembers `index` unless one is remembered already.
    #[inline]
    pub(crate) fn begin(&mut self, index: u64) {
        if self.0 == NONE {
            self.0 = index;
        }
    }

    /// Forgets what is remembered if `matches` holds for it; answers it then.
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

    /// The highest index that was given out.
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

    /// Content of a chunk.
    pub(crate) fn content(&self, index: u64) -> Option<&Fragment> {
        self.contents.get(index.checked_sub(self.first)? as usize)
    }

    pub(crate) fn content_mut(&mut self, index: u64) -> Option<&mut Fragment> {
        self.contents.get_mut(index.checked_sub(self.first)? as usize)
    }

    /// Appends a chunk that carries `content`; returns its index.
    // Always: otherwise the record is copied through memory for every chunk.
    #[inline(always)]
    pub(crate) fn push(&mut self, sent: Sent, content: Fragment) -> u64 {
        self.chunks.push_back(sent);
        self.contents.push_back(content);
        self.highest()
    }

    /// Drops the chunks up to `index`, as far as there are any: they are cumulatively acknowledged.
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

    /// `path` is gone: no chunk was first sent on the one that takes its place.
    pub(crate) fn forget_origin(&mut self, path: PathId) {
        self.chunks.iter_mut().filter(|sent| sent.origin == Some(path)).for_each(|sent| sent.origin = None);
    }
}

impl SendOrder {
    /// The chunk sent earliest, if any is in flight.
    pub(crate) fn head(&self) -> Option<u64> {
        (self.head != NONE).then_some(self.head)
    }

    /// Appends `sent`, which is new in the ring too and carries `content`; returns its index.
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
