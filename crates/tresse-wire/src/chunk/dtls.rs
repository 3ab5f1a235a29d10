//! DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2): all chunks of a packet as one DTLS 1.3 record
//! (RFC 9147 §4).
//!
//! Owns the layout of chunk and record. Independent of keys, record numbers and ciphers. Writing goes either through
//! [`crate::PacketWriter::sealed`], or through the chunk enum when the record is there already.

use super::{ChunkKind, head, put_chunk};
use crate::error::Fault;

/// Bytes of a DTLS chunk before its record: chunk header and a byte of padding, so that the cipher text begins at a
/// multiple of four.
const DTLS_HEADER_LEN: usize = 5;

/// Bytes of a record before its cipher text: flags with the epoch, and 16 bits of the record's number.
pub const RECORD_HEADER_LEN: usize = 3;

/// Bytes of a record's tag: that of all cipher suites there are.
pub const RECORD_TAG_LEN: usize = 16;

/// Bytes that a packet gains by its DTLS chunk: chunk header, padding before the record, its header, content type,
/// tag, and the final padding, which is always of 3 bytes as chunks come padded.
pub const RECORD_OVERHEAD: usize = DTLS_HEADER_LEN + RECORD_HEADER_LEN + 1 + RECORD_TAG_LEN + 3;

/// Largest plain text of a record, content type not counted (RFC 8446 §5.1).
pub const LARGEST_RECORD_TEXT: usize = 16_384;

/// Flag of the chunk: protected by the keys kept for a restart.
const R_BIT: u8 = 0x01;

/// First byte of a record, but for the epoch: no connection id, a number of 16 bits, no length (RFC 9147 §4).
const UNIFIED_HEADER: u8 = 0x28;

/// Content type that follows the chunks in the plain text: application data (RFC 8446 §5.1).
const APPLICATION_DATA: u8 = 23;

/// A DTLS chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dtls<'a> {
    /// R bit: protected by the keys kept for a restart.
    pub restart: bool,
    /// The record, from its header on.
    pub record: &'a [u8],
}

impl<'a> Dtls<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, record) = head::<DTLS_HEADER_LEN>(chunk, "at least 5")?;
        Ok(Self { restart: head[1] & R_BIT != 0, record })
    }

    /// The two lowest bits of the record's epoch; `None` for a record that is not of the one kind used here.
    pub fn epoch_bits(&self) -> Option<u8> {
        self.record.first().filter(|&byte| byte & !3 == UNIFIED_HEADER).map(|byte| byte & 3)
    }

    /// Header, cipher text and tag of the record; `None` for one that is not of the one kind used here, or that has no
    /// place for a tag and a content type.
    pub fn parts(&self) -> Option<(&'a [u8; RECORD_HEADER_LEN], &'a [u8], &'a [u8; RECORD_TAG_LEN])> {
        self.epoch_bits()?;
        let (header, rest) = self.record.split_first_chunk()?;
        let (text, tag) = rest.split_last_chunk()?;
        (!text.is_empty()).then_some((header, text, tag))
    }

    /// The chunks in a record that was opened: what stands before the content type and zeros after it; `None` where
    /// the content is none for SCTP.
    pub fn chunks_in(text: &[u8]) -> Option<&[u8]> {
        let end = text.iter().rposition(|&byte| byte != 0)?;
        (text[end] == APPLICATION_DATA).then(|| &text[..end])
    }

    /// A record's header before its number is encrypted: what the tag covers beside the text.
    pub fn record_header(epoch: u64, number: u64) -> [u8; RECORD_HEADER_LEN] {
        let [.., high, low] = number.to_be_bytes();
        [UNIFIED_HEADER | (epoch & 3) as u8, high, low]
    }

    /// Length field of the chunk.
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

/// The place of a record in a packet that has all its chunks: to be encrypted where it stands.
#[derive(Debug)]
pub struct RecordPlace<'p> {
    /// Its header, to be filled in.
    pub header: &'p mut [u8; RECORD_HEADER_LEN],
    /// The chunks, each padded, and the content type.
    pub text: &'p mut [u8],
    /// Space for the tag.
    pub tag: &'p mut [u8; RECORD_TAG_LEN],
}

/// Bytes before and after the chunks of a packet that becomes a record.
pub(crate) const HEAD_LEN: usize = DTLS_HEADER_LEN + RECORD_HEADER_LEN;
pub(crate) const TAIL_LEN: usize = RECORD_OVERHEAD - HEAD_LEN;

/// Puts a DTLS chunk around what stands behind its header in `chunk`, and appends its end.
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
