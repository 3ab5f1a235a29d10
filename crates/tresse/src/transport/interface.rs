//! Interfaces of addresses: packets of a path leave by the interface of its local address.
//!
//! Routing looks at the destination alone, so without this all paths of a host with two default routes leave by the one
//! of the lower metric, whatever address they start from.
//!
//! On Linux and Apple's systems an address has two sockets: one is bound to the interface (SO_BINDTODEVICE, IP_BOUND_IF) and
//! the other hears what arrives by any other one, such as packets of this host. [`Egress`] says which of them a packet leaves by.
//! On Windows a packet leaves by the interface of its source address anyway.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use crate::host::{self, HostAddress};

/// The interface of each of `local`, by position. None for loopback and for what is no address of this host.
pub(super) fn of_each(local: &[IpAddr]) -> Vec<Option<HostAddress>> {
    let all = host::addresses().unwrap_or_default();
    let of = |address: &IpAddr| all.iter().find(|one| one.address == *address && !one.loopback).cloned();
    local.iter().map(of).collect()
}

/// `local` with a port, as the system wants it: an address of one link alone with the number of its interface.
pub(super) fn scoped(local: IpAddr, port: u16) -> SocketAddr {
    let IpAddr::V6(v6) = local else { return (local, port).into() };
    let own = v6.is_unicast_link_local().then(|| of_each(&[local]).pop().flatten()).flatten();
    SocketAddrV6::new(v6, port, 0, own.map_or(0, |one| one.index)).into()
}

/// A second socket on the address and port of `free`, bound to `interface`. None where the system refuses (Linux before
/// 5.7 without CAP_NET_RAW) or has no such option.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub(super) fn beside(free: &UdpSocket, kind: socket2::Type, interface: &HostAddress) -> Option<UdpSocket> {
    use socket2::{Domain, SockRef, Socket};

    let free = SockRef::from(free);
    let address = free.local_addr().ok()?;
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let open = || {
        let socket = Socket::new(domain, kind, protocol_of(&free, kind)?)?;
        bind_to(&socket, interface, address.is_ipv4())?;
        // As with the sockets of other drivers on this address.
        #[cfg(target_os = "linux")]
        socket.set_reuse_port(free.reuse_port()?)?;
        share_port(&socket, true)?;
        socket.bind(&address)?;
        share_port(&socket, false)?;
        Ok::<_, std::io::Error>(UdpSocket::from(socket))
    };
    // Sharing the port is for these two alone: nobody else can have it before or after.
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
    // Nobody can ask there; a raw socket is one of SCTP.
    Ok((kind == socket2::Type::RAW).then(|| socket2::Protocol::from(super::raw::SCTP)))
}

/// Lets sockets that say the same have the address and port of this one, or no longer.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn share_port(socket: &socket2::Socket, shares: bool) -> std::io::Result<()> {
    // To Apple's systems SO_REUSEADDR is about addresses that are not quite the same.
    #[cfg(target_vendor = "apple")]
    return socket.set_reuse_port(shares);
    #[cfg(not(target_vendor = "apple"))]
    socket.set_reuse_address(shares)
}

/// As on Linux, where the system has no such option.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn beside<T>(_free: &T, _kind: socket2::Type, _interface: &HostAddress) -> Option<UdpSocket> {
    None
}

/// Lets further sockets of this user share the address and port of a bound socket (SO_REUSEPORT); until now nobody could.
///
/// # Errors
/// Those of the system.
#[cfg(target_os = "linux")]
pub(super) fn let_share(socket: &UdpSocket) -> std::io::Result<()> {
    socket2::SockRef::from(socket).set_reuse_port(true)
}

/// One more socket on the address and port of `first`, which lets them be shared, and bound to `interface` as it is.
///
/// # Errors
/// Those of the system.
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

/// As on Linux; elsewhere sockets that share a port do not share out what arrives, and nobody asks.
#[cfg(not(target_os = "linux"))]
pub(super) fn let_share(_socket: &UdpSocket) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// As [`let_share`].
#[cfg(not(target_os = "linux"))]
pub(super) fn again(_first: &UdpSocket, _interface: Option<&HostAddress>) -> std::io::Result<UdpSocket> {
    Err(ErrorKind::Unsupported.into())
}

/// Choice of packets that leave by the interface of their address; the others leave as routing has it.
///
/// By the interface leaves what has a route there. What is for this host does not, nor what only another interface leads
/// to.
#[derive(Debug)]
pub(super) struct Egress {
    /// The numbers of the interfaces that addresses have sockets bound to.
    interfaces: BTreeMap<IpAddr, u32>,
    /// Answers of the system on pairs of addresses since `asked`.
    known: BTreeMap<(IpAddr, IpAddr), bool>,
    /// Interfaces that addresses have come to since, and to which their sockets are not bound.
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

    /// `local` has a socket that is bound to the interface of this number.
    pub(super) fn join(&mut self, local: IpAddr, interface: u32) {
        self.interfaces.insert(local, interface);
        self.known.retain(|(known, _), _| *known != local);
    }

    /// `local` has no socket any more.
    pub(super) fn leave(&mut self, local: IpAddr) {
        self.interfaces.remove(&local);
    }

    /// Addresses whose interface is another one than their sockets are bound to, each told once in a while: an interface that
    /// went and came back has another number.
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
        // What is for this host goes by loopback on every system.
        Err(_) => {
            remote.is_loopback()
                || host::addresses().is_ok_and(|all| all.iter().any(|one| one.address == remote))
        }
    };
    if is_local {
        return false;
    }
    // An interface that is gone leads nowhere; where the system does not say, it is taken to lead there.
    let by_interface = host::route(remote, Some(local), Some(interface));
    !by_interface
        .is_err_and(|error| !matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied))
}

/// Time for which answers of the routing tables are taken for true.
const ROUTES_HOLD: Duration = Duration::from_secs(2);
/// Pairs of addresses that are remembered.
const MOST_KNOWN: usize = 4096;
