//! Reassembly of fragments in I-DATA (RFC 8260 §2.2.3).
//!
//! A message is identified by its stream, its U bit and its MID, and its fragments are numbered from 0; TSNs do not matter.
//! Owns the incomplete messages. Independent of the order of messages and the size of the buffer.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeInclusive;

use bytes::Bytes;
use tresse_wire::{Mid, StreamId};

use super::indices::Indices;
use super::joined::{Dropped, Joined, Step, end_of_abandoned, message, part_of};
use super::ordered::Ordered;
use crate::fragment::Fragment;
use crate::interface::event::{Message, Payload};

/// Fragments of incomplete messages.
#[derive(Debug)]
pub(super) struct Interleaved {
    messages: BTreeMap<Key, PartialMessage>,
    /// MIDs of unordered messages that are delivered in parts, at most one for each stream. Of the ordered messages of a
    /// stream, only the next one can be delivered in parts.
    open_unordered: BTreeMap<StreamId, u32>,
    /// The highest MIDs of abandoned unordered messages, by stream. Fragments of these messages may still arrive late.
    skipped: BTreeMap<StreamId, Mid>,
    /// Abandoned messages by the index of a late fragment behind a missing one, until everything up to that index has arrived.
    late: BTreeMap<u64, Key>,
    /// Key at which the last search for a message to deliver in parts stopped.
    looked_to: Option<Key>,
    /// A message of which this many consecutive bytes have arrived is delivered in parts.
    point: usize,
    /// True if the peer may abandon a message after it sent part of it (RFC 3758).
    lenient: bool,
}

/// Stream, U bit, MID.
type Key = (StreamId, bool, u32);

/// An incomplete message.
#[derive(Debug)]
struct PartialMessage {
    /// Its first fragment, or until that has arrived the fragment that arrived first, without the payload.
    head: Fragment,
    /// Index of the fragment that arrived first.
    since: u64,
    /// The fragments from the beginning up to the first missing one, without those that were delivered.
    row: Vec<Bytes>,
    row_indices: Option<Indices>,
    row_bytes: usize,
    /// FSN of the first missing fragment.
    next: u32,
    /// FSN of the last fragment, once it has arrived.
    last: Option<u32>,
    /// True if the beginning was delivered.
    open: bool,
    /// Fragments beyond a missing one with their indices, by FSN.
    early: BTreeMap<u32, (u64, Bytes)>,
}

impl Interleaved {
    /// See [`Reader::new`](super::reader::Reader::new).
    pub(super) fn new(point: usize, lenient: bool) -> Self {
        Interleaved {
            messages: BTreeMap::new(),
            open_unordered: BTreeMap::new(),
            skipped: BTreeMap::new(),
            late: BTreeMap::new(),
            looked_to: None,
            point,
            lenient,
        }
    }

