//! Output of a packet: its path, its contents in a fixed order (control chunks, SACK, retransmissions, new data), and the
//! counters. The only writer of an association's packets.

use tresse_policy::engine::earlier;
use tresse_policy::{Instant, PathId, PolicyKind};
use tresse_wire::{COMMON_HEADER_LEN, PacketWriter, Seal};

use super::control::Written;
use super::duplicate;
use super::scheduling::PathTurn;
use super::sender::{Burst, Load, Sender};
use super::{Association, Extension, State};
use crate::interface::datagram::{Ecn, Transmit};
use crate::interface::event::{Event, SchedulerFault};
use crate::interface::stats::Limit;
use crate::outbound::Failures;

/// A packet that was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct WrittenPacket {
    path: PathId,
    len: usize,
    /// The packet is a probe of the path MTU.
    mtu_probe: bool,
    /// The packet is ECN-capable: the network may mark it instead of dropping it.
    markable: bool,
    /// The packet needs a checksum.
    sealed: bool,
}

/// User data in a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum PacketContent {
    Nothing,
    /// Only data that was never sent before.
    New,
    /// At least one chunk that was sent before.
    Again,
}

/// The turn after the last packet. It was determined when another packet for the same destination was requested, and is that of
/// another path: the driver sends the packets that it has before it polls again.
#[derive(Copy, Clone)]
pub(super) struct NextTurn {
    at: Instant,
    turn: PathTurn,
}

impl Association {
    /// Writes the next packets for one destination: up to `most`, all but the last of the same length. Returns `None` if there is
    /// nothing to send.
    pub(crate) fn write_packets(
        &mut self,
        now: Instant,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.give_up(now);
        if self.state == State::ShutdownPending {
            // The shutdown may have waited for keys that are there now.
            self.advance_shutdown(now);
        }
        let start = buffer.len();
        let first = self.write_packet(now, None, buffer)?;
        let mut size = first.len;
        let mut markable = first.markable;
        let mut count = 1;
        // An MTU probe, or a chunk that leaves in IP fragments: no packet of the path may be as long, so none follows.
        let most = if first.len > self.sender.paths.get(first.path).packet_size() { 1 } else { most };
        while count < most
            && let Some(next) = self.write_packet(now, Some(first), buffer)
        {
            size += next.len;
            markable &= next.markable;
            count += 1;
            if next.len < first.len {
                break;
            }
        }
        // If the driver left packets when it last polled, these have waited for the driver.
        if let Some(since) = self.counters.limits.on_departure(now, !self.dry) {
            self.sender.paths.path_mut_quietly(first.path).note_held(since);
        }
        if first.sealed {
            buffer[start..].chunks_mut(first.len).for_each(tresse_wire::seal_zeroed);
        }
        let path = self.sender.paths.get(first.path);
        Some(Transmit {
            local: path.local(),
            remote: path.remote(),
            encapsulation_port: path.encapsulation_port(),
            ecn: if markable { Ecn::Ect0 } else { Ecn::NotEct },
            may_fragment: !first.mtu_probe && first.len > path.packet_size(),
            size,
            segment_size: (count > 1).then_some(first.len),
        })
    }

