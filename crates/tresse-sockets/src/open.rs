//! Life of a socket: `socket`, `bind`, `listen`, `connect`, `accept`, peel off, `shutdown` and close.

use std::io::{PipeReader, PipeWriter, pipe};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout};
use tresse_proto::{AssociationId, Connect, ConnectError, EndpointConfig};

use crate::association::{Ended, Phase, SocketAssociation};
use crate::call::Call;
use crate::descriptor::Readiness;
use crate::engine::{Engine, Place, State};
use crate::layout::SocketName;
use crate::lower::{Encapsulation, host_addresses, source_towards};
use crate::numbers::{self, Private};
use crate::parent;
use crate::settings::{Style, init_message, some_millis};
use crate::shared::{endpoint, lock};
use crate::socket::SocketState;
use crate::stack::stack;
use crate::table::{self, enter_socket, fresh_key};

/// `socket(2)`: `kind` may have SOCK_NONBLOCK and SOCK_CLOEXEC.
///
/// # Errors
/// Those of that call.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
    table::check_not_held()?;
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.socket(family, kind, protocol);
    }
    let six = match family {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return Err(Errno::AFNOSUPPORT),
    };
    if protocol != libc::IPPROTO_SCTP {
        return Err(Errno::PROTONOSUPPORT);
    }
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let style = match kind & !flags {
        libc::SOCK_STREAM => Style::OneToOne,
        libc::SOCK_SEQPACKET => Style::OneToMany,
        _ => return Err(Errno::PROTONOSUPPORT),
    };
    stack()?;
    let (readiness, theirs) =
        Readiness::new(kind & libc::SOCK_NONBLOCK != 0, kind & libc::SOCK_CLOEXEC != 0)?;
    let key = fresh_key();
    let engine = Engine::new(key, SocketState::new(style, six, readiness));
    let mut state = engine.lock();
    let fd = enter_socket(&engine, &mut state, key, style, theirs);
    state.refresh();
    Ok(fd)
}

/// `bind(2)`.
///
/// # Errors
/// Those of that call.
pub fn bind(fd: i32, name: &[u8]) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.bind(fd, name);
    }
    let call = Call::on(fd)?;
    if call.lock().place.is_some() {
        return Err(Errno::INVAL);
    }
    take_place(&call, &[SocketName::read(name)?])
}

/// `sctp_bindx` with SCTP_BINDX_ADD_ADDR (RFC 6458 §9.1): names without gaps.
///
/// # Errors
/// Those of that call.
pub fn bind_add(fd: i32, names: &[u8]) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.bind_add(fd, names);
    }
    let call = Call::on(fd)?;
    let names = SocketName::read_all(names)?;
    if names.is_empty() {
        return Err(Errno::INVAL);
    }
    if names.iter().any(|name| name.is_group()) {
        return Err(Errno::ADDRNOTAVAIL);
    }
    if call.lock().place.is_none() {
        return take_place(&call, &names);
    }
    let asked: Vec<IpAddr> = names.iter().map(|name| name.address).collect();
    let mut state = call.lock();
    let place = state.place.clone().ok_or(Errno::INVAL)?;
    if names.iter().any(|name| name.is_wildcard() || (name.port != 0 && name.port != place.port)) {
        return Err(Errno::INVAL);
    }
    let socket = state.socket(call.key())?;
    check_addresses(socket, &asked)?;
    let shared = socket.options.reuse_port;
    if asked.iter().any(|address| place.addresses.contains(address)) {
        return Err(Errno::INVAL);
    }
    if call.stack.shared.open(&asked)?.len() < asked.len() {
        return Err(Errno::ADDRNOTAVAIL);
    }
    // A removed address that associations still use was never released: only the others have to be claimed.
    let new: Vec<IpAddr> = asked.iter().copied().filter(|address| !place.leaving.contains(address)).collect();
    lock(&call.stack.shared.ports).add(place.port, place.claim, &new, shared)?;
    let leaving = place.leaving.into_iter().filter(|address| !asked.contains(address)).collect();
    state.move_place(&call, [place.addresses, asked.clone()].concat(), leaving);
    let now = call.stack.now();
    state.each_association(|association| {
        for &address in &asked {
            // Associations without dynamic addresses keep their addresses; future associations get all.
            let _ = association.add_address(now, address);
        }
    });
    drop(state);
    call.leave();
    Ok(())
}

