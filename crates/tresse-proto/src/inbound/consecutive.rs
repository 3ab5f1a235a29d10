//! Reassembly of fragments in DATA (RFC 9260 §6.9).
//!
//! The fragments of a message have consecutive TSNs, so those that have arrived are a few runs of consecutive indices. Owns the
//! runs. Independent of the order of messages and the size of the buffer.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use tresse_wire::{Ssn, StreamId};

use super::joined::{Dropped, Joined, Step, cut, end_of_abandoned, message, part_of};
use super::ordered::Ordered;
use crate::collections::{LazyBox, LazyState};
use crate::fragment::Fragment;
use crate::interface::event::{Message, Payload};

/// Fragments of incomplete messages.
#[derive(Debug)]
pub(super) struct Consecutive {
    /// The only run, if it begins its message and grows in order.
    growing: Option<Box<Growing>>,
    /// All runs, if there is no such run.
    runs: LazyBox<Runs>,
    /// A message of which this many bytes have arrived is delivered in parts.
    point: usize,
    /// True if the peer may abandon a message after it sent part of it (RFC 3758): then an incomplete message is no fault.
    lenient: bool,
}

/// A run that the next index continues, if nothing is lost. No part of it was delivered.
#[derive(Debug)]
struct Growing {
    start: u64,
    /// The index after its last fragment.
    next: u64,
    run: Run,
}

/// Number of runs that are checked when messages are skipped: a peer can cause tens of thousands of runs, and one packet can
/// hold hundreds of FORWARD TSN chunks.
const MOST_LOOKED_AT: usize = 128;

/// Runs in any state.
#[derive(Default, Debug)]
struct Runs {
    /// Runs by the index of their first fragment. Adjacent runs belong to different messages.
    by_start: BTreeMap<u64, Run>,
    /// Start of the run whose message is delivered in parts; at most one at a time.
    open: Option<u64>,
}

impl LazyState for Runs {
    const INITIAL: &Self = &Runs { by_start: BTreeMap::new(), open: None };
}

/// Consecutive fragments of one message.
#[derive(Debug)]
pub(super) struct Run {
    /// The first fragment of the run without its payload; its flags say whether the message begins here.
    head: Fragment,
    /// True if the message ends with the last fragment of the run.
    ending: bool,
    /// Number of its fragments that were delivered as parts; they are no longer here.
    handed_out: u64,
    /// Bytes of the remaining fragments.
    bytes: usize,
    pieces: VecDeque<Bytes>,
}

/// Runs that are adjacent to a fragment and belong to its message.
struct AdjacentRuns {
    /// Start of the run whose message the fragment continues.
    before: Option<u64>,
    /// True if the run that starts after the fragment continues its message.
    after: bool,
}

impl Consecutive {
    /// See [`Reader::new`](super::reader::Reader::new).
    pub(super) fn new(point: usize, lenient: bool) -> Self {
        Consecutive { growing: None, runs: LazyBox::default(), point, lenient }
    }

