//! Room for another packet: the user data that may leave on a path now, and the limit of the path. Queries change nothing.

use tresse_policy::{Instant, OpenPath, PathId};
use tresse_wire::COMMON_HEADER_LEN;

use super::Sender;
use crate::interface::stats::Limit;
use crate::receiver::Sources;
use crate::transmission::{Forward, Verdict};

/// Kinds of user data that the next packet on a path may carry.
#[derive(Copy, Clone)]
pub(in crate::association) struct Load {
    /// Retransmissions.
    pub(in crate::association) resends: bool,
    /// Chunks that were queued on the path until its window had room.
    pub(in crate::association) assigned: bool,
    /// Duplicates of chunks that are in flight on another path.
    pub(in crate::association) copies: bool,
    /// New data: at most this many bytes of chunks.
    pub(in crate::association) allowance: Option<usize>,
}

impl Load {
    /// A load of nothing but new data.
    pub(in crate::association) fn new_data(allowance: usize) -> Self {
        Load { resends: false, assigned: false, copies: false, allowance: Some(allowance) }
    }

    pub(in crate::association) fn any(self) -> bool {
        self.resends || self.assigned || self.copies || self.allowance.is_some()
    }
}

impl Sender {
    /// The paths open to new data, and the bytes of it that the peer can take there.
    pub(in crate::association) fn open_paths(&self) -> impl Iterator<Item = OpenPath> {
        // In most cases a window is full, which this filter finds at once.
        let paths = self.path_ids().filter(|&id| !self.transmission.fills(id, self.paths.window(id).gate()));
        paths.filter_map(|id| Some(OpenPath::new(id, self.may_send_new(id).ok()?)))
    }

    /// Returns whether data waits although nothing is in flight, so that neither an acknowledgement nor T3 will ever release it.
    pub(in crate::association) fn may_end_wait(&self) -> bool {
        self.transmission.outstanding.flight() == 0
            && !self.outbound.is_empty()
            && self.transmission.abandoned_probe().is_none()
    }

    /// Overrules the suspension of paths, the stream map or a scheduler that keeps data back although no acknowledgement will
    /// ever release it: the data then leaves against that decision. Returns whether anything was overruled.
    pub(in crate::association) fn end_wait(&mut self) -> bool {
        self.may_end_wait()
            && (self.transmission.resume_paths()
                || self.outbound.overrule(|path| self.paths.may_carry_new_data(path)))
    }

    /// The limit, pacing or Max.Burst, that forbids one more packet on `path` at this instant. `None` with nothing in flight:
    /// data sent at this instant may be acknowledged or abandoned already, and no event would follow.
    fn burst_limit(&self, path: PathId) -> Option<Limit> {
        if self.transmission.outstanding.flight() == 0 {
            return None;
        }
        let spent = !self.bursts.allows(path, self.config.max_burst);
        let held = || self.paths.get(path).is_held(self.bursts.instant);
        spent.then_some(Limit::Burst).or_else(|| held().then_some(Limit::Pacing))
    }

    /// Returns whether lost chunks may leave on `path`, by its state, window and pacing.
    pub(in crate::association) fn may_resend(&self, path: PathId) -> bool {
        let window = self.paths.window(path);
        // After T3 only one packet may be in flight (RFC 9260 §7.2.3). This holds also for the packet that may exceed the window.
        let joins = window.one_packet
            && self.transmission.outstanding.flight_on(path) > 0
            && self.transmission.outstanding.flight() > 0;
        // A gate of 0 admits only the packet that may exceed the window: pacing does not delay it, either.
        let held =
            self.paths.get(path).is_held(self.bursts.instant) && self.transmission.outstanding.flight() > 0;
        let gate = if held { 0 } else { window.gate() };
        !joins && self.transmission.may_resend(path, gate) && self.paths.accepts_data(path)
    }

    /// The path on which the queued chunk with the lowest TSN may leave.
    pub(in crate::association) fn path_with_assigned(&self) -> Option<PathId> {
        if self.transmission.outstanding.assigned() == 0 {
            return None;
        }
        let ready = self.path_ids().filter(|&path| self.may_send_assigned(path));
        ready.min_by_key(|&path| self.transmission.outstanding.next_assigned(path))
    }

