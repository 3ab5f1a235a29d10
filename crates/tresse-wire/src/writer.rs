//! Writer of a packet: appends chunks as long as they fit, then stores the checksum.
//!
//! Owns the layout of an outgoing packet: common header, padding, size limit, position of the HMAC, checksum.
//! Independent of the rules of bundling (RFC 9260 §6.10), which the association follows.

use crate::bytes::{pad, padded};
use crate::checksum;
use crate::checksum::COMMON_HEADER_LEN;
use crate::chunk::auth::{AUTH_HEADER_LEN, put_auth_header};
use crate::chunk::data::Data;
use crate::chunk::dtls::{self, LARGEST_RECORD_TEXT, RECORD_OVERHEAD, RecordPlace};
use crate::chunk::{Chunk, ChunkKind, KindSet};
use crate::error::NoRoom;
use crate::packet::CommonHeader;

/// Length of the largest packet: the largest multiple of four below the limit of an IP length field. It also keeps
/// every chunk within the limit of its own length field.
const LARGEST_PACKET: usize = 65_532;

/// Length of the largest packet with a DTLS chunk.
const LARGEST_RECORD_PACKET: usize = COMMON_HEADER_LEN + LARGEST_RECORD_TEXT + RECORD_OVERHEAD;

/// Content of the checksum field.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Seal {
    /// The CRC32c.
    Crc32c,
    /// Zero: the peer accepts it (RFC 9653), or the network card computes the checksum.
    Zero,
}

/// Chunk types that must be sent only behind an AUTH chunk, and the parameters of that AUTH chunk (RFC 4895 §6.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    kinds: KindSet,
    key_id: u16,
    hmac_id: u16,
    hmac_len: u16,
    /// See [`Self::overhead`].
    overhead: u32,
}

/// Chunks whose length the association fits to [`PacketWriter::room`].
const BULKY: [ChunkKind; 6] = [
    ChunkKind::DATA,
    ChunkKind::I_DATA,
    ChunkKind::SACK,
    ChunkKind::NR_SACK,
    ChunkKind::FORWARD_TSN,
    ChunkKind::I_FORWARD_TSN,
];

impl Guard {
    /// Chunks of `kinds` follow an AUTH chunk with this shared key identifier and this HMAC of `hmac_len` bytes.
    pub fn new(kinds: KindSet, key_id: u16, hmac_id: u16, hmac_len: u16) -> Self {
        let bulky = BULKY.iter().any(|&kind| kinds.contains(kind));
        let overhead = if bulky { auth_len(hmac_len) as u32 } else { 0 };
        Guard { kinds, key_id, hmac_id, hmac_len, overhead }
    }

    /// Returns the chunk types that must follow an AUTH chunk.
    #[inline]
    pub fn kinds(&self) -> KindSet {
        self.kinds
    }

    /// Returns the bytes of AUTH in each packet with chunks that are fitted to the room, if one of these types is
    /// authenticated; otherwise 0.
    #[inline]
    pub fn overhead(&self) -> usize {
        self.overhead as usize
    }

    /// Returns the bytes of the AUTH chunk before a chunk of `kind`; 0 if that is not authenticated.
    pub fn overhead_of(&self, kind: ChunkKind) -> usize {
        if self.kinds.contains(kind) { auth_len(self.hmac_len) } else { 0 }
    }
}

/// Returns the length of an AUTH chunk with padding whose HMAC has `hmac_len` bytes.
fn auth_len(hmac_len: u16) -> usize {
    padded(AUTH_HEADER_LEN + usize::from(hmac_len))
}

/// A packet that is appended to a buffer. A buffer may contain several packets, each from its own writer.
#[derive(Debug)]
pub struct PacketWriter<'b> {
    buf: &'b mut Vec<u8>,
    /// Start of the packet in `buf`.
    start: usize,
    /// Largest length of the packet, a multiple of four.
    limit: usize,
    guard: Option<Guard>,
    /// Offset of the AUTH chunk from the start of the packet; `None` if there is none yet.
    auth: Option<usize>,
    /// Bytes before the first chunk, common header included.
    head: usize,
}

