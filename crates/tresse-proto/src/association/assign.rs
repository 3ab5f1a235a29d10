//! Data that a path scheduler leaves to a path before its window is open: from the queue to the ring, and from there
//! into packets. `transmission` keeps it, and `outbound` says what it is.
//!
//! Later TSNs leave on other paths meanwhile. So no more is assigned than a path sends while the slowest one has one
//! round trip, and a path that can no longer be used gives up what waits for it.

use tresse_policy::engine::most_assigned;
use tresse_policy::{Instant, PathId, PathView};
use tresse_wire::PacketWriter;

use super::Association;
use crate::coverage::Mechanism;
use crate::fragment::Cut;
use crate::transmission::Verdict;

impl Association {
    /// The path on which what was assigned may leave, the lowest TSN first.
    pub(super) fn path_with_assigned(&self) -> Option<PathId> {
        if self.transmission.assigned() == 0 {
            return None;
        }
        let ready = self.path_ids().filter(|&path| self.may_send_assigned(path));
        ready.min_by_key(|&path| self.transmission.next_assigned(path))
    }

    pub(super) fn may_send_assigned(&self, path: PathId) -> bool {
        self.transmission.may_send_assigned(path, self.paths.window(path).gate())
            && self.paths.accepts_data(path)
            && self.burst_limit(path).is_none()
    }

    /// Completes the views for a scheduler that assigns data.
    pub(super) fn show_assigned(&self, views: &mut [PathView]) {
        let slowest = views.iter().filter_map(|view| view.srtt).max().unwrap_or_default();
        for view in views {
            view.assigned = self.transmission.assigned_on(view.id);
            view.early = self.transmission.early_on(view.id);
            view.assignable = self.may_assign(view.id, most_assigned(view, slowest)).is_some();
        }
    }

    /// Cuts a packet of new data, which waits for the window of `view`'s path from now on; answers whether there was any.
    pub(super) fn assign(&mut self, now: Instant, view: &PathView) -> bool {
        let Some(mut allowance) = self.may_assign(view.id, usize::MAX).filter(|_| view.assignable) else {
            return false;
        };
        let (header, full) = (self.capabilities.carrier().header_len(), self.full_payload());
        let mut left = header + full;
        let mut bytes = 0;
        while let Some(Cut { fragment, pledge }) = self.outbound.take(
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
            self.transmission.assign(now, fragment, pledge, view.id);
            allowance = allowance.min(self.transmission.room_at_peer());
        }
        if bytes > 0 {
            self.counters.coverage.note(Mechanism::Assigned);
            self.outbound.on_packet_end(view.id);
            self.path_scheduler.on_sent(view.id, bytes);
        }
        bytes > 0
    }

    /// What the peer can take of a packet of new data that is to wait for `path`, where `most` bytes may wait.
    fn may_assign(&self, path: PathId, most: usize) -> Option<usize> {
        let (chunk, paths) = (self.full_chunk(), self.paths.joined_count());
        match self.transmission.verdict_ahead(path, most, chunk, paths) {
            Verdict::Go(allowance) if self.outbound.has_data_for(path) => Some(allowance),
            _ => None,
        }
    }

    /// Writes what was assigned to `path` and may leave; answers whether there was any.
    pub(super) fn write_assigned(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let carrier = self.capabilities.carrier();
        let mut any = false;
        if !self.may_send_assigned(path) {
            return false;
        }
        while let Some((index, len)) = self.transmission.next_assigned(path)
            && writer.room() >= len
            && (!any || len <= self.transmission.peer_window())
            && let Some(data) = self.transmission.send_assigned(now, index)
        {
            any |= data.write(carrier, writer).is_ok();
        }
        any
    }
}
