//! Small chunks: ECNE and CWR (RFC 4960 appendix A), PAD (RFC 4820 §3), and chunks of unknown type.
//!
//! Owns their layout. The highest bits of an unknown type determine the action of its receiver
//! ([`ChunkKind::unrecognised_action`]).

use super::{CHUNK_HEADER_LEN, ChunkKind, exactly, head, put_chunk};
use crate::bytes::u32_at;
use crate::error::Fault;
use crate::serial::Tsn;

/// An ECNE chunk: packets arrived with a congestion mark.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ecne {
    /// Lowest TSN of a marked packet.
    pub lowest_tsn: Tsn,
    /// Marked packets since the last CWR, in the 12-byte chunk of draft-stewart-tsvwg-sctpecn; `None` in the 8-byte
    /// chunk of RFC 4960.
    pub marked_packets: Option<u32>,
}

impl Ecne {
    pub(crate) fn parse(chunk: &[u8]) -> Result<Self, Fault> {
        if let Ok(chunk) = exactly::<12>(chunk, "12") {
            return Ok(Self {
                lowest_tsn: Tsn(u32_at::<4, _>(chunk)),
                marked_packets: Some(u32_at::<8, _>(chunk)),
            });
        }
        let chunk = exactly::<8>(chunk, "8 or 12")?;
        Ok(Self { lowest_tsn: Tsn(u32_at::<4, _>(chunk)), marked_packets: None })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        if self.marked_packets.is_some() { 12 } else { 8 }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::ECNE, 0, |out| {
            out.extend_from_slice(&self.lowest_tsn.0.to_be_bytes());
            if let Some(marked) = self.marked_packets {
                out.extend_from_slice(&marked.to_be_bytes());
            }
        });
    }
}

/// A CWR chunk: the sender has reduced its congestion window.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cwr {
    /// TSN in the ECNE that is answered.
    pub lowest_tsn: Tsn,
}

impl Cwr {
    const LEN: usize = 8;

    pub(crate) fn parse(chunk: &[u8]) -> Result<Self, Fault> {
        let chunk = exactly::<{ Self::LEN }>(chunk, "8")?;
        Ok(Self { lowest_tsn: Tsn(u32_at::<4, _>(chunk)) })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        Self::LEN
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::CWR, 0, |out| out.extend_from_slice(&self.lowest_tsn.0.to_be_bytes()));
    }
}

/// A PAD chunk, which its receiver ignores.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pad {
    /// Bytes of padding after the chunk header.
    pub len: u16,
}

impl Pad {
    pub(crate) fn parse(chunk: &[u8]) -> Result<Self, Fault> {
        let (_, padding) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        // A chunk's length has 16 bits, so the number of bytes after its header also fits.
        Ok(Self { len: padding.len() as u16 })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.len as usize
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::PAD, 0, |out| out.resize(out.len() + usize::from(self.len), 0));
    }
}

/// A chunk of a type that this crate does not know.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnrecognisedChunk<'a> {
    /// Type of the chunk; [`ChunkKind::unrecognised_action`] returns the action for it.
    pub kind: ChunkKind,
    /// The chunk as received, header included, padding not: the content of error cause 6 (RFC 9260 §3.3.10.6).
    pub whole: &'a [u8],
}

impl UnrecognisedChunk<'_> {
    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN.max(self.whole.len())
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let flags = self.whole.get(1).copied().unwrap_or_default();
        let value = self.whole.get(CHUNK_HEADER_LEN..).unwrap_or_default();
        put_chunk(out, self.kind, flags, |out| out.extend_from_slice(value));
    }
}
