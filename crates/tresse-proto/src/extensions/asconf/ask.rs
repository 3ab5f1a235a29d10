//! Requests of the application to add, remove and prefer own addresses (RFC 5061), and their results.

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

/// An ASCONF chunk to be sent on a path.
pub(crate) struct Outgoing<'a> {
    pub(crate) path: PathId,
    pub(crate) serial: u32,
    /// An address by which the peer finds the association.
    pub(crate) address: IpAddr,
    /// The requests, encoded.
    pub(crate) body: &'a [u8],
}

impl Asconf {
    /// Queues a request of the application, and changes the paths as far as this does not need the peer's consent.
    ///
    /// # Errors
    /// The change is impossible, or the peer cannot be asked for it; nothing is changed then.
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
            // While no path from another address accepts data, the paths from this one are used until the peer has agreed.
            let carries = |path: &Path| path.local() != address && members.paths.accepts_data(path.id());
            if members.paths.joined().any(carries) {
                members.leave_local(address);
            }
        }
        self.own.push(AddressRequest { change, address });
        Ok(())
    }

    /// Handles a packet on `path` that was not answered. A NAT on the way may have changed this side's address to one that the
    /// peer does not know. Then a request asks the peer to add the source address of the packet (RFC 5061 §4.2). Returns whether
    /// it was queued.
    pub(crate) fn on_unanswered(&mut self, paths: &Paths, path: PathId) -> bool {
        // On a path that never worked, the request is made less and less often.
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

    /// Returns whether the chunk in flight asks the peer to add the source address of its packet.
    pub(crate) fn asks_for_source(&self) -> bool {
        self.own.asks_for_source()
    }

    /// Builds a chunk from the waiting requests, if none is in flight (RFC 5061 §5.1 A3). Returns whether there is one to send.
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

    /// Returns the chunk in flight, to be sent for the first time, or again after it was sent on `before`. It is not sent from an
    /// address that it asks to remove (RFC 5061 §5.3 F6).
    pub(crate) fn send(
        &mut self,
        now: Instant,
        paths: &Paths,
        before: Option<PathId>,
    ) -> Option<Outgoing<'_>> {
        // A request for the source address is first sent on the path that it is for. If that path is dead, the chunk is soon
        // repeated on another path. There it asks for an address that the peer has already, so the peer answers.
        let over = self.over.take().filter(|&path| paths.member(path) == Member::Joined);
        let path = over.unwrap_or_else(|| self.path_for_request(paths, before));
        // Every repetition of any other request counts as an error, so its timer is the RTO of its own path (§5.1 B3, B5).
        let elsewhere = self.own.asks_for_source().then(|| paths.best_for_control());
        let rto = elsewhere.map_or(Duration::MAX, |best| paths.get(best).rto()).min(paths.get(path).rto());
        self.own.on_sent(now, path, rto);
        let (serial, address, body) = self.own.chunk()?;
        Some(Outgoing { path, serial, address, body })
    }

    /// Returns a path from an address that the chunk in flight does not remove: a usable one, else one from an address that is
    /// being added.
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

    /// If the chunk in flight asks to remove the local address of `path`, returns a path from another address: the peer may have
    /// removed the address already, and then accepts no packet from it.
    pub(crate) fn path_instead_of(&self, paths: &Paths, path: PathId) -> Option<PathId> {
        let removal = AddressRequest { change: AddressChange::Remove, address: paths.get(path).local() };
        self.own.in_flight().contains(&removal).then(|| self.path_for_request(paths, None))
    }

    /// Returns the time at which T4 expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.own.deadline()
    }

    /// Returns the path on which the chunk in flight was sent, if T4 has expired.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PathId> {
        self.own.pop_due(now)
    }

    /// Counts an expiration of T4 during which the peer answered other chunks. Returns their number for the chunk in flight.
    pub(crate) fn on_ignored(&mut self) -> u32 {
        self.own.on_ignored()
    }

    /// Processes an ASCONF-ACK (RFC 5061 §5.1 A5 to A8).
    ///
    /// # Errors
    /// It does not acknowledge the chunk in flight.
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

    /// Gives up all requests: the peer does not support ASCONF (RFC 5061 §5.1 A9), or never answers it.
    pub(crate) fn on_unsupported(&mut self, members: &mut Members<'_>) {
        for request in self.own.on_unsupported() {
            on_answered(members, request, AddressOutcome::NotSupported);
        }
    }

    /// Returns whether a request to remove this own address has not been answered.
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

/// Carries out the result of a request.
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
