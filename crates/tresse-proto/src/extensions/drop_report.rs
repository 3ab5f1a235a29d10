//! Packet-drop reports (PKTDROP, draft-stewart-sctp-pktdrprep): this side reports damaged packets of the peer, and
//! retransmits data that the peer reports without a window reduction, because damage is not congestion.
//!
//! A damaged packet is reported only if its ports, tag and addresses are valid. A report is accepted if it has the right tag, and
//! if it quotes user data that only a receiver of the damaged packet can know. Reports by routers, and reports of packets dropped
//! for lack of buffer, have no effect. Chunks with a timer of their own (HEARTBEAT, SHUTDOWN, RE-CONFIG) are retransmitted by
//! that timer.

use tresse_wire::{
    COMMON_HEADER_LEN, ChecksumRule, ChunkKind, CommonHeader, PACKET_DROP_HEADER_LEN, Packet, PacketDrop,
    Tsn, quoted_chunks,
};

/// A report to be sent.
#[derive(Clone, Debug)]
pub(crate) struct DropReport {
    /// Receive buffer, and the part of it in use, in bytes.
    buffer: u32,
    used: u32,
    /// Length of the damaged packet, in bytes.
    len: usize,
    /// Beginning of the damaged packet.
    quote: Vec<u8>,
}

impl DropReport {
    /// Returns the report of a damaged packet, for a packet of at most `room` bytes; `buffer` is the receive buffer in bytes, of
    /// which `used` are in use. `None` if the peer could not repair anything by the report, or if the packet must not be
    /// answered.
    pub(crate) fn of(packet: &[u8], room: usize, buffer: usize, used: usize) -> Option<Self> {
        let worth = quotable_len(packet)?;
        // The padding of the chunk must fit, too.
        let room = room.saturating_sub(COMMON_HEADER_LEN + PACKET_DROP_HEADER_LEN) & !3;
        let bytes = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(DropReport {
            buffer: bytes(buffer),
            used: bytes(used),
            len: packet.len(),
            quote: packet[..worth.min(room)].to_vec(),
        })
    }

    pub(crate) fn chunk(&self) -> PacketDrop<'_> {
        let truncated = self.quote.len() < self.len;
        PacketDrop {
            middlebox: false,
            bad_checksum: true,
            truncated,
            bandwidth: self.buffer,
            queue_size: self.used,
            truncated_len: if truncated { u16::try_from(self.len).unwrap_or(u16::MAX) } else { 0 },
            packet: &self.quote,
        }
    }
}

/// Bytes of the last chunk that are quoted: its header, and user data as evidence. A short report is less likely to be damaged
/// itself.
const LAST_CHUNK: usize = 64;

/// Returns the length of the quote of a damaged packet, which ends in its last chunk. `None` if the packet has no chunk that the
/// peer could repair, or if it must not be answered (reports could answer each other endlessly).
fn quotable_len(packet: &[u8]) -> Option<usize> {
    let (mut last, mut worth) = (None, false);
    for chunk in quoted_chunks(packet) {
        match chunk.kind {
            ChunkKind::PACKET_DROP | ChunkKind::ABORT | ChunkKind::INIT_ACK => return None,
            ChunkKind::DATA | ChunkKind::I_DATA | ChunkKind::SACK | ChunkKind::NR_SACK => worth = true,
            _ => {}
        }
        last = Some(chunk.offset);
    }
    last.filter(|_| worth).map(|offset| (offset + LAST_CHUNK).min(packet.len()))
}

/// A chunk that the peer reports as damaged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lost<'a> {
    /// User data with this TSN; its beginning.
    UserData(Tsn, &'a [u8]),
    /// A SACK or NR-SACK.
    Report,
}

/// Returns the chunks that the peer reports as damaged, of a packet with this header. `None` if the report is for another packet,
/// for another reason, or from a router.
pub(crate) fn lost<'a>(
    report: &PacketDrop<'a>,
    header: CommonHeader,
) -> Option<impl Iterator<Item = Lost<'a>> + use<'a>> {
    let ours = Packet::parse(report.packet, ChecksumRule::Trust).is_ok_and(|quoted| quoted.header == header);
    let believed = !report.middlebox && report.bad_checksum && ours;
    let chunks = believed.then(|| quoted_chunks(report.packet))?;
    Some(chunks.filter_map(|chunk| match (chunk.kind, chunk.user_data()) {
        (_, Some((tsn, shown))) => Some(Lost::UserData(tsn, shown)),
        (ChunkKind::SACK | ChunkKind::NR_SACK, None) => Some(Lost::Report),
        _ => None,
    }))
}
