//! FORWARD-TSN (RFC 3758 §3.2) and I-FORWARD-TSN (RFC 8260 §2.3.1): the TSNs and messages that the sender has abandoned.
//!
//! Owns their layout. Independent of the reason for which messages were abandoned.

use super::{ChunkKind, head, put_chunk};
use crate::bytes::u32_at;
use crate::error::Fault;
use crate::list::{List, ListItem};
use crate::serial::{Mid, Ssn, StreamId, Tsn};

/// Bytes of either chunk before its list.
const HEADER_LEN: usize = 8;

/// SSN up to which FORWARD-TSN skips a stream. Unordered messages are not listed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct SkippedStream {
    /// The stream.
    pub stream: StreamId,
    /// Largest SSN of a skipped ordered message.
    pub ssn: Ssn,
}

impl ListItem for SkippedStream {
    const LEN: usize = 4;

    #[inline]
    fn read(raw: &[u8]) -> Self {
        Self {
            stream: StreamId(u16::from_be_bytes([raw[0], raw[1]])),
            ssn: Ssn(u16::from_be_bytes([raw[2], raw[3]])),
        }
    }

    #[inline]
    fn put(self, raw: &mut [u8]) {
        raw[..2].copy_from_slice(&self.stream.0.to_be_bytes());
        raw[2..].copy_from_slice(&self.ssn.0.to_be_bytes());
    }
}

/// MID up to which I-FORWARD-TSN skips the ordered or the unordered messages of a stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct SkippedMessage {
    /// The stream.
    pub stream: StreamId,
    /// True if `mid` counts unordered messages, false if it counts ordered ones.
    pub unordered: bool,
    /// Largest MID of a skipped message.
    pub mid: Mid,
}

impl SkippedMessage {
    const U: u16 = 0x0001;
}

impl ListItem for SkippedMessage {
    const LEN: usize = 8;

    #[inline]
    fn read(raw: &[u8]) -> Self {
        Self {
            stream: StreamId(u16::from_be_bytes([raw[0], raw[1]])),
            unordered: u16::from_be_bytes([raw[2], raw[3]]) & Self::U != 0,
            mid: Mid(u32::from_be_bytes([raw[4], raw[5], raw[6], raw[7]])),
        }
    }

    #[inline]
    fn put(self, raw: &mut [u8]) {
        let flags = if self.unordered { Self::U } else { 0 };
        raw[..2].copy_from_slice(&self.stream.0.to_be_bytes());
        raw[2..4].copy_from_slice(&flags.to_be_bytes());
        raw[4..].copy_from_slice(&self.mid.0.to_be_bytes());
    }
}

/// A FORWARD-TSN chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ForwardTsn<'a> {
    /// New cumulative TSN: the receiver treats all TSNs up to this one as received.
    pub cumulative_tsn: Tsn,
    /// Ordered streams with skipped messages.
    pub streams: List<'a, SkippedStream>,
}

impl<'a> ForwardTsn<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (cumulative_tsn, streams) = parse(chunk, "8 and 4 for each stream")?;
        Ok(Self { cumulative_tsn, streams })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.streams.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put(ChunkKind::FORWARD_TSN, self.cumulative_tsn, &self.streams, out);
    }
}

/// An I-FORWARD-TSN chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct IForwardTsn<'a> {
    /// New cumulative TSN: the receiver treats all TSNs up to this one as received.
    pub cumulative_tsn: Tsn,
    /// Skipped messages, at most one entry for the ordered and one for the unordered messages of each stream.
    pub messages: List<'a, SkippedMessage>,
}

impl<'a> IForwardTsn<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (cumulative_tsn, messages) = parse(chunk, "8 and 8 for each message")?;
        Ok(Self { cumulative_tsn, messages })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.messages.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put(ChunkKind::I_FORWARD_TSN, self.cumulative_tsn, &self.messages, out);
    }
}

fn parse<'a, T: ListItem>(chunk: &'a [u8], expected: &'static str) -> Result<(Tsn, List<'a, T>), Fault> {
    let (head, items) = head::<HEADER_LEN>(chunk, expected)?;
    if !items.len().is_multiple_of(T::LEN) {
        return Err(Fault::Length { len: chunk.len(), expected });
    }
    Ok((Tsn(u32_at::<4, _>(head)), List::Wire(items)))
}

fn put<T: ListItem>(kind: ChunkKind, cumulative_tsn: Tsn, items: &List<'_, T>, out: &mut Vec<u8>) {
    put_chunk(out, kind, 0, |out| {
        out.extend_from_slice(&cumulative_tsn.0.to_be_bytes());
        items.put(out);
    });
}
