//! Requests of the application: to add, to remove and to prefer own addresses (RFC 5061), and their outcomes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tresse_wire::Params;

use super::members::{Change, Members};
use super::{AddressRequest, Asconf, StrayAck};
use crate::interface::addresses::{AddressChange, AddressOutcome};
use crate::interface::error::AddressError;
use crate::interface::event::Event;
use crate::paths::{Member, Path, Paths, can_meet, is_usable};
use tresse_policy::Instant;
use tresse_policy::PathId;

/// An ASCONF chunk to send on a path.
pub(crate) struct Outgoing<'a> {
    pub(crate) path: PathId,
    pub(crate) serial: u32,
    /// The address by which the peer finds the association.
    pub(crate) address: IpAddr,
    /// The requests, encoded.
    pub(crate) body: &'a [u8],
}

impl Asconf {
    /// Takes a request of the application, and changes the paths as far as they need no consent of the peer.
    ///
    /// # Errors
    /// A change that is impossible, or that the peer cannot be asked for; nothing was begun then.
    pub(crate) fn ask(
        &mut self,
        members: &mut Members<'_>,
        change: AddressChange,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        if !self.own.understands(change) {
            return Err(AddressError::NotAgreed);
        }
        if !self.own.has_room() {
            return Err(AddressError::TooManyRequests);
        }
        match change {
            AddressChange::Add => self.check_added(members, address)?,
            AddressChange::Remove => self.check_removed(members.paths, address)?,
            AddressChange::Prefer if !members.paths.has_local(address) => {
                return Err(unknown(address, members.paths.local_addresses()));
            }
            AddressChange::Prefer => {}
        }
        if change == AddressChange::Add {
            members.join_local(address);
        }
        if change == AddressChange::Remove {
            // While no path from another address carries data, this one does until the peer has agreed.
            let carries = |path: &Path| path.local() != address && members.paths.accepts_data(path.id());
            if members.paths.joined().any(carries) {
                members.leave_local(address);
            }
        }
        self.own.push(AddressRequest { change, address });
        Ok(())
    }

    /// Handles a packet on `path` that was not answered. A translator on the way may have given this side an address
    /// that the peer does not know: it is asked to take the source of a packet on that path for one. Returns whether it
    /// is.
    pub(crate) fn on_unanswered(&mut self, paths: &Paths, path: PathId) -> bool {
        // One that never worked is asked about less and less often.
        let silent = paths.get(path);
        let again = paths.accepts_data(path) || silent.errors().is_power_of_two();
        let asks = again
            && silent.member() == Member::Joined
            && self.own.understands(AddressChange::Add)
            && !self.own.asks_for_source();
        if asks {
            self.own.push_source(path);
        }
        asks
    }

    /// Returns whether the chunk in flight asks the peer to take its source.
    pub(crate) fn asks_for_source(&self) -> bool {
        self.own.asks_for_source()
    }

    /// Makes a chunk of what waits, if nothing is in flight (RFC 5061 §5.1 A3): to be sent.
    pub(crate) fn begin(&mut self, paths: &Paths) -> bool {
        if let Some(path) = self.own.source_path() {
            let any = match paths.get(path).local() {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            };
            let begun = self.own.begin_source(any);
            self.over = Some(path);
            return begun;
        }
        let known = paths.living().find(|path| path.member() != Member::Pending);
        known.is_some_and(|path| self.own.begin(path.local()))
    }

