//! Chunks that the peer names in a report of a damaged packet (draft-stewart-sctp-pktdrprep), and the check that it can
//! have seen them.
//!
//! Independent of the source of the report, and of its effects.

use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use super::outstanding::Outstanding;
use super::ring::ChunkState;

/// A chunk in flight that was reported.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dropped {
    pub(super) index: u64,
    /// The path it was last sent on.
    pub(crate) path: PathId,
    sent_at: Instant,
}

impl Dropped {
    /// Time since the chunk was last sent.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.since(self.sent_at)
    }
}

/// Bytes of user data that a report must show, or all of a shorter chunk: a receiver cannot show what it has not
/// got, and so cannot pass off losses by congestion as damage.
const EVIDENCE: usize = 32;
/// Bits of them that may be wrong: what is reported was damaged.
const DAMAGED_BITS: u32 = 8;

impl Outstanding {
    /// The chunk in flight that a report names by its TSN and the beginning of its user data.
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