/// `sctp_bindx` with SCTP_BINDX_REM_ADDR.
///
/// # Errors
/// Those of that call: EINVAL if no address would be left (RFC 6458 §9.1).
pub fn bind_remove(fd: i32, names: &[u8]) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.bind_remove(fd, names);
    }
    let call = Call::on(fd)?;
    let names = SocketName::read_all(names)?;
    let mut state = call.lock();
    let place = state.place.clone().ok_or(Errno::INVAL)?;
    if names.iter().any(|name| name.is_wildcard()) {
        return Err(Errno::ADDRNOTAVAIL);
    }
    if names.iter().any(|name| name.port != 0 && name.port != place.port) {
        return Err(Errno::INVAL);
    }
    let gone: Vec<IpAddr> = names.iter().map(|name| name.address).collect();
    if gone.is_empty() || gone.iter().any(|address| !place.addresses.contains(address)) {
        return Err(Errno::INVAL);
    }
    let left: Vec<IpAddr> =
        place.addresses.iter().copied().filter(|address| !gone.contains(address)).collect();
    if left.is_empty() {
        return Err(Errno::INVAL);
    }
    // Packets to these addresses are received until the peers have acknowledged the removal.
    state.move_place(&call, left, [place.leaving, gone.clone()].concat());
    let now = call.stack.now();
    state.each_association(|association| {
        for &address in &gone {
            let _ = association.remove_address(now, address);
        }
    });
    call.socket().engine.give_back(&call.stack.shared, &mut state);
    drop(state);
    call.leave();
    Ok(())
}

/// Checks addresses for a socket: each has to be of its family and to occur once.
fn check_addresses(socket: &SocketState, addresses: &[IpAddr]) -> Result<(), Errno> {
    let again = |(at, address)| addresses[..at].contains(address);
    let usable = addresses.iter().all(|address| socket.takes(address));
    if usable && !addresses.iter().enumerate().any(again) { Ok(()) } else { Err(Errno::INVAL) }
}

/// Binds a socket that is not bound yet.
fn take_place(call: &Call, names: &[SocketName]) -> Result<(), Errno> {
    place_state(call, &mut call.lock(), names)
}

fn place_state(call: &Call, state: &mut State, names: &[SocketName]) -> Result<(), Errno> {
    let port = names.iter().map(|name| name.port).find(|&port| port != 0).unwrap_or(0);
    if names.iter().any(|name| name.port != 0 && name.port != port) {
        return Err(Errno::INVAL);
    }
    if names.iter().any(|name| name.is_group()) {
        return Err(Errno::ADDRNOTAVAIL);
    }
    if (1..1024).contains(&port)
        && !rustix::process::geteuid().is_root()
        && call.stack.shared.carrier == Encapsulation::RawIp
    {
        return Err(Errno::ACCESS);
    }
    let wildcard = names.iter().any(|name| name.is_wildcard());
    let socket = state.socket(call.key())?;
    let shared = socket.options.reuse_port;
    let mut addresses: Vec<IpAddr> = names.iter().map(|name| name.address).collect();
    check_addresses(socket, &addresses)?;
    if wildcard {
        addresses = host_addresses()?.into_iter().filter(|address| socket.takes(address)).collect();
    }
    let opened = call.stack.shared.open(&addresses)?;
    if !wildcard && opened.len() < addresses.len() {
        return Err(Errno::ADDRNOTAVAIL);
    }
    let mut ports = lock(&call.stack.shared.ports);
    let (port, claim) = if port == 0 {
        ports.take_ephemeral(&opened, shared)?
    } else {
        (port, ports.take(port, &opened, call.stack.shared.carrier == Encapsulation::RawIp, shared)?)
    };
    drop(ports);
    let engine = &call.socket().engine;
    engine.set_addresses(&opened);
    state.place = Some(Place { port, addresses: opened, leaving: Vec::new(), claim, wildcard });
    call.stack.register(port, engine);
    Ok(())
}