    /// Returns whether the first chunk queued on `path` is the one that the peer waits for: its TSN follows the cumulative TSN
    /// ack.
    pub(in crate::association) fn awaits_assigned(&self, path: PathId) -> bool {
        let (cumulative, _) = self.transmission.outstanding.indices();
        self.transmission.outstanding.next_assigned(path).is_some_and(|(index, _)| index == cumulative + 1)
    }

    /// The path on which the queued chunk that the peer waits for may leave. This chunk goes before lost ones.
    pub(in crate::association) fn path_with_awaited(&self) -> Option<PathId> {
        if self.transmission.outstanding.assigned() == 0 {
            return None;
        }
        self.path_ids().find(|&path| self.awaits_assigned(path) && self.may_send_assigned(path))
    }

    /// Returns whether chunks queued on `path` may leave.
    pub(in crate::association) fn may_send_assigned(&self, path: PathId) -> bool {
        self.transmission.may_send_assigned(path, self.paths.window(path).gate())
            && self.paths.accepts_data(path)
            && self.burst_limit(path).is_none()
    }

    /// Returns whether the next chunk to be duplicated on `path` may leave there, by the state and the limits of the path.
    pub(in crate::association) fn may_copy(&self, path: PathId) -> bool {
        self.transmission.copies.is_on()
            && self.paths.may_carry_new_data(path)
            && self.transmission.may_copy(path, self.paths.window(path).gate())
            && self.burst_limit(path).is_none()
    }

    /// Bytes of chunks with new data that the peer can take in one packet on `path`.
    ///
    /// # Errors
    /// The limit that forbids new data on the path.
    pub(in crate::association) fn may_send_new(&self, path: PathId) -> Result<usize, Limit> {
        self.new_data_within(path, self.paths.window(path).gate())
    }

    /// The same for a packet that already has other chunks. They are in flight already, so the whole congestion window counts
    /// even after T3.
    pub(in crate::association) fn may_join_packet(&self, path: PathId) -> Result<usize, Limit> {
        self.new_data_within(path, self.paths.window(path).cwnd)
    }

    fn new_data_within(&self, path: PathId, gate: usize) -> Result<usize, Limit> {
        if !self.paths.may_carry_new_data(path) {
            return Err(Limit::Path);
        }
        let (chunk, paths) = (self.full_chunk(), self.paths.joined().count());
        let urgent = || self.outbound.has_urgent_for(path);
        let allowance = match self.transmission.verdict(path, gate, chunk, paths, urgent) {
            Verdict::Go(allowance) => allowance,
            Verdict::Wait(limit) => return Err(limit),
        };
        if let Some(limit) = self.burst_limit(path) {
            return Err(limit);
        }
        if !self.outbound.has_data_for(path) {
            return Err(self.why_no_data());
        }
        Ok(allowance)
    }

    /// Bytes of chunks that the peer can take in a packet of new data that is to be queued on `path`; `None` if none may be
    /// queued. At most `most` bytes may wait there.
    pub(in crate::association) fn may_assign(&self, path: PathId, most: usize) -> Option<usize> {
        let (chunk, paths) = (self.full_chunk(), self.paths.joined().count());
        match self.transmission.verdict_ahead(path, most, chunk, paths) {
            Verdict::Go(allowance) if self.outbound.has_data_for(path) => Some(allowance),
            _ => None,
        }
    }

    /// Largest size of the next packet on `path`. A chunk that was cut for larger packets, for instance before the peer moved
    /// behind UDP encapsulation, leaves in IP fragments (RFC 9260 §6.9).
    pub(in crate::association) fn packet_limit(&self, path: PathId) -> usize {
        let size = self.paths.get(path).packet_size();
        let assigned = self.transmission.outstanding.next_assigned(path).map(|(_, len)| len);
        let awaited = assigned.filter(|_| self.awaits_assigned(path));
        let lost =
            || self.transmission.next_resend(path).filter(|_| self.may_resend(path)).map(|lost| lost.bytes);
        let waiting = awaited.or_else(lost).or(assigned);
        let copied =
            || self.transmission.next_copy(path).filter(|_| self.transmission.copies.is_of_everything());
        let longest = |len: usize| COMMON_HEADER_LEN + self.overhead() + len.next_multiple_of(4);
        waiting.or_else(copied).map_or(size, |len| size.max(longest(len)))
    }

