//! Interfaces of addresses: packets of a path leave by the interface of its local address.
//!
//! Routing considers the destination alone. So without this module all paths of a host with two default routes would
//! leave by the one of the lower metric, whatever their source addresses.
//!
//! On Linux and Apple's systems an address has two sockets: one is bound to the interface (SO_BINDTODEVICE, IP_BOUND_IF), and the other
//! receives the packets that arrive by other interfaces, such as those of this host. [`Egress`] selects the socket by which a packet
//! leaves. On Windows a packet leaves by the interface of its source address in any case.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use crate::host::{self, HostAddress};

/// Returns the interface of each of `local`, by position; `None` for loopback and for an address that this host does not have.
pub(super) fn of_each(local: &[IpAddr]) -> Vec<Option<HostAddress>> {
    let all = host::addresses().unwrap_or_default();
    let of = |address: &IpAddr| all.iter().find(|one| one.address == *address && !one.loopback).cloned();
    local.iter().map(of).collect()
}

/// Returns `local` with a port as a socket address: a link-local address has the number of its interface.
pub(super) fn scoped(local: IpAddr, port: u16) -> SocketAddr {
    let IpAddr::V6(v6) = local else { return (local, port).into() };
    let own = v6.is_unicast_link_local().then(|| of_each(&[local]).pop().flatten()).flatten();
    SocketAddrV6::new(v6, port, 0, own.map_or(0, |one| one.index)).into()
}

/// Opens a second socket on the address and port of `free`, bound to `interface`. Returns `None` if the system refuses
/// (Linux before 5.7 without CAP_NET_RAW) or has no such option.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub(super) fn beside(free: &UdpSocket, kind: socket2::Type, interface: &HostAddress) -> Option<UdpSocket> {
    use socket2::{Domain, SockRef, Socket};

    let free = SockRef::from(free);
    let address = free.local_addr().ok()?;
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let open = || {
        let socket = Socket::new(domain, kind, protocol_of(&free, kind)?)?;
        bind_to(&socket, interface, address.is_ipv4())?;
        // As the sockets of other drivers on this address.
        #[cfg(target_os = "linux")]
        socket.set_reuse_port(free.reuse_port()?)?;
        share_port(&socket, true)?;
        socket.bind(&address)?;
        share_port(&socket, false)?;
        Ok::<_, std::io::Error>(UdpSocket::from(socket))
    };
    // Only these two sockets share the port: no other socket can bind it before or after.
    share_port(&free, true).ok()?;
    let bound = open();
    let _ = share_port(&free, false);
    bound.ok()
}

#[cfg(target_os = "linux")]
fn bind_to(socket: &socket2::Socket, interface: &HostAddress, _v4: bool) -> std::io::Result<()> {
    socket.bind_device(Some(interface.interface.as_bytes()))
}

#[cfg(target_vendor = "apple")]
fn bind_to(socket: &socket2::Socket, interface: &HostAddress, v4: bool) -> std::io::Result<()> {
    let index = Some(std::num::NonZeroU32::new(interface.index).ok_or(ErrorKind::NotFound)?);
    if v4 { socket.bind_device_by_index_v4(index) } else { socket.bind_device_by_index_v6(index) }
}

#[cfg(target_os = "linux")]
fn protocol_of(socket: &socket2::Socket, _kind: socket2::Type) -> std::io::Result<Option<socket2::Protocol>> {
    socket.protocol()
}

#[cfg(target_vendor = "apple")]
fn protocol_of(_socket: &socket2::Socket, kind: socket2::Type) -> std::io::Result<Option<socket2::Protocol>> {
    // There the protocol of a socket cannot be queried; a raw socket is one of SCTP.
    Ok((kind == socket2::Type::RAW).then(|| socket2::Protocol::from(super::SCTP_IN_IP)))
}

/// Sets whether sockets with the same setting may share the address and port of this one.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn share_port(socket: &socket2::Socket, shares: bool) -> std::io::Result<()> {
    // On Apple's systems SO_REUSEADDR concerns only addresses that differ.
    #[cfg(target_vendor = "apple")]
    return socket.set_reuse_port(shares);
    #[cfg(not(target_vendor = "apple"))]
    socket.set_reuse_address(shares)
}

/// As on Linux, if the system has no such option.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn beside<T>(_free: &T, _kind: socket2::Type, _interface: &HostAddress) -> Option<UdpSocket> {
    None
}

