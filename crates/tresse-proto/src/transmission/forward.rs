//! FORWARD TSN for abandoned chunks (RFC 3758 §3.5 C1 to C5).
//!
//! Owns the Advanced.Peer.Ack.Point, and the times at which FORWARD TSN is sent and retransmitted. Independent of
//! the reasons for which chunks were abandoned.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{
    Chunk, ForwardTsn, IForwardTsn, List, ListItem, Mid, NoRoom, PacketWriter, SkippedMessage, SkippedStream,
    Ssn, StreamId, Tsn,
};

use super::outstanding::Outstanding;
use super::ring::{ChunkState, Ring};
use crate::fragment::DataFormat;

/// Bytes of a FORWARD TSN or I-FORWARD-TSN before its list.
const HEADER_LEN: usize = 8;

/// State of the FORWARD TSN, which moves the peer's cumulative TSN past abandoned chunks.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    /// The Advanced.Peer.Ack.Point as an index: all chunks up to it are acknowledged or abandoned.
    advanced: u64,
    /// New cumulative index in the last FORWARD TSN.
    told: u64,
    /// The same in the first FORWARD TSN on `path` that is not acknowledged.
    unanswered: Option<u64>,
    /// True if `told` is less than possible, so that the FORWARD TSN fitted a packet: the next one follows when the peer has
    /// acknowledged this one.
    kept_back: bool,
    due: bool,
    /// Path of the last FORWARD TSN; `sent_at` is its time.
    path: PathId,
    sent_at: Instant,
    /// True if it was not acknowledged in time on `path`.
    timed_out: bool,
}

impl Forward {
    /// Moves the Advanced.Peer.Ack.Point over acknowledged and abandoned chunks (RFC 3758 §3.5 C1, C2).
    pub(super) fn advance(&mut self, ring: &Ring) {
        let cumulative = ring.cumulative();
        self.kept_back &= cumulative < self.told;
        if self.kept_back {
            return;
        }
        self.advanced = self.advanced.max(cumulative);
        while ring.get(self.advanced + 1).is_some_and(|sent| sent.standing == ChunkState::Abandoned) {
            self.advanced += 1;
        }
        if self.advanced == cumulative {
            self.due = false;
        } else if self.advanced > self.told {
            self.due = true;
        }
    }

    /// Makes the FORWARD TSN due again if it is unacknowledged and was sent `pause` ago or earlier.
    pub(super) fn repeat(&mut self, ring: &Ring, now: Instant, pause: Duration) {
        self.due |= self.is_outstanding(ring) && now.since(self.sent_at) >= pause;
    }

    /// Returns whether a FORWARD TSN is due.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The path of a FORWARD TSN that awaits its acknowledgement.
    pub(super) fn path(&self, ring: &Ring) -> Option<PathId> {
        self.is_outstanding(ring).then_some(self.path)
    }

    /// The path that a retransmitted FORWARD TSN should avoid.
    pub(crate) fn avoids(&self) -> Option<PathId> {
        self.timed_out.then_some(self.path)
    }

    /// Makes the FORWARD TSN that was sent on `path` due again: T3 of the path expired, or the path can no longer be used.
    pub(super) fn on_lost(&mut self, ring: &Ring, path: PathId) {
        if self.path(ring) == Some(path) {
            self.due = true;
            self.timed_out = true;
        }
    }

    /// Returns the path of the last FORWARD TSN, once, if the peer has acknowledged one that was sent there. Others may have
    /// followed since.
    pub(super) fn take_answer(&mut self, ring: &Ring) -> Option<PathId> {
        self.unanswered.take_if(|first| *first <= ring.cumulative())?;
        self.unanswered = Some(self.told).filter(|_| self.is_outstanding(ring));
        Some(self.path)
    }

    fn is_outstanding(&self, ring: &Ring) -> bool {
        self.told > ring.cumulative()
    }