impl<'b> PacketWriter<'b> {
    /// Starts a packet at the end of `buf`. `limit` is the largest length of the whole SCTP packet in bytes, common
    /// header included; it is rounded down to a multiple of four.
    #[inline]
    pub fn new(buf: &'b mut Vec<u8>, header: CommonHeader, limit: usize) -> Self {
        let limit = limit.min(LARGEST_PACKET) & !3;
        let start = buf.len();
        buf.reserve(limit.max(COMMON_HEADER_LEN));
        let mut head = [0; COMMON_HEADER_LEN];
        head[0..2].copy_from_slice(&header.source_port.to_be_bytes());
        head[2..4].copy_from_slice(&header.destination_port.to_be_bytes());
        head[4..8].copy_from_slice(&header.verification_tag.to_be_bytes());
        buf.extend_from_slice(&head);
        Self { buf, start, limit, guard: None, auth: None, head: COMMON_HEADER_LEN }
    }

    /// Appends a chunk with its padding to a packet without chunks, even if it exceeds the limit: up to the largest
    /// packet that IP can fragment or that a record can hold. No further chunk fits then.
    ///
    /// # Errors
    /// If the chunk exceeds even that length; then nothing is written.
    pub fn push_alone(&mut self, chunk: &Chunk<'_>) -> Result<(), NoRoom> {
        let record = self.head > COMMON_HEADER_LEN;
        let most = if record { LARGEST_RECORD_PACKET - dtls::TAIL_LEN } else { LARGEST_PACKET };
        let limit = std::mem::replace(&mut self.limit, most);
        let pushed = self.push(chunk);
        self.limit = if pushed.is_ok() { self.len() } else { limit };
        pushed
    }

    /// Reserves the bytes before and after all chunks for a DTLS chunk around them; they count in the limit. Must be
    /// called before any chunk is appended. [`record`](Self::record) completes the DTLS chunk.
    pub fn leave_record(&mut self) {
        self.head += dtls::HEAD_LEN;
        self.buf.resize(self.start + self.head, 0);
        self.limit = self.limit.min(LARGEST_RECORD_PACKET).saturating_sub(dtls::TAIL_LEN);
    }