    /// See [`Reader::check_whole`](super::reader::Reader::check_whole).
    #[inline(always)]
    pub(super) fn check_whole(&mut self, index: u64, chunk: &Fragment) -> Result<(), &'static str> {
        if self.growing.is_none() && self.runs.by_start.is_empty() {
            return Ok(());
        }
        self.spread();
        self.joins(index, chunk).map(|_| ())
    }

    /// See [`Reader::grown_by`](super::reader::Reader::grown_by).
    #[inline]
    pub(super) fn grown_by(&mut self, index: u64, chunk: &Fragment, len: usize) -> Option<&mut Run> {
        let growing = self.growing.as_deref_mut()?;
        let grows = growing.is_followed_by(index, chunk)
            && !chunk.flags.ending()
            && growing.run.bytes + len < self.point;
        if !grows {
            return None;
        }
        growing.next += 1;
        Some(&mut growing.run)
    }

    /// See [`Reader::is_stuck`](super::reader::Reader::is_stuck).
    #[inline]
    pub(super) fn is_stuck(&self, cumulative: u64) -> bool {
        if let Some(growing) = &self.growing {
            return growing.next <= cumulative;
        }
        !self.runs.by_start.is_empty() && self.first_defect(cumulative).is_some()
    }

    /// Adds a chunk; see [`Reader::add`](super::reader::Reader::add).
    ///
    /// # Errors
    /// The chunk contradicts the fragments beside it.
    pub(super) fn add(
        &mut self,
        index: u64,
        cumulative: u64,
        fragment: Fragment,
        ordered: &Ordered,
    ) -> Result<Step, &'static str> {
        if !fragment.flags.unordered() && !ordered.may_come(fragment.stream, fragment.mid.0, index) {
            return match ordered.check_late() {
                Ok(()) => Ok(Step::Dropped),
                Err(fault) => {
                    self.spread();
                    // If the chunk contradicts the fragments beside it, that fault is more precise.
                    Err(self.joins(index, &fragment).err().unwrap_or(fault))
                }
            };
        }
        if fragment.flags.ending()
            && let Some(mut growing) =
                self.growing.take_if(|growing| growing.is_followed_by(index, &fragment))
        {
            growing.run.push(fragment);
            return Ok(Step::Complete(growing.run.hand_out(growing.start)));
        }
        if self.growing.is_none()
            && self.runs.by_start.is_empty()
            && fragment.flags.beginning()
            && fragment.payload.len() < self.point
        {
            let run = Run::of(fragment);
            self.growing = Some(Box::new(Growing { start: index, next: index + 1, run }));
            return Ok(Step::Held);
        }
        self.spread();
        let joins = self.joins(index, &fragment)?;
        let Runs { by_start, open } = &mut *self.runs;
        let after = if joins.after { by_start.remove(&(index + 1)) } else { None };
        let (start, run) = match joins.before.and_then(|start| Some((start, by_start.get_mut(&start)?))) {
            Some((start, run)) => {
                run.push(fragment);
                (start, run)
            }
            None => (index, by_start.entry(index).or_insert(Run::of(fragment))),
        };
        if let Some(after) = after {
            run.absorb(after);
        }
        if run.is_complete() {
            let joined = run.hand_out(start);
            by_start.remove(&start);
            self.runs.close(start);
            return Ok(Step::Complete(joined));
        }
        let opens = open.is_none() && run.bytes >= self.point && run.may_open(start, cumulative, ordered);
        if opens {
            *open = Some(start);
        }
        if opens || *open == Some(start) {
            return Ok(Step::Part(run.hand_out(start)));
        }
        Ok(Step::Held)
    }

    /// Begins to deliver the earliest message in parts; see
    /// [`Reader::begin_partial_delivery`](super::reader::Reader::begin_partial_delivery). Only missing data before the message
    /// can prevent that, and there is always room for a chunk that fills the first gap.
    pub(super) fn begin_partial_delivery(&mut self, cumulative: u64, ordered: &Ordered) -> Option<Joined> {
        self.spread();
        let Runs { by_start, open } = &mut *self.runs;
        let mut entry = by_start.first_entry()?;
        let start = *entry.key();
        if open.is_some() || !entry.get().may_open(start, cumulative, ordered) {
            return None;
        }
        *open = Some(start);
        Some(entry.get_mut().hand_out(start))
    }

    /// Drops the ordered message of a stream that is delivered in parts, if its SSN is `ssn` or before.
    pub(super) fn skip(&mut self, stream: StreamId, ssn: Ssn) -> Dropped {
        let mut dropped = Dropped::default();
        if let Some(start) = self.runs.open
            && let Some(Run { head, .. }) = self.runs.by_start.get(&start)
            && head.stream == stream
            && !head.flags.unordered()
            && !head.ssn().is_after(ssn)
            && let Some(run) = self.runs.by_start.remove(&start)
        {
            self.runs.open = None;
            dropped.add(run);
        }
        dropped
    }

    /// See [`Reader::drop_skipped`](super::reader::Reader::drop_skipped).
    pub(super) fn drop_skipped(&mut self, ordered: &Ordered) -> Dropped {
        self.spread();
        let is_over = |(&start, run): (&u64, &Run)| {
            let Fragment { stream, mid, flags, .. } = run.head;
            (!flags.unordered() && !ordered.may_come(stream, mid.0, start)).then_some(start)
        };
        // The other runs are dropped when the cumulative index passes them.
        let first = self.runs.by_start.iter().take(MOST_LOOKED_AT);
        let over: Vec<u64> = first.filter_map(is_over).collect();
        let mut dropped = Dropped::default();
        for start in over {
            if let Some(run) = self.runs.by_start.remove(&start) {
                self.runs.close(start);
                dropped.add(run);
            }
        }
        dropped
    }

    /// See [`Reader::into_open_ends`](super::reader::Reader::into_open_ends).
    pub(super) fn into_open_ends(self) -> Vec<Message> {
        let open = self.runs.open.and_then(|start| self.runs.by_start.get(&start));
        open.map(|run| end_of_abandoned(&run.head)).into_iter().collect()
    }

    /// Returns the bytes and chunks of every run.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, usize)> {
        let growing = self.growing.iter().map(|growing| &growing.run);
        growing.chain(self.runs.by_start.values()).map(|run| (run.bytes, run.pieces.len()))
    }

    /// Drops the runs that can never become messages, because nothing up to `cumulative` is missing or will still arrive.
    ///
    /// # Errors
    /// There is such a run, and the peer may not abandon messages.
    pub(super) fn check_progress(&mut self, cumulative: u64) -> Result<Dropped, &'static str> {
        self.spread();
        let mut dropped = Dropped::default();
        while let Some(fault) = self.first_defect(cumulative) {
            if !self.lenient {
                return Err(fault);
            }
            let Some((start, run)) = self.runs.by_start.pop_first() else { break };
            dropped.add(run);
            self.runs.close(start);
        }
        Ok(dropped)
    }

    /// Returns the defect that keeps the first run from ever becoming a message, because nothing up to `cumulative` is missing
    /// or will still arrive.
    #[inline]
    fn first_defect(&self, cumulative: u64) -> Option<&'static str> {
        let (&start, run) = self.runs.by_start.first_key_value()?;
        if start <= cumulative && !run.head.flags.beginning() {
            return Some(NO_BEGINNING);
        }
        (run.end(start) <= cumulative).then_some(NO_ENDING)
    }

    /// Drops the runs that start before `epoch`: the peer has restarted its numbers and abandoned them.
    pub(super) fn forget(&mut self, epoch: u64) -> Dropped {
        self.spread();
        let mut dropped = Dropped::default();
        while let Some((&start, _)) =
            self.runs.by_start.first_key_value().filter(|&(&start, _)| start < epoch)
            && let Some(run) = self.runs.by_start.remove(&start)
        {
            self.runs.close(start);
            dropped.add(run);
        }
        dropped
    }

    /// Moves the only run to the others, because others will follow or more has to be known of it.
    fn spread(&mut self) {
        if let Some(growing) = self.growing.take() {
            self.runs.by_start.insert(growing.start, growing.run);
        }
    }

    fn joins(&self, index: u64, chunk: &Fragment) -> Result<AdjacentRuns, &'static str> {
        let mut joins = AdjacentRuns { before: None, after: false };
        // Mostly nothing that was sent later has arrived: then one lookup replaces two searches.
        let latest = self.runs.by_start.last_key_value().filter(|&(&start, _)| start < index);
        let before = latest.or_else(|| self.runs.by_start.range(..index).next_back());
        if let Some((&start, run)) = before.filter(|&(&start, run)| run.end(start) == index)
            && self.is_one_message(&run.head, run.ending, chunk)?
        {
            joins.before = Some(start);
        }
        if latest.is_none()
            && let Some(run) = self.runs.by_start.get(&(index + 1))
            && self.is_one_message(chunk, chunk.flags.ending(), &run.head)?
        {
            joins.after = true;
        }
        Ok(joins)
    }

    /// Returns whether a message continues from `earlier` to the adjacent fragment `later`; `ended` is true if it ends with
    /// `earlier`.
    fn is_one_message(
        &self,
        earlier: &Fragment,
        ended: bool,
        later: &Fragment,
    ) -> Result<bool, &'static str> {
        match (ended, later.flags.beginning()) {
            (true, true) => Ok(false),
            (true, false) => Err(NO_BEGINNING),
            (false, true) if self.lenient => Ok(false),
            (false, true) => Err(NO_ENDING),
            (false, false) => {
                if may_be_one_message(earlier, later) {
                    Ok(true)
                } else {
                    Err("fragments of one message differ in stream, SSN or U bit")
                }
            }
        }
    }
}