/// `listen(2)`; a backlog of 0 ends listening (RFC 6458 §3.1.3), as in Linux also on a one-to-one socket.
///
/// # Errors
/// Those of that call; EINVAL for a backlog of 0 on a socket that does not listen.
pub fn listen(fd: i32, backlog: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.listen(fd, backlog);
    }
    let call = Call::on(fd)?;
    {
        let mut state = call.lock();
        let socket = state.socket(call.key())?;
        let connected = socket.style == Style::OneToOne && socket.was_connected;
        if connected || (backlog == 0 && socket.limit.is_none()) {
            return Err(Errno::INVAL);
        }
    }
    bind_implicitly(&call, None)?;
    let mut state = call.lock();
    // As in Linux, a negative backlog means the greatest one.
    let limit = usize::try_from(backlog).map_or(MOST_WAITING, |backlog| backlog.min(MOST_WAITING));
    state.socket(call.key())?.limit = (limit > 0).then_some(limit);
    state.open_endpoint(&call)?;
    state.update_listening();
    state.touch(call.key());
    state.refresh();
    Ok(())
}

/// `accept4(2)` without the peer's name, which `peer_name` returns.
///
/// # Errors
/// Those of that call.
pub fn accept(fd: i32, flags: i32) -> Result<i32, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.accept(fd, flags);
    }
    accept_or(fd, flags, false)
}

/// Accepts an association as [`accept`] does, but fails with `AGAIN` instead of waiting.
pub(crate) fn accept_at_once(fd: i32, flags: i32) -> Result<i32, Errno> {
    accept_or(fd, flags, true)
}

fn accept_or(fd: i32, flags: i32, at_once: bool) -> Result<i32, Errno> {
    let call = Call::on(fd)?;
    if call.socket().style == Style::OneToMany {
        return Err(Errno::OPNOTSUPP);
    }
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return Err(Errno::INVAL);
    }
    let (nonblocking, close_on_exec) = (flags & libc::SOCK_NONBLOCK != 0, flags & libc::SOCK_CLOEXEC != 0);
    call.until(at_once, |call| {
        let mut state = call.lock();
        let listener = state.socket(call.key())?;
        if listener.limit.is_none() {
            return Err(Errno::INVAL);
        }
        if listener.backlog.is_empty() {
            return Err(Errno::AGAIN);
        }
        // The descriptor is made first: if none is left, the association stays in the backlog.
        let pair = Readiness::new(nonblocking, close_on_exec)?;
        let id = listener.backlog.pop_front().ok_or(Errno::AGAIN)?;
        state.update_listening();
        state.touch(call.key());
        let made = state.detach(call, id, pair);
        state.refresh();
        made
    })
}

/// `sctp_peeloff` (RFC 6458 §9.2).
///
/// # Errors
/// Those of that call.
pub fn peel_off(fd: i32, number: i32, flags: i32) -> Result<i32, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.peel_off(fd, number, flags);
    }
    let call = Call::on(fd)?;
    if call.socket().style == Style::OneToOne {
        return Err(Errno::INVAL);
    }
    let mut state = call.lock();
    let id = state.by_number(call.key(), number).ok_or(Errno::INVAL)?;
    let (nonblocking, close_on_exec) = (flags & libc::SOCK_NONBLOCK != 0, flags & libc::SOCK_CLOEXEC != 0);
    let pair = Readiness::new(nonblocking, close_on_exec)?;
    let made = state.detach(&call, id, pair);
    state.touch(call.key());
    state.refresh();
    made
}

/// `connect(2)` and `sctp_connectx` (RFC 6458 §9.9): names without gaps. Returns the association ID.
///
/// # Errors
/// Those of that call; `INPROGRESS` for a non-blocking descriptor.
pub fn connect(fd: i32, names: &[u8]) -> Result<i32, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.connect(fd, names);
    }
    let call = Call::on(fd)?;
    if call.is_nonblocking() {
        begin_on(&call, names, None)?;
        return Err(Errno::INPROGRESS);
    }
    // The readiness of a one-to-many socket does not show the state of a single association.
    let (told, tells) = settling()?;
    let told = Private::new(told);
    let number = begin_on(&call, names, Some(tells))?;
    let settled = call.until_told(told.as_fd(), |call| settle(call, number));
    drop(told);
    // The set-up may have failed after the last attempt.
    let failed = matches!(settled, Err(Errno::AGAIN | Errno::INTR));
    let settled = if failed { settle(&call, number).or(settled) } else { settled };
    // The set-up continues after a signal or a timeout.
    settled.map(|()| number).map_err(|error| if error == Errno::AGAIN { Errno::INPROGRESS } else { error })
}

