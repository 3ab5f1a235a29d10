//! DATA behind a gap, set aside while the peer may be resetting the association.
//!
//! This DATA is not acknowledged. Only after all data before it has arrived is it known whether it belongs to the old or to the
//! new numbering.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::inbound::InboundData;

/// Chunks that were set aside, by index.
#[derive(Debug, Default)]
pub(crate) struct SetAside {
    chunks: BTreeMap<u64, Chunk>,
    /// Bytes of user data in them.
    bytes: usize,
}

/// A chunk that was set aside.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) data: InboundData,
    /// Range of the user data in the payload; `None` for all of it.
    pub(crate) at: Option<Range<usize>>,
    /// Bytes of user data.
    pub(crate) len: usize,
}

impl SetAside {
    /// Stores a chunk, unless all chunks together would take more than `room` bytes.
    pub(crate) fn keep(&mut self, index: u64, chunk: Chunk, room: usize) {
        if self.bytes + chunk.len <= room {
            self.bytes += chunk.len;
            if let Some(again) = self.chunks.insert(index, chunk) {
                self.bytes -= again.len;
            }
        }
    }

    /// Returns the chunk with index `next`, and discards those before it.
    pub(crate) fn take(&mut self, next: u64) -> Option<Chunk> {
        while let Some(first) = self.chunks.first_entry().filter(|first| *first.key() <= next) {
            let (index, chunk) = first.remove_entry();
            self.bytes -= chunk.len;
            if index == next {
                return Some(chunk);
            }
        }
        None
    }

    /// Discards all chunks.
    pub(crate) fn clear(&mut self) {
        *self = SetAside::default();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tresse_wire::{DataFlags, Fsn, Mid, Ppid, StreamId};

    use super::*;

    fn chunk(len: usize) -> Chunk {
        let data = InboundData {
            stream: StreamId(0),
            mid: Mid(0),
            fsn: Fsn(0),
            ppid: Ppid(0),
            flags: DataFlags::WHOLE.into(),
            payload: Bytes::from(vec![0; len]),
        };
        Chunk { data, at: None, len }
    }

    #[test]
    fn chunks_are_taken_in_order_within_a_bound() {
        let mut aside = SetAside::default();
        aside.keep(5, chunk(40), 100);
        aside.keep(7, chunk(40), 100);
        aside.keep(5, chunk(20), 100);
        aside.keep(6, chunk(50), 100);
        assert!(aside.take(4).is_none());
        assert_eq!(aside.take(5).map(|chunk| chunk.len), Some(20), "the later copy");
        assert!(aside.take(6).is_none(), "there was no room for it");
        assert!(aside.take(8).is_none() && aside.take(7).is_none(), "forgotten");
        assert_eq!(aside.bytes, 0);
    }
}
