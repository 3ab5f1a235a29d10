//! Requests of both sides to reset and add streams (RFC 6525), and to change addresses (RFC 5061). This module passes events
//! to `extensions::reconfig` and `extensions::asconf`, and carries out the actions that they return.

use std::net::IpAddr;

use tresse_policy::{Instant, PathId};
use tresse_wire::{Asconf as AsconfChunk, AsconfAck, Chunk, Packet, Reconfig as ReconfigChunk};

use super::control::{Control, Reason};
use super::input::Disposition;
use super::protected::WAITS_FOR_KEYS;
use super::{Association, Extension, State};
use crate::context::Context as Cx;
use crate::extensions::asconf::{Asconf, Change, Members, Source, StrayAck};
use crate::extensions::auth::AuthState;
use crate::extensions::ecn::Marks;
use crate::extensions::reconfig::{Action, Ask, Reconfig, read, respond};
use crate::inbound::Refusal;
use crate::interface::addresses::AddressChange;
use crate::interface::error::{AddressError, ReconfigurationError};
use crate::interface::event::{CloseReason, Event};
use crate::interface::reconfiguration::Streams;
use crate::outbound::HoldReason;
use crate::transmission::empty_path;

impl Association {
    /// Begins a request of the application to reset or add streams.
    ///
    /// # Errors
    /// See `ReconfigurationError`; nothing is begun then.
    pub(crate) fn reconfigure(&mut self, now: Instant, ask: Ask) -> Result<(), ReconfigurationError> {
        if self.state != State::Established {
            return Err(ReconfigurationError::NotOpen { state: self.state.name() });
        }
        if !self.capabilities.has(Extension::StreamReconfiguration) {
            return Err(ReconfigurationError::NotNegotiated);
        }
        if self.protection.is_pending() {
            return Err(ReconfigurationError::NotOpen { state: WAITS_FOR_KEYS });
        }
        let actions = self.renegotiation.with_reconfig(
            now,
            self.state,
            &self.sender,
            &self.reception,
            |reconfig, view| reconfig.ask(view, ask),
        )?;
        self.carry_out(actions);
        self.advance_reconfig(now);
        self.request_output();
        Ok(())
    }

    /// Handles RE-CONFIG that arrived over `via`; responses leave there, too (RFC 6525 §5.2.1).
    pub(super) fn on_reconfig(&mut self, now: Instant, via: PathId, chunk: &ReconfigChunk<'_>) {
        if !self.state.takes_data() && !self.state.sends_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let Some(params) = read(&chunk.params) else {
            self.counters.discards.malformed_chunk += 1;
            return;
        };
        let mut answers = Vec::new();
        for param in params {
            let actions = self.renegotiation.with_reconfig(
                now,
                self.state,
                &self.sender,
                &self.reception,
                |reconfig, view| reconfig.on_param(view, param, &mut answers),
            );
            self.carry_out(actions);
        }
        if !answers.is_empty() {
            self.carry_out(vec![respond(via, &answers)]);
        }
    }

    /// Takes every step of a stream reconfiguration that has become possible. Called after a SACK, after DATA and after a
    /// response.
    #[inline]
    pub(super) fn advance_reconfig(&mut self, now: Instant) {
        if self.renegotiation.reconfig.is_some() {
            let actions = self.renegotiation.with_reconfig(
                now,
                self.state,
                &self.sender,
                &self.reception,
                Reconfig::advance,
            );
            self.carry_out(actions);
        }
    }

