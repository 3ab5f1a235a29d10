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

/// New data that is to leave in a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::association) struct Burst {
    /// Most bytes of chunks that the peer can take.
    pub(in crate::association) allowance: usize,
    /// True if the end of all there is to send is to be reported at once: a SHUTDOWN waits for it (RFC 7053 §4.2).
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
            // RFC 9260 §6.1: a T3 that runs starts over when the earliest outstanding chunk of the path goes again, and
            // only then. Under CMT that is the lowest TSN of the path, whatever other paths have in flight. A chunk that goes
            // again early leaves T3 alone: else a path that never answers would never be found.
            if lowest && self.paths.get(path).t3_runs() {
                self.paths.restart_t3(path, now);
            }
        }
        any
    }

    /// Writes what was assigned to `path` and may leave; returns whether there was any.
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
        // Lost chunks go before all but the one that the peer waits for (RFC 9260 §6.1 C).
        let lost = self.transmission.next_resend(path).is_some();
        while let Some((index, len)) = self.transmission.outstanding.next_assigned(path)
            && writer.room() >= len
            && (!any || (!lost && len <= self.transmission.peer_window()))
            && let Some(data) = self.transmission.send_assigned(now, index)
        {
            any |= data.write(self.paths.data_format, writer).is_ok();
        }
        if any && lost {
            // It took the packet that may leave whatever the window says (RFC 9260 §7.2.4).
            self.transmission.outstanding.on_resent(path);
        }
        any
    }

    /// Writes new data on `path`; returns how many bytes of chunks.
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
        // What ends all there is to send is to be reported at once where losses are found by time, too: the peer's delay
        // would stand for a loss.
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
            if asks && self.outbound.is_empty()
                || self.transmission.wants_report(chunk, header + full, || {
                    self.transmission.outstanding.flight_on(path) + chunk >= self.paths.window(path).gate()
                })
            {
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
            // Behind a chunk that went into a window too small for it nothing else may go.
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

    /// Cuts a packet of new data, which waits for the window of `view`'s path from now on; returns how many bytes of chunks.
    ///
    /// Later TSNs leave on other paths meanwhile. So no more is assigned than a path sends while the slowest one has one
    /// round trip, and a path that can no longer be used gives up what waits for it.
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