    /// Completes the DTLS chunk around all chunks, and returns its record for encryption in place. Must be called once,
    /// after the last chunk. Returns `None` without [`leave_record`](Self::leave_record).
    pub fn record(&mut self) -> Option<RecordPlace<'_>> {
        if self.head == COMMON_HEADER_LEN {
            return None;
        }
        dtls::close(self.buf, self.start + COMMON_HEADER_LEN)
    }

    /// Makes the packet carry an AUTH chunk before the first chunk of a type in `guard`. Its HMAC is zero until
    /// [`fill_hmac`](Self::fill_hmac).
    #[inline]
    #[must_use]
    pub fn guarded(self, guard: Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// Returns the bytes left for one more chunk with its padding, a multiple of four. Subtracts the AUTH chunk that
    /// the packet may still need, if chunks of a type that is fitted to this room are authenticated.
    #[inline]
    pub fn room(&self) -> usize {
        let auth = match &self.guard {
            Some(guard) if self.auth.is_none() => guard.overhead(),
            _ => 0,
        };
        self.limit.saturating_sub(self.len() + auth)
    }

    /// Returns the bytes left for a chunk of `kind` with its padding, without the AUTH chunk that it may need; a multiple of four.
    pub fn room_for(&self, kind: ChunkKind) -> usize {
        let auth = match &self.guard {
            Some(guard) if self.auth.is_none() => guard.overhead_of(kind),
            _ => 0,
        };
        self.limit.saturating_sub(self.len() + auth)
    }

    /// Reduces the limit to `limit`, as for [`new`](Self::new). Chunks that the packet already has remain.
    pub fn limit_to(&mut self, limit: usize) {
        self.limit = self.limit.min(limit & !3);
    }

    /// Returns the length of the packet so far, common header included.
    #[inline]
    pub fn len(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Returns whether the packet has no chunk yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() <= self.head
    }

    /// Appends a chunk with its padding.
    ///
    /// # Errors
    /// If the chunk does not fit; then nothing is written.
    #[inline]
    pub fn push(&mut self, chunk: &Chunk<'_>) -> Result<(), NoRoom> {
        if let Chunk::Data(data) = chunk {
            return self.push_data(data);
        }
        self.open(chunk.kind(), chunk.wire_len())?;
        chunk.put(self.buf);
        pad(self.buf, self.start);
        Ok(())
    }

    /// Appends a DATA chunk with its padding. The payload is copied once.
    ///
    /// # Errors
    /// If the chunk does not fit; then nothing is written.
    // Always inline: otherwise the fields are copied through memory for every chunk.
    #[inline(always)]
    pub fn push_data(&mut self, data: &Data<'_>) -> Result<(), NoRoom> {
        self.open(ChunkKind::DATA, data.wire_len())?;
        data.put(self.buf);
        pad(self.buf, self.start);
        Ok(())
    }

    /// Returns the bytes that the HMAC covers: the AUTH chunk with an HMAC of zero, and all chunks after it with their
    /// padding. Returns `None` if the packet has no AUTH chunk.
    #[inline]
    pub fn authenticated(&self) -> Option<&[u8]> {
        self.buf.get(self.start + self.auth?..)
    }

    /// Writes the HMAC into the AUTH chunk, if there is one. Must be called after the last chunk.
    pub fn fill_hmac(&mut self, hmac: &[u8]) {
        let Some(auth) = self.auth else { return };
        let at = self.start + auth + AUTH_HEADER_LEN;
        if let Some(place) = self.buf.get_mut(at..at + hmac.len()) {
            place.copy_from_slice(hmac);
        }
    }

    /// Stores the checksum and returns the length of the packet.
    #[inline]
    pub fn finish(self, seal: Seal) -> usize {
        let packet = &mut self.buf[self.start..];
        if seal == Seal::Crc32c {
            checksum::seal_zeroed(packet);
        }
        packet.len()
    }

    /// Removes the packet: the buffer is as it was before.
    pub fn discard(self) {
        self.buf.truncate(self.start);
    }

    /// Checks that a chunk of `kind` fits, and writes the AUTH chunk before it if one is needed.
    #[inline]
    fn open(&mut self, kind: ChunkKind, len: usize) -> Result<(), NoRoom> {
        match &self.guard {
            Some(guard) if self.auth.is_none() && guard.kinds.contains(kind) => self.open_guarded(len),
            _ => self.check_room(len),
        }
    }

    /// Writes the AUTH chunk before a chunk of `len` bytes, if both fit.
    fn open_guarded(&mut self, len: usize) -> Result<(), NoRoom> {
        let Some(Guard { key_id, hmac_id, hmac_len, .. }) = self.guard else { return self.check_room(len) };
        self.check_room(auth_len(hmac_len) + padded(len))?;
        self.auth = Some(self.len());
        put_auth_header(self.buf, key_id, hmac_id, usize::from(hmac_len));
        self.buf.resize(self.buf.len() + usize::from(hmac_len), 0);
        pad(self.buf, self.start);
        Ok(())
    }

    #[inline]
    fn check_room(&self, len: usize) -> Result<(), NoRoom> {
        let (needed, room) = (padded(len), self.limit.saturating_sub(self.len()));
        if needed > room { Err(NoRoom { needed, room }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::auth::Auth;
    use crate::chunk::cookie::CookieEcho;
    use crate::chunk::data::DataFlags;
    use crate::chunk::dtls::Dtls;
    use crate::chunk::sack::Sack;
    use crate::list::List;
    use crate::packet::{ChecksumRule, Packet};
    use crate::serial::{Ppid, Ssn, StreamId, Tsn};

    const HEADER: CommonHeader = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

    fn data(payload: &[u8]) -> Data<'_> {
        Data {
            tsn: Tsn(1),
            stream: StreamId(0),
            ssn: Ssn(0),
            ppid: Ppid(0),
            flags: DataFlags::WHOLE,
            payload,
        }
    }

    fn chunks(bytes: &[u8]) -> Vec<Chunk<'_>> {
        let packet = Packet::parse(bytes, ChecksumRule::Verify).expect("a sealed packet");
        packet.chunks().map(|chunk| chunk.expect("a whole chunk")).collect()
    }

    #[test]
    fn room_counts_padding_and_ends_at_the_limit() {
        let mut buf = Vec::new();
        // 12 bytes of common header, 20 of chunk; the last 3 bytes of the limit cannot be used.
        let mut writer = PacketWriter::new(&mut buf, HEADER, 35);
        assert!(writer.is_empty());
        assert_eq!((writer.len(), writer.room()), (12, 20));
        assert_eq!(writer.push_data(&data(&[0; 5])), Err(NoRoom { needed: 24, room: 20 }));
        assert_eq!(writer.len(), 12, "a chunk that does not fit leaves no trace");
        assert_eq!(writer.push_data(&data(&[7; 1])), Ok(()));
        assert!(!writer.is_empty());
        assert_eq!((writer.len(), writer.room()), (32, 0));
        assert_eq!(writer.push(&Chunk::CookieAck), Err(NoRoom { needed: 4, room: 0 }));
        assert_eq!(writer.finish(Seal::Crc32c), 32);
        assert_eq!(chunks(&buf), [Chunk::Data(data(&[7]))]);
    }

    #[test]
    fn a_chunk_alone_may_exceed_the_limit_and_closes_the_packet() {
        let body = [7; 300];
        let long = Chunk::HeartbeatAck(crate::Heartbeat { body: &body });
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100);
        assert!(writer.push(&long).is_err());
        assert!(writer.push_alone(&long).is_ok());
        assert_eq!((writer.len(), writer.room()), (316, 0));
        writer.discard();
        let huge = vec![0; 65_530];
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100);
        assert!(writer.push_alone(&Chunk::HeartbeatAck(crate::Heartbeat { body: &huge })).is_err());
        assert_eq!((writer.len(), writer.room()), (12, 88), "the limit is as it was");
    }

    #[test]
    fn a_limit_below_the_common_header_leaves_no_room() {
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 0);
        assert_eq!(writer.room(), 0);
        assert!(writer.push(&Chunk::CookieAck).is_err());
        writer.discard();
        assert!(buf.is_empty());
    }

    #[test]
    fn no_chunk_outgrows_its_length_field() {
        let huge = vec![0; 65_520];
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, usize::MAX);
        assert_eq!(writer.room(), 65_520);
        assert!(writer.push_data(&data(&huge)).is_err());
        assert!(writer.push(&Chunk::CookieEcho(CookieEcho { cookie: &huge[..65_517] })).is_err());
        assert!(writer.push_data(&data(&huge[..65_504])).is_ok());
        writer.discard();
        let mut out = Vec::new();
        let outcome = Chunk::CookieEcho(CookieEcho { cookie: &[0; 65_532] }).write(&mut out);
        assert_eq!(outcome, Err(crate::TooLong { len: 65_536 }));
        assert!(out.is_empty());
    }

    #[test]
    fn packets_stand_one_after_another_in_a_buffer() {
        let mut buf = vec![0xFF];
        let mut lengths = Vec::new();
        for payload in [&b"one"[..], b"three"] {
            let mut writer = PacketWriter::new(&mut buf, HEADER, 100);
            writer.push_data(&data(payload)).expect("room");
            lengths.push(writer.finish(Seal::Crc32c));
        }
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100);
        writer.push_data(&data(b"never sent")).expect("room");
        writer.discard();
        assert_eq!(lengths, [32, 36]);
        assert_eq!(buf.len(), 1 + 32 + 36);
        assert_eq!(chunks(&buf[1..33]), [Chunk::Data(data(b"one"))]);
        assert_eq!(chunks(&buf[33..]), [Chunk::Data(data(b"three"))]);
    }

    #[test]
    fn a_zero_seal_leaves_the_checksum_out() {
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100);
        writer.push(&Chunk::CookieAck).expect("room");
        writer.finish(Seal::Zero);
        assert_eq!(buf[8..12], [0; 4]);
        assert!(Packet::parse(&buf, ChecksumRule::AcceptZero).is_ok());
        assert!(Packet::parse(&buf, ChecksumRule::Verify).is_err());
    }

    #[test]
    fn a_record_stands_between_its_places_and_ends_with_the_chunk() {
        let mut buf = vec![0xEE; 3];
        let mut writer = PacketWriter::new(&mut buf, HEADER, 12 + 16 + 4 + RECORD_OVERHEAD);
        writer.leave_record();
        assert!(writer.is_empty());
        assert_eq!(writer.room(), 20);
        writer.push_data(&data(&[7])).expect("room");
        assert!(!writer.is_empty() && writer.room() == 0);
        let place = writer.record().expect("a sealed packet");
        assert_eq!((place.text.len(), place.text[20]), (21, 23));
        assert_eq!(place.text[..4], [0, 3, 0, 17]);
        *place.header = [0x2B, 1, 2];
        place.tag.fill(0xAA);
        assert_eq!(writer.finish(Seal::Crc32c), 12 + 20 + RECORD_OVERHEAD);
        assert_eq!(
            buf[15..20],
            [65, 0, 0, 45, 0],
            "5 of chunk and padding, 3 of record header, 21 and the tag"
        );
        let packet = chunks(&buf[3..]);
        let [Chunk::Dtls(Dtls { restart: false, record })] = packet[..] else { panic!("{packet:?}") };
        assert_eq!((record.len(), &record[..3], &record[24..]), (40, &[0x2B, 1, 2][..], &[0xAA; 16][..]));
    }

    #[test]
    fn no_record_is_larger_than_its_receiver_takes() {
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, usize::MAX);
        writer.leave_record();
        assert_eq!(writer.room(), LARGEST_RECORD_TEXT);
        writer.discard();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 20);
        writer.leave_record();
        assert_eq!(writer.room(), 0);
        writer.discard();
        assert!(buf.is_empty());
        assert!(PacketWriter::new(&mut buf, HEADER, 100).record().is_none());
    }

    fn guard(kinds: impl IntoIterator<Item = ChunkKind>) -> Guard {
        Guard::new(kinds.into_iter().collect(), 7, 1, 5)
    }

    #[test]
    fn an_hmac_covers_its_own_chunk_with_zeros_and_all_that_follows() {
        let mut buf = vec![0xFF; 3];
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100).guarded(guard([ChunkKind::DATA]));
        writer.push(&Chunk::CookieAck).expect("room");
        assert_eq!(writer.authenticated(), None);
        writer.push_data(&data(b"abc")).expect("room");
        writer.push_data(&data(b"d")).expect("room");
        let mut covered = vec![15, 0, 0, 13, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        for payload in [&b"abc"[..], b"d"] {
            data(payload).put(&mut covered);
            covered.resize(padded(covered.len()), 0);
        }
        assert_eq!(writer.authenticated(), Some(&covered[..]));
        writer.fill_hmac(&[1, 2, 3, 4, 5]);
        writer.finish(Seal::Crc32c);
        let auth = Chunk::Auth(Auth { key_id: 7, hmac_id: 1, hmac: &[1, 2, 3, 4, 5] });
        let data = [b"abc", &b"d"[..]].map(|payload| Chunk::Data(data(payload)));
        assert_eq!(chunks(&buf[3..]), [Chunk::CookieAck, auth, data[0], data[1]]);
    }

    #[test]
    fn what_needs_no_authentication_leaves_without() {
        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 100).guarded(guard([ChunkKind::ASCONF]));
        assert_eq!(writer.room(), 88, "chunks that are not fitted to the room find out when they are pushed");
        writer.push_data(&data(b"abc")).expect("room");
        assert_eq!(writer.authenticated(), None);
    }

    #[test]
    fn the_room_leaves_a_place_for_an_hmac_that_bulky_chunks_need() {
        let mut buf = Vec::new();
        let guard = guard([ChunkKind::SACK]);
        let mut writer = PacketWriter::new(&mut buf, HEADER, 12 + 16 + 16 + 4).guarded(guard);
        assert_eq!((writer.room(), guard.overhead()), (20, 16));
        let (gaps, duplicates) = (List::Values(&[]), List::Values(&[]));
        let sack = Chunk::Sack(Sack { flags: 0, cumulative_tsn: Tsn(1), a_rwnd: 0, gaps, duplicates });
        writer.push(&sack).expect("room for 16 bytes and AUTH");
        assert_eq!(writer.room(), 4);
        assert!(writer.push(&sack).is_err());
        writer.push(&Chunk::CookieAck).expect("room");

        let mut buf = Vec::new();
        let mut writer = PacketWriter::new(&mut buf, HEADER, 12 + 16 + 12).guarded(guard);
        assert_eq!(writer.push(&sack), Err(NoRoom { needed: 32, room: 28 }));
        assert!(writer.is_empty(), "no AUTH without what it is for");
    }
}