    /// Appends the next packet to `buffer`, with a checksum of zero. Returns `None` if nothing can be sent.
    ///
    /// With `after`, the packet must leave on the same path and be no longer than that one.
    fn write_packet(
        &mut self,
        now: Instant,
        after: Option<WrittenPacket>,
        buffer: &mut Vec<u8>,
    ) -> Option<WrittenPacket> {
        self.sender.begin(now);
        if after.is_some()
            && (self.control.next_path().is_some() || self.sender.transmission.forward_is_due())
        {
            // A control chunk or FORWARD TSN may need a longer packet than those before.
            return None;
        }
        loop {
            // A turn that was determined at this instant is not determined again.
            let foreseen = self.foreseen.take().filter(|foreseen| foreseen.at == now);
            let turn = foreseen.map(|foreseen| foreseen.turn).or_else(|| self.choose_turn(now));
            let Some(turn) = turn else {
                if self.state.sends_data() && self.sender.may_end_wait() {
                    if after.is_some() {
                        return None;
                    }
                    if self.sender.end_wait() {
                        continue;
                    }
                }
                break;
            };
            let path = turn.path;
            let limit = match after {
                Some(before) if before.path != path => {
                    self.foreseen = Some(NextTurn { at: now, turn });
                    return None;
                }
                Some(before) => before.len,
                None => self.control.next_len().unwrap_or_else(|| self.sender.packet_limit(path)),
            };
            let offered = self.sender.outbound.has_data_for(path);
            if let Some(sending) = self.write_packet_on(now, turn, limit, buffer) {
                return Some(sending);
            }
            if after.is_some() {
                // The next chunk needs a longer packet than those before.
                return None;
            }
            // If the stream schedulers have refused to name a stream for this path, another path gets the turn. Otherwise the
            // path was selected for a chunk that cannot be sent: output waits for an event that changes this.
            let refused = offered && !self.sender.outbound.has_data_for(path);
            // The first control chunk was too long for any packet and was dropped: the next one is tried.
            let more_control = self.control.next_path().is_some();
            let goes_on = refused || more_control || self.state.sends_data() && self.sender.end_wait();
            if !goes_on {
                break;
            }
        }
        self.run_dry(now);
        None
    }

    /// Selects the path of the next packet, in this order: the path of the first control chunk, of a SACK that is due, of
    /// retransmissions, of queued chunks or duplicates, of new data by the path scheduler, of duplicates while a buffer is full,
    /// or of a FORWARD TSN.
    pub(super) fn choose_turn(&mut self, now: Instant) -> Option<PathTurn> {
        if let Some(path) = self.control.next_path() {
            return Some(PathTurn::of(path));
        }
        if !self.state.takes_data() && !self.state.sends_data() {
            return None;
        }
        if self.reception.receiver.is_due(now)
            && let Some(path) = self.sender.path_for_report(now, self.reception.receiver.sources())
        {
            return Some(PathTurn::of(path));
        }
        if !self.state.sends_data() {
            return None;
        }
        let sender = &mut self.sender;
        if sender.is_idle() {
            return sender.path_for_forward().map(PathTurn::of);
        }
        let views = &mut self.workspace.get().views;
        self.reinjection.reinject(now, sender, &mut views.samples);
        if let Some(path) = sender.path_with_awaited().or_else(|| sender.path_with_lost()) {
            return Some(PathTurn::of(path));
        }
        if let Some(path) = sender.path_with_assigned().or_else(|| duplicate::path_for_duplicate(now, sender))
        {
            return Some(PathTurn::of(path));
        }
        if let Some(turn) = self.scheduling.choose(now, sender, views) {
            return Some(turn);
        }
        // A FORWARD TSN is bundled with data if possible (RFC 3758 §3.5 F2).
        sender.path_for_forward().map(PathTurn::of)
    }

    /// User data that the next packet may carry; `None` if it may carry none.
    pub(super) fn load_of(&self, now: Instant, turn: PathTurn) -> Option<Load> {
        if !self.state.sends_data() || self.sender.is_idle() {
            return None;
        }
        if let Some(allowance) = turn.allowance() {
            // The turn is for new data because nothing else may be sent before it.
            return Some(Load::new_data(allowance));
        }
        let (sender, path) = (&self.sender, turn.path);
        let load = Load {
            resends: sender.may_resend(path),
            assigned: sender.may_send_assigned(path),
            copies: sender.may_copy(path) && duplicate::is_wanted(now, sender, path),
            allowance: sender.may_send_new(path).ok(),
        };
        load.any().then_some(load)
    }