/// Lets further sockets of this user share the address and port of a bound socket (SO_REUSEPORT); until now none could.
///
/// # Errors
/// Error of the system.
#[cfg(target_os = "linux")]
pub(super) fn let_share(socket: &UdpSocket) -> std::io::Result<()> {
    socket2::SockRef::from(socket).set_reuse_port(true)
}

/// Opens another socket on the address and port of `first`, which allows sharing, and bound to `interface` as `first` is.
///
/// # Errors
/// Error of the system.
#[cfg(target_os = "linux")]
pub(super) fn again(first: &UdpSocket, interface: Option<&HostAddress>) -> std::io::Result<UdpSocket> {
    use socket2::{Domain, Socket, Type};

    let address = first.local_addr()?;
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if let Some(interface) = interface {
        bind_to(&socket, interface, address.is_ipv4())?;
    }
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// As on Linux. On other systems sockets that share a port do not distribute arriving packets, so this is never called.
#[cfg(not(target_os = "linux"))]
pub(super) fn let_share(_socket: &UdpSocket) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// As [`let_share`].
#[cfg(not(target_os = "linux"))]
pub(super) fn again(_first: &UdpSocket, _interface: Option<&HostAddress>) -> std::io::Result<UdpSocket> {
    Err(ErrorKind::Unsupported.into())
}

/// Selection of the packets that leave by the interface of their source address; the others leave as routed.
///
/// A packet leaves by the interface if there is a route to its destination by this interface. There is none for packets
/// to this host, or if only another interface leads to the destination.
#[derive(Debug)]
pub(super) struct Egress {
    /// Numbers of the interfaces to which sockets of addresses are bound.
    interfaces: BTreeMap<IpAddr, u32>,
    /// Results of route queries on pairs of addresses since `asked`.
    known: BTreeMap<(IpAddr, IpAddr), bool>,
    /// Interfaces that now have an address whose socket is bound to another interface.
    moved: Vec<HostAddress>,
    asked: Instant,
}

impl Egress {
    pub(super) fn new() -> Self {
        Egress {
            interfaces: BTreeMap::new(),
            known: BTreeMap::new(),
            moved: Vec::new(),
            asked: Instant::now(),
        }
    }

    /// Notes that `local` has a socket bound to the interface of this number.
    pub(super) fn join(&mut self, local: IpAddr, interface: u32) {
        self.interfaces.insert(local, interface);
        self.known.retain(|(known, _), _| *known != local);
    }

    /// Notes that `local` has no socket any more.
    pub(super) fn leave(&mut self, local: IpAddr) {
        self.interfaces.remove(&local);
    }

    /// Takes the present interfaces of addresses whose sockets are bound to another one. Each is reported once in a
    /// while: an interface that was removed and added again has another number.
    pub(super) fn take_moved(&mut self) -> Vec<HostAddress> {
        std::mem::take(&mut self.moved)
    }

    /// Returns whether packets from `local` to `remote` leave by the interface of `local`.
    pub(super) fn by_interface(&mut self, local: IpAddr, remote: IpAddr) -> bool {
        let Some(&interface) = self.interfaces.get(&local) else { return false };
        if self.asked.elapsed() >= ROUTES_HOLD || self.known.len() >= MOST_KNOWN {
            self.known.clear();
            self.asked = Instant::now();
            self.moved = self.find_moved();
        }
        *self.known.entry((local, remote)).or_insert_with(|| leads_to(interface, local, remote))
    }

    fn find_moved(&self) -> Vec<HostAddress> {
        let local: Vec<IpAddr> = self.interfaces.keys().copied().collect();
        let present = of_each(&local).into_iter().flatten();
        present.filter(|one| self.interfaces.get(&one.address) != Some(&one.index)).collect()
    }
}

fn leads_to(interface: u32, local: IpAddr, remote: IpAddr) -> bool {
    let is_local = match host::route(remote, Some(local), None) {
        Ok(route) => route.local,
        // Packets to this host use loopback on every system.
        Err(_) => {
            remote.is_loopback()
                || host::addresses().is_ok_and(|all| all.iter().any(|one| one.address == remote))
        }
    };
    if is_local {
        return false;
    }
    // An interface that was removed leads nowhere. If the system does not answer the query, the interface counts as a route.
    let by_interface = host::route(remote, Some(local), Some(interface));
    !by_interface
        .is_err_and(|error| !matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied))
}

/// Time for which results of route queries are kept.
const ROUTES_HOLD: Duration = Duration::from_secs(2);
/// Most pairs of addresses that are kept.
const MOST_KNOWN: usize = 4096;
