//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6), which have the same layout.
//!
//! Owns the framing of the Heartbeat Info parameter. Only the sender of the HEARTBEAT interprets the parameter's
//! content.

use super::{CHUNK_HEADER_LEN, ChunkKind, head, put_chunk};
use crate::error::Fault;
use crate::param::{Param, ParamKind, Params};
use crate::tlv::{TLV_HEADER_LEN, put_tlv};

/// A HEARTBEAT or HEARTBEAT ACK chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat<'a> {
    /// The parameters as received, headers included: HEARTBEAT ACK returns them unchanged.
    pub body: &'a [u8],
}

impl<'a> Heartbeat<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (_, body) = head::<CHUNK_HEADER_LEN>(chunk, "at least 4")?;
        Ok(Self { body })
    }

    /// Returns the content of the first Heartbeat Info parameter.
    pub fn info(&self) -> Option<&'a [u8]> {
        Params::Wire(self.body).iter().find_map(|param| match param {
            Ok(Param::HeartbeatInfo(info)) => Some(info),
            _ => None,
        })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        CHUNK_HEADER_LEN + self.body.len()
    }

    pub(crate) fn put(&self, kind: ChunkKind, out: &mut Vec<u8>) {
        put_chunk(out, kind, 0, |out| out.extend_from_slice(self.body));
    }
}

/// Appends a Heartbeat Info parameter with the content `info`, without padding: the body of a HEARTBEAT. At most 65531
/// bytes of `info` are written, because a length field has 16 bits.
pub fn heartbeat_info_tlv(info: &[u8], out: &mut Vec<u8>) {
    let len = info.len().min(usize::from(u16::MAX) - TLV_HEADER_LEN);
    put_tlv(out, ParamKind::HEARTBEAT_INFO.0, |out| out.extend_from_slice(&info[..len]));
}
