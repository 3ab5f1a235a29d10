//! A received packet: common header, checksum, and an iterator over its chunks.
//!
//! Owns the framing of a packet and of its chunks. Independent of the contents of chunks, and of the association to
//! which the packet belongs.

use crate::bytes::{padded, u16_at, u32_at};
use crate::checksum::{self, COMMON_HEADER_LEN};
use crate::chunk::{Chunk, split_chunk};
use crate::error::{ChunkError, PacketError};

/// The common header without its checksum (RFC 9260 §3.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct CommonHeader {
    /// Port of the sender, not 0.
    pub source_port: u16,
    /// Port of the receiver, not 0.
    pub destination_port: u16,
    /// Tag by which the receiver verifies that the packet belongs to the association; 0 only in a packet with INIT.
    pub verification_tag: u32,
}

/// Treatment of the checksum of a received packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChecksumRule {
    /// The checksum must be correct.
    Verify,
    /// The checksum must be correct or zero: this side has sent Zero Checksum Acceptable (RFC 9653).
    AcceptZero,
    /// Any checksum: the lower layer has verified the packet, or the caller wants to read a damaged packet.
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
    /// Checks length, checksum and ports, in this order. Does not read the chunks.
    ///
    /// # Errors
    /// If `bytes` is shorter than a common header, `rule` does not accept the checksum, or a port is 0.
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

    /// Returns the chunks in wire order.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks::of(self.bytes)
    }

    /// Returns the whole packet.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Iterator over the chunks of a packet.
///
/// A chunk with a damaged body gives an error, and the next chunk follows. The iteration ends after an error that
/// leaves the position of the next chunk unknown ([`Fault::ends_reading`](crate::Fault::ends_reading): a length below
/// 4, a chunk that exceeds the packet).
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    packet: &'a [u8],
    offset: usize,
}

