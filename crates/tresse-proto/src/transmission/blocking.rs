//! Buffer held by early arrivals: chunks that are acknowledged, and held until all chunks
//! with lower TSNs have arrived (GLOBECOM 2010 paper, §IV-C).

use tresse_policy::sharing::Blocking;

use super::outstanding::Outstanding;
use super::ring::ChunkState;

impl Outstanding {
    /// Head-of-line blocking now, charged to the path that the head-of-line chunk was first sent on, unless that is gone.
    pub(crate) fn blocking(&self) -> Option<Blocking> {
        let bytes = self.held_early();
        let first = self.ring.get(self.ring.cumulative() + 1).filter(|_| bytes > 0)?;
        let late = matches!(first.standing, ChunkState::InFlight | ChunkState::Lost);
        first.origin.filter(|_| late).map(|path| Blocking { path, bytes })
    }

    /// New data ever sent on each path, by position; duplicates and retransmissions do not count.
    pub(crate) fn new_data_sent(&self) -> impl ExactSizeIterator<Item = u64> {
        let header = self.data_format.header_len() as u64;
        self.loads.iter().map(move |load| load.history.bytes_sent + load.history.chunks_sent * header)
    }

    /// Bytes that arrived early and are kept, by either side: of what the sender keeps, all that is neither in flight nor
    /// assigned, and what is promised.
    pub(crate) fn held_early(&self) -> usize {
        self.held - self.flight - self.assigned()
    }
}
