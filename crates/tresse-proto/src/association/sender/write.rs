//! Writing of user data into packets: retransmissions, chunks queued on the path, new data.

use std::cell::LazyCell;

use tresse_policy::schedule::PathView;
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::Sender;
use crate::config::LossDetection;
use crate::coverage::Mechanism;
use crate::fragment::CutFragment;
use crate::transmission::{CopyScope, PendingChunk};

/// Bounds of the new data in a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::association) struct Burst {
    /// Most bytes of chunks that the peer can take.
    pub(in crate::association) allowance: usize,
    /// True if the last of all queued chunks gets the I bit: a SHUTDOWN waits for its acknowledgement (RFC 7053 §4.2).
    pub(in crate::association) last: bool,
}

impl Sender {
    /// Writes the retransmissions on `path`; returns whether there were any.
    pub(in crate::association) fn write_resends(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let (mut any, mut lowest) = (false, false);
        while let Some(PendingChunk { index, bytes, early }) = self.transmission.next_resend(path)
            && writer.room() >= bytes
        {
            lowest |= !any && !early && self.transmission.outstanding.is_lowest_on(path, index);
            let Some(data) = self.transmission.resend(now, index) else { break };
            any |= data.write(self.paths.data_format, writer).is_ok();
        }
        if any {
            self.transmission.outstanding.on_resent(path);
            // RFC 9260 §6.1: a running T3 restarts only if the earliest outstanding chunk of the path is retransmitted. Under CMT
            // that is the lowest TSN of the path, whatever other paths have in flight. A reinjected chunk does not restart T3:
            // otherwise the failure of a path that never answers would not be detected.
            if lowest && self.paths.get(path).t3_runs() {
                self.paths.restart_t3(path, now);
            }
        }
        any
    }

    /// Writes the chunks queued on `path` that may leave; returns whether there were any.
    pub(in crate::association) fn write_assigned(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let mut any = false;
        if !self.may_send_assigned(path) {
            return false;
        }
        // Lost chunks go before queued ones (RFC 9260 §6.1 C), except the one that the peer waits for.
        let lost = self.transmission.next_resend(path).is_some();
        while let Some((index, len)) = self.transmission.outstanding.next_assigned(path)
            && writer.room() >= len
            && (!any || (!lost && len <= self.transmission.peer_window()))
            && let Some(data) = self.transmission.send_assigned(now, index)
        {
            any |= data.write(self.paths.data_format, writer).is_ok();
        }
        if any && lost {
            // They used the one packet that may exceed the window (RFC 9260 §7.2.4).
            self.transmission.outstanding.on_resent(path);
        }
        any
    }

    /// Writes new data on `path`; returns the bytes of its chunks.
    pub(in crate::association) fn write_new_data(
        &mut self,
        now: Instant,
        path: PathId,
        burst: Burst,
        writer: &mut PacketWriter<'_>,
    ) -> usize {
        let Burst { mut allowance, last } = burst;
        let (header, full) = (self.data_format().header_len(), self.full_payload());
        let (paths, flight) = (&self.paths, self.transmission.outstanding.flight_on(path));
        let view = LazyCell::new(|| paths.view(path, flight, true));
        // If losses are detected by time (RACK), the last of all queued chunks gets the I bit, too: a delayed SACK would be taken
        // for a loss.
        let asks = last || self.config.loss_detection == LossDetection::Rack;
        let (data_format, has_others) = (self.data_format(), self.paths.len() > 1);
        let mut bytes = 0;
        let short_of_room = loop {
            let room = writer.room().saturating_sub(header).min(full);
            if room == 0 {
                break true;
            }
            let allowed = allowance.saturating_sub(header);
            let Some(CutFragment { mut fragment, terms }) =
                self.outbound.take(path, &view, room, full, allowed)
            else {
                break allowed > room;
            };
            let chunk = header + fragment.payload.len();
            if asks && self.outbound.is_empty() || self.transmission.wants_report(chunk, header + full) {
                fragment.flags.request_report();
            }
            allowance = allowance.saturating_sub(chunk);
            bytes += chunk;
            let written = self.transmission.outstanding.number(&fragment).write(data_format, writer);
            let stream = fragment.stream;
            self.transmission.record(now, fragment, terms, path);
            if has_others && !self.transmission.copies.is_on() && self.outbound.classes.is_urgent(stream) {
                self.transmission.start_copying(CopyScope::Latency);
            }
            // After a chunk that exceeds the window of the peer no other one may follow.
            allowance = allowance.min(self.transmission.room_at_peer());
            if written.is_err() {
                break false;
            }
        };
        if bytes > 0 {
            self.outbound.on_packet_end(path);
            if short_of_room && !self.outbound.is_empty() {
                self.paths.on_more_waiting(path);
            }
        }
        bytes
    }

    /// Cuts a packet of new data and queues it until the window of `view`'s path has room; returns the bytes of its chunks.
    ///
    /// Later TSNs leave on other paths meanwhile. So no more is queued on a path than it sends during one round trip of the
    /// slowest path, and chunks queued on a path that becomes unusable are moved to another one.
    pub(in crate::association) fn assign(&mut self, now: Instant, view: &PathView) -> usize {
        let Some(mut allowance) = self.may_assign(view.id, usize::MAX).filter(|_| view.assignable) else {
            return 0;
        };
        let (header, full) = (self.data_format().header_len(), self.full_payload());
        let mut left = header + full;
        let mut bytes = 0;
        while let Some(CutFragment { fragment, terms }) = self.outbound.take(
            view.id,
            &view,
            left.saturating_sub(header),
            full,
            allowance.saturating_sub(header),
        ) {
            let len = fragment.payload.len();
            allowance = allowance.saturating_sub(header + len);
            bytes += header + len;
            left = left.saturating_sub((header + len).next_multiple_of(4));
            self.transmission.assign(now, fragment, terms, view.id);
            allowance = allowance.min(self.transmission.room_at_peer());
        }
        if bytes > 0 {
            self.coverage.note(Mechanism::Assigned);
            self.outbound.on_packet_end(view.id);
        }
        bytes
    }
}
