//! DATA (RFC 9260 §3.3.1) and I-DATA (RFC 8260 §2.1). Each carries one fragment of a user message.
//!
//! Owns their layout; this is the hot path of the crate. Independent of reassembly.

use super::head;
use crate::bytes::{u16_at, u32_at};
use crate::chunk::ChunkKind;
use crate::error::Fault;
use crate::serial::{Fsn, Mid, Ppid, Ssn, StreamId, Tsn};

/// Bytes of a DATA chunk before its payload.
pub const DATA_HEADER_LEN: usize = 16;
/// Bytes of an I-DATA chunk before its payload.
pub const I_DATA_HEADER_LEN: usize = 20;

/// Flags of DATA and I-DATA.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct DataFlags {
    /// B: first fragment of its message.
    pub beginning: bool,
    /// E: last fragment of its message.
    pub ending: bool,
    /// U: the message is unordered.
    pub unordered: bool,
    /// I: the sender asks for a SACK without delay (RFC 7053).
    pub immediate: bool,
}

impl DataFlags {
    /// A whole ordered message in one chunk: B and E.
    pub const WHOLE: DataFlags =
        DataFlags { beginning: true, ending: true, unordered: false, immediate: false };

    const E: u8 = 0x01;
    const B: u8 = 0x02;
    const U: u8 = 0x04;
    const I: u8 = 0x08;

    /// Reads the flags byte; undefined bits are ignored.
    #[inline]
    pub const fn from_byte(flags: u8) -> Self {
        Self {
            beginning: flags & Self::B != 0,
            ending: flags & Self::E != 0,
            unordered: flags & Self::U != 0,
            immediate: flags & Self::I != 0,
        }
    }

    /// Returns the flags byte.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        (self.ending as u8)
            | (self.beginning as u8) << 1
            | (self.unordered as u8) << 2
            | (self.immediate as u8) << 3
    }
}

/// A DATA chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// TSN of this chunk.
    pub tsn: Tsn,
    /// Stream of the message.
    pub stream: StreamId,
    /// SSN of the message in its stream; undefined if the message is unordered.
    pub ssn: Ssn,
    /// PPID that the application chose, the same in every fragment.
    pub ppid: Ppid,
    /// Position of the fragment in the message, order, urgency.
    pub flags: DataFlags,
    /// At least one byte.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    #[inline]
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, payload) = head::<DATA_HEADER_LEN>(chunk, "more than 16")?;
        let tsn = Tsn(u32_at::<4, _>(head));
        if payload.is_empty() {
            return Err(Fault::NoUserData { tsn });
        }
        Ok(Self {
            tsn,
            stream: StreamId(u16_at::<8, _>(head)),
            ssn: Ssn(u16_at::<10, _>(head)),
            ppid: Ppid(u32_at::<12, _>(head)),
            flags: DataFlags::from_byte(head[1]),
            payload,
        })
    }

    /// Returns the length field of the chunk: header and payload.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        DATA_HEADER_LEN + self.payload.len()
    }

    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        // The header is built from two words: a header copied from smaller pieces in memory would wait for their stores.
        let kind = u64::from(ChunkKind::DATA.0) << 56 | u64::from(self.flags.to_byte()) << 48;
        let first = kind | u64::from(self.wire_len() as u16) << 32 | u64::from(self.tsn.0);
        let message = u64::from(self.stream.0) << 48 | u64::from(self.ssn.0) << 32;
        let second = message | u64::from(self.ppid.0);
        let mut head = [0; DATA_HEADER_LEN];
        head[..8].copy_from_slice(&first.to_be_bytes());
        head[8..].copy_from_slice(&second.to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(self.payload);
    }
}

/// Last word in the header of an I-DATA chunk: the PPID in the first fragment (B set), the FSN in all others.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PpidOrFsn {
    /// In the first fragment, whose FSN is implicitly 0.
    Ppid(Ppid),
    /// In every other fragment.
    Fsn(Fsn),
}

/// An I-DATA chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct IData<'a> {
    /// TSN of this chunk.
    pub tsn: Tsn,
    /// Stream of the message.
    pub stream: StreamId,
    /// MID of the message. Each stream counts its ordered and its unordered messages separately.
    pub mid: Mid,
    /// PPID if `flags.beginning`, else FSN.
    pub ppid_or_fsn: PpidOrFsn,
    /// Position of the fragment in the message, order, urgency.
    pub flags: DataFlags,
    /// At least one byte.
    pub payload: &'a [u8],
}

impl<'a> IData<'a> {
    #[inline]
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, payload) = head::<I_DATA_HEADER_LEN>(chunk, "more than 20")?;
        let tsn = Tsn(u32_at::<4, _>(head));
        if payload.is_empty() {
            return Err(Fault::NoUserData { tsn });
        }
        let flags = DataFlags::from_byte(head[1]);
        let word = u32_at::<16, _>(head);
        Ok(Self {
            tsn,
            stream: StreamId(u16_at::<8, _>(head)),
            mid: Mid(u32_at::<12, _>(head)),
            ppid_or_fsn: if flags.beginning {
                PpidOrFsn::Ppid(Ppid(word))
            } else {
                PpidOrFsn::Fsn(Fsn(word))
            },
            flags,
            payload,
        })
    }

    /// Returns the length field of the chunk: header and payload.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        I_DATA_HEADER_LEN + self.payload.len()
    }

    /// Returns the fragment sequence number, which the first fragment does not carry.
    #[inline]
    pub const fn fsn(&self) -> Fsn {
        match self.ppid_or_fsn {
            PpidOrFsn::Ppid(_) => Fsn(0),
            PpidOrFsn::Fsn(fsn) => fsn,
        }
    }

    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let (PpidOrFsn::Ppid(Ppid(word)) | PpidOrFsn::Fsn(Fsn(word))) = self.ppid_or_fsn;
        let mut head = [0; I_DATA_HEADER_LEN];
        head[0] = ChunkKind::I_DATA.0;
        head[1] = self.flags.to_byte();
        head[2..4].copy_from_slice(&(self.wire_len() as u16).to_be_bytes());
        head[4..8].copy_from_slice(&self.tsn.0.to_be_bytes());
        head[8..10].copy_from_slice(&self.stream.0.to_be_bytes());
        head[12..16].copy_from_slice(&self.mid.0.to_be_bytes());
        head[16..20].copy_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(self.payload);
    }
}
