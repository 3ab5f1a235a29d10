//! Chunks that the peer names in an ECNE because their packet had a congestion mark (ECN), and the path of that packet.

use tresse_policy::PathId;
use tresse_wire::Tsn;

use super::outstanding::Outstanding;
use super::ring::{ChunkState, Sent};

/// A sent chunk whose packet was marked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Marked {
    pub(crate) index: u64,
    /// Path of its transmission. `None` if everything up to the chunk is acknowledged, so that the path is forgotten: the mark
    /// was reported before. `None` also if the chunk was marked as lost meanwhile: the window was reduced for that.
    pub(crate) path: Option<PathId>,
}

impl Outstanding {
    /// The chunk with `tsn`; `None` if the TSN was never assigned.
    pub(crate) fn marked(&self, tsn: Tsn) -> Option<Marked> {
        let index = self.index_of(tsn)?;
        if index == 0 || index > self.ring.highest() {
            return None;
        }
        let unpaid = |sent: &&Sent| sent.transmissions() == 1 && sent.standing != ChunkState::Lost;
        let path = self.ring.get(index).filter(unpaid).map(|sent| sent.path);
        Some(Marked { index, path })
    }
}
