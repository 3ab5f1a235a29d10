//! A packet out: lay it out in a fixed order (control, SACK, what goes again, new data) on the path whose turn it is,
//! and account for it. The only writer of an association's packets.

use std::cell::LazyCell;

use tresse_policy::{Instant, PathId, PolicyKind};
use tresse_wire::{COMMON_HEADER_LEN, PacketWriter, Seal};

use super::control::Written;
use super::turn::{Load, Turn};
use super::{Association, Extension, State, protected};
use crate::config::LossDetection;
use crate::fragment::Cut;
use crate::interface::event::Event;
use crate::transmission::Waiting;

/// A packet that was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sending {
    pub(crate) path: PathId,
    pub(crate) len: usize,
    /// It asks whether its length passes.
    pub(crate) mtu_probe: bool,
    /// The network may mark it instead of dropping it.
    pub(crate) markable: bool,
}

/// What a packet carries of user data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Carried {
    Nothing,
    /// Only what was never sent before.
    New,
    /// Something that was sent before.
    Again,
}

impl Association {
    /// Appends the next packet to `buffer`, its checksum left out; `None` when nothing may or need be sent.
    ///
    /// With `after`, the packet must follow one on the same path and be no longer than it.
    pub(crate) fn write_packet(
        &mut self,
        now: Instant,
        after: Option<Sending>,
        buffer: &mut Vec<u8>,
    ) -> Option<Sending> {
        self.bursts.begin(now);
        if after.is_some() && (self.control.next_path().is_some() || self.transmission.forward_is_due()) {
            // A control chunk may need more than the length of the packets before it.
            return None;
        }
        loop {
            let Some(turn) = self.next_turn(now) else {
                if self.may_end_wait() {
                    if after.is_some() {
                        return None;
                    }
                    if self.ends_wait() {
                        continue;
                    }
                }
                break;
            };
            let path = turn.path;
            let limit = match after {
                Some(before) if before.path != path => {
                    self.foresee(now, turn);
                    return None;
                }
                Some(before) => before.len,
                None => self.packet_limit(path),
            };
            let offered = self.outbound.has_data_for(path);
            if let Some(sending) = self.write_packet_on(now, turn, limit, buffer) {
                return Some(sending);
            }
            if after.is_some() {
                // What comes next needs a longer packet than those before it.
                return None;
            }
            // A path for which nobody names anything any more leaves the turn to the others. Else whoever chose the
            // path named something that cannot be sent: wait for what changes that.
            let refused = offered && !self.outbound.has_data_for(path);
            if !refused && !self.ends_wait() {
                break;
            }
        }
        self.run_dry(now);
        None
    }

