//! Chunks that the peer names in a report of a damaged packet (draft-stewart-sctp-pktdrprep): whether it can have
//! seen them, and sending them again.
//!
//! Refuses to know where the report comes from. No window is touched: damage says nothing of congestion.

use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use super::loss::Evidence;
use super::{Standing, Transmission};

/// A chunk in flight that was reported.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dropped {
    index: u64,
    /// The path it was last sent on.
    pub(crate) path: PathId,
    sent_at: Instant,
}

impl Dropped {
    /// How long ago the chunk was last sent.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.since(self.sent_at)
    }
}

/// Bytes of user data that a report must show, or all of a shorter chunk: a receiver cannot show what it has not
/// got, and so cannot pass off losses by congestion as damage.
const EVIDENCE: usize = 32;
/// Bits of them that may be wrong: what is reported was damaged.
const DAMAGED_BITS: u32 = 8;

impl Transmission {
    /// The chunk in flight that a report names by its TSN and the beginning of its user data.
    pub(crate) fn reported(&self, tsn: Tsn, shown: &[u8]) -> Option<Dropped> {
        let ahead = tsn.0.wrapping_sub(self.cumulative_tsn().0) as i32;
        let index = self.ring.cumulative().checked_add_signed(i64::from(ahead))?;
        let sent = self.ring.get(index).filter(|sent| sent.standing == Standing::InFlight)?;
        let payload = &self.ring.content(index)?.payload;
        let wanted = payload.get(..EVIDENCE).unwrap_or(payload);
        let shown = shown.get(..wanted.len())?;
        let wrong: u32 = wanted.iter().zip(shown).map(|(one, other)| (one ^ other).count_ones()).sum();
        (wrong <= DAMAGED_BITS).then_some(Dropped { index, path: sent.path, sent_at: sent.sent_at })
    }

    /// Declares a reported chunk lost; it goes again on `target`.
    pub(crate) fn on_reported(&mut self, dropped: Dropped, target: PathId) {
        self.lose(dropped.index, target, Evidence::Report);
        if dropped.path != target {
            self.untime(dropped.path, dropped.index);
        }
    }
}