/// Begins to connect, for a caller that waits by itself. Returns the association ID, and a descriptor that becomes readable when
/// the set-up has succeeded or failed.
pub(crate) fn begin_to_connect(fd: i32, names: &[u8]) -> Result<(i32, PipeReader), Errno> {
    let (told, tells) = settling()?;
    Ok((begin_on(&Call::on(fd)?, names, Some(tells))?, told))
}

/// Returns the result of a `connect` that was begun; `AGAIN` while there is none.
pub(crate) fn connected(fd: i32, number: i32) -> Result<(), Errno> {
    settle(&Call::on(fd)?, number)
}

fn begin_on(call: &Call, names: &[u8], tells: Option<Private<PipeWriter>>) -> Result<i32, Errno> {
    let id = begin(call, &SocketName::read_all(names)?, &[], tells)?;
    let number = call.lock().associations.get(&id).map_or(0, |entry| entry.number);
    call.leave();
    Ok(number)
}

/// Returns the two ends of a pipe: the first becomes readable when the second, which the association holds, is closed.
fn settling() -> Result<(PipeReader, Private<PipeWriter>), Errno> {
    let made = pipe().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE));
    made.map(|(told, tells)| (numbers::moved(told), Private::moved(tells)))
}

/// Returns the result of the set-up of the association with the ID `number`; `AGAIN` while there is none.
fn settle(call: &Call, number: i32) -> Result<(), Errno> {
    let key = call.key();
    let mut state = call.lock();
    let id = state.by_number(key, number).ok_or(Errno::CONNABORTED)?;
    let phase = state.associations.get(&id).map(|entry| entry.phase);
    match phase.ok_or(Errno::CONNABORTED)? {
        Phase::Opening => Err(Errno::AGAIN),
        Phase::Ended(Ended::With(error) | Ended::BeforeSetup(error)) => {
            state.disconnect(key, id);
            state.refresh();
            Err(error)
        }
        Phase::Open | Phase::Closing | Phase::Ended(Ended::Gracefully | Ended::Told) => Ok(()),
    }
}

/// Returns the ID of an association that `connect` has begun without waiting for it.
pub(crate) fn number_towards(fd: i32, names: &[u8]) -> Result<i32, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.number_towards(fd, names);
    }
    let call = Call::on(fd)?;
    let name = *SocketName::read_all(names)?.first().ok_or(Errno::INVAL)?;
    let state = call.lock();
    let id = state.by_name(call.key(), name).ok_or(Errno::NOTCONN)?;
    Ok(state.associations.get(&id).map_or(0, |entry| entry.number))
}

