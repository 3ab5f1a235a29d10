//! Reader of the packet that another host quotes in a report. The quote may be damaged or cut off.
//!
//! Follows the length fields as long as they lead to another chunk header. Of each chunk it reads only the type, the
//! TSN and the user data that is present, because nothing else is reliable.

use crate::bytes::{padded, u16_at, u32_at};
use crate::checksum::COMMON_HEADER_LEN;
use crate::chunk::data::{DATA_HEADER_LEN, I_DATA_HEADER_LEN};
use crate::chunk::{CHUNK_HEADER_LEN, ChunkKind};
use crate::serial::Tsn;

/// A chunk of a quoted packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QuotedChunk<'a> {
    /// Start of the chunk, in bytes from the start of the packet.
    pub offset: usize,
    /// Type of the chunk, if the type field is not damaged.
    pub kind: ChunkKind,
    /// The quoted part of the chunk, header included.
    bytes: &'a [u8],
}

impl<'a> QuotedChunk<'a> {
    /// Returns TSN and user data of DATA and I-DATA, as far as quoted; `None` for other chunks and if the TSN is cut off.
    pub fn user_data(&self) -> Option<(Tsn, &'a [u8])> {
        let header_len = match self.kind {
            ChunkKind::DATA => DATA_HEADER_LEN,
            ChunkKind::I_DATA => I_DATA_HEADER_LEN,
            _ => return None,
        };
        let head = self.bytes.first_chunk::<8>()?;
        Some((Tsn(u32_at::<4, _>(head)), self.bytes.get(header_len..).unwrap_or_default()))
    }
}

/// Returns the chunks of a quoted packet as far as they can be found. `packet` begins with the common header.
pub fn quoted_chunks(packet: &[u8]) -> impl Iterator<Item = QuotedChunk<'_>> {
    let mut next = COMMON_HEADER_LEN;
    std::iter::from_fn(move || {
        let offset = next;
        let rest = packet.get(offset..)?;
        let head = rest.first_chunk::<CHUNK_HEADER_LEN>()?;
        let len = usize::from(u16_at::<2, _>(head));
        if len < CHUNK_HEADER_LEN {
            return None;
        }
        next = offset + padded(len);
        Some(QuotedChunk { offset, kind: ChunkKind(head[0]), bytes: &rest[..len.min(rest.len())] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; COMMON_HEADER_LEN] = [0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 0];
    const SACK: [u8; 16] = [3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0];
    const DATA: [u8; 20] = [0, 3, 0, 19, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, b'h', b'i', b'!', 0];

    fn kinds(packet: &[u8]) -> Vec<(usize, ChunkKind)> {
        quoted_chunks(packet).map(|chunk| (chunk.offset, chunk.kind)).collect()
    }

    #[test]
    fn chunks_are_found_as_far_as_lengths_lead() {
        let whole = [&HEADER[..], &SACK, &DATA, &[11, 0, 0, 4]].concat();
        let expected = [(12, ChunkKind::SACK), (28, ChunkKind::DATA), (48, ChunkKind::COOKIE_ACK)];
        assert_eq!(kinds(&whole), expected);
        assert_eq!(kinds(&whole[..47]), expected[..2], "the last one is cut off");
        assert_eq!(kinds(&whole[..31]), expected[..1], "too little to know its type");
        let mut short = whole.clone();
        short[31] = 3;
        assert_eq!(kinds(&short), expected[..1], "no chunk is shorter than its header");
        let mut long = whole;
        long[30] = 0xFF;
        assert_eq!(kinds(&long), expected[..2], "the damaged length leads out of the packet");
        assert_eq!(kinds(&HEADER[..5]), []);
    }

    #[test]
    fn user_data_is_what_is_there() {
        let first = |packet: &[u8]| {
            quoted_chunks(packet)
                .next()
                .and_then(|chunk| chunk.user_data().map(|(tsn, data)| (tsn, data.to_vec())))
        };
        let whole = [&HEADER[..], &DATA].concat();
        assert_eq!(first(&whole), Some((Tsn(7), b"hi!".to_vec())));
        assert_eq!(first(&whole[..29]), Some((Tsn(7), b"h".to_vec())));
        assert_eq!(first(&whole[..20]), Some((Tsn(7), Vec::new())));
        assert_eq!(first(&whole[..19]), None);
        assert_eq!(first(&[&HEADER[..], &SACK].concat()), None);
    }
}