    /// Handles the timer of the own request, if it has expired: the request is retransmitted, on another path if there is one
    /// (RFC 6525 §5.1.1).
    pub(super) fn on_reconfig_timer(&mut self, now: Instant) {
        let Some(reconfig) = &mut self.renegotiation.reconfig else { return };
        let Some(timeout) = reconfig.pop_due(now) else { return };
        // While the peer may still send data, the request is kept: the peer may already number its data as requested.
        if !self.state.sends_data() && !self.state.takes_data() {
            reconfig.abandon();
            return;
        }
        let mut path = self.sender.paths.best_for_control();
        if timeout.timeouts > 0 {
            let failure = self.sender.paths.on_request_expired(timeout.path);
            self.on_failure(now, failure);
            path = self.sender.paths.alternate(timeout.path);
        }
        // Without a response it is unknown whether the peer has reset its numbers, so the association cannot continue. Answered
        // heartbeats clear the error counters, so the request counts its own timeouts.
        if timeout.timeouts > self.sender.config.association_max_retrans {
            self.abort(None, CloseReason::PathsLost);
        }
        if self.state != State::Closed {
            let rto = self.sender.paths.get(path).rto();
            let longest = self.sender.config.rto_max;
            let send = self.renegotiation.with_reconfig(
                now,
                self.state,
                &self.sender,
                &self.reception,
                |reconfig, _| reconfig.send(now, path, rto, longest),
            );
            self.carry_out(send.into_iter().collect());
        }
        self.spread_path_changes(now);
    }

