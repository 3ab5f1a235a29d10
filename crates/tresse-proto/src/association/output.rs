//! Output of a packet: its path, its contents in a fixed order (control chunks, SACK, retransmissions, new data), and the
//! counters. The only writer of an association's packets.

use tresse_policy::engine::earlier;
use tresse_policy::{Instant, PathId, PolicyKind};
use tresse_wire::{COMMON_HEADER_LEN, PacketWriter, Seal};

use super::control::Written;
use super::duplicate::Duplicates;
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
    /// It asks whether its length passes.
    mtu_probe: bool,
    /// The network may mark it instead of dropping it.
    markable: bool,
    /// It needs its checksum.
    sealed: bool,
}

/// User data in a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum PacketContent {
    Nothing,
    /// Only what was never sent before.
    New,
    /// Something that was sent before.
    Again,
}

/// The turn after what was written last. It was found out when a packet more was wanted for the same destination, and
/// the turn was another path's: the driver takes what there is before it asks again.
#[derive(Copy, Clone)]
pub(super) struct NextTurn {
    at: Instant,
    turn: PathTurn,
}

impl Association {
    /// The next packets for one destination: up to `most`, all but the last of one length.
    pub(crate) fn write_packets(
        &mut self,
        now: Instant,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.give_up(now);
        if self.state == State::ShutdownPending {
            // One that waited for keys has them, maybe.
            self.advance_shutdown(now);
        }
        let start = buffer.len();
        let first = self.write_packet(now, None, buffer)?;
        let mut size = first.len;
        let mut markable = first.markable;
        let mut count = 1;
        // A probe, or a chunk that leaves in IP fragments: what would follow may be no longer than a packet of the path.
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
        // Where there were more than the driver took when it last asked, these have waited for it.
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

    /// Appends the next packet to `buffer`, its checksum left out; `None` when nothing may or need be sent.
    ///
    /// With `after`, the packet must follow one on the same path and be no longer than it.
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
            // A control chunk may need more than the length of the packets before it.
            return None;
        }
        loop {
            // What it has just answered is not asked again.
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
                // What comes next needs a longer packet than those before it.
                return None;
            }
            // A path for which nobody names anything any more leaves the turn to the others. Else whoever chose the
            // path named something that cannot be sent: wait for what changes that.
            let refused = offered && !self.sender.outbound.has_data_for(path);
            // The first control chunk was too long for any packet and was dropped: the next one has its turn.
            let more_control = self.control.next_path().is_some();
            let goes_on = refused || more_control || self.state.sends_data() && self.sender.end_wait();
            if !goes_on {
                break;
            }
        }
        self.run_dry(now);
        None
    }

    /// Selects the path of the next packet: the one that a control chunk insists on, that of a SACK that is due, one
    /// with something to send again, or the path scheduler's choice for new data.
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
        let duplicates = Duplicates { now, sharing: &self.sharing, samples: &mut views.samples };
        if let Some(path) = sender.path_with_assigned().or_else(|| duplicates.path_before_new_data(sender)) {
            return Some(PathTurn::of(path));
        }
        if let Some(turn) = self.scheduling.choose(now, sender, views) {
            return Some(turn);
        }
        let mut duplicates = Duplicates { now, sharing: &self.sharing, samples: &mut views.samples };
        // A FORWARD TSN rides with data if it can (RFC 3758 §3.5 F2).
        duplicates.path_when_blocked(sender).or_else(|| sender.path_for_forward()).map(PathTurn::of)
    }

    /// User data that the next packet may have; `None` for none at all.
    pub(super) fn load_of(&mut self, now: Instant, turn: PathTurn) -> Option<Load> {
        if !self.state.sends_data() || self.sender.is_idle() {
            return None;
        }
        if let Some(allowance) = turn.allowance() {
            // New data was chosen because nothing may go before it.
            return Some(Load::new_data(allowance));
        }
        let (sender, path) = (&self.sender, turn.path);
        let samples = &mut self.workspace.get().views.samples;
        let mut duplicates = Duplicates { now, sharing: &self.sharing, samples };
        let load = Load {
            resends: sender.may_resend(path),
            assigned: sender.may_send_assigned(path),
            copies: sender.may_copy(path) && duplicates.is_wanted(sender, path),
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
        // A report that is not due yet rides along with data (RFC 9260 §6.1).
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
            // The association ends without a word, for it has none left.
            writer.discard();
            self.control.clear();
            self.close(fault.reason());
            return None;
        }
        let len = writer.finish(Seal::Zero);
        self.account(now, path, len, written, data != PacketContent::Nothing);
        // What is sent again or probes a closed window must not be marked (RFC 3168 §6.1.5, §6.1.6).
        let markable = data == PacketContent::New
            && self.capabilities.has(Extension::Ecn)
            && !self.sender.transmission.is_probing_window()
            && !self.marks.has_stopped_marking(path);
        // A receiver that finds the association by the address in the ASCONF does not know yet what was negotiated
        // (RFC 9653 §5.2).
        let sealed =
            !self.checksum_offload && (written.asconf || !self.capabilities.has(Extension::ZeroChecksum));
        Some(WrittenPacket { path, len, mtu_probe: written.mtu_probe, markable, sealed })
    }

    /// Nothing more can be sent until something happens.
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
            // What keeps each path, and the association, from sending more; and when there may be more to send without
            // anything happening.
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
            // Asked only if a buffer is full: otherwise a simulation takes 1.3 % more instructions.
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

    /// Another policy goes on in the place of the one with this name, for this reason.
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

    /// Writes retransmissions, then chunks queued on the path or duplicates of chunks in flight on another, or else new data.
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
        // A scheduler that assigns data says for each packet where it goes: nothing else follows that.
        let assigned = load.assigned && sender.write_assigned(now, path, writer);
        let copied = load.copies && !assigned && {
            let samples = &mut self.workspace.get().views.samples;
            Duplicates { now, sharing: &self.sharing, samples }.write(sender, path, writer)
        };
        // What goes again is in flight again.
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

    /// A packet of `len` bytes was sent.
    pub(super) fn account(&mut self, now: Instant, path: PathId, len: usize, written: Written, data: bool) {
        self.sender.paths.on_packet_sent(path, len, data);
        if data {
            let was_idle = self.sender.on_data_sent(now, path, len.saturating_sub(COMMON_HEADER_LEN));
            self.sharing.on_sent(now, &self.sender, path, was_idle);
        }
        if written.without_data && matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            let rto = self.sender.paths.get(self.sender.paths.best_for_control()).rto();
            self.shutdown.start_t2(now, rto, self.sender.config.rto_max);
        }
    }
}

/// The one of two paths' limits that is that of the association: a full window is the network's business, so a path
/// that is kept back although its window has room counts for more. One that is down counts for nothing.
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
