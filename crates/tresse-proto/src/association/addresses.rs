//! Dynamic addresses among the engines (RFC 5061): what happens is handed to `extensions::asconf`, which changes the paths;
//! what follows from that for data, streams and the application is done here.

use std::net::IpAddr;

use tresse_wire::{Asconf as AsconfChunk, AsconfAck, Chunk, Packet};

use super::control::{Control, Reason};
use super::input::Passage;
use super::protected::WAITS_FOR_KEYS;
use super::{Association, Extension, State};
use crate::context::Context as Cx;
use crate::extensions::asconf::{Asconf, Change, Members, Source, StrayAck};
use crate::extensions::auth::Gate;
use crate::interface::addresses::AddressChange;
use crate::interface::error::AddressError;
use crate::interface::event::CloseReason;
use tresse_policy::Instant;
use tresse_policy::PathId;

impl Association {
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
        self.stir();
        Ok(())
    }

    /// ASCONF arrived; `first` says that it is the first of its packet.
    pub(crate) fn on_asconf(&mut self, now: Instant, source: Source, asconf: &AsconfChunk<'_>, first: bool) {
        if !self.may_change_addresses() {
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
        let path = self.path_of(source.local, source.remote);
        let path = path.unwrap_or_else(|| self.sender.paths.best_for_control());
        self.control.push(path, Control::AsconfAck { serial: asconf.serial, body: granted.body });
    }

    /// A packet with this association's tag from an address that is not the peer's: the peer may have a new one,
    /// and say so in an ASCONF that names an address by which it is known (RFC 5061 §5.2 D2). Nothing else of the
    /// packet is looked at. Answers whether there was such a request.
    pub(crate) fn on_stranger(&mut self, cx: &mut Cx<'_>, source: Source, packet: &Packet<'_>) -> bool {
        let (mut gate, mut chunks, mut count) = (Gate::default(), packet.chunks(), 0);
        loop {
            let covered = chunks.remaining();
            let Some(chunk) = chunks.next() else { break };
            if self.screen(&mut gate, &chunk, covered, self.sender.paths.best_for_control()) == Passage::Stop
            {
                break;
            }
            // What opened is the peer's, whatever address it names.
            let protected = self.protection.came_protected();
            if let Ok(Chunk::Asconf(asconf)) = chunk
                && (protected
                    || gate == Gate::Open && self.sender.paths.find_remote(asconf.address).is_some())
            {
                self.on_asconf(cx.now, source, &asconf, count == 0);
                count += 1;
            }
        }
        self.stir();
        count > 0
    }

    /// T4 may have expired: the chunk goes again, on another path if there is one (RFC 5061 §5.1 B1 to B5).
    pub(super) fn on_asconf_timer(&mut self, now: Instant) {
        let Some(path) = self.asconf.as_mut().and_then(|asconf| asconf.pop_due(now)) else { return };
        if !self.may_change_addresses() {
            return;
        }
        let failure = self.sender.paths.on_request_expired(path);
        self.on_failure(now, failure);
        if self.state != State::Closed {
            self.send_asconf(now, Some(path));
        }
        self.spread_path_changes(now);
    }

    /// ASCONF-ACK arrived over `via`.
    pub(super) fn on_asconf_ack(&mut self, now: Instant, via: PathId, ack: &AsconfAck<'_>) {
        if !self.may_change_addresses() {
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
        let may_change = self.may_change_addresses();
        let Some(asconf) = self.asconf.as_mut().filter(|_| may_change) else { return };
        if before.is_none() && !asconf.begin(&self.sender.paths) {
            return;
        }
        if let Some(chunk) = asconf.send(now, &self.sender.paths, before) {
            let body = chunk.body.to_vec();
            let control = Control::Asconf { serial: chunk.serial, address: chunk.address, body };
            self.control.push(chunk.path, control);
        }
        self.stir();
    }

    /// RFC 5061 §5.1.1 C4.
    fn may_change_addresses(&self) -> bool {
        let state = matches!(
            self.state,
            State::Established | State::ShutdownPending | State::ShutdownReceived | State::ShutdownSent
        );
        state && self.capabilities.has(Extension::DynamicAddresses) && !self.protection.is_pending()
    }

    /// Lets dynamic addresses change the paths, and does what follows.
    pub(super) fn with_asconf<T>(
        &mut self,
        now: Instant,
        hear: impl FnOnce(&mut Asconf, &mut Members<'_>) -> T,
    ) -> T {
        let serials = self.serials;
        let asconf = self.asconf.get_or_insert_with(|| Box::new(Asconf::new(serials.own, serials.peer)));
        let mut members = Members::new(&mut self.sender.paths, &self.config, now);
        let outcome = hear(asconf, &mut members);
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
                    self.sender.empty_path(path, data);
                    self.control.move_on(path, control);
                }
                Change::Tell(event) => self.tell(event),
                Change::DiscardMalformed => self.counters.discards.malformed_chunk += 1,
            }
        }
        self.sender.refresh_usable();
        outcome
    }
}