    /// The chunk in flight, for the first time or after it went over `before`. It does not leave from an address that it
    /// is to remove (RFC 5061 §5.3 F6).
    pub(crate) fn send(
        &mut self,
        now: Instant,
        paths: &Paths,
        before: Option<PathId>,
    ) -> Option<Outgoing<'_>> {
        // A request for the source is about one path, and its answer comes soon by another one if that is dead: there it asks
        // for an address that the peer has.
        let over = self.over.take().filter(|&path| paths.member(path) == Member::Joined);
        let path = over.unwrap_or_else(|| self.path_for_request(paths, before));
        // Of any other request every repetition counts as an error: it is as late as its own path wants (§5.1 B3, B5).
        let elsewhere = self.own.asks_for_source().then(|| paths.best_for_control());
        let rto = elsewhere.map_or(Duration::MAX, |best| paths.get(best).rto()).min(paths.get(path).rto());
        self.own.on_sent(now, path, rto);
        let (serial, address, body) = self.own.chunk()?;
        Some(Outgoing { path, serial, address, body })
    }

    /// A path from an address that stays: a good one, else one from an address that is being added.
    fn path_for_request(&self, paths: &Paths, before: Option<PathId>) -> PathId {
        let best = paths.best_for_control();
        let requests = self.own.in_flight();
        let removes = |address| requests.contains(&AddressRequest { change: AddressChange::Remove, address });
        let rank = |path: &&Path| {
            let usable = paths.usable(path.id());
            (
                Some(path.id()) == before,
                !usable && path.member() == Member::Joined,
                !usable,
                path.id() != best,
            )
        };
        let candidates = paths.joined().chain(paths.pending());
        candidates.filter(|path| !removes(path.local())).min_by_key(rank).map_or(best, Path::id)
    }

    /// A path from an address that stays, if the chunk in flight asks for the removal of that of `path`: the peer may have
    /// agreed already, and takes nothing from there then.
    pub(crate) fn path_instead_of(&self, paths: &Paths, path: PathId) -> Option<PathId> {
        let removal = AddressRequest { change: AddressChange::Remove, address: paths.get(path).local() };
        self.own.in_flight().contains(&removal).then(|| self.path_for_request(paths, None))
    }

    /// Time at which T4 expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.own.deadline()
    }

    /// The path that the chunk in flight was sent on, if T4 has expired.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PathId> {
        self.own.pop_due(now)
    }

    /// T4 has expired, and the peer answered other chunks meanwhile. Returns how often that was so for the chunk in flight.
    pub(crate) fn on_ignored(&mut self) -> u32 {
        self.own.on_ignored()
    }

    /// ASCONF-ACK arrived (RFC 5061 §5.1 A5 to A8).
    ///
    /// # Errors
    /// It acknowledges nothing that is in flight.
    pub(crate) fn on_ack(
        &mut self,
        members: &mut Members<'_>,
        serial: u32,
        params: &Params<'_>,
    ) -> Result<(), StrayAck> {
        let sent_on = self.own.path();
        for (request, outcome) in self.own.on_ack(serial, params)? {
            on_answered(members, request, outcome);
        }
        if let Some(path) = sent_on.filter(|&path| members.paths.member(path) == Member::Joined) {
            members.paths.on_answered(path);
        }
        Ok(())
    }

    /// The peer understands no ASCONF (RFC 5061 §5.1 A9), or never answers it.
    pub(crate) fn on_unsupported(&mut self, members: &mut Members<'_>) {
        for request in self.own.on_unsupported() {
            on_answered(members, request, AddressOutcome::NotSupported);
        }
    }

    /// Returns whether the peer was asked to forget this own address and has not answered.
    pub(super) fn asks_to_remove(&self, address: IpAddr) -> bool {
        self.own.open().any(|open| open == AddressRequest { change: AddressChange::Remove, address })
    }

    fn check_added(&self, members: &Members<'_>, address: IpAddr) -> Result<(), AddressError> {
        let paths = &*members.paths;
        if !is_usable(address) {
            return Err(AddressError::Unusable { address });
        }
        if paths.has_local(address) || self.asks_to_remove(address) {
            return Err(AddressError::Known { address });
        }
        if !can_meet(std::iter::once(address), paths.remote_addresses()) {
            return Err(AddressError::Unreachable { address });
        }
        if !paths.has_place() {
            return Err(AddressError::TooManyPaths { limit: members.config.max_paths });
        }
        Ok(())
    }

    fn check_removed(&self, paths: &Paths, address: IpAddr) -> Result<(), AddressError> {
        if !paths.has_local(address) || self.asks_to_remove(address) {
            return Err(unknown(address, paths.local_addresses()));
        }
        let stays = |&other: &IpAddr| other != address && !self.asks_to_remove(other);
        if !can_meet(paths.local_addresses().filter(stays), paths.remote_addresses()) {
            return Err(AddressError::Last { address });
        }
        Ok(())
    }
}

/// Does what was agreed on.
fn on_answered(members: &mut Members<'_>, request: AddressRequest, outcome: AddressOutcome) {
    let AddressRequest { change, address } = request;
    let done = outcome == AddressOutcome::Done;
    match change {
        AddressChange::Add if done => members.admit_local(address),
        AddressChange::Add => members.drop_local(address),
        AddressChange::Remove if done => members.drop_local(address),
        AddressChange::Remove => members.keep_local(address),
        AddressChange::Prefer => {}
    }
    if !address.is_unspecified() {
        members.note(Change::Tell(Event::OwnAddress { address, change, outcome }));
    }
}

fn unknown(address: IpAddr, own: impl Iterator<Item = IpAddr>) -> AddressError {
    let own: Vec<String> = own.map(|own| own.to_string()).collect();
    AddressError::Unknown { address, known: own.join(", ") }
}
