//! Packet-drop reports (PKTDROP, draft-stewart-sctp-pktdrprep): the peer's damaged packets are reported to it, and
//! what the peer reports goes again without a smaller window, because damage is not congestion.
//!
//! A damaged packet gets here only if its ports, its tag and its addresses are right all the same. A report is
//! believed by its own tag, and by showing user data that only a receiver of the damaged packet can know.
//! Reports by routers, and reports of packets that fell to a full buffer, ask for nothing here; what guards itself by
//! a timer (HEARTBEAT, SHUTDOWN, RE-CONFIG) waits for that timer.

use tresse_policy::{Instant, PathId};
use tresse_wire::{
    COMMON_HEADER_LEN, ChecksumRule, ChunkKind, PACKET_DROP_HEADER_LEN, Packet, PacketDrop, quoted_chunks,
};

use super::control::Control;
use super::{Association, Extension};
use crate::transmission::Dropped;

/// A report, owned until it is written.
#[derive(Clone, Debug)]
pub(super) struct DropReport {
    /// Receive buffer, and how much of it is in use, in bytes.
    buffer: u32,
    used: u32,
    /// Length of the damaged packet.
    len: usize,
    /// Its beginning.
    quote: Vec<u8>,
}

impl DropReport {
    pub(super) fn chunk(&self) -> PacketDrop<'_> {
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

/// What of the last chunk is quoted: its header and the user data that proves it. The shorter a report, the less likely
/// it is damaged itself.
const LAST_CHUNK: usize = 64;

/// How much of a damaged packet is worth quoting: up to the beginning of its last chunk. `None` if nothing in it could
/// be made good, or if it must not be answered (an endless exchange could come of that).
fn worth_quoting(packet: &[u8]) -> Option<usize> {
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

impl Association {
    /// A packet arrived over `via` whose checksum is wrong, and whose ports and tag are right.
    pub(crate) fn on_damaged_packet(&mut self, via: PathId, packet: &[u8]) {
        if !self.capabilities.has(Extension::DropReports)
            || !self.state.takes_data() && !self.state.sends_data()
        {
            return;
        }
        let Some(worth) = worth_quoting(packet) else { return };
        let room = self
            .paths
            .get(via)
            .packet_size()
            .saturating_sub(COMMON_HEADER_LEN + PACKET_DROP_HEADER_LEN + self.auth_overhead());
        let buffer = self.config.receive_buffer.0;
        let bytes = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let report = DropReport {
            buffer: bytes(buffer),
            used: bytes(self.inbound.used()),
            len: packet.len(),
            quote: packet[..worth.min(room)].to_vec(),
        };
        self.control.push(via, Control::DropReport(Box::new(report)));
        self.stir();
    }

    /// The peer reports a packet as dropped.
    pub(super) fn on_drop_report(&mut self, now: Instant, drop: &PacketDrop<'_>) {
        let ours = Packet::parse(drop.packet, ChecksumRule::Trust)
            .is_ok_and(|quoted| quoted.header == self.header());
        if drop.middlebox || !drop.bad_checksum || !ours {
            self.counters.discards.stray_drop_report += 1;
            return;
        }
        for chunk in quoted_chunks(drop.packet) {
            match (chunk.kind, chunk.user_data()) {
                (_, Some((tsn, shown))) => {
                    let dropped = self.transmission.reported(tsn, shown);
                    // What comes much sooner than a round trip is a second report of an earlier sending.
                    let seen =
                        |dropped: &Dropped| dropped.age(now) >= self.paths.shortest_rtt(dropped.path) / 2;
                    match dropped.filter(seen) {
                        Some(dropped) => self.resend_reported(dropped),
                        None => self.counters.discards.stray_drop_report += 1,
                    }
                }
                (ChunkKind::SACK | ChunkKind::NR_SACK, None) => self.receiver.demand(),
                _ => {}
            }
        }
    }

    fn resend_reported(&mut self, dropped: Dropped) {
        let path = dropped.path;
        let target = self.resend_path(self.config.fast_retransmit_path, path);
        self.transmission.on_reported(dropped, target);
        self.settle_t3(path);
    }
}
