//! Chunks that the peer names in a report of a damaged packet (draft-stewart-sctp-pktdrprep), and the check that it can have
//! received them.
//!
//! Independent of the source of the report, and of its effects.

use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use super::outstanding::Outstanding;
use super::ring::ChunkState;

/// A chunk in flight that the peer reported as damaged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dropped {
    pub(super) index: u64,
    /// Path of its last transmission.
    pub(crate) path: PathId,
    sent_at: Instant,
}

impl Dropped {
    /// Time since the chunk was last sent.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.since(self.sent_at)
    }
}

/// Bytes of user data that a report must contain, or all user data of a shorter chunk. A receiver cannot return data that it
/// did not receive, so it cannot report losses by congestion as damage.
const EVIDENCE: usize = 32;
/// Most bits of this data that may differ: the reported packet was damaged.
const DAMAGED_BITS: u32 = 8;

impl Outstanding {
    /// The chunk in flight that a report names by its TSN and by `shown`, the beginning of its user data; `None` if these match
    /// no chunk.
    pub(crate) fn reported(&self, tsn: Tsn, shown: &[u8]) -> Option<Dropped> {
        let index = self.index_of(tsn)?;
        let sent = self.ring.get(index).filter(|sent| sent.standing == ChunkState::InFlight)?;
        let payload = &self.ring.content(index)?.payload;
        let wanted = payload.get(..EVIDENCE).unwrap_or(payload);
        let shown = shown.get(..wanted.len())?;
        let wrong: u32 = wanted.iter().zip(shown).map(|(one, other)| (one ^ other).count_ones()).sum();
        (wrong <= DAMAGED_BITS).then_some(Dropped { index, path: sent.path, sent_at: sent.sent_at })
    }
}
