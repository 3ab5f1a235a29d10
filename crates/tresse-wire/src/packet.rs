//! A received packet: common header, checksum, and the walk over its chunks.
//!
//! Owns the framing of a packet and of its chunks. Refuses to know what any chunk contains, and whose packet it is.

use crate::bytes::{padded, u16_at, u32_at};
use crate::checksum;
use crate::chunk::{CHUNK_HEADER_LEN, Chunk, ChunkKind};
use crate::error::{ChunkError, Fault, PacketError};

/// Length of the common header.
pub const COMMON_HEADER_LEN: usize = 12;

/// The common header without its checksum (RFC 9260 §3.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct CommonHeader {
    /// Port of the sender, not 0.
    pub source_port: u16,
    /// Port of the receiver, not 0.
    pub destination_port: u16,
    /// Tag by which the receiver knows that the packet belongs to the association; 0 with INIT only.
    pub verification_tag: u32,
}

/// What to ask of the checksum of a received packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChecksumRule {
    /// It must be right.
    Verify,
    /// It must be right or zero, as after Zero Checksum Acceptable (RFC 9653).
    AcceptZero,
    /// Whatever it is: the lower layer has verified it, or the caller wants to look at a damaged packet.
    Trust,
}

/// A received packet whose common header and checksum have been checked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Ports and verification tag.
    pub header: CommonHeader,
    /// The checksum field.
    pub checksum: u32,
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks length, checksum and ports, in this order. The chunks are not looked at.
    ///
    /// # Errors
    /// If `bytes` is shorter than a common header, the checksum breaks `rule`, or a port is 0.
    #[inline]
    pub fn parse(bytes: &'a [u8], rule: ChecksumRule) -> Result<Packet<'a>, PacketError> {
        let Some(head) = bytes.first_chunk::<COMMON_HEADER_LEN>() else {
            return Err(PacketError::Truncated { len: bytes.len() });
        };
        let stored = checksum::stored(head);
        let verify = match rule {
            ChecksumRule::Verify => true,
            ChecksumRule::AcceptZero => stored != 0,
            ChecksumRule::Trust => false,
        };
        if verify {
            let computed = checksum::checksum(bytes);
            if computed != stored {
                return Err(PacketError::BadChecksum { stored, computed });
            }
        }
        let header = CommonHeader {
            source_port: u16_at::<0, _>(head),
            destination_port: u16_at::<2, _>(head),
            verification_tag: u32_at::<4, _>(head),
        };
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(PacketError::PortZero {
                source_port: header.source_port,
                destination_port: header.destination_port,
            });
        }
        Ok(Packet { header, checksum: stored, bytes })
    }

    /// The chunks in wire order.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks { packet: self.bytes, offset: COMMON_HEADER_LEN }
    }

    /// The whole packet.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Iterator over the chunks of a packet.
///
/// A chunk with a damaged body is an error and the next chunk follows. After an error that hides where the next chunk
/// starts ([`Fault::ends_reading`]: a length below 4, a chunk that runs past the end) the iteration ends.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    packet: &'a [u8],
    offset: usize,
}

impl<'a> Chunks<'a> {
    /// Where the next chunk starts, in bytes from the start of the packet.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes not yet read. Before AUTH is read, these are the bytes its HMAC covers (RFC 4895 §6.2).
    #[inline]
    pub fn remaining(&self) -> &'a [u8] {
        self.packet.get(self.offset..).unwrap_or_default()
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, ChunkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.remaining();
        if rest.is_empty() {
            return None;
        }
        let offset = self.offset;
        let error = |kind, fault| ChunkError { kind, offset, fault };
        match split_chunk(rest) {
            Ok((kind, chunk)) => {
                // The last chunk's padding may be missing: its length field alone says what belongs to it.
                self.offset = (offset + padded(chunk.len())).min(self.packet.len());
                Some(Chunk::from_whole(kind, chunk).map_err(|fault| error(kind, fault)))
            }
            Err((kind, fault)) => {
                self.offset = self.packet.len();
                Some(Err(error(kind, fault)))
            }
        }
    }
}

/// Splits the first chunk off `bytes`, header included, padding not.
#[inline]
pub(crate) fn split_chunk(bytes: &[u8]) -> Result<(ChunkKind, &[u8]), (ChunkKind, Fault)> {
    let Some(head) = bytes.first_chunk::<CHUNK_HEADER_LEN>() else {
        let kind = ChunkKind(bytes.first().copied().unwrap_or_default());
        return Err((kind, Fault::HeaderCut { available: bytes.len() }));
    };
    let (kind, len) = (ChunkKind(head[0]), u16_at::<2, _>(head));
    if usize::from(len) < CHUNK_HEADER_LEN {
        return Err((kind, Fault::LengthBelowHeader { len }));
    }
    match bytes.get(..usize::from(len)) {
        Some(chunk) => Ok((kind, chunk)),
        None => Err((kind, Fault::Cut { len, available: bytes.len() })),
    }
}
