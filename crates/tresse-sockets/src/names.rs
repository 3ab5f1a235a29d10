//! Names: what a socket and its peers are called, and the association that a name means.

use std::net::IpAddr;

use rustix::io::Errno;
use tresse_proto::{AssociationId, Instant};

use crate::association::{Ended, Phase};
use crate::engine::State;
use crate::forked;
use crate::layout::SocketName;
use crate::settings::Style;
use crate::socket::Call;

/// `getsockname(2)`.
///
/// # Errors
/// As that call's.
pub fn local_name(fd: i32) -> Result<Vec<u8>, Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
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
/// As that call's; a one-to-many socket has no peer (RFC 6458 §3.1): `NOTCONN`, as in Linux.
pub fn peer_name(fd: i32) -> Result<Vec<u8>, Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
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

/// The peer's addresses (`sctp_getpaddrs`), without gaps, and how many there are.
///
/// # Errors
/// `INVAL` where there is no such association.
pub fn peer_names(fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
        return elsewhere.peer_names(fd, number);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let mapped = state.socket(call.key())?.writes_mapped();
    let id = state.named(call.key(), number)?.ok_or(Errno::INVAL)?;
    let entry = state.associations.get(&id).ok_or(Errno::INVAL)?;
    Ok(written(&entry.peers, entry.remote_port, mapped))
}

/// Own addresses (`sctp_getladdrs`); number 0 means those of the socket.
///
/// # Errors
/// `INVAL` where there is no such association.
pub fn local_names(fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
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
    /// The association with the peer of this name.
    pub(crate) fn by_name(&self, key: u64, name: SocketName) -> Option<AssociationId> {
        let id = *self.names.get(&(name.address, name.port))?;
        self.associations.get(&id).is_some_and(|entry| entry.owner == key && !entry.is_over()).then_some(id)
    }

    /// The association that an option is about: a one-to-one socket has one at most, whatever the number. `None` for the
    /// socket itself.
    ///
    /// # Errors
    /// `INVAL` for a number that is none.
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

    /// The error of a one-to-one socket, told once, by whichever call comes first: why its association could not be set up or
    /// has ended.
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

    /// Makes a one-to-one socket whose association could not be set up one that was never connected.
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

    /// Addresses of the primary path, the own one first.
    pub(crate) fn primary(&mut self, now: Instant, id: AssociationId) -> Option<(IpAddr, IpAddr)> {
        let association = self.endpoint.as_mut()?.association(id)?;
        let paths = association.path_stats(now);
        paths.iter().find(|path| path.primary).map(|path| (path.local, path.remote))
    }

    /// Notes the peer's addresses.
    pub(crate) fn note_peers(&mut self, now: Instant, id: AssociationId) {
        let Some(association) = self.endpoint.as_mut().and_then(|core| core.association(id)) else { return };
        let mut paths = association.path_stats(now);
        paths.sort_by_key(|path| !path.primary);
        let mut peers: Vec<IpAddr> = Vec::new();
        for path in paths {
            if !peers.contains(&path.remote) {
                peers.push(path.remote);
            }
        }
        if !peers.is_empty() {
            self.name_peers(id, peers);
        }
    }

    /// Sets the addresses of the peer.
    pub(crate) fn name_peers(&mut self, id: AssociationId, peers: Vec<IpAddr>) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        for &gone in entry.peers.iter().filter(|peer| !peers.contains(peer)) {
            self.names.remove(&(gone, entry.remote_port));
        }
        for &peer in &peers {
            self.names.insert((peer, entry.remote_port), id);
        }
        entry.peers = peers;
    }
}

/// Numbers that name no association in particular (RFC 6458 §7).
pub(crate) const FUTURE: i32 = 0;
pub(crate) const CURRENT: i32 = 1;
pub(crate) const ALL: i32 = 2;
