//! What the application asks for: to add, to remove and to prefer own addresses (RFC 5061).

use std::net::IpAddr;

use tresse_policy::Instant;

use super::Wish;
use crate::association::peer::is_usable;
use crate::association::{Association, Extension, State};
use crate::interface::addresses::AddressChange;
use crate::interface::error::AddressError;
use crate::paths::{Member, can_meet};

impl Association {
    /// Adds an own address.
    ///
    /// # Errors
    /// An address that cannot be added, or no way to ask the peer.
    pub(crate) fn add_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.check_may_ask(AddressChange::Add)?;
        if !is_usable(address) {
            return Err(AddressError::Unusable { address });
        }
        if self.paths.has_local(address) || self.is_asked_for(AddressChange::Remove, address) {
            return Err(AddressError::Known { address });
        }
        if !can_meet(std::iter::once(address), self.paths.remote_addresses()) {
            return Err(AddressError::Unreachable { address });
        }
        if !self.paths.has_place() {
            return Err(AddressError::TooManyPaths { limit: self.config.max_paths });
        }
        self.join_local(now, address);
        self.ask(now, AddressChange::Add, address);
        Ok(())
    }

    /// Removes an own address.
    ///
    /// # Errors
    /// An address that cannot be removed, or no way to ask the peer.
    pub(crate) fn remove_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.check_may_ask(AddressChange::Remove)?;
        if !self.paths.has_local(address) || self.is_asked_for(AddressChange::Remove, address) {
            return Err(self.unknown(address));
        }
        let stays = |&other: &IpAddr| other != address && !self.is_asked_for(AddressChange::Remove, other);
        if !can_meet(self.paths.local_addresses().filter(stays), self.paths.remote_addresses()) {
            return Err(AddressError::Last { address });
        }
        // While no path from another address carries data, this one does until the peer has agreed.
        if self.paths.joined().any(|path| path.local() != address && self.paths.accepts_data(path.id())) {
            self.leave_local(address);
        }
        self.ask(now, AddressChange::Remove, address);
        Ok(())
    }

    /// Asks the peer to prefer an own address.
    ///
    /// # Errors
    /// An address that the association has not, or no way to ask the peer.
    pub(crate) fn set_peer_primary(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.check_may_ask(AddressChange::Prefer)?;
        if !self.paths.has_local(address) {
            return Err(self.unknown(address));
        }
        self.ask(now, AddressChange::Prefer, address);
        Ok(())
    }

    fn check_may_ask(&mut self, change: AddressChange) -> Result<(), AddressError> {
        if self.state != State::Established {
            return Err(AddressError::NotOpen { state: self.state.name() });
        }
        if !self.capabilities.has(Extension::DynamicAddresses) {
            return Err(AddressError::NotAgreed);
        }
        let own = &self.dynamic().asconf.own;
        if !own.understands(change) {
            return Err(AddressError::NotAgreed);
        }
        if own.has_room() { Ok(()) } else { Err(AddressError::TooManyRequests) }
    }

    pub(super) fn is_asked_for(&self, change: AddressChange, address: IpAddr) -> bool {
        let wish = Wish { change, address };
        self.dynamic.as_ref().is_some_and(|dynamic| dynamic.asconf.own.open().any(|open| open == wish))
    }

    fn ask(&mut self, now: Instant, change: AddressChange, address: IpAddr) {
        self.dynamic().asconf.own.push(Wish { change, address });
        self.advance_asconf(now);
        self.spread_path_changes(now);
        self.stir();
    }

    fn unknown(&self, address: IpAddr) -> AddressError {
        let own: Vec<String> = self.paths.local_addresses().map(|own| own.to_string()).collect();
        AddressError::Unknown { address, known: own.join(", ") }
    }

    /// Takes the paths from an own address out of use.
    fn leave_local(&mut self, address: IpAddr) {
        for path in self.paths_from(address) {
            self.paths.set_member(path, Member::Leaving);
            self.empty(path);
        }
        self.refresh_usable();
    }
}
