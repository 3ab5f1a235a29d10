//! TCP segments and their bytes (RFC 9293 §3.1, RFC 7323 §2, RFC 2018).
//!
//! Owns the layout of header and options. Independent of the state of a connection. Checksums are omitted; captures add
//! them to their own copy.

use bytes::{BufMut, Bytes, BytesMut};

use crate::traffic::pattern;

/// A segment, with sequence numbers as on the wire. The content of its payload does not matter, only its length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Segment {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    /// The first sequence number of the segment.
    pub(super) sequence: u32,
    /// Acknowledgement number, if the segment acknowledges.
    pub(super) acknowledged: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) reset: bool,
    /// Bytes of payload.
    pub(super) length: u16,
    /// The receive window, in units of 2^[`WINDOW_SHIFT`] bytes.
    pub(super) window: u16,
    /// Blocks that arrived out of order, newest first: the first number, and the number behind the last.
    pub(super) blocks: Vec<(u32, u32)>,
}

impl Segment {
    /// Encodes the segment.
    pub(super) fn encode(&self) -> Bytes {
        let blocks = &self.blocks[..self.blocks.len().min(MOST_BLOCKS)];
        let mut options = BytesMut::new();
        if self.syn {
            options.put_slice(&[KIND_MSS, 4]);
            options.put_u16(MSS);
            options.put_slice(&[KIND_NOP, KIND_NOP, KIND_SACK_PERMITTED, 2]);
            options.put_slice(&[KIND_NOP, KIND_WINDOW_SCALE, 3, WINDOW_SHIFT]);
        }
        if !blocks.is_empty() {
            options.put_slice(&[KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                options.put_u32(*start);
                options.put_u32(*end);
            }
        }
        let header = HEADER + options.len();
        let mut bytes = BytesMut::with_capacity(header + usize::from(self.length));
        bytes.put_u16(self.source_port);
        bytes.put_u16(self.destination_port);
        bytes.put_u32(self.sequence);
        bytes.put_u32(self.acknowledged.unwrap_or(0));
        bytes.put_u8((header as u8 / 4) << 4);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        bytes.put_u8(
            flag(self.fin, FIN)
                | flag(self.syn, SYN)
                | flag(self.reset, RST)
                | flag(self.acknowledged.is_some(), ACK),
        );
        bytes.put_u16(self.window);
        bytes.put_u32(0); // checksum, urgent pointer
        bytes.put_slice(&options);
        bytes.put_slice(&pattern(usize::from(self.length)));
        bytes.freeze()
    }

    /// Decodes a segment; `None` if the bytes are not a segment. Unknown options are skipped.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let header = usize::from(bytes.get(12)? >> 4) * 4;
        if header < HEADER || bytes.len() < header {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let flags = bytes[13];
        Some(Segment {
            source_port: half(0),
            destination_port: half(2),
            sequence: word(4),
            acknowledged: (flags & ACK != 0).then(|| word(8)),
            syn: flags & SYN != 0,
            fin: flags & FIN != 0,
            reset: flags & RST != 0,
            length: u16::try_from(bytes.len() - header).ok()?,
            window: half(14),
            blocks: decode_blocks(&bytes[HEADER..header]),
        })
    }
}

/// Returns the blocks of the first SACK option.
fn decode_blocks(mut options: &[u8]) -> Vec<(u32, u32)> {
    while let [kind, rest @ ..] = options {
        match (*kind, rest) {
            (KIND_END, _) => break,
            (KIND_NOP, _) => options = rest,
            (KIND_SACK, [length, _, ..]) => {
                let body = options.get(2..usize::from(*length)).unwrap_or_default();
                let number = |at: &[u8]| at.try_into().map_or(0, u32::from_be_bytes);
                return body
                    .chunks_exact(8)
                    .map(|block| (number(&block[..4]), number(&block[4..])))
                    .collect();
            }
            (_, [length, ..]) if *length >= 2 => {
                options = options.get(usize::from(*length)..).unwrap_or_default();
            }
            _ => break,
        }
    }
    Vec::new()
}

/// Bytes of a header without options.
pub(super) const HEADER: usize = 20;
/// Payload of a full segment: 1,500 bytes of IP packet without the two headers.
pub(super) const MSS: u16 = 1460;
/// Exponent of the unit of windows: 256 bytes, so that windows reach 16 MiB.
pub(super) const WINDOW_SHIFT: u8 = 8;
/// Most blocks that fit without other options (RFC 2018 §3).
const MOST_BLOCKS: usize = 4;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same() {
        let data = Segment {
            source_port: 1,
            destination_port: 80,
            sequence: u32::MAX,
            acknowledged: Some(7),
            length: 1460,
            window: 4096,
            ..Segment::default()
        };
        let blocks = Segment { blocks: vec![(5, 9), (20, 31)], length: 0, ..data.clone() };
        let syn = Segment { syn: true, acknowledged: None, length: 0, ..data.clone() };
        let reset = Segment { reset: true, fin: true, ..syn.clone() };
        for segment in [data, blocks, syn, reset] {
            assert_eq!(Segment::decode(&segment.encode()), Some(segment));
        }
    }

    #[test]
    fn a_full_segment_fills_a_packet() {
        let full = Segment { length: MSS, ..Segment::default() };
        assert_eq!(full.encode().len() + crate::ip::IPV4_HEADER_LEN, 1500);
    }

    #[test]
    fn what_is_no_segment_is_refused_or_passed_over() {
        assert_eq!(Segment::decode(&[0; 12]), None);
        assert_eq!(Segment::decode(&[0; 20]), None, "a header of no length");
        let mut options = Segment { blocks: vec![(1, 2)], ..Segment::default() }.encode().to_vec();
        for garbage in 0..=255 {
            options[HEADER + 3] = garbage;
            assert!(Segment::decode(&options).is_some());
        }
    }
}
