//! SACK (RFC 9260 §3.3.4) and NR-SACK (draft-tuexen-tsvwg-sctp-multipath §4): acknowledgements.
//!
//! Owns their layout, and the packet count that delayed acknowledgement for CMT (DAC) puts into their flags. Does not check the gap ack
//! blocks: they may overlap, be out of order, or acknowledge TSNs that were never sent. The sender of the data checks them.

use super::{head, put_chunk};
use crate::bytes::{u16_at, u32_at};
use crate::chunk::ChunkKind;
use crate::error::Fault;
use crate::list::{List, ListItem};
use crate::serial::Tsn;

/// Bytes of a SACK before its gap ack blocks.
pub const SACK_HEADER_LEN: usize = 16;
/// Bytes of an NR-SACK before its gap ack blocks.
pub const NR_SACK_HEADER_LEN: usize = 20;

/// Bytes of one gap ack block, and also of one duplicate TSN.
const ENTRY_LEN: usize = 4;

/// A gap ack block: a run of received TSNs as distances from the cumulative TSN ack, both ends included.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct GapBlock {
    /// First TSN of the run minus the cumulative TSN ack.
    pub start: u16,
    /// Last TSN of the run minus the cumulative TSN ack.
    pub end: u16,
}

impl ListItem for GapBlock {
    const LEN: usize = ENTRY_LEN;

    #[inline]
    fn read(raw: &[u8]) -> Self {
        Self { start: u16::from_be_bytes([raw[0], raw[1]]), end: u16::from_be_bytes([raw[2], raw[3]]) }
    }

    #[inline]
    fn put(self, raw: &mut [u8]) {
        let ([a, b], [c, d]) = (self.start.to_be_bytes(), self.end.to_be_bytes());
        raw.copy_from_slice(&[a, b, c, d]);
    }
}

/// A SACK chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sack<'a> {
    /// 0 in RFC 9260; the packet count of [`Self::dac_flags`] with DAC.
    pub flags: u8,
    /// Cumulative TSN ack: the last TSN before the first missing one.
    pub cumulative_tsn: Tsn,
    /// Advertised receiver window, in bytes.
    pub a_rwnd: u32,
    /// Gap ack blocks.
    pub gaps: List<'a, GapBlock>,
    /// TSNs received in duplicate since the last SACK, once for each duplicate.
    pub duplicates: List<'a, Tsn>,
}

impl<'a> Sack<'a> {
    #[inline]
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, entries) = head::<SACK_HEADER_LEN>(chunk, "at least 16")?;
        let counts = [u16_at::<12, _>(head), u16_at::<14, _>(head)];
        let [gaps, duplicates] = split_entries(chunk, entries, counts)?;
        Ok(Self {
            flags: head[1],
            cumulative_tsn: Tsn(u32_at::<4, _>(head)),
            a_rwnd: u32_at::<8, _>(head),
            gaps: List::Wire(gaps),
            duplicates: List::Wire(duplicates),
        })
    }

    /// Returns the number of gap ack blocks and duplicate TSNs together that fit in a chunk of at most `room` bytes.
    pub const fn entries_in(room: usize) -> usize {
        room.saturating_sub(SACK_HEADER_LEN) / ENTRY_LEN
    }

    /// Returns the number of packets that this SACK acknowledges by DAC; 1 if its sender does not count them.
    #[inline]
    pub const fn dac_count(&self) -> u8 {
        dac_count(self.flags)
    }

    /// Returns the flags for a count of packets: the count, at most 3, in the two highest bits. The FreeBSD stack uses
    /// this encoding; it was never standardised.
    #[inline]
    pub const fn dac_flags(count: u32) -> u8 {
        (if count > 3 { 3 } else { count as u8 }) << 6
    }

    /// Returns the length field of the chunk.
    #[inline]
    pub fn wire_len(&self) -> usize {
        SACK_HEADER_LEN + self.gaps.wire_len() + self.duplicates.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::SACK, self.flags, |out| {
            let mut head = [0; SACK_HEADER_LEN - 4];
            head[0..4].copy_from_slice(&self.cumulative_tsn.0.to_be_bytes());
            head[4..8].copy_from_slice(&self.a_rwnd.to_be_bytes());
            head[8..10].copy_from_slice(&(self.gaps.len() as u16).to_be_bytes());
            head[10..12].copy_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
            out.extend_from_slice(&head);
            self.gaps.put(out);
            self.duplicates.put(out);
        });
    }
}

