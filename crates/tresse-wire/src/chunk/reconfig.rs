//! RE-CONFIG (RFC 6525 §3.1): requests to reset or add streams, and responses.
//!
//! Owns the framing. The requests and responses inside are parameters: `param/reconfig.rs`. The core checks which of
//! them may be in one chunk.

use super::{CHUNK_HEADER_LEN, ChunkKind, head, put_chunk};
use crate::error::Fault;
use crate::param::Params;

/// A RE-CONFIG chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Reconfig<'a> {
    /// One or two requests or responses.
    pub params: Params<'a>,
}

impl<'a> Reconfig<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (_, params) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        Ok(Self { params: Params::Wire(params) })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.params.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::RECONFIG, 0, |out| self.params.put(out));
    }
}