/// Returns whether two adjacent fragments can belong to one message.
#[inline]
fn may_be_one_message(one: &Fragment, other: &Fragment) -> bool {
    let unordered = one.flags.unordered();
    one.stream == other.stream && unordered == other.flags.unordered() && (unordered || one.mid == other.mid)
}

const NO_BEGINNING: &str = "a fragment without the first of its message before it";
const NO_ENDING: &str = "a fragment without the last of its message behind it";

impl Runs {
    /// Notes that the run with this start was removed.
    fn close(&mut self, start: u64) {
        self.open.take_if(|open| *open == start);
    }
}

impl Dropped {
    fn add(&mut self, run: Run) {
        self.bytes += run.bytes;
        self.chunks += run.pieces.len();
        if run.handed_out > 0 {
            self.ends.push(end_of_abandoned(&run.head));
        }
    }
}

impl Growing {
    /// Returns whether a chunk is the next fragment of the run.
    #[inline]
    fn is_followed_by(&self, index: u64, chunk: &Fragment) -> bool {
        self.next == index && !chunk.flags.beginning() && may_be_one_message(&self.run.head, chunk)
    }
}

impl Run {
    fn of(mut fragment: Fragment) -> Self {
        let piece = std::mem::take(&mut fragment.payload);
        Run {
            ending: fragment.flags.ending(),
            handed_out: 0,
            bytes: piece.len(),
            pieces: VecDeque::from([piece]),
            head: fragment,
        }
    }

