//! Interfaces that addresses belong to: a path that starts from an address leaves by that address's interface.
//!
//! Routing looks at the destination alone, so without this all paths of a host with two default routes leave by the one
//! of the lower metric, whatever address they start from.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, UdpSocket};

use if_addrs::Interface;

/// Binds each of `sockets` to the interface of its address, by position in `local`, and answers the names of those that are
/// bound. None is where `local` and `others` are all of one interface: routing has no choice to make there, and packets that
/// reach the host by another interface still count. Loopback is left out, and so is a system that refuses (Linux before
/// 5.7 without CAP_NET_RAW) or has no such option.
pub(super) fn bind_each(local: &[IpAddr], others: &[IpAddr], sockets: &[UdpSocket]) -> Vec<Option<String>> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let of = |address: &IpAddr| interfaces.iter().find(|one| one.ip() == *address && !one.is_loopback());
    let names: BTreeSet<_> = local.iter().chain(others).filter_map(of).map(|one| &one.name).collect();
    let bound = |(address, socket): (&IpAddr, &UdpSocket)| {
        let interface = of(address).filter(|_| names.len() > 1)?;
        bind(socket, interface).ok().map(|()| interface.name.clone())
    };
    local.iter().zip(sockets).map(bound).collect()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind(socket: &UdpSocket, interface: &Interface) -> io::Result<()> {
    socket2::SockRef::from(socket).bind_device(Some(interface.name.as_bytes()))
}

#[cfg(target_vendor = "apple")]
fn bind(socket: &UdpSocket, interface: &Interface) -> io::Result<()> {
    let index = interface.index.and_then(std::num::NonZeroU32::new);
    let socket = socket2::SockRef::from(socket);
    match interface.ip() {
        IpAddr::V4(_) => socket.bind_device_by_index_v4(index),
        IpAddr::V6(_) => socket.bind_device_by_index_v6(index),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn bind(_socket: &UdpSocket, _interface: &Interface) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