    /// Writes a FORWARD TSN that is due and leaves on `path`; returns whether it was written. It lists each stream with the
    /// last of its abandoned messages (RFC 3758 §3.5 C4). If not all streams fit, it covers fewer chunks; but if the packet has
    /// other chunks already, it waits for the next packet.
    pub(super) fn write(
        &mut self,
        outstanding: &Outstanding,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        if !self.due {
            return false;
        }
        let advanced = self.advanced;
        let (up_to, skipped) = skipped(outstanding, advanced, writer.room());
        if up_to == outstanding.ring.cumulative() || (up_to < advanced && !writer.is_empty()) {
            return false;
        }
        if push(outstanding.tsn(up_to), &skipped, outstanding.data_format, writer).is_err() {
            return false;
        }
        *self = Forward {
            advanced: up_to,
            told: up_to,
            unanswered: self.unanswered.filter(|_| self.path == path).or(Some(up_to)),
            kept_back: up_to < advanced,
            due: false,
            path,
            sent_at: now,
            timed_out: false,
        };
        true
    }
}

/// The abandoned messages from the cumulative index to `last`, as far as they fit a chunk of `room` bytes, and the index up to
/// which the list is complete.
fn skipped(outstanding: &Outstanding, last: u64, room: usize) -> (u64, Skipped) {
    let item = match outstanding.data_format {
        DataFormat::Data => SkippedStream::LEN,
        DataFormat::IData => SkippedMessage::LEN,
    };
    let most = room.saturating_sub(HEADER_LEN) / item;
    let mut skipped = Skipped::new();
    let mut up_to = outstanding.ring.cumulative();
    while up_to < last {
        let Some(fragment) = outstanding.ring.content(up_to + 1) else { break };
        let named = match outstanding.data_format {
            DataFormat::Data => !fragment.flags.unordered(),
            DataFormat::IData => true,
        };
        if named {
            let key = (fragment.stream, fragment.flags.unordered());
            let known = skipped.len();
            match skipped.entry(key) {
                Entry::Vacant(_) if known == most => break,
                Entry::Vacant(place) => {
                    _ = place.insert(SkippedRange { first: fragment.mid, last: fragment.mid })
                }
                // The peer would take a number further ahead for one that it has passed (serial number arithmetic).
                Entry::Occupied(named) if named.get().spans_half_with(fragment.mid, outstanding) => break,
                // Message numbers of one stream and kind increase with the TSN.
                Entry::Occupied(mut named) => named.get_mut().last = fragment.mid,
            }
        }
        up_to += 1;
    }
    (up_to, skipped)
}

/// The abandoned messages of each stream, separately for ordered and unordered messages.
type Skipped = BTreeMap<(StreamId, bool), SkippedRange>;

/// Numbers of the first and the last abandoned message of a stream that a FORWARD TSN skips; it has the last.
#[derive(Copy, Clone, Debug)]
struct SkippedRange {
    first: Mid,
    last: Mid,
}

impl SkippedRange {
    /// Returns whether the messages up to `mid` would span half of all numbers.
    fn spans_half_with(self, mid: Mid, outstanding: &Outstanding) -> bool {
        u64::from(mid.0.wrapping_sub(self.first.0)) >= outstanding.data_format.numbers() / 2
    }
}

/// Appends a FORWARD TSN or, if I-DATA carries user data, an I-FORWARD-TSN (RFC 8260 §2.3.1).
fn push(
    cumulative_tsn: Tsn,
    skipped: &Skipped,
    data_format: DataFormat,
    writer: &mut PacketWriter<'_>,
) -> Result<(), NoRoom> {
    match data_format {
        DataFormat::Data => {
            let stream = |(&(stream, _), named): (&(StreamId, bool), &SkippedRange)| SkippedStream {
                stream,
                ssn: Ssn(named.last.0 as u16),
            };
            let streams: Vec<_> = skipped.iter().map(stream).collect();
            writer.push(&Chunk::ForwardTsn(ForwardTsn { cumulative_tsn, streams: List::Values(&streams) }))
        }
        DataFormat::IData => {
            let message = |(&(stream, unordered), named): (&(StreamId, bool), &SkippedRange)| {
                SkippedMessage { stream, unordered, mid: named.last }
            };
            let messages: Vec<_> = skipped.iter().map(message).collect();
            writer
                .push(&Chunk::IForwardTsn(IForwardTsn { cumulative_tsn, messages: List::Values(&messages) }))
        }
    }
}
