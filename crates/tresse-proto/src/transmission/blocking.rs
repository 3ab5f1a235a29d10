//! Buffer held by early arrivals: chunks that are acknowledged, and held until all chunks with lower TSNs have arrived
//! (GLOBECOM 2010 paper, §IV-C).

use tresse_policy::sharing::Blocking;

use super::outstanding::Outstanding;
use super::ring::ChunkState;

impl Outstanding {
    /// Head-of-line blocking now, charged to the path of the head-of-line chunk's first transmission; `None` without blocking,
    /// or if that path was removed.
    pub(crate) fn blocking(&self) -> Option<Blocking> {
        let bytes = self.held_early();
        let first = self.ring.get(self.ring.cumulative() + 1).filter(|_| bytes > 0)?;
        let late = matches!(first.standing, ChunkState::InFlight | ChunkState::Lost);
        first.origin().filter(|_| late).map(|path| Blocking { path, bytes })
    }

    /// Bytes of new data ever sent on each path, by position. Duplicates and retransmissions do not count.
    pub(crate) fn new_data_sent(&self) -> impl ExactSizeIterator<Item = u64> {
        let header = self.data_format.header_len() as u64;
        self.loads.iter().map(move |load| load.history.bytes_sent + load.history.chunks_sent * header)
    }

    /// Bytes that either side holds for early arrivals: all bytes that the sender keeps and that are neither in flight nor
    /// assigned, and promised bytes. Lost chunks that wait for retransmission count too.
    pub(crate) fn held_early(&self) -> usize {
        self.held - self.flight - self.assigned()
    }
}
