//! A piece of a message with everything DATA says of it but the TSN: what outbound cuts and
//! transmission keeps.

use bytes::Bytes;
use tresse_wire::{Data, DataFlags, Ppid, Ssn, StreamId, Tsn};

/// A message, or a piece of one, that fits a DATA chunk.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) stream: StreamId,
    pub(crate) ssn: Ssn,
    pub(crate) ppid: Ppid,
    pub(crate) flags: DataFlags,
    pub(crate) payload: Bytes,
}

impl Fragment {
    /// The DATA chunk that carries it as `tsn`.
    pub(crate) fn data(&self, tsn: Tsn) -> Data<'_> {
        Data {
            tsn,
            stream: self.stream,
            ssn: self.ssn,
            ppid: self.ppid,
            flags: self.flags,
            payload: &self.payload,
        }
    }
}