    /// Carries out the actions of stream reconfiguration on the other modules.
    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Hold(streams) => self.sender.outbound.hold(streams, HoldReason::Renumbering),
                Action::Resume => self.sender.outbound.resume(),
                Action::ResetOutbound(streams) => self.sender.outbound.reset(&streams),
                Action::ResetInbound(streams) => {
                    self.reception.reset(&streams, self.reception.receiver.highest() + 1);
                    self.emit(Event::InboundReset(streams));
                }
                Action::AddOutbound(count) => {
                    self.sender.outbound.add_streams(count);
                    let (outbound_streams, inbound_streams) = self.streams();
                    self.emit(Event::StreamsAdded { outbound_streams, inbound_streams });
                }
                Action::AddInbound(count) => {
                    self.reception.inbound.add_streams(count);
                    let (outbound_streams, inbound_streams) = self.streams();
                    self.emit(Event::StreamsAdded { outbound_streams, inbound_streams });
                }
                Action::Renumber { theirs, ours } => {
                    let epoch = self.reception.receiver.adopt(theirs);
                    self.sender.transmission.renumber(ours);
                    self.sender.outbound.reset(&Streams::All);
                    self.reception.forget_all(epoch);
                    self.marks.changed().into_iter().for_each(Marks::forget_echoes);
                    // Messages that the peer abandoned after it had reset its numbers.
                    let skipped = self
                        .renegotiation
                        .reconfig
                        .as_deref_mut()
                        .map(|reconfig| reconfig.take_skipped(epoch));
                    let (arrived, skipped) =
                        (self.reception.receiver.cumulative(), skipped.unwrap_or_default().into_iter());
                    if let Err(Refusal::Protocol(fault)) = self.reception.skip(arrived, skipped) {
                        self.fault(fault);
                    }
                }
                Action::RenumberForPeer { theirs } => {
                    self.reception.renumber(theirs);
                    self.marks.changed().into_iter().for_each(Marks::forget_echoes);
                    self.sender.outbound.reset(&Streams::All);
                    self.sender.outbound.resume();
                }
                Action::Send { path, body } => self.control.push(path, Control::Reconfig(body)),
                Action::Respond { path, body } => {
                    self.control.push(path, Control::Reconfig(body));
                    self.reception.receiver.demand();
                }
                Action::DiscardStray => self.counters.discards.stray_reconfiguration += 1,
                Action::Tell(event) => self.emit(event),
            }
        }
    }

    /// Begins a request of the application to change a local address.
    ///
    /// # Errors
    /// The change is impossible, or cannot be requested from the peer; nothing is begun then.
    pub(crate) fn change_address(
        &mut self,
        now: Instant,
        change: AddressChange,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        if self.state != State::Established {
            return Err(AddressError::NotOpen { state: self.state.name() });
        }
        if !self.capabilities.has(Extension::DynamicAddresses) {
            return Err(AddressError::NotAgreed);
        }
        if self.protection.is_pending() {
            return Err(AddressError::NotOpen { state: WAITS_FOR_KEYS });
        }
        self.with_asconf(now, |asconf, members| asconf.ask(members, change, address))?;
        self.send_asconf(now, None);
        self.spread_path_changes(now);
        self.request_output();
        Ok(())
    }

    /// Handles ASCONF. `first` says whether it is the first one of its packet.
    pub(crate) fn on_asconf(&mut self, now: Instant, source: Source, asconf: &AsconfChunk<'_>, first: bool) {
        if !self.state.changes_addresses() || !self.has_dynamic_addresses() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let granted = self.with_asconf(now, |own, members| own.on_request(members, source, asconf, first));
        let Some(granted) = granted else {
            self.counters.discards.stray_asconf += 1;
            return;
        };
        if granted.is_new {
            self.spread_path_changes(now);
        }
        let path = self.sender.paths.between(source.local, source.remote);
        let path = path.unwrap_or_else(|| self.sender.paths.best_for_control());
        self.control.push(path, Control::AsconfAck { serial: asconf.serial, body: granted.body });
    }

    /// Handles a packet with this association's tag from an unknown address. It may be a new address of the peer, if an ASCONF in
    /// the packet names a known address (RFC 5061 §5.2 D2). Other chunks are ignored. Returns whether there was such an ASCONF.
    pub(crate) fn on_unknown_source(&mut self, cx: &mut Cx<'_>, source: Source, packet: &Packet<'_>) -> bool {
        let (mut gate, mut chunks, mut count) = (AuthState::default(), packet.chunks(), 0);
        loop {
            let covered = chunks.remaining();
            let Some(chunk) = chunks.next() else { break };
            if self.screen(&mut gate, &chunk, covered, self.sender.paths.best_for_control())
                == Disposition::Stop
            {
                break;
            }
            // A packet that was decrypted is from the peer, whatever address the ASCONF names.
            let protected = self.protection.came_protected();
            // The unspecified address names no association (RFC 5061 §4.1.1), as used behind a NAT: the tag finds it.
            let is_peers =
                |named: IpAddr| named.is_unspecified() || self.sender.paths.find_remote(named).is_some();
            if let Ok(Chunk::Asconf(asconf)) = chunk
                && (protected || gate == AuthState::Open && is_peers(asconf.address))
            {
                self.on_asconf(cx.now, source, &asconf, count == 0);
                count += 1;
            }
        }
        // The peer waits until its address behind a NAT is confirmed, so a heartbeat is sent at once.
        if let Some(path) = self.sender.paths.find(source.local, source.remote)
            && count > 0
            && !self.sender.paths.accepts_data(path)
        {
            self.send_heartbeat(cx, path);
        }
        self.request_output();
        count > 0
    }

    /// Handles T4, if it has expired: the ASCONF is retransmitted, on another path if there is one (RFC 5061 §5.1 B1 to B5).
    pub(super) fn on_asconf_timer(&mut self, now: Instant) {
        let Some(path) = self.renegotiation.asconf.as_mut().and_then(|asconf| asconf.pop_due(now)) else {
            return;
        };
        if !self.state.changes_addresses() || !self.has_dynamic_addresses() {
            return;
        }
        // The peer's answers to other chunks clear the error counters, so these would never end the retransmissions. As in
        // usrsctp, such a peer counts as one that does not support ASCONF.
        if self.sender.paths.is_peer_heard()
            && self.renegotiation.asconf().on_ignored() > self.sender.config.association_max_retrans
        {
            self.with_asconf(now, Asconf::on_unsupported);
            self.spread_path_changes(now);
            return;
        }
        // A request for the source address follows an unanswered packet, for which its path has already counted an error.
        if !self.renegotiation.asconf.as_ref().is_some_and(|asconf| asconf.asks_for_source()) {
            let failure = self.sender.paths.on_request_expired(path);
            self.on_failure(now, failure);
        }
        if self.state != State::Closed {
            self.send_asconf(now, Some(path));
        }
        self.spread_path_changes(now);
    }

    /// Handles ASCONF-ACK that arrived over `via`. It is accepted in SHUTDOWN-ACK-SENT, too, where no ASCONF is sent any more:
    /// SHUTDOWN ACK must not leave from an address that the peer has removed.
    pub(super) fn on_asconf_ack(&mut self, now: Instant, via: PathId, ack: &AsconfAck<'_>) {
        if self.state == State::Closed || !self.has_dynamic_addresses() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        match self.with_asconf(now, |asconf, members| asconf.on_ack(members, ack.serial, &ack.params)) {
            Ok(()) => self.send_asconf(now, None),
            Err(StrayAck::Old) => self.counters.discards.stray_asconf += 1,
            Err(StrayAck::Illegal) => {
                self.control.clear();
                self.control.push(via, Control::Abort(Some(Reason::IllegalAsconfAck)));
                self.close(CloseReason::PeerFault("an answer to an ASCONF that was never sent"));
            }
        }
    }

    /// Sends the next ASCONF, if none is outstanding; or retransmits the outstanding one, which was last sent over `before`.
    fn send_asconf(&mut self, now: Instant, before: Option<PathId>) {
        let may_change = self.state.changes_addresses() && self.has_dynamic_addresses();
        let Some(asconf) = self.renegotiation.asconf.as_mut().filter(|_| may_change) else { return };
        if before.is_none() && !asconf.begin(&self.sender.paths) {
            return;
        }
        if let Some(chunk) = asconf.send(now, &self.sender.paths, before) {
            let body = chunk.body.to_vec();
            let control = Control::Asconf { serial: chunk.serial, address: chunk.address, body };
            self.control.push(chunk.path, control);
        }
        self.request_output();
    }

    /// Handles a packet on `path` that was not answered. With UDP encapsulation a NAT may have given this side an address that
    /// the peer does not know: an ASCONF asks the peer to add the source address (RFC 5061 §4.2). Otherwise another pair of
    /// addresses may work.
    pub(super) fn on_unanswered(&mut self, now: Instant, path: PathId) {
        if self.sender.paths.get(path).encapsulation_port().is_some()
            && self.state.changes_addresses()
            && self.has_dynamic_addresses()
            && self.with_asconf(now, |asconf, members| asconf.on_unanswered(members.paths, path))
        {
            self.send_asconf(now, None);
        } else if self.state.changes_addresses() && self.renegotiation.asconf.is_some() {
            self.with_asconf(now, |_, members| members.try_next_pair(path));
        }
    }

    /// Handles a packet between known addresses, for which `path` was found. After addresses have changed, a path that does not
    /// work may take this pair. Returns the path of the packet.
    pub(crate) fn path_of(&mut self, now: Instant, path: PathId, pair: (IpAddr, IpAddr)) -> PathId {
        let paths = &self.sender.paths;
        if paths.get(path).local() == pair.0
            || self.renegotiation.asconf.is_none()
            || !self.state.changes_addresses()
            || paths.unproven(1).next().is_none()
        {
            return path;
        }
        self.with_asconf(now, |_, members| members.take_pair(pair));
        self.sender.paths.between(pair.0, pair.1).unwrap_or(path)
    }

    /// Returns whether dynamic addresses were negotiated, and keys are installed if protection was.
    pub(super) fn has_dynamic_addresses(&self) -> bool {
        self.capabilities.has(Extension::DynamicAddresses) && !self.protection.is_pending()
    }

    /// Calls `step` on the state of dynamic addresses and the paths, and carries out the changes of paths on the other modules.
    pub(super) fn with_asconf<T>(
        &mut self,
        now: Instant,
        step: impl FnOnce(&mut Asconf, &mut Members<'_>) -> T,
    ) -> T {
        let asconf = self.renegotiation.asconf();
        let mut members = Members::new(&mut self.sender.paths, &self.sender.config, now);
        let outcome = step(asconf, &mut members);
        for change in members.into_changes() {
            match change {
                Change::Joined(path) => {
                    self.sender.on_path_joined(path);
                    self.sharing.forget(path);
                    if let Some(marks) = self.marks.changed() {
                        marks.renew_path(path);
                    }
                }
                Change::Emptied { path, data, control } => {
                    empty_path(&mut self.sender.transmission, path, data);
                    self.control.move_on(path, control);
                }
                Change::Tell(event) => self.emit(event),
                Change::DiscardMalformed => self.counters.discards.malformed_chunk += 1,
            }
        }
        self.sender.refresh_usable();
        outcome
    }
}