/// Begins to set up an association, without waiting. The `struct sctp_initmsg` in `init` overrides settings of the socket. `tells`
/// is closed when the set-up has succeeded or failed.
pub(crate) fn begin(
    call: &Call,
    names: &[SocketName],
    init: &[u8],
    tells: Option<Private<PipeWriter>>,
) -> Result<AssociationId, Errno> {
    let first = *names.first().ok_or(Errno::INVAL)?;
    let six = call.lock().socket(call.key())?.six;
    let usable =
        |name: &SocketName| !name.is_group() && (six || name.address.is_ipv4()) && name.port == first.port;
    if !names.iter().all(usable) {
        return Err(Errno::INVAL);
    }
    bind_implicitly(call, Some(first.address))?;
    let key = call.key();
    let mut state = call.lock();
    let socket = state.socket(key)?;
    if socket.style == Style::OneToOne {
        if socket.limit.is_some() {
            return Err(Errno::ISCONN);
        }
        if let Some(id) = socket.association {
            match state.associations.get(&id).map(|entry| entry.phase) {
                Some(Phase::Opening) => return Err(Errno::ALREADY),
                Some(Phase::Ended(Ended::BeforeSetup(_))) => state.disconnect(key, id),
                _ => return Err(Errno::ISCONN),
            }
        }
    } else if let Some(id) = state.by_name(key, first) {
        let opening = state.associations.get(&id).is_some_and(|entry| entry.phase == Phase::Opening);
        return Err(if opening { Errno::ALREADY } else { Errno::ISCONN });
    }
    state.open_endpoint(call)?;
    let (socket, place) = (state.socket(key)?, first);
    let (mut config, settings) = (socket.config.clone(), socket.settings.clone());
    let mut init_timeout = socket.options.init_timeout;
    if !init.is_empty() {
        init_timeout = Some(init_message(&mut config, init)?).filter(|&own| own != 0).unwrap_or(init_timeout);
    }
    let port = socket.options.encapsulation_port.unwrap_or(call.stack.shared.carrier.peer_port());
    let local = state.sources(place.address)?;
    let connect = Connect::new(local, names.iter().map(|name| name.address).collect(), first.port, config)
        .with(|c| {
            c.encapsulation_port = Some(port);
            c.setup_rto_max = some_millis(init_timeout.into());
        });
    let now = call.stack.now();
    let id = state
        .endpoint
        .as_mut()
        .ok_or(Errno::INVAL)?
        .connect(now, connect)
        .map_err(|error| refused(&error))?;
    let mut entry = SocketAssociation::new(key, first.port, settings, now);
    entry.unsettled = tells;
    state.enter(id, entry);
    state.name_peers(id, names.iter().map(|name| name.address).collect());
    let socket = state.socket(key)?;
    if socket.style == Style::OneToOne {
        (socket.association, socket.was_connected) = (Some(id), true);
    }
    state.touch(key);
    state.refresh();
    Ok(id)
}

fn refused(error: &ConnectError) -> Errno {
    match error {
        ConnectError::AddressFamily { .. } => Errno::NETUNREACH,
        ConnectError::Connected { .. } => Errno::ADDRNOTAVAIL,
        ConnectError::TooManyAssociations { .. } => Errno::NOBUFS,
        _ => Errno::INVAL,
    }
}

/// Binds a socket to an ephemeral port, if it is not bound.
pub(crate) fn bind_implicitly(call: &Call, towards: Option<IpAddr>) -> Result<(), Errno> {
    let six = {
        let mut state = call.lock();
        if state.place.is_some() {
            return Ok(());
        }
        state.socket(call.key())?.six
    };
    let mut names = vec![any_name(six)];
    if let Some(remote) = towards {
        let source = source_towards(remote)?;
        // A loopback address that no interface has is not among those of a wildcard: the peer would not learn it.
        if source.is_loopback() && !host_addresses()?.contains(&source) {
            names = vec![SocketName { address: source, port: 0 }];
        }
    }
    take_place(call, &names)
}

/// Returns the wildcard address with port 0.
fn any_name(six: bool) -> SocketName {
    SocketName { address: if six { [0_u16; 8].into() } else { [0_u8; 4].into() }, port: 0 }
}

/// `shutdown(2)` (RFC 6458 §4.1.7).
///
/// # Errors
/// Those of that call.
pub fn shutdown(fd: i32, how: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.shutdown(fd, how);
    }
    let call = Call::on(fd)?;
    if !matches!(how, libc::SHUT_RD | libc::SHUT_WR | libc::SHUT_RDWR) {
        return Err(Errno::INVAL);
    }
    let mut state = call.lock();
    let socket = state.socket(call.key())?;
    if socket.style == Style::OneToMany {
        return Err(Errno::NOTCONN);
    }
    if socket.limit.is_some() {
        // As in Linux: a listening socket has nothing to send.
        return if how == libc::SHUT_WR { Ok(()) } else { Err(Errno::OPNOTSUPP) };
    }
    let id = socket.association.ok_or(Errno::NOTCONN)?;
    if how != libc::SHUT_WR {
        socket.read_shut = true;
    }
    if how != libc::SHUT_RD {
        socket.write_shut = true;
        state.end_at(call.stack.now(), id, None);
    }
    state.touch(call.key());
    state.refresh();
    drop(state);
    call.leave();
    Ok(())
}

