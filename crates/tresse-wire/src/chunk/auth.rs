//! AUTH (RFC 4895 §4.1): the HMAC of the chunks after it.
//!
//! Owns the layout. Independent of keys and of the computation of HMACs. [`crate::PacketWriter::guarded`] writes an
//! AUTH chunk whose HMAC is computed later; the chunk enum writes one whose HMAC is known already.

use super::{ChunkKind, head};
use crate::bytes::u16_at;
use crate::error::Fault;

/// Bytes of an AUTH chunk before its HMAC.
pub const AUTH_HEADER_LEN: usize = 8;

/// An AUTH chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Auth<'a> {
    /// Identifier of the shared key; 0 unless keys were set.
    pub key_id: u16,
    /// Identifier of the HMAC: 1 for SHA-1, 3 for SHA-256.
    pub hmac_id: u16,
    /// HMAC over this chunk, with these bytes zero, and all chunks after it.
    pub hmac: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, hmac) = head::<AUTH_HEADER_LEN>(chunk, "at least 8")?;
        Ok(Self { key_id: u16_at::<4, _>(head), hmac_id: u16_at::<6, _>(head), hmac })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        AUTH_HEADER_LEN + self.hmac.len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_auth_header(out, self.key_id, self.hmac_id, self.hmac.len());
        out.extend_from_slice(self.hmac);
    }
}

/// Appends the header of an AUTH chunk; an HMAC of `hmac_len` bytes is to follow it.
pub(crate) fn put_auth_header(out: &mut Vec<u8>, key_id: u16, hmac_id: u16, hmac_len: usize) {
    out.extend_from_slice(&[ChunkKind::AUTH.0, 0]);
    out.extend_from_slice(&((AUTH_HEADER_LEN + hmac_len) as u16).to_be_bytes());
    out.extend_from_slice(&key_id.to_be_bytes());
    out.extend_from_slice(&hmac_id.to_be_bytes());
}
