//! Names: the addresses and ports of a socket and its peers, and the association that a name or an association ID selects.

use std::net::IpAddr;

use rustix::io::Errno;
use tresse_proto::{AssociationId, Instant};

use crate::association::{Ended, Phase};
use crate::call::Call;
use crate::engine::State;
use crate::layout::SocketName;
use crate::parent;
use crate::settings::Style;

/// `getsockname(2)`.
///
/// # Errors
/// Those of that call.
pub fn local_name(fd: i32) -> Result<Vec<u8>, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.local_name(fd);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let (six, mapped) = state.socket(call.key()).map(|socket| (socket.six, socket.writes_mapped()))?;
    let any: IpAddr = if six { [0_u16; 8].into() } else { [0_u8; 4].into() };
    let now = call.stack.now();
    let id = state.socket(call.key())?.association;
    let place = state.place.clone();
    let name = match (id.and_then(|id| state.primary(now, id)), &place) {
        (Some((local, _)), Some(place)) => SocketName { address: local, port: place.port },
        (None, Some(place)) => {
            let first = place.addresses.first().copied().filter(|_| !place.wildcard);
            SocketName { address: first.unwrap_or(any), port: place.port }
        }
        (_, None) => SocketName { address: any, port: 0 },
    };
    Ok(name.write(mapped))
}

/// `getpeername(2)`.
///
/// # Errors
/// Those of that call; a one-to-many socket has no peer (RFC 6458 §3.1): `NOTCONN`, as in Linux.
pub fn peer_name(fd: i32) -> Result<Vec<u8>, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.peer_name(fd);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let socket = state.socket(call.key())?;
    if socket.style == Style::OneToMany {
        return Err(Errno::NOTCONN);
    }
    let mapped = socket.writes_mapped();
    let id = socket.association.ok_or(Errno::NOTCONN)?;
    let entry = state.associations.get(&id).ok_or(Errno::NOTCONN)?;
    let port = entry.remote_port;
    let first = entry.peers.first().copied();
    let primary = state.primary(call.stack.now(), id).map(|(_, remote)| remote);
    let address = primary.or(first).ok_or(Errno::NOTCONN)?;
    Ok(SocketName { address, port }.write(mapped))
}

/// Returns the peer's addresses (`sctp_getpaddrs`) without gaps, and their number.
///
/// # Errors
/// `INVAL` if there is no such association.
pub fn peer_names(fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.peer_names(fd, number);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let mapped = state.socket(call.key())?.writes_mapped();
    let id = state.named(call.key(), number)?.ok_or(Errno::INVAL)?;
    let entry = state.associations.get(&id).ok_or(Errno::INVAL)?;
    Ok(written(&entry.peers, entry.remote_port, mapped))
}

/// Returns own addresses (`sctp_getladdrs`) without gaps, and their number. The association ID 0 means those of the socket.
///
/// # Errors
/// `INVAL` if there is no such association.
pub fn local_names(fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.local_names(fd, number);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let mapped = state.socket(call.key())?.writes_mapped();
    let now = call.stack.now();
    let id = state.named(call.key(), number)?;
    let Some(place) = state.place.clone() else { return Ok((Vec::new(), 0)) };
    let mut addresses = place.addresses;
    if let Some(association) = id.and_then(|id| state.endpoint.as_mut()?.association(id)) {
        let used: Vec<IpAddr> = association.path_stats(now).iter().map(|path| path.local).collect();
        if !used.is_empty() {
            addresses.retain(|address| used.contains(address));
        }
    }
    Ok(written(&addresses, place.port, mapped))
}

fn written(addresses: &[IpAddr], port: u16, mapped: bool) -> (Vec<u8>, u32) {
    let names = addresses.iter().flat_map(|&address| SocketName { address, port }.write(mapped));
    (names.collect(), u32::try_from(addresses.len()).unwrap_or(u32::MAX))
}

impl State {
    /// Returns the association with the peer of this name.
    pub(crate) fn by_name(&self, key: u64, name: SocketName) -> Option<AssociationId> {
        let id = *self.names.get(&(name.address, name.port))?;
        self.associations.get(&id).is_some_and(|entry| entry.owner == key && !entry.is_over()).then_some(id)
    }

    /// Returns the association that an option concerns; `None` for the socket itself. A one-to-one socket has at most one, whatever
    /// the ID.
    ///
    /// # Errors
    /// `INVAL` for an unknown association ID.
    pub(crate) fn named(&mut self, key: u64, number: i32) -> Result<Option<AssociationId>, Errno> {
        let socket = self.socket(key)?;
        if socket.style == Style::OneToOne {
            return Ok(socket.association);
        }
        match number {
            FUTURE | CURRENT | ALL => Ok(None),
            _ => self.by_number(key, number).map(Some).ok_or(Errno::INVAL),
        }
    }

    /// Returns the association that an option with a peer's address concerns. If the association ID selects none, the address does.
    ///
    /// # Errors
    /// `INVAL` for an unknown association ID, or an address that no association has.
    pub(crate) fn with_peer(
        &mut self,
        key: u64,
        number: i32,
        name: SocketName,
    ) -> Result<AssociationId, Errno> {
        self.named(key, number)?.or_else(|| self.by_name(key, name)).ok_or(Errno::INVAL)
    }

    /// Returns the error of a one-to-one socket that was not reported yet: the reason why the set-up of its association failed or
    /// the association has ended.
    pub(crate) fn error(&mut self, key: u64) -> Option<Errno> {
        let id = self.socket(key).ok()?.association?;
        match self.associations.get(&id)?.phase {
            Phase::Ended(Ended::With(error) | Ended::BeforeSetup(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of a one-to-one socket, once.
    pub(crate) fn take_error(&mut self, key: u64) -> Option<Errno> {
        let id = self.socket(key).ok()?.association?;
        let entry = self.associations.get_mut(&id)?;
        let error = match entry.phase {
            Phase::Ended(Ended::With(error)) => {
                entry.phase = Phase::Ended(Ended::Told);
                error
            }
            Phase::Ended(Ended::BeforeSetup(error)) => {
                self.disconnect(key, id);
                error
            }
            _ => return None,
        };
        self.touch(key);
        self.refresh();
        Some(error)
    }

    /// Releases an association whose set-up failed. Its one-to-one socket counts as never connected.
    pub(crate) fn disconnect(&mut self, key: u64, id: AssociationId) {
        if let Ok(socket) = self.socket(key)
            && socket.style == Style::OneToOne
        {
            socket.association = None;
            socket.was_connected = false;
        }
        self.forget(self.clock, id);
        self.touch(key);
    }

    /// Returns the own address and the peer's address of the primary path.
    pub(crate) fn primary(&mut self, now: Instant, id: AssociationId) -> Option<(IpAddr, IpAddr)> {
        let association = self.endpoint.as_mut()?.association(id)?;
        let paths = association.path_stats(now);
        paths.iter().find(|path| path.primary).map(|path| (path.local, path.remote))
    }
}

/// Special association IDs: SCTP_FUTURE_ASSOC, SCTP_CURRENT_ASSOC and SCTP_ALL_ASSOC (RFC 6458 §7).
pub(crate) const FUTURE: i32 = 0;
pub(crate) const CURRENT: i32 = 1;
pub(crate) const ALL: i32 = 2;