impl<'a> Chunks<'a> {
    /// Returns the chunks of a packet whose common header is not checked; none if the packet ends within the header.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Chunks<'a> {
        Chunks { packet, offset: COMMON_HEADER_LEN }
    }

    /// Returns the start of the next chunk, in bytes from the start of the packet.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the bytes that have not been read. Before AUTH is read, these are the bytes that its HMAC covers (RFC 4895 §6.2).
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
        match split_chunk(rest) {
            Ok((kind, chunk)) => {
                // The last chunk's padding may be missing; only the length field determines the end of a chunk.
                self.offset = (offset + padded(chunk.len())).min(self.packet.len());
                Some(Chunk::from_whole(kind, chunk, offset))
            }
            Err((kind, fault)) => {
                self.offset = self.packet.len();
                Some(Err(ChunkError { kind, offset, fault }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkKind;
    use crate::chunk::cookie::CookieEcho;
    use crate::chunk::teardown::Shutdown;
    use crate::error::Fault;
    use crate::serial::Tsn;

    /// Returns a packet with these bytes after its common header.
    fn packet(chunks: &[u8]) -> Vec<u8> {
        [&[0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 0], chunks].concat()
    }

    fn read(bytes: &[u8]) -> Vec<Result<Chunk<'_>, Fault>> {
        let packet = Packet::parse(bytes, ChecksumRule::Trust).expect("a common header");
        packet.chunks().map(|chunk| chunk.map_err(|error| error.fault)).collect()
    }

    #[test]
    fn a_header_that_is_cut_or_has_port_0_is_refused() {
        let bytes = packet(&[]);
        assert_eq!(
            Packet::parse(&bytes[..11], ChecksumRule::Verify),
            Err(PacketError::Truncated { len: 11 })
        );
        for at in [0, 2] {
            let mut bytes = packet(&[]);
            bytes[at..at + 2].fill(0);
            let outcome = Packet::parse(&bytes, ChecksumRule::Trust);
            assert!(matches!(outcome, Err(PacketError::PortZero { .. })), "{outcome:?}");
        }
    }

    #[test]
    fn each_rule_asks_its_own_of_the_checksum() {
        use ChecksumRule::{AcceptZero, Trust, Verify};
        let zero = packet(&[11, 0, 0, 4]);
        let mut sealed = zero.clone();
        checksum::seal(&mut sealed);
        let mut wrong = sealed.clone();
        wrong[8] ^= 1;
        let accepted = |bytes: &[u8], rule| Packet::parse(bytes, rule).is_ok();
        assert_eq!([Verify, AcceptZero, Trust].map(|rule| accepted(&sealed, rule)), [true, true, true]);
        assert_eq!([Verify, AcceptZero, Trust].map(|rule| accepted(&zero, rule)), [false, true, true]);
        assert_eq!([Verify, AcceptZero, Trust].map(|rule| accepted(&wrong, rule)), [false, false, true]);
    }

    #[test]
    fn a_packet_without_chunks_is_a_packet() {
        assert_eq!(read(&packet(&[])), []);
    }

    /// RFC 9260 §3.2: a chunk's length may count the final padding or not, and the value of the padding is ignored.
    #[test]
    fn padding_is_tolerated_in_every_form() {
        let cookie = Chunk::CookieEcho(CookieEcho { cookie: &[1] });
        assert_eq!(
            read(&packet(&[10, 0, 0, 5, 1, 0, 0, 0, 11, 0, 0, 4])),
            [Ok(cookie), Ok(Chunk::CookieAck)]
        );
        assert_eq!(
            read(&packet(&[10, 0, 0, 5, 1, 9, 9, 9, 11, 0, 0, 4])),
            [Ok(cookie), Ok(Chunk::CookieAck)]
        );
        assert_eq!(read(&packet(&[10, 0, 0, 5, 1])), [Ok(cookie)]);

        // Padding after the last parameter, counted by the chunk or not.
        for len in [10, 12] {
            let bytes = packet(&[6, 0, 0, len, 0, 12, 0, 6, b'h', b'i', 0, 0, 11, 0, 0, 4]);
            let chunks = read(&bytes);
            let [Ok(Chunk::Abort(abort)), Ok(Chunk::CookieAck)] = chunks[..] else { panic!("{chunks:?}") };
            assert_eq!(abort.causes, crate::Causes::Values(&[crate::Cause::UserAbort(b"hi")]));
        }
    }

    #[test]
    fn unknown_flag_bits_are_ignored() {
        let bytes = packet(&[7, 0xFF, 0, 8, 0, 0, 0, 9, 14, 0xFE, 0, 4, 11, 0xFF, 0, 4]);
        let shutdown = Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(9) });
        assert_eq!(
            read(&bytes),
            [Ok(shutdown), Ok(Chunk::ShutdownComplete { tag_reflected: false }), Ok(Chunk::CookieAck)]
        );
    }

    #[test]
    fn reading_ends_where_the_next_chunk_cannot_be_found() {
        let ack = [11, 0, 0, 4];
        for (tail, fault) in [
            (&[11, 0, 0, 3, 0, 0, 0, 0][..], Fault::LengthBelowHeader { len: 3 }),
            (&[3, 0, 0, 12, 1, 2, 3, 4], Fault::Cut { len: 12, available: 8 }),
            (&[3, 0], Fault::HeaderCut { available: 2 }),
        ] {
            let bytes = packet(&[&ack[..], tail].concat());
            assert_eq!(read(&bytes), [Ok(Chunk::CookieAck), Err(fault)]);
            assert!(fault.ends_reading());
        }
    }

    #[test]
    fn reading_goes_on_after_a_damaged_body() {
        let bytes = packet(&[7, 0, 0, 4, 11, 0, 0, 4]);
        let packet = Packet::parse(&bytes, ChecksumRule::Trust).expect("a common header");
        let chunks: Vec<_> = packet.chunks().collect();
        let fault = Fault::Length { len: 4, expected: "8" };
        assert_eq!(
            chunks,
            [Err(ChunkError { kind: ChunkKind::SHUTDOWN, offset: 12, fault }), Ok(Chunk::CookieAck)]
        );
        assert_eq!(chunks[0].unwrap_err().to_string(), "SHUTDOWN chunk at offset 12: length 4, expected 8");
    }

    #[test]
    fn the_walk_says_where_it_is() {
        let bytes = packet(&[11, 0, 0, 4, 15, 0, 0, 9, 0, 0, 0, 1, 5, 0, 0, 0, 11, 0, 0, 4]);
        let mut chunks = Packet::parse(&bytes, ChecksumRule::Trust).expect("a common header").chunks();
        chunks.next();
        assert_eq!(chunks.offset(), 16);
        assert_eq!(chunks.remaining(), &bytes[16..]);
        chunks.next();
        assert_eq!(chunks.remaining(), [11, 0, 0, 4]);
        chunks.next();
        assert!(chunks.remaining().is_empty() && chunks.next().is_none());
    }
}