    /// Checks a chunk before it is added, or before the whole message that it carries is accepted. Returns whether it is
    /// wanted: a chunk of an abandoned message is not.
    ///
    /// # Errors
    /// The chunk contradicts what is known of its message.
    #[inline]
    pub(super) fn check(&self, chunk: &Fragment, ordered: &Ordered) -> Result<bool, &'static str> {
        if !chunk.flags.unordered() && ordered.is_past(chunk.stream, chunk.mid.0) {
            return if self.lenient { Ok(false) } else { Err("MID of a message that was delivered") };
        }
        if chunk.flags.beginning() != (chunk.fsn.0 == 0) {
            return Err("FSN 0 in a fragment that begins no message");
        }
        let whole = chunk.flags.beginning() && chunk.flags.ending();
        if whole && !self.messages.is_empty() && self.messages.contains_key(&key(chunk)) {
            return Err(SAME_MID);
        }
        Ok(true)
    }

    /// Adds a chunk; see [`Reader::add`](super::reader::Reader::add).
    ///
    /// # Errors
    /// The chunk contradicts what is known of its message.
    pub(super) fn add(
        &mut self,
        index: u64,
        cumulative: u64,
        fragment: Fragment,
        ordered: &Ordered,
    ) -> Result<Step, &'static str> {
        if !self.check(&fragment, ordered)? {
            return Ok(Step::Dropped);
        }
        let key = key(&fragment);
        let begun = match self.messages.entry(key) {
            Entry::Occupied(begun) => begun.into_mut(),
            // This message would never be complete, and would occupy the buffer for ever.
            Entry::Vacant(_) if !key.1 && ordered.holds(key.0, key.2) => return Err(SAME_MID),
            Entry::Vacant(place) => place.insert(PartialMessage::new(index, &fragment)),
        };
        begun.add(index, fragment)?;
        if key.1 && begun.has_hole() && self.skipped.get(&key.0).is_some_and(|&mid| !Mid(key.2).is_after(mid))
        {
            self.late.insert(index, key);
        }
        if begun.is_complete()
            && let Some(joined) = begun.hand_out()
        {
            self.close(key);
            return Ok(Step::Complete(joined));
        }
        let opens = !begun.open && begun.row_bytes >= self.point && begun.row_bytes > 0;
        if begun.open || (opens && self.may_open(key, cumulative, ordered)) {
            return Ok(self.open(key).map_or(Step::Held, Step::Part));
        }
        Ok(Step::Held)
    }

    /// Begins to deliver a message in parts: of some that may be, the one with the most bytes; see
    /// [`Reader::begin_partial_delivery`](super::reader::Reader::begin_partial_delivery).
    ///
    /// To bound the work, it checks at most [`CANDIDATES`] streams and orders, beginning where the last search stopped.
    pub(super) fn begin_partial_delivery(&mut self, cumulative: u64, ordered: &Ordered) -> Option<Joined> {
        let mut best: Option<(usize, Key)> = None;
        let mut after = self.looked_to;
        for _ in 0..CANDIDATES {
            let Some(key) = self.first_of_next(after, ordered) else {
                // The search continues with the first stream after the last one.
                if after.take().is_none() {
                    break;
                }
                continue;
            };
            after = Some(key);
            let bytes = self.messages.get(&key).map_or(0, |begun| begun.row_bytes);
            if bytes > best.map_or(0, |(most, _)| most) && self.may_open(key, cumulative, ordered) {
                best = Some((bytes, key));
            }
        }
        self.looked_to = after;
        let (_, key) = best?;
        self.open(key)
    }

    /// Drops the messages of a stream and order up to the number `mid`, because they were abandoned.
    pub(super) fn skip(&mut self, stream: StreamId, unordered: bool, mid: u32) -> Dropped {
        if unordered {
            let highest = self.skipped.entry(stream).or_insert(Mid(mid));
            if Mid(mid).is_after(*highest) {
                *highest = Mid(mid);
            }
        }
        let mut dropped = Dropped::default();
        for range in up_to(Mid(mid)) {
            let keys = (stream, unordered, *range.start())..=(stream, unordered, *range.end());
            while let Some((&key, _)) = self.messages.range(keys.clone()).next() {
                self.drop_message(key, &mut dropped);
            }
        }
        dropped
    }

    /// Returns whether everything before a late fragment of an abandoned message has arrived.
    #[inline]
    pub(super) fn is_stuck(&self, cumulative: u64) -> bool {
        self.late.first_key_value().is_some_and(|(&late, _)| late <= cumulative)
    }

    /// Drops abandoned messages of which fragments arrived late: the fragments before these have lower TSNs, and those that are
    /// missing at `cumulative` will not arrive.
    pub(super) fn drop_late(&mut self, cumulative: u64) -> Dropped {
        let mut dropped = Dropped::default();
        while let Some(late) = self.late.first_entry().filter(|late| *late.key() <= cumulative) {
            let key = late.remove();
            // The fragments that were missing before this one may have arrived: then the next one behind a gap decides.
            let beyond_gap = self.messages.get(&key).and_then(|begun| begun.early.values().next());
            if beyond_gap.is_some_and(|&(index, _)| index <= cumulative) {
                self.drop_message(key, &mut dropped);
            }
        }
        dropped
    }

    /// See [`Reader::forget`](super::reader::Reader::forget).
    pub(super) fn forget(&mut self, epoch: u64) -> Dropped {
        let mut dropped = Dropped::default();
        let old = self.messages.iter().filter(|(_, begun)| begun.since < epoch);
        for key in old.map(|(&key, _)| key).collect::<Vec<_>>() {
            self.drop_message(key, &mut dropped);
        }
        dropped
    }

    /// See [`Reader::into_open_ends`](super::reader::Reader::into_open_ends).
    pub(super) fn into_open_ends(self) -> Vec<Message> {
        let open = self.messages.into_values().filter(|begun| begun.open);
        open.map(|begun| end_of_abandoned(&begun.head)).collect()
    }

    /// Returns the message to check of the stream and order after those of `after`: the next ordered message, or the unordered
    /// one with the lowest MID.
    fn first_of_next(&self, after: Option<Key>, ordered: &Ordered) -> Option<Key> {
        let found = match after {
            Some((stream, unordered, _)) => self
                .messages
                .range((stream, unordered, u32::MAX)..)
                .find(|(key, _)| (key.0, key.1) != (stream, unordered)),
            None => self.messages.first_key_value(),
        };
        let &(stream, unordered, mid) = found?.0;
        if !unordered {
            return Some((stream, false, ordered.next_mid(stream)));
        }
        // MIDs before the wrap precede those after it (serial number arithmetic).
        let before = mid.checked_add(1 << 31).map(|far| (stream, true, far)..=(stream, true, u32::MAX));
        let first = before.and_then(|keys| self.messages.range(keys).next());
        Some(first.map_or((stream, true, mid), |(&key, _)| key))
    }

    /// Returns whether the message may be delivered in parts now: an ordered message if it is the next one, an unordered
    /// message if no other of its stream is delivered in parts, and everything before its beginning has arrived.
    fn may_open(&self, key @ (stream, unordered, mid): Key, cumulative: u64, ordered: &Ordered) -> bool {
        if !unordered {
            return ordered.is_next(stream, mid);
        }
        let begins = self.messages.get(&key).and_then(|begun| begun.row_indices.as_ref()).map(Indices::first);
        let is_first = begins.is_some_and(|index| index <= cumulative + 1);
        is_first && !self.open_unordered.contains_key(&stream)
    }

    /// Begins to deliver a message in parts: returns its consecutive fragments; later ones follow as they arrive.
    fn open(&mut self, key: Key) -> Option<Joined> {
        let begun = self.messages.get_mut(&key)?;
        if key.1 {
            self.open_unordered.insert(key.0, key.2);
        }
        begun.hand_out()
    }

    /// Removes a message.
    fn close(&mut self, key: Key) -> Option<PartialMessage> {
        if key.1 && self.open_unordered.get(&key.0) == Some(&key.2) {
            self.open_unordered.remove(&key.0);
        }
        self.messages.remove(&key)
    }

    /// Returns the bytes and chunks of every incomplete message.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, usize)> {
        self.messages.values().map(|begun| {
            let early: usize = begun.early.values().map(|(_, piece)| piece.len()).sum();
            (begun.row_bytes + early, begun.row.len() + begun.early.len())
        })
    }

    fn drop_message(&mut self, key: Key, dropped: &mut Dropped) {
        let Some(begun) = self.close(key) else { return };
        dropped.bytes += begun.row_bytes + begun.early.values().map(|(_, piece)| piece.len()).sum::<usize>();
        dropped.chunks += begun.row.len() + begun.early.len();
        if begun.open {
            dropped.ends.push(end_of_abandoned(&begun.head));
        }
    }
}

