//! COOKIE ECHO (RFC 9260 §3.3.11). COOKIE ACK, the answer, has only a header and needs no type.
//!
//! Owns the layout. The cookie is opaque bytes here: only the endpoint that created it can read it.

use super::{CHUNK_HEADER_LEN, ChunkKind, head, put_chunk};
use crate::error::Fault;

/// A COOKIE ECHO chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CookieEcho<'a> {
    /// The value of the State Cookie parameter of INIT ACK, without its header.
    pub cookie: &'a [u8],
}

impl<'a> CookieEcho<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (_, cookie) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        Ok(Self { cookie })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.cookie.len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::COOKIE_ECHO, 0, |out| out.extend_from_slice(self.cookie));
    }
}