/// An NR-SACK chunk: a SACK that distinguishes renegable data, which the receiver may still drop, from non-renegable
/// data, which it keeps.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct NrSack<'a> {
    /// 0 in the draft; the packet count of [`Self::dac_flags`] with DAC.
    pub flags: u8,
    /// Cumulative TSN ack: the last TSN before the first missing one.
    pub cumulative_tsn: Tsn,
    /// Advertised receiver window, in bytes.
    pub a_rwnd: u32,
    /// Gap ack blocks of data that the receiver may still drop.
    pub renegable: List<'a, GapBlock>,
    /// Gap ack blocks of data that the receiver will not drop.
    pub non_renegable: List<'a, GapBlock>,
    /// TSNs received in duplicate since the last report, once for each duplicate.
    pub duplicates: List<'a, Tsn>,
}

impl<'a> NrSack<'a> {
    #[inline]
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, entries) = head::<NR_SACK_HEADER_LEN>(chunk, "at least 20")?;
        let counts = [u16_at::<12, _>(head), u16_at::<14, _>(head), u16_at::<16, _>(head)];
        let [renegable, non_renegable, duplicates] = split_entries(chunk, entries, counts)?;
        Ok(Self {
            flags: head[1],
            cumulative_tsn: Tsn(u32_at::<4, _>(head)),
            a_rwnd: u32_at::<8, _>(head),
            renegable: List::Wire(renegable),
            non_renegable: List::Wire(non_renegable),
            duplicates: List::Wire(duplicates),
        })
    }

    /// Returns the number of gap ack blocks and duplicate TSNs together that fit in a chunk of at most `room` bytes.
    pub const fn entries_in(room: usize) -> usize {
        room.saturating_sub(NR_SACK_HEADER_LEN) / ENTRY_LEN
    }

    /// As [`Sack::dac_count`].
    #[inline]
    pub const fn dac_count(&self) -> u8 {
        dac_count(self.flags)
    }

    /// As [`Sack::dac_flags`].
    #[inline]
    pub const fn dac_flags(count: u32) -> u8 {
        Sack::dac_flags(count)
    }

    /// Returns the length field of the chunk.
    #[inline]
    pub fn wire_len(&self) -> usize {
        NR_SACK_HEADER_LEN
            + self.renegable.wire_len()
            + self.non_renegable.wire_len()
            + self.duplicates.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::NR_SACK, self.flags, |out| {
            let mut head = [0; NR_SACK_HEADER_LEN - 4];
            head[0..4].copy_from_slice(&self.cumulative_tsn.0.to_be_bytes());
            head[4..8].copy_from_slice(&self.a_rwnd.to_be_bytes());
            head[8..10].copy_from_slice(&(self.renegable.len() as u16).to_be_bytes());
            head[10..12].copy_from_slice(&(self.non_renegable.len() as u16).to_be_bytes());
            head[12..14].copy_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
            out.extend_from_slice(&head);
            self.renegable.put(out);
            self.non_renegable.put(out);
            self.duplicates.put(out);
        });
    }
}

const fn dac_count(flags: u8) -> u8 {
    match flags >> 6 {
        0 => 1,
        count => count,
    }
}

/// Splits the entries of a SACK or NR-SACK into its lists, which must fill the chunk exactly.
#[inline]
fn split_entries<'a, const N: usize>(
    chunk: &[u8],
    entries: &'a [u8],
    counts: [u16; N],
) -> Result<[&'a [u8]; N], Fault> {
    let counted = counts.iter().map(|count| usize::from(*count)).sum::<usize>() * ENTRY_LEN;
    let mismatch =
        Fault::Count { len: chunk.len(), counted: (chunk.len() - entries.len()) as u64 + counted as u64 };
    if counted != entries.len() {
        return Err(mismatch);
    }
    let mut lists = [&entries[..0]; N];
    let mut rest = entries;
    for (list, count) in lists.iter_mut().zip(counts) {
        (*list, rest) = rest.split_at_checked(usize::from(count) * ENTRY_LEN).ok_or(mismatch)?;
    }
    Ok(lists)
}
