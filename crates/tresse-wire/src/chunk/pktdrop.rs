//! PKTDROP (draft-stewart-sctp-pktdrprep): a dropped packet, returned to its sender.
//!
//! Owns the layout. Does not read the packet inside, which may be damaged or cut off: `quote.rs` does.

use super::{ChunkKind, head, put_chunk};
use crate::bytes::{u16_at, u32_at};
use crate::error::Fault;

/// Bytes of a PKTDROP chunk before the dropped packet.
pub const PACKET_DROP_HEADER_LEN: usize = 16;

const M_BIT: u8 = 0x01;
const B_BIT: u8 = 0x02;
const T_BIT: u8 = 0x04;

/// A PKTDROP chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PacketDrop<'a> {
    /// M: a middlebox dropped the packet and sends the report, not the receiver.
    pub middlebox: bool,
    /// B: the checksum was wrong.
    pub bad_checksum: bool,
    /// T: `packet` is only the beginning of the dropped packet.
    pub truncated: bool,
    /// Bandwidth of the bottleneck in bytes per second (middlebox), or receive buffer in bytes (receiver).
    pub bandwidth: u32,
    /// Bytes waiting in the queue or the receive buffer.
    pub queue_size: u32,
    /// Length of the whole packet in bytes if truncated, else 0.
    pub truncated_len: u16,
    /// The dropped packet from its common header on.
    pub packet: &'a [u8],
}

impl<'a> PacketDrop<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, packet) = head::<PACKET_DROP_HEADER_LEN>(chunk, "at least 16")?;
        let flags = head[1];
        Ok(Self {
            middlebox: flags & M_BIT != 0,
            bad_checksum: flags & B_BIT != 0,
            truncated: flags & T_BIT != 0,
            bandwidth: u32_at::<4, _>(head),
            queue_size: u32_at::<8, _>(head),
            truncated_len: u16_at::<12, _>(head),
            packet,
        })
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        PACKET_DROP_HEADER_LEN + self.packet.len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let bit = |set: bool, mask: u8| if set { mask } else { 0 };
        let flags = bit(self.middlebox, M_BIT) | bit(self.bad_checksum, B_BIT) | bit(self.truncated, T_BIT);
        put_chunk(out, ChunkKind::PACKET_DROP, flags, |out| {
            out.extend_from_slice(&self.bandwidth.to_be_bytes());
            out.extend_from_slice(&self.queue_size.to_be_bytes());
            out.extend_from_slice(&self.truncated_len.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(self.packet);
        });
    }
}
