//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3), which have the same layout.
//!
//! Owns the fixed part. Accepts all values, such as a tag of 0 or no streams: the core discards or refuses such chunks.

use super::{ChunkKind, head, put_chunk};
use crate::bytes::{u16_at, u32_at};
use crate::error::Fault;
use crate::param::Params;
use crate::serial::Tsn;

/// Bytes of INIT and INIT ACK before their parameters.
pub const INIT_HEADER_LEN: usize = 20;

/// An INIT or INIT ACK chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Init<'a> {
    /// Verification tag that packets to the sender of this chunk must carry.
    pub initiate_tag: u32,
    /// Receiver window of the sender, in bytes.
    pub a_rwnd: u32,
    /// Number of streams on which the sender wants to send.
    pub outbound_streams: u16,
    /// Most streams on which the sender can receive.
    pub inbound_streams: u16,
    /// TSN of the sender's first DATA chunk.
    pub initial_tsn: Tsn,
    /// Addresses, cookie, capabilities.
    pub params: Params<'a>,
}

impl<'a> Init<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, params) = head::<INIT_HEADER_LEN>(chunk, "at least 20")?;
        Ok(Self {
            initiate_tag: u32_at::<4, _>(head),
            a_rwnd: u32_at::<8, _>(head),
            outbound_streams: u16_at::<12, _>(head),
            inbound_streams: u16_at::<14, _>(head),
            initial_tsn: Tsn(u32_at::<16, _>(head)),
            params: Params::Wire(params),
        })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        INIT_HEADER_LEN + self.params.wire_len()
    }

    pub(crate) fn put(&self, kind: ChunkKind, out: &mut Vec<u8>) {
        put_chunk(out, kind, 0, |out| {
            out.extend_from_slice(&self.initiate_tag.to_be_bytes());
            out.extend_from_slice(&self.a_rwnd.to_be_bytes());
            out.extend_from_slice(&self.outbound_streams.to_be_bytes());
            out.extend_from_slice(&self.inbound_streams.to_be_bytes());
            out.extend_from_slice(&self.initial_tsn.0.to_be_bytes());
            self.params.put(out);
        });
    }
}
