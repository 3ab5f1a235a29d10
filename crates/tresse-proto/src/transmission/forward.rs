//! Telling the peer to stop waiting for what was given up: FORWARD TSN (RFC 3758 §3.5 C1 to C5).
//!
//! Owns the Advanced.Peer.Ack.Point and when the peer is told of it, the first time or again. Refuses to
//! know why a chunk was given up.

use std::collections::BTreeMap;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{
    Chunk, ForwardTsn, IForwardTsn, List, ListItem, Mid, NoRoom, PacketWriter, SkippedMessage, SkippedStream,
    Ssn, StreamId, Tsn,
};

use super::{Standing, Transmission};
use crate::fragment::Carrier;

/// Bytes of FORWARD TSN and I-FORWARD-TSN before their list.
const HEADER_LEN: usize = 8;

/// How far the peer is to move without what was given up.
#[derive(Debug, Default)]
pub(super) struct Forward {
    /// The Advanced.Peer.Ack.Point as an index: up to here everything is acknowledged or given up.
    advanced: u64,
    /// Up to where the peer was told.
    told: u64,
    /// `told` was kept back to fit a packet: the rest follows when the peer is there.
    kept_back: bool,
    due: bool,
    /// Where and when it was sent last.
    path: PathId,
    sent_at: Instant,
    /// `path` did not bring an answer in time.
    timed_out: bool,
}

impl Transmission {
    /// Moves the Advanced.Peer.Ack.Point over what is acknowledged and given up (C1, C2); a FORWARD TSN is due
    /// when it got beyond what the peer was told. Called after whatever gives up or acknowledges.
    pub(crate) fn advance(&mut self) {
        let Some(revocable) = self.revocable.as_deref_mut() else { return };
        let forward = &mut revocable.forward;
        let cumulative = self.outstanding.ring.cumulative();
        forward.kept_back &= cumulative < forward.told;
        if forward.kept_back {
            return;
        }
        forward.advanced = forward.advanced.max(cumulative);
        while self
            .outstanding
            .ring
            .get(forward.advanced + 1)
            .is_some_and(|sent| sent.standing == Standing::Abandoned)
        {
            forward.advanced += 1;
        }
        if forward.advanced == cumulative {
            forward.due = false;
        } else if forward.advanced > forward.told {
            forward.due = true;
        }
    }

    /// A SACK says that the peer is not yet where it was told to be. Told again after `pause`, about a round
    /// trip: before, the SACK may be older than the FORWARD TSN (C3, F2).
    pub(crate) fn repeat_forward(&mut self, now: Instant, pause: Duration) {
        if let Some(forward) = self.outstanding_forward()
            && now.since(forward.sent_at) >= pause
        {
            forward.due = true;
        }
    }

    /// Whether a FORWARD TSN wants to leave.
    pub(crate) fn forward_is_due(&self) -> bool {
        self.revocable.as_deref().is_some_and(|revocable| revocable.forward.due)
    }

    /// The path of a FORWARD TSN that waits for its acknowledgement: its T3 has to run (C5).
    pub(crate) fn forward_path(&self) -> Option<PathId> {
        let forward = &self.revocable.as_deref()?.forward;
        (forward.told > self.outstanding.ring.cumulative()).then_some(forward.path)
    }

    /// Writes a FORWARD TSN that is due and leaves on `path`; answers whether it did. It names each stream with
    /// the last of its messages that were given up (C4). When not all fit, the peer is not sent as far; but if
    /// anything stands in the packet already, the next one is waited for.
    pub(crate) fn write_forward(
        &mut self,
        now: Instant,
        path: PathId,
        carrier: Carrier,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let Some(advanced) = self.due_forward() else { return false };
        let (up_to, skipped) = self.skipped(carrier, advanced, writer.room());
        if up_to == self.outstanding.ring.cumulative() || (up_to < advanced && !writer.is_empty()) {
            return false;
        }
        if push(self.outstanding.tsn(up_to), &skipped, carrier, writer).is_err() {
            return false;
        }
        if let Some(revocable) = self.revocable.as_deref_mut() {
            revocable.forward = Forward {
                advanced: up_to,
                told: up_to,
                kept_back: up_to < advanced,
                due: false,
                path,
                sent_at: now,
                timed_out: false,
            };
        }
        true
    }

    /// The path that a repeated FORWARD TSN had better not take.
    pub(crate) fn forward_avoids(&self) -> Option<PathId> {
        let forward = &self.revocable.as_deref()?.forward;
        forward.timed_out.then_some(forward.path)
    }

    /// T3 of `path` expired, or the path can no longer be used: what was told there is told again.
    pub(super) fn on_forward_lost(&mut self, path: PathId) {
        if let Some(forward) = self.outstanding_forward().filter(|forward| forward.path == path) {
            forward.due = true;
            forward.timed_out = true;
        }
    }

    fn outstanding_forward(&mut self) -> Option<&mut Forward> {
        let cumulative = self.outstanding.ring.cumulative();
        let forward = &mut self.revocable.as_deref_mut()?.forward;
        (forward.told > cumulative).then_some(forward)
    }

    fn due_forward(&self) -> Option<u64> {
        let forward = &self.revocable.as_deref()?.forward;
        forward.due.then_some(forward.advanced)
    }

    /// What was given up from the cumulative index to `last`, as far as it fits a chunk of `room` bytes, and
    /// the index up to which that is all.
    fn skipped(&self, carrier: Carrier, last: u64, room: usize) -> (u64, Skipped) {
        let item = match carrier {
            Carrier::Data => SkippedStream::LEN,
            Carrier::IData => SkippedMessage::LEN,
        };
        let most = room.saturating_sub(HEADER_LEN) / item;
        let mut skipped = Skipped::new();
        let mut up_to = self.outstanding.ring.cumulative();
        while up_to < last {
            let Some(fragment) = self.outstanding.ring.content(up_to + 1) else { break };
            let named = match carrier {
                Carrier::Data => !fragment.flags.unordered(),
                Carrier::IData => true,
            };
            if named {
                let key = (fragment.stream, fragment.flags.unordered());
                if skipped.len() == most && !skipped.contains_key(&key) {
                    break;
                }
                // Messages of one stream and kind were numbered in the order of their TSNs.
                skipped.insert(key, fragment.mid);
            }
            up_to += 1;
        }
        (up_to, skipped)
    }
}

/// The last message that was given up of each stream, for ordered and unordered ones apart.
type Skipped = BTreeMap<(StreamId, bool), Mid>;

/// Appends FORWARD TSN or, where I-DATA carries user data, I-FORWARD-TSN (RFC 8260 §2.3.1).
fn push(
    cumulative_tsn: Tsn,
    skipped: &Skipped,
    carrier: Carrier,
    writer: &mut PacketWriter<'_>,
) -> Result<(), NoRoom> {
    match carrier {
        Carrier::Data => {
            let stream = |(&(stream, _), mid): (&(StreamId, bool), &Mid)| SkippedStream {
                stream,
                ssn: Ssn(mid.0 as u16),
            };
            let streams: Vec<_> = skipped.iter().map(stream).collect();
            writer.push(&Chunk::ForwardTsn(ForwardTsn { cumulative_tsn, streams: List::Values(&streams) }))
        }
        Carrier::IData => {
            let message = |(&(stream, unordered), &mid): (&(StreamId, bool), &Mid)| SkippedMessage {
                stream,
                unordered,
                mid,
            };
            let messages: Vec<_> = skipped.iter().map(message).collect();
            writer
                .push(&Chunk::IForwardTsn(IForwardTsn { cumulative_tsn, messages: List::Values(&messages) }))
        }
    }
}
