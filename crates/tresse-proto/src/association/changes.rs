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
    /// Begins what the application asks of streams.
    ///
    /// # Errors
    /// See `ReconfigurationError`; nothing was begun then.
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

    /// RE-CONFIG arrived over `via`: answers go back there (RFC 6525 §5.2.1).
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

    /// Takes every step that has become possible: after a SACK, after DATA, after an answer.
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

    /// The own request was not answered: it is retransmitted, on another path if there is one (RFC 6525 §5.1.1).
    pub(super) fn on_reconfig_timer(&mut self, now: Instant) {
        let Some(reconfig) = &mut self.renegotiation.reconfig else { return };
        let Some(timeout) = reconfig.pop_due(now) else { return };
        // A peer that may still send has to be understood: it may have begun anew already.
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
        // Whether the peer has begun anew is not known, so there is no going on without an answer. Heartbeats
        // that it does answer must not hide that.
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

    /// Does to the engines what stream reconfiguration wants done.
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
                    // Messages that the peer gave up after it had begun anew.
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

    /// Begins what the application asks of an own address.
    ///
    /// # Errors
    /// A change that is impossible, or that the peer cannot be asked for; nothing was begun then.
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

    /// ASCONF arrived; `first` says that it is the first of its packet.
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

    /// A packet with this association's tag from an address that is not the peer's: the peer may have a new one,
    /// and say so in an ASCONF that names an address by which it is known (RFC 5061 §5.2 D2). Nothing else of the
    /// packet is looked at. Returns whether there was such a request.
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
            // What opened is the peer's, whatever address it names.
            let protected = self.protection.came_protected();
            // Of zeros it names no association (RFC 5061 §4.1.1), as behind a translator: the tag does.
            let is_peers =
                |named: IpAddr| named.is_unspecified() || self.sender.paths.find_remote(named).is_some();
            if let Ok(Chunk::Asconf(asconf)) = chunk
                && (protected || gate == AuthState::Open && is_peers(asconf.address))
            {
                self.on_asconf(cx.now, source, &asconf, count == 0);
                count += 1;
            }
        }
        // A translator's address works as soon as it answers: the peer waits for it.
        if let Some(path) = self.sender.paths.find(source.local, source.remote)
            && count > 0
            && !self.sender.paths.accepts_data(path)
        {
            self.send_heartbeat(cx, path);
        }
        self.request_output();
        count > 0
    }

    /// T4 may have expired: the chunk is retransmitted, on another path if there is one (RFC 5061 §5.1 B1 to B5).
    pub(super) fn on_asconf_timer(&mut self, now: Instant) {
        let Some(path) = self.renegotiation.asconf.as_mut().and_then(|asconf| asconf.pop_due(now)) else {
            return;
        };
        if !self.state.changes_addresses() || !self.has_dynamic_addresses() {
            return;
        }
        // Answers to other chunks clear the error counters, so these would never end the repetitions. As in usrsctp, such a
        // peer counts as one that does not understand ASCONF.
        if self.sender.paths.is_peer_heard()
            && self.renegotiation.asconf().on_ignored() > self.sender.config.association_max_retrans
        {
            self.with_asconf(now, Asconf::on_unsupported);
            self.spread_path_changes(now);
            return;
        }
        // A path on which a translator is looked for has been found silent before, and was charged for it then.
        if !self.renegotiation.asconf.as_ref().is_some_and(|asconf| asconf.asks_for_source()) {
            let failure = self.sender.paths.on_request_expired(path);
            self.on_failure(now, failure);
        }
        if self.state != State::Closed {
            self.send_asconf(now, Some(path));
        }
        self.spread_path_changes(now);
    }

    /// ASCONF-ACK arrived over `via`. In SHUTDOWN-ACK-SENT, too, where none is sent any more: from then on SHUTDOWN ACK may not
    /// leave from an address that the peer has forgotten.
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

    /// Sends what waits, if nothing is in flight; or again what is, which went over `before` last.
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

    /// Handles a packet on `path` that was not answered. Within UDP there may be a translator on the way, which has given
    /// this side another address than the peer knows: it is told (RFC 5061 §4.2).
    pub(super) fn on_unanswered(&mut self, now: Instant, path: PathId) {
        if self.sender.paths.get(path).encapsulation_port().is_some()
            && self.state.changes_addresses()
            && self.has_dynamic_addresses()
            && self.with_asconf(now, |asconf, members| asconf.on_unanswered(members.paths, path))
        {
            self.send_asconf(now, None);
        }
    }

    /// Returns whether the two sides have agreed on dynamic addresses, and have the keys if they need any.
    fn has_dynamic_addresses(&self) -> bool {
        self.capabilities.has(Extension::DynamicAddresses) && !self.protection.is_pending()
    }

    /// Lets dynamic addresses change the paths, and does what follows.
    pub(super) fn with_asconf<T>(
        &mut self,
        now: Instant,
        hear: impl FnOnce(&mut Asconf, &mut Members<'_>) -> T,
    ) -> T {
        let asconf = self.renegotiation.asconf();
        let mut members = Members::new(&mut self.sender.paths, &self.sender.config, now);
        let outcome = hear(asconf, &mut members);
        for change in members.into_changes() {
            match change {
                Change::Joined(path) => {
                    self.sender.on_path_joined(path);
                    self.sharing.forget(now, path);
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
