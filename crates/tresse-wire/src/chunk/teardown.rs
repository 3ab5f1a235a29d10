//! ABORT, SHUTDOWN and ERROR (RFC 9260 §3.3.7, §3.3.8, §3.3.10).
//!
//! Owns their layout. SHUTDOWN ACK and SHUTDOWN COMPLETE have only a header and need no type. The formats of error
//! causes are in `cause.rs`.

use super::{CHUNK_HEADER_LEN, ChunkKind, T_BIT, exactly, head, put_chunk, t_bit};
use crate::bytes::u32_at;
use crate::cause::Causes;
use crate::error::Fault;
use crate::serial::Tsn;

/// A SHUTDOWN chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// Cumulative TSN ack: the last TSN before the first missing one.
    pub cumulative_tsn: Tsn,
}

impl Shutdown {
    const LEN: usize = 8;

    pub(crate) fn parse(chunk: &[u8]) -> Result<Self, Fault> {
        let chunk = exactly::<{ Self::LEN }>(chunk, "8")?;
        Ok(Self { cumulative_tsn: Tsn(u32_at::<4, _>(chunk)) })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        Self::LEN
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::SHUTDOWN, 0, |out| {
            out.extend_from_slice(&self.cumulative_tsn.0.to_be_bytes())
        });
    }
}

/// An ABORT chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Abort<'a> {
    /// T bit: the verification tag is reflected: it is the tag of the packet that is answered, because the sender knows no other.
    pub tag_reflected: bool,
    /// Error causes; may be empty.
    pub causes: Causes<'a>,
}

impl<'a> Abort<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, causes) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        Ok(Self { tag_reflected: head[1] & T_BIT != 0, causes: Causes::Wire(causes) })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.causes.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::ABORT, t_bit(self.tag_reflected), |out| self.causes.put(out));
    }
}

/// An ERROR chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ErrorChunk<'a> {
    /// Error causes; at least one.
    pub causes: Causes<'a>,
}

impl<'a> ErrorChunk<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (_, causes) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        Ok(Self { causes: Causes::Wire(causes) })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.causes.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::ERROR, 0, |out| self.causes.put(out));
    }
}