    fn write_packet_on(
        &mut self,
        now: Instant,
        turn: Turn,
        limit: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Sending> {
        let path = turn.path;
        let mut writer = PacketWriter::new(buffer, self.header(), limit);
        if let Some(guard) = self.auth.guard() {
            writer = writer.guarded(guard);
        }
        writer = self.protection.prepare(writer);
        let cumulative = self.reception.receiver.cumulative_tsn();
        let written = self.control.write(path, cumulative, &mut writer);
        if written.mtu_probe {
            let len = close_packet(self, writer)?;
            self.account(now, path, len, written, false);
            return Some(Sending { path, len, mtu_probe: true, markable: false });
        }
        let load = if written.without_data { None } else { self.load_of(now, turn) };
        if self.wants_sack(now, path, load.is_some()) {
            self.write_sack(now, path, &mut writer);
        }
        self.write_forward(now, path, !written.without_data, &mut writer);
        let data = load.map_or(Carried::Nothing, |load| self.write_data(now, path, load, &mut writer));
        if writer.is_empty() {
            writer.discard();
            return None;
        }
        let len = close_packet(self, writer)?;
        self.account(now, path, len, written, data != Carried::Nothing);
        // What is sent again or probes a closed window must not be marked (RFC 3168 §6.1.5, §6.1.6).
        let markable = data == Carried::New
            && self.capabilities.has(Extension::Ecn)
            && !self.transmission.is_probing_window()
            && !self.marks.distrusts(path);
        Some(Sending { path, len, mtu_probe: false, markable })
    }

    /// How large the next packet on `path` may be. A chunk that was cut when packets were larger, before
    /// the peer went behind a UDP header for instance, leaves in IP fragments (RFC 9260 §6.9).
    fn packet_limit(&self, path: PathId) -> usize {
        if let Some(len) = self.control.next_len() {
            return len;
        }
        let size = self.paths.get(path).packet_size();
        let waiting =
            self.transmission.next_resend(path).filter(|_| self.may_resend(path)).map(|lost| lost.bytes);
        let waiting = waiting.or_else(|| self.transmission.next_assigned(path).map(|(_, len)| len));
        let copied = || self.transmission.next_copy(path).filter(|_| self.transmission.copies_everything());
        match waiting.or_else(copied) {
            Some(len) => size.max(
                COMMON_HEADER_LEN
                    + self.auth.overhead()
                    + self.protection.overhead()
                    + len.next_multiple_of(4),
            ),
            None => size,
        }
    }

    /// Nothing more can be sent until something happens.
    // Never: its many questions would take registers from the writing of packets.
    #[inline(never)]
    fn run_dry(&mut self, now: Instant) {
        if self.reconfig.is_some() {
            self.with_reconfig(now, |reconfig, view| reconfig.on_silence(view.sending.progress));
        }
        if !std::mem::replace(&mut self.dry, true) {
            self.note_limits(now);
            self.note_stall();
            self.note_reinjection_time(now);
        }
        self.outbound.forget_declined();
        while let Some((name, fault)) = self.outbound.pop_failure() {
            let kind = PolicyKind::StreamScheduler;
            self.tell(Event::SchedulerFailed { kind, name, fault });
        }
        self.replace_failed_path_scheduler();
        if let Some((name, reason)) = self.paths.pop_controller_failure() {
            self.on_policy_replaced(PolicyKind::CongestionController, name, reason);
        }
        self.tell_low_water();
    }

    /// Whether a report leaves with the next packet: one that is not due yet rides along with data (RFC 9260 §6.1).
    fn wants_sack(&self, now: Instant, path: PathId, data_follows: bool) -> bool {
        (self.reception.receiver.is_due(now) || (data_follows && self.reception.receiver.is_pending()))
            && (self.state.takes_data() || self.state.sends_data())
            && self.paths.accepts_data(path)
    }

    // Never: likewise.
    #[inline(never)]
    fn write_sack(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) {
        self.marks.write_echoes(writer);
        let window = u32::try_from(self.reception.inbound.window()).unwrap_or(u32::MAX);
        if self
            .reception
            .receiver
            .write_report(window, self.capabilities.has(Extension::NrSack), writer)
            .is_ok()
        {
            self.counters.sacks_sent += 1;
            self.paths.on_sack_sent(path, now);
            if let Some(heard_by) = self.paths.heard_by(path, now) {
                self.reception.receiver.on_reported_over(path, heard_by);
            }
        }
    }

    /// Writes what goes again, then what was assigned to the path or is under way on another, or else new data.
    fn write_data(
        &mut self,
        now: Instant,
        path: PathId,
        load: Load,
        writer: &mut PacketWriter<'_>,
    ) -> Carried {
        let again = load.resends && self.write_resends(now, path, writer);
        // A scheduler that assigns data says for each packet where it goes: nothing else follows that.
        let assigned = load.assigned && self.write_assigned(now, path, writer);
        let copied = load.copies && !assigned && self.write_copies(now, path, writer);
        // What goes again is in flight again.
        let allowance =
            if load.resends || load.copies { self.may_join_packet(path).ok() } else { load.allowance };
        let allowance = allowance.filter(|_| !assigned);
        let new = allowance.is_some_and(|allowance| self.write_new_data(now, path, allowance, writer));
        match (again || copied, assigned || new) {
            (true, _) => Carried::Again,
            (false, true) => Carried::New,
            (false, false) => Carried::Nothing,
        }
    }

    /// Appends user data to a packet that the set-up has begun; answers whether there was any.
    pub(super) fn write_early(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        self.bursts.begin(now);
        let load = self.load_of(now, Turn::of(path));
        load.is_some_and(|load| self.write_data(now, path, load, writer) != Carried::Nothing)
    }

    /// This packet was `len` bytes long.
    pub(super) fn on_sent_behind_cookie(&mut self, now: Instant, path: PathId, len: usize) {
        self.account(now, path, len, Written::default(), true);
    }

    fn write_resends(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let carrier = self.capabilities.carrier();
        let (mut any, mut lowest) = (false, false);
        while let Some(Waiting { index, bytes, early }) = self.transmission.next_resend(path)
            && writer.room() >= bytes
        {
            lowest |= !any && !early && self.transmission.is_lowest_on(path, index);
            let Some(data) = self.transmission.resend(now, index) else { break };
            any |= data.write(carrier, writer).is_ok();
        }
        if any {
            self.transmission.on_resent(path);
            // RFC 9260 §6.1: a T3 that runs starts over when the earliest outstanding chunk of the path goes again, and
            // only then. Under CMT that is the lowest TSN of the path, whatever other paths have in flight. A chunk that goes
            // again early leaves T3 alone: else a path that never answers would never be found.
            if lowest && self.paths.get(path).t3_runs() {
                self.paths.restart_t3(path, now);
            }
        }
        any
    }

    fn write_new_data(
        &mut self,
        now: Instant,
        path: PathId,
        mut allowance: usize,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let carrier = self.capabilities.carrier();
        let (header, full) = (carrier.header_len(), self.full_payload());
        let (paths, flight) = (&self.paths, self.transmission.flight_on(path));
        let view = LazyCell::new(|| paths.view(path, flight, true));
        let mut bytes = 0;
        let short_of_room = loop {
            let room = writer.room().saturating_sub(header).min(full);
            if room == 0 {
                break true;
            }
            let allowed = allowance.saturating_sub(header);
            let Some(Cut { mut fragment, pledge }) = self.outbound.take(path, &view, room, full, allowed)
            else {
                break allowed > room;
            };
            let chunk = header + fragment.payload.len();
            // What a SHUTDOWN waits for is to be reported at once (RFC 7053 §4.2), and what ends all there is to send: the
            // peer's delay would stand for a loss.
            let asks =
                self.state == State::ShutdownPending || self.config.loss_detection == LossDetection::Rack;
            if asks && self.outbound.is_empty()
                || self.transmission.hurries(chunk, header + full, || {
                    self.transmission.flight_on(path) + chunk >= self.paths.window(path).gate()
                })
            {
                fragment.flags.hurry();
            }
            allowance = allowance.saturating_sub(chunk);
            bytes += chunk;
            let written = self.transmission.number(&fragment).write(carrier, writer);
            self.transmission.record(now, fragment, pledge, path);
            // Behind a chunk that went into a window too small for it nothing else may go.
            allowance = allowance.min(self.transmission.room_at_peer());
            if written.is_err() {
                break false;
            }
        };
        if bytes > 0 {
            self.outbound.on_packet_end(path);
            self.path_scheduler.on_sent(path, bytes);
            if short_of_room && !self.outbound.is_empty() {
                self.paths.on_more_waiting(path);
            }
        }
        bytes > 0
    }

    fn account(&mut self, now: Instant, path: PathId, len: usize, written: Written, data: bool) {
        self.paths.on_packet_sent(path, len, data);
        if data {
            self.bursts.count(path);
            let late = self.transmission.is_answered_late(path);
            let was_idle = self.paths.on_data_sent(path, now, len.saturating_sub(COMMON_HEADER_LEN), late);
            self.note_sharing_sent(now, path, was_idle);
        }
        if written.without_data {
            self.on_shutdown_chunk_sent(now);
        }
    }
}

/// Completes a packet, but for its checksum; `None` where no more may leave.
#[inline]
fn close_packet(association: &mut Association, mut writer: PacketWriter<'_>) -> Option<usize> {
    association.auth.authenticate(&mut writer);
    if let Err(fault) = association.protection.seal(&mut writer) {
        writer.discard();
        protected::on_seal_fault(association, fault);
        return None;
    }
    Some(writer.finish(Seal::Zero))
}
