//! Fragments of messages until the messages are complete (RFC 9260 §6.9).
//!
//! The fragments of a message have consecutive TSNs, so what has arrived of it is a few runs of consecutive
//! indices. Owns the runs. Refuses to know order between messages and the size of the buffer.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;

use crate::event::{Message, Payload};
use crate::fragment::Fragment;

/// Fragments of incomplete messages.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Runs by the index of their first fragment. Runs that touch belong to different messages.
    runs: BTreeMap<u64, Run>,
    /// Whether the peer may give a message up after it sent part of it (RFC 3758): then what can never be
    /// complete is no fault.
    lenient: bool,
}

/// Chunks that leave the receive buffer undelivered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Dropped {
    pub(super) bytes: usize,
    pub(super) chunks: usize,
}

/// Consecutive fragments of one message.
#[derive(Debug)]
struct Run {
    /// The first fragment of the run without its payload; its flags say whether the message begins here.
    head: Fragment,
    /// Whether the message ends with the last fragment of the run.
    ending: bool,
    bytes: usize,
    pieces: VecDeque<Bytes>,
}

/// What a fragment completes or continues.
struct Joins {
    /// Where the run starts whose message it continues.
    before: Option<u64>,
    /// Whether the run that starts after it continues its message.
    after: bool,
    /// Bytes of all that together.
    bytes: usize,
}

impl Reassembly {
    /// Nothing has arrived; `lenient` says whether the peer may give up a message that it began to send.
    pub(super) fn new(lenient: bool) -> Self {
        Reassembly { runs: BTreeMap::new(), lenient }
    }