    fn write_packet_on(
        &mut self,
        now: Instant,
        turn: PathTurn,
        limit: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<WrittenPacket> {
        let path = turn.path;
        let mut writer = PacketWriter::new(buffer, self.identity.header(), limit);
        if let Some(guard) = self.auth.guard() {
            writer = writer.guarded(*guard);
        }
        self.protection.prepare(&mut writer);
        let cumulative = self.reception.receiver.cumulative_tsn();
        let written = self.control.write(path, cumulative, &mut writer);
        let load = if written.without_data { None } else { self.load_of(now, turn) };
        // A SACK that is not due yet is bundled with data (RFC 9260 §6.1).
        let receiver = &self.reception.receiver;
        if !written.mtu_probe
            && (receiver.is_due(now) || (load.is_some() && receiver.is_pending()))
            && (self.state.takes_data() || self.state.sends_data())
            && self.sender.paths.accepts_data(path)
        {
            self.write_sack(now, path, &mut writer);
        }
        if !written.without_data && self.sender.paths.accepts_data(path) {
            self.sender.write_forward(now, path, &mut writer);
        }
        let data = load.map_or(PacketContent::Nothing, |load| self.write_data(now, path, load, &mut writer));
        if writer.is_empty() {
            writer.discard();
            return None;
        }
        self.auth.authenticate(&mut writer);
        if let Err(fault) = self.protection.seal(&mut writer) {
            // No ABORT is sent: it could not be encrypted either.
            writer.discard();
            self.control.clear();
            self.close(fault.reason());
            return None;
        }
        let len = writer.finish(Seal::Zero);
        self.account(now, path, len, written, data != PacketContent::Nothing);
        // Retransmissions and window probes must not be ECN-capable (RFC 3168 §6.1.5, §6.1.6).
        let markable = data == PacketContent::New
            && self.capabilities.has(Extension::Ecn)
            && !self.sender.transmission.is_probing_window()
            && !self.marks.has_stopped_marking(path);
        // A receiver that finds the association by the address in the ASCONF does not know beforehand what was negotiated
        // (RFC 9653 §5.2).
        let sealed =
            !self.checksum_offload && (written.asconf || !self.capabilities.has(Extension::ZeroChecksum));
        Some(WrittenPacket { path, len, mtu_probe: written.mtu_probe, markable, sealed })
    }

    /// Handles the end of output: nothing more can be sent until the next event.
    fn run_dry(&mut self, now: Instant) {
        if self.renegotiation.reconfig.is_some() {
            self.renegotiation.with_reconfig(
                now,
                self.state,
                &self.sender,
                &self.reception,
                |reconfig, view| reconfig.on_silence(view.sending.progress),
            );
        }
        if !std::mem::replace(&mut self.dry, true) {
            // Notes the limits of each path and of the association, and since when data that pacing had released waited for the
            // driver.
            let (mut total, mut late, mut by_buffers) = (Limit::Path, None, false);
            let sends = self.state.sends_data();
            let limit_of =
                |sender: &Sender, path| if sends { sender.limit_of(path) } else { Limit::Application };
            for path in self.sender.path_ids() {
                let limit = limit_of(&self.sender, path);
                self.sharing.on_limit(path, limit);
                by_buffers |= matches!(limit, Limit::ReceiveBuffer | Limit::SendBuffer);
                let (limit, paced) = self.sender.reported(path, limit);
                let (limit, due) = self.sender.paths.path_mut_quietly(path).note_limit(now, limit, paced);
                total = stronger(limit, total);
                late = earlier(late, due);
            }
            self.counters.limits.note_late(late);
            self.counters.limits.note(now, total);
            let samples = &mut self.workspace.get().views.samples;
            // Computed only if a buffer is full: otherwise a simulation takes 1.3 % more instructions.
            let rated = |path| limit_of(&self.sender, path);
            self.sharing.on_dry(&self.sender, by_buffers.then_some(rated), samples);
            self.reinjection.on_dry(now, &self.sender, samples);
        }
        self.sender.outbound.forget_declined();
        while let Some((name, fault)) = self.sender.outbound.failures.changed().and_then(Failures::pop) {
            let kind = PolicyKind::StreamScheduler;
            self.emit(Event::SchedulerFailed { kind, name, fault });
        }
        if let Some(failed) = self.scheduling.replace_failed() {
            self.note_replaced(PolicyKind::PathScheduler, failed);
        }
        if let Some(failed) = self.sender.paths.windows.pop_failure() {
            self.note_replaced(PolicyKind::CongestionController, failed);
        }
        while let Some(event) = self.sender.pop_low() {
            self.emit(event);
        }
    }

    /// Reports that the policy with this name failed for this reason, and was replaced.
    fn note_replaced(&mut self, kind: PolicyKind, (name, reason): (String, String)) {
        self.policies_replaced += 1;
        self.emit(Event::SchedulerFailed { kind, name, fault: SchedulerFault::Failed { reason } });
    }

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
            self.sender.paths.path_mut_quietly(path).on_sack_sent(now);
            if let Some(heard_by) = self.sender.paths.heard_by(path, now) {
                self.reception.receiver.on_reported_over(path, heard_by);
            }
        }
    }

    /// Writes retransmissions, then the chunks queued on the path or, if there are none, duplicates and new data. A queued chunk
    /// that the peer waits for goes before retransmissions. Returns the kind of the user data.
    pub(super) fn write_data(
        &mut self,
        now: Instant,
        path: PathId,
        load: Load,
        writer: &mut PacketWriter<'_>,
    ) -> PacketContent {
        let sender = &mut self.sender;
        let awaited = load.assigned && sender.awaits_assigned(path);
        let again = load.resends && !awaited && sender.write_resends(now, path, writer);
        // A path scheduler that queues chunks on paths decides on each packet: no other data follows such a chunk.
        let assigned = load.assigned && sender.write_assigned(now, path, writer);
        let copied = load.copies && !assigned && duplicate::write(now, sender, path, writer);
        // The chunks sent again are in flight again, so the allowance changes.
        let allowance =
            if load.resends || load.copies { sender.may_join_packet(path).ok() } else { load.allowance };
        let last = self.state == State::ShutdownPending;
        let new = match allowance.filter(|_| !assigned) {
            Some(allowance) => sender.write_new_data(now, path, Burst { allowance, last }, writer),
            None => 0,
        };
        if new > 0 {
            self.scheduling.on_sent(path, new);
        }
        match (again || copied, assigned || new > 0) {
            (true, _) => PacketContent::Again,
            (false, true) => PacketContent::New,
            (false, false) => PacketContent::Nothing,
        }
    }

    /// Accounts for a sent packet of `len` bytes. `data` says whether it has user data.
    pub(super) fn account(&mut self, now: Instant, path: PathId, len: usize, written: Written, data: bool) {
        self.sender.paths.on_packet_sent(path, len, data);
        if data {
            let was_idle = self.sender.on_data_sent(now, path, len.saturating_sub(COMMON_HEADER_LEN));
            self.sharing.on_sent(path, was_idle);
        }
        if written.without_data && matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            let rto = self.sender.paths.get(self.sender.paths.best_for_control()).rto();
            self.shutdown.start_t2(now, rto, self.sender.config.rto_max);
        }
    }
}

/// The limit of the association, given those of two paths. A full congestion window is due to the network, so the limit of a path
/// with room in its window ranks higher. The limit of a path that is down ranks lowest.
fn stronger(one: Limit, other: Limit) -> Limit {
    if one == other {
        return one;
    }
    const ORDER: [Limit; 11] = [
        Limit::ReceiveBuffer,
        Limit::SendBuffer,
        Limit::Scheduler,
        Limit::Application,
        Limit::Host,
        Limit::Burst,
        Limit::Pacing,
        Limit::CongestionWindow,
        Limit::Full,
        Limit::Nothing,
        Limit::Path,
    ];
    let rank = |limit| ORDER.iter().position(|&other| other == limit);
    if rank(one) <= rank(other) { one } else { other }
}