    /// Returns the index after the last fragment of a run that starts at `start`.
    fn end(&self, start: u64) -> u64 {
        start + self.handed_out + self.pieces.len() as u64
    }

    /// Appends `len` bytes of user data, of a fragment that does not end the message; for `at` see [`cut`].
    #[inline]
    pub(super) fn append(&mut self, holding: Bytes, at: Option<Range<usize>>, len: usize) {
        self.bytes += len;
        self.pieces.push_back(holding);
        if let Some(piece) = self.pieces.back_mut() {
            cut(piece, at);
        }
    }

    fn push(&mut self, fragment: Fragment) {
        self.ending = fragment.flags.ending();
        self.bytes += fragment.payload.len();
        self.pieces.push_back(fragment.payload);
    }

    /// Appends the run that follows this one. The smaller number of pieces is moved, so that a piece moves O(log pieces) times
    /// until its message is complete, whatever the order of arrival.
    fn absorb(&mut self, mut after: Run) {
        self.ending = after.ending;
        self.bytes += after.bytes;
        if self.pieces.len() >= after.pieces.len() {
            self.pieces.append(&mut after.pieces);
            return;
        }
        std::mem::swap(&mut self.pieces, &mut after.pieces);
        after.pieces.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
    }

    fn is_complete(&self) -> bool {
        self.head.flags.beginning() && self.ending
    }

    /// Returns whether delivery in parts may begin with this run: it begins its message, that message is the next one of its
    /// stream, and everything before its `start` has arrived.
    fn may_open(&self, start: u64, cumulative: u64, ordered: &Ordered) -> bool {
        let head = &self.head;
        let is_first = start <= cumulative + 1;
        is_first
            && head.flags.beginning()
            && (head.flags.unordered() || ordered.is_next(head.stream, head.mid.0))
    }

    /// Removes and returns the fragments of a run that starts at `start` and has the beginning of its message.
    fn hand_out(&mut self, start: u64) -> Joined {
        let indices = start + self.handed_out..self.end(start);
        let part = part_of(self.handed_out == 0, self.ending);
        self.handed_out = indices.end - start;
        self.bytes = 0;
        let payload = Payload::Fragments(std::mem::take(&mut self.pieces).into());
        let message = message(&self.head, part, payload);
        Joined { number: self.head.mid.0, indices: indices.into(), message }
    }
}