    /// Checks that a chunk with `index` goes with the fragments that arrived beside it.
    ///
    /// # Errors
    /// How it contradicts them.
    #[inline]
    pub(super) fn check(&self, index: u64, chunk: &Fragment) -> Result<(), &'static str> {
        if self.runs.is_empty() { Ok(()) } else { self.joins(index, chunk).map(|_| ()) }
    }

    /// Takes a fragment, and gives the message that it completes with the message's indices.
    ///
    /// # Errors
    /// It contradicts the fragments beside it, or its message would be longer than `limit` bytes.
    pub(super) fn add(
        &mut self,
        index: u64,
        fragment: Fragment,
        limit: usize,
    ) -> Result<Option<(Range<u64>, Message)>, &'static str> {
        let joins = self.joins(index, &fragment)?;
        if joins.bytes > limit {
            return Err("a message is longer than the receive buffer");
        }
        let after = if joins.after { self.runs.remove(&(index + 1)) } else { None };
        let (start, run) = match joins.before.and_then(|start| Some((start, self.runs.get_mut(&start)?))) {
            Some((start, run)) => {
                run.append(fragment);
                (start, run)
            }
            None => (index, self.runs.entry(index).or_insert(Run::of(fragment))),
        };
        if let Some(after) = after {
            run.absorb(after);
        }
        if !run.is_complete() {
            return Ok(None);
        }
        Ok(self.runs.remove(&start).map(|run| (start..run.end(start), run.into_message())))
    }

    /// How long a message, as far as it is here, would be with `len` bytes more at `index`; `None` when
    /// nothing beside `index` waits for it.
    pub(super) fn length_with(&self, index: u64, len: usize) -> Option<usize> {
        let before = self.run_before(index).filter(|(_, run)| !run.ending).map(|(_, run)| run.bytes);
        let after = self.runs.get(&(index + 1)).filter(|run| !run.head.flags.beginning).map(|run| run.bytes);
        if before.is_none() && after.is_none() {
            return None;
        }
        Some(before.unwrap_or(0) + len + after.unwrap_or(0))
    }

    /// Bytes and chunks of every run.
    #[cfg(any(test, feature = "invariants"))]
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.runs.values().map(|run| (run.bytes, run.pieces.len()))
    }

    /// Drops the runs that can never become messages now that nothing up to `cumulative` is missing or will
    /// still come.
    ///
    /// # Errors
    /// What is missing, of a peer that may give nothing up.
    pub(super) fn check_progress(&mut self, cumulative: u64) -> Result<Dropped, &'static str> {
        let mut dropped = Dropped::default();
        while let Some(entry) = self.runs.first_entry() {
            let (start, run) = (*entry.key(), entry.get());
            let fault = if start <= cumulative && !run.head.flags.beginning {
                NO_BEGINNING
            } else if run.end(start) <= cumulative {
                NO_ENDING
            } else {
                break;
            };
            if !self.lenient {
                return Err(fault);
            }
            dropped.bytes += run.bytes;
            dropped.chunks += run.pieces.len();
            entry.remove();
        }
        Ok(dropped)
    }

    /// Drops the runs that start before `epoch`: the peer has begun anew and forgotten them.
    pub(super) fn forget(&mut self, epoch: u64) -> Dropped {
        let mut dropped = Dropped::default();
        while let Some(entry) = self.runs.first_entry().filter(|entry| *entry.key() < epoch) {
            let run = entry.remove();
            dropped.bytes += run.bytes;
            dropped.chunks += run.pieces.len();
        }
        dropped
    }

    /// The run that ends right before `index`, with its start.
    fn run_before(&self, index: u64) -> Option<(u64, &Run)> {
        let (&start, run) = self.runs.range(..index).next_back()?;
        (run.end(start) == index).then_some((start, run))
    }

    fn joins(&self, index: u64, chunk: &Fragment) -> Result<Joins, &'static str> {
        let mut joins = Joins { before: None, after: false, bytes: chunk.payload.len() };
        if let Some((start, run)) = self.run_before(index)
            && self.is_one_message(&run.head, run.ending, chunk)?
        {
            joins.before = Some(start);
            joins.bytes += run.bytes;
        }
        if let Some(run) = self.runs.get(&(index + 1))
            && self.is_one_message(chunk, chunk.flags.ending, &run.head)?
        {
            joins.after = true;
            joins.bytes += run.bytes;
        }
        Ok(joins)
    }

    /// Whether a message goes on from fragments like `earlier`, after which it ends or not, to `later`.
    fn is_one_message(
        &self,
        earlier: &Fragment,
        ended: bool,
        later: &Fragment,
    ) -> Result<bool, &'static str> {
        match (ended, later.flags.beginning) {
            (true, true) => Ok(false),
            (true, false) => Err(NO_BEGINNING),
            (false, true) if self.lenient => Ok(false),
            (false, true) => Err(NO_ENDING),
            (false, false) => {
                let unordered = earlier.flags.unordered;
                let alike = earlier.stream == later.stream
                    && unordered == later.flags.unordered
                    && (unordered || earlier.mid == later.mid);
                if alike { Ok(true) } else { Err("fragments of one message differ in stream, SSN or U bit") }
            }
        }
    }
}

const NO_BEGINNING: &str = "a fragment follows the end of a message without beginning another";
const NO_ENDING: &str = "a message begins before the one before it has ended";

impl Run {
    fn of(mut fragment: Fragment) -> Self {
        let piece = std::mem::take(&mut fragment.payload);
        Run {
            ending: fragment.flags.ending,
            bytes: piece.len(),
            pieces: VecDeque::from([piece]),
            head: fragment,
        }
    }

    /// The index after the last fragment of a run that starts at `start`.
    fn end(&self, start: u64) -> u64 {
        start + self.pieces.len() as u64
    }

    fn append(&mut self, fragment: Fragment) {
        self.ending = fragment.flags.ending;
        self.bytes += fragment.payload.len();
        self.pieces.push_back(fragment.payload);
    }

    /// Joins the run that follows this one. The fewer pieces move, so that a piece moves O(log pieces) times
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
        self.head.flags.beginning && self.ending
    }

    fn into_message(self) -> Message {
        Message {
            stream: self.head.stream,
            ssn: self.head.ssn(),
            ppid: self.head.ppid,
            unordered: self.head.flags.unordered,
            payload: Payload::Fragments(self.pieces.into()),
        }
    }
}