impl PartialMessage {
    /// Creates a message without fragments; `fragment` will be added first.
    fn new(index: u64, fragment: &Fragment) -> Self {
        PartialMessage {
            since: index,
            head: Fragment { payload: Bytes::new(), ..fragment.clone() },
            row: Vec::new(),
            row_indices: None,
            row_bytes: 0,
            next: 0,
            last: None,
            open: false,
            early: BTreeMap::new(),
        }
    }

    fn add(&mut self, index: u64, fragment: Fragment) -> Result<(), &'static str> {
        let fsn = fragment.fsn.0;
        if fsn < self.next || self.early.contains_key(&fsn) {
            return Err("two fragments with the same FSN");
        }
        if self.last.is_some_and(|last| fsn > last) {
            return Err("a fragment beyond the end of its message");
        }
        if fragment.flags.ending() {
            if self.last.is_some() || self.early.last_key_value().is_some_and(|(&highest, _)| highest > fsn) {
                return Err("a fragment beyond the end of its message");
            }
            self.last = Some(fsn);
        }
        if fragment.flags.beginning() {
            self.head.ppid = fragment.ppid;
        }
        if fsn != self.next {
            self.early.insert(fsn, (index, fragment.payload));
            return Ok(());
        }
        self.append(index, fragment.payload);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() == self.next) {
            let (index, piece) = entry.remove();
            self.append(index, piece);
        }
        Ok(())
    }

    /// Appends the first missing fragment.
    fn append(&mut self, index: u64, piece: Bytes) {
        self.next = self.next.saturating_add(1);
        self.row_bytes += piece.len();
        self.row.push(piece);
        match &mut self.row_indices {
            Some(indices) => indices.push(index),
            none => *none = Some(Indices::of(index)),
        }
    }

    /// Returns whether a fragment has arrived and one before it has not.
    fn has_hole(&self) -> bool {
        !self.early.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.next > last)
    }

    /// Removes and returns the consecutive fragments; `None` if there are none.
    fn hand_out(&mut self) -> Option<Joined> {
        let indices = self.row_indices.take()?;
        let part = part_of(!self.open, self.is_complete());
        self.open = true;
        self.row_bytes = 0;
        let message = message(&self.head, part, Payload::Fragments(std::mem::take(&mut self.row)));
        Some(Joined { number: self.head.mid.0, indices, message })
    }
}

fn key(chunk: &Fragment) -> Key {
    (chunk.stream, chunk.flags.unordered(), chunk.mid.0)
}

/// Returns the numbers that are `mid` or precede it (serial number arithmetic).
fn up_to(mid: Mid) -> impl Iterator<Item = RangeInclusive<u32>> {
    let from = mid.0.wrapping_sub(u32::MAX / 2);
    let wraps = from > mid.0;
    let first = if wraps { from..=u32::MAX } else { from..=mid.0 };
    [Some(first), wraps.then_some(0..=mid.0)].into_iter().flatten()
}

const SAME_MID: &str = "two messages with the same MID";

/// Number of streams and orders that [`Interleaved::begin_partial_delivery`] checks.
const CANDIDATES: usize = 32;