    /// Path of a SACK for data that came over these `sources`. `None` while no path is confirmed: then the SACK waits, too
    /// (RFC 9260 §5.4).
    pub(in crate::association) fn path_for_report(&self, now: Instant, sources: Sources) -> Option<PathId> {
        let candidate = |&path: &PathId| sources.paths.contains(path) || self.paths.may_report(path, now);
        let path = self.paths.ack_path(sources.first, sources.last, self.path_ids().filter(candidate));
        self.paths.accepts_data(path).then_some(path)
    }

    /// Path of a FORWARD TSN that is due and is not bundled with data.
    pub(in crate::association) fn path_for_forward(&self) -> Option<PathId> {
        let best = self.transmission.forward_is_due().then(|| self.paths.best_for_control())?;
        let avoid = self.transmission.forward().and_then(Forward::avoids) == Some(best);
        Some(if avoid { self.paths.alternate(best) } else { best })
            .filter(|&path| self.paths.accepts_data(path))
    }

    /// Limit of a path that could send but has no data: the send buffer is full of unacknowledged data, all waiting data is for
    /// other paths, or the application has given none.
    fn why_no_data(&self) -> Limit {
        if self.outbound.buffer.is_full() {
            Limit::SendBuffer
        } else if !self.outbound.is_empty() || self.transmission.outstanding.assigned() > 0 {
            Limit::Scheduler
        } else {
            Limit::Application
        }
    }

    /// Limit that keeps `path` from sending more user data.
    pub(in crate::association) fn limit_of(&self, path: PathId) -> Limit {
        // Called after each packet on a side that only receives: without this a simulation takes 1.5 % more instructions.
        if self.is_idle() {
            return if self.paths.may_carry_new_data(path) { Limit::Application } else { Limit::Path };
        }
        let copies_first = self.transmission.copies.is_of_everything() && self.may_copy(path);
        if self.may_resend(path) || self.may_send_assigned(path) || copies_first {
            return Limit::Nothing;
        }
        match self.may_send_new(path) {
            Ok(_) => Limit::Scheduler,
            Err(limit) => limit,
        }
    }

    /// Returns whether chunks that have a TSN wait for `path`: lost ones, duplicates, or a window probe, which waits at the peer.
    fn has_waiting_chunks(&self, path: PathId) -> bool {
        let copies = &self.transmission.copies;
        self.transmission.next_resend(path).is_some()
            || (copies.is_on() && self.transmission.next_copy(path).is_some())
            || self.transmission.is_probing_window()
    }

    /// The limit to report for `path`, whose own limit is `limit`, and whether pacing applies.
    pub(in crate::association) fn reported(&self, path: PathId, limit: Limit) -> (Limit, bool) {
        let (waiting, none) = (self.outbound.buffer.unsent(), || !self.outbound.has_data_for(path));
        match limit {
            // The path carries data although it is in doubt, because all paths are (RFC 7829 §3). Its window is as
            // small as T3 has made it, and would not matter if the path worked.
            Limit::CongestionWindow | Limit::Pacing | Limit::Burst if !self.paths.usable(path) => {
                (Limit::Path, false)
            }
            // Pacing and Max.Burst are no limits where no data waits.
            Limit::Pacing | Limit::Burst if none() => (self.why_no_data(), false),
            // Nor are windows. Where the send buffer is full, too, data waits in the application.
            Limit::CongestionWindow | Limit::ReceiveBuffer
                if none() && !self.outbound.buffer.is_full() && !self.has_waiting_chunks(path) =>
            {
                (self.why_no_data(), false)
            }
            Limit::Pacing => {
                let window = self.paths.window(path).cwnd;
                let room = window.saturating_sub(self.transmission.outstanding.flight_on(path));
                // Data that does not fit the window has to wait about a round trip with or without pacing.
                (if waiting > room { Limit::CongestionWindow } else { Limit::Pacing }, true)
            }
            // A larger buffer would not help: most of it holds data that waits for other paths, not for acknowledgements.
            Limit::SendBuffer if waiting > self.config.send_buffer.0 / 2 && none() => {
                (Limit::Scheduler, false)
            }
            other => (other, false),
        }
    }
}