/// Gives the descriptor of a new socket SO_RCVTIMEO and SO_SNDTIMEO of its parent's, as in Linux.
fn inherit_timeouts(parent: impl AsFd, child: impl AsFd) {
    for timeout in [Timeout::Recv, Timeout::Send] {
        if let Ok(Some(limit)) = socket_timeout(&parent, timeout) {
            // The association is not lost because of this; the program can set the timeout again.
            let _ = set_socket_timeout(&child, timeout, Some(limit));
        }
    }
}

impl State {
    /// Creates the endpoint, if there is none; it listens if the socket does.
    pub(crate) fn open_endpoint(&mut self, call: &Call) -> Result<(), Errno> {
        if self.endpoint.is_some() {
            return Ok(());
        }
        let place = self.place.clone().ok_or(Errno::INVAL)?;
        let socket = self.socket(call.key())?;
        let config = EndpointConfig::default().with(|c| {
            c.port = place.port;
            c.listen = socket.limit.is_some();
            c.encapsulation_port = call.stack.shared.carrier.peer_port();
            c.cookie_lifetime = std::time::Duration::from_millis(u64::from(socket.options.cookie_life));
        });
        let mut endpoint = endpoint(config, socket.config.clone())?;
        endpoint.set_local_addresses(place.addresses);
        for change in std::mem::take(&mut socket.keys) {
            change.of_endpoint(&mut endpoint).map_err(|_| Errno::INVAL)?;
        }
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// Sets the addresses for future associations, and those that only existing associations may use.
    fn move_place(&mut self, call: &Call, addresses: Vec<IpAddr>, leaving: Vec<IpAddr>) {
        let Some(place) = &mut self.place else { return };
        (place.addresses, place.leaving, place.wildcard) = (addresses.clone(), leaving, false);
        call.socket().engine.set_addresses(&place.all());
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.set_local_addresses(addresses);
        }
    }

    pub(crate) fn each_association(&mut self, mut act: impl FnMut(&mut tresse_proto::AssociationHandle<'_>)) {
        let ids: Vec<AssociationId> = self.associations.keys().copied().collect();
        for id in ids {
            if let Some(mut association) = self.endpoint.as_mut().and_then(|core| core.association(id)) {
                act(&mut association);
            }
        }
    }

    /// Returns the own addresses for an association with `remote`, first the source address towards it.
    fn sources(&self, remote: IpAddr) -> Result<Vec<IpAddr>, Errno> {
        let place = self.place.as_ref().ok_or(Errno::INVAL)?;
        if !place.wildcard {
            return Ok(place.addresses.clone());
        }
        let source = source_towards(remote)?;
        // Packets from a loopback address do not leave the host, and packets to one come from the host only.
        let others = place.addresses.iter().copied();
        let others =
            others.filter(|&address| address != source && address.is_loopback() == remote.is_loopback());
        let first = place.addresses.contains(&source).then_some(source);
        Ok(first.into_iter().chain(others).collect())
    }

    /// Moves an association to a one-to-one socket of its own, with this descriptor. Returns the descriptor.
    fn detach(
        &mut self,
        call: &Call,
        id: AssociationId,
        (readiness, theirs): (Readiness, OwnedFd),
    ) -> Result<i32, Errno> {
        let (parent_key, key) = (call.key(), fresh_key());
        let parent = self.socket(parent_key)?;
        let mut child = SocketState::child(parent, readiness, id);
        // Unread items of the association move to the new socket.
        let is_of = |item: &crate::queue::Item| match item {
            crate::queue::Item::Data(of) => *of == id,
            crate::queue::Item::Notification(told) => told.of == id,
        };
        // Of a notification that was read in part, the rest moves.
        if parent.queue.front().is_some_and(is_of) {
            child.taken = std::mem::take(&mut parent.taken);
        }
        child.queue = parent.queue.split(is_of);
        if parent.in_progress == Some(id) {
            child.in_progress = parent.in_progress.take();
        }
        self.sockets.insert(key, child);
        if let Some(entry) = self.associations.get_mut(&id) {
            entry.owner = key;
        }
        inherit_timeouts(&*call.alias, &theirs);
        let fd = enter_socket(&call.socket().engine, self, key, Style::OneToOne, theirs);
        self.refill(call.stack.now(), id);
        self.touch(key);
        Ok(fd)
    }
}

/// Greatest backlog: associations that may wait for `accept`.
const MOST_WAITING: usize = 4096;
