//! DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2): all chunks of a packet as one DTLS 1.3 record (RFC 9147 §4).
//!
//! Owns the layout of chunk and record. Independent of keys, record numbers and ciphers. [`crate::PacketWriter::leave_record`] and
//! [`crate::PacketWriter::record`] write a chunk around a record that is encrypted in place; the chunk enum writes a finished record.

use super::{ChunkKind, head, put_chunk};
use crate::error::Fault;

/// Bytes of a DTLS chunk before its record: chunk header and a byte of padding, so that the cipher text begins at a
/// multiple of four.
const DTLS_HEADER_LEN: usize = 5;

/// Bytes of a record before its cipher text: a byte of flags and epoch, and the lower 16 bits of the record number.
pub const RECORD_HEADER_LEN: usize = 3;

/// Bytes of a record's tag, the same for all cipher suites.
pub const RECORD_TAG_LEN: usize = 16;

/// Bytes that the DTLS chunk adds to a packet: chunk header, padding before the record, record header, content type, tag, and
/// final padding. The final padding always has 3 bytes, because the lengths of padded chunks are multiples of four.
pub const RECORD_OVERHEAD: usize = DTLS_HEADER_LEN + RECORD_HEADER_LEN + 1 + RECORD_TAG_LEN + 3;

/// Largest plain text of a record, content type not counted (RFC 8446 §5.1).
pub const LARGEST_RECORD_TEXT: usize = 16_384;

/// R bit: the restart keys protect the record.
const R_BIT: u8 = 0x01;

/// First byte of a record without the epoch bits: no connection id, a 16-bit record number, no length (RFC 9147 §4).
const UNIFIED_HEADER: u8 = 0x28;

/// Content type that follows the chunks in the plain text: application data (RFC 8446 §5.1).
const APPLICATION_DATA: u8 = 23;

/// A DTLS chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dtls<'a> {
    /// R bit: the restart keys protect the record.
    pub restart: bool,
    /// The record, its header included.
    pub record: &'a [u8],
}

impl<'a> Dtls<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, record) = head::<DTLS_HEADER_LEN>(chunk, "at least 5")?;
        Ok(Self { restart: head[1] & R_BIT != 0, record })
    }

    /// Returns the two lowest bits of the record's epoch; `None` if the record does not have the header format used here.
    pub fn epoch_bits(&self) -> Option<u8> {
        self.record.first().filter(|&byte| byte & !3 == UNIFIED_HEADER).map(|byte| byte & 3)
    }

    /// Returns header, cipher text and tag of the record. Returns `None` if the record does not have the header format
    /// used here, or is too short for a tag and a content type.
    pub fn parts(&self) -> Option<(&'a [u8; RECORD_HEADER_LEN], &'a [u8], &'a [u8; RECORD_TAG_LEN])> {
        self.epoch_bits()?;
        let (header, rest) = self.record.split_first_chunk()?;
        let (text, tag) = rest.split_last_chunk()?;
        (!text.is_empty()).then_some((header, text, tag))
    }

    /// Returns the chunks in the decrypted `text` of a record: the bytes before the content type, which any number of
    /// zeros may follow (RFC 8446 §5.4). Returns `None` if the content type is not application data.
    pub fn chunks_in(text: &[u8]) -> Option<&[u8]> {
        let end = text.iter().rposition(|&byte| byte != 0)?;
        (text[end] == APPLICATION_DATA).then(|| &text[..end])
    }

    /// Returns a record's header before its number is encrypted, which is also the additional data of the AEAD (RFC 9147 §4).
    pub fn record_header(epoch: u64, number: u64) -> [u8; RECORD_HEADER_LEN] {
        let [.., high, low] = number.to_be_bytes();
        [UNIFIED_HEADER | (epoch & 3) as u8, high, low]
    }

    /// Returns the length field of the chunk.
    pub const fn wire_len(&self) -> usize {
        DTLS_HEADER_LEN + self.record.len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::DTLS, if self.restart { R_BIT } else { 0 }, |out| {
            out.push(0);
            out.extend_from_slice(self.record);
        });
    }
}

/// The record of a packet to which all chunks have been written, for encryption in place.
#[derive(Debug)]
pub struct RecordPlace<'p> {
    /// Record header, still to be filled in.
    pub header: &'p mut [u8; RECORD_HEADER_LEN],
    /// The chunks, each padded, and the content type.
    pub text: &'p mut [u8],
    /// Space for the tag.
    pub tag: &'p mut [u8; RECORD_TAG_LEN],
}

/// Bytes that a DTLS chunk takes before and after the chunks of its packet.
pub(crate) const HEAD_LEN: usize = DTLS_HEADER_LEN + RECORD_HEADER_LEN;
pub(crate) const TAIL_LEN: usize = RECORD_OVERHEAD - HEAD_LEN;

/// Completes the DTLS chunk that begins at `start`: appends the content type, space for the tag and the padding, and
/// writes the chunk header. Returns the parts of the record; `None` if `out` is too short for them.
pub(crate) fn close(out: &mut Vec<u8>, start: usize) -> Option<RecordPlace<'_>> {
    out.push(APPLICATION_DATA);
    let padded = out.len() + TAIL_LEN - 1;
    let len = padded - 3 - start;
    out.resize(padded, 0);
    let (chunk, rest) = out.get_mut(start..)?.split_first_chunk_mut::<DTLS_HEADER_LEN>()?;
    let [high, low] = (len as u16).to_be_bytes();
    *chunk = [ChunkKind::DTLS.0, 0, high, low, 0];
    let (header, rest) = rest.split_first_chunk_mut()?;
    let (text, end) = rest.split_at_mut_checked(rest.len().checked_sub(TAIL_LEN - 1)?)?;
    let (tag, _padding) = end.split_first_chunk_mut()?;
    Some(RecordPlace { header, text, tag })
}
