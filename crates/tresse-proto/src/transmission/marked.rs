//! Chunks that the peer names in an ECNE because their packet had a congestion mark (ECN), and the path of that packet.

use tresse_policy::PathId;
use tresse_wire::Tsn;

use super::outstanding::Outstanding;
use super::ring::{ChunkState, Sent};

/// A chunk that was sent and met a mark.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Marked {
    pub(crate) index: u64,
    /// The path it was sent on. None when that is forgotten, because everything up to the chunk is acknowledged: the
    /// mark was told before. And none when the chunk was declared lost meanwhile: the window has paid for that.
    pub(crate) path: Option<PathId>,
}

impl Outstanding {
    /// The chunk with `tsn`; `None` if none was ever sent.
    pub(crate) fn marked(&self, tsn: Tsn) -> Option<Marked> {
        let index = self.index_of(tsn)?;
        if index == 0 || index > self.ring.highest() {
            return None;
        }
        let unpaid = |sent: &&Sent| sent.sends == 1 && sent.standing != ChunkState::Lost;
        let path = self.ring.get(index).filter(unpaid).map(|sent| sent.path);
        Some(Marked { index, path })
    }
}
