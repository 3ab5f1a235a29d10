//! Interfaces and routes of this host: the addresses from which paths can start, and the interface by which a packet
//! leaves.
//!
//! Each call queries the operating system; nothing is cached.

mod follow;
mod load;
mod names;
#[cfg(target_os = "linux")]
mod netlink;

pub use follow::{Due, Followed, follow};
pub use load::{Load, LoadShares};
pub use names::{
    Local, NameError, NoRoute, Remote, by_position, is_wanted, leads_to_any, starting_from, starting_towards,
    waiting_on,
};

use std::io;
use std::net::IpAddr;

/// An address of this host and its interface.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HostAddress {
    /// The address.
    pub address: IpAddr,
    /// The name of its interface.
    pub interface: String,
    /// The number of its interface.
    pub index: u32,
    /// True if the interface leads to this host itself.
    pub loopback: bool,
    /// True if the interface is up, as the system reports.
    pub up: bool,
}

impl HostAddress {
    /// Returns whether a path to another host can start at this address: the interface is up and no loopback, and the
    /// address is valid beyond its link.
    pub fn is_usable(&self) -> bool {
        let link_local = match self.address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        self.up && !self.loopback && !link_local
    }
}

/// Returns the addresses of this host, in the system's order.
///
/// # Errors
/// Error of the system.
pub fn addresses() -> io::Result<Vec<HostAddress>> {
    let interfaces = if_addrs::get_if_addrs()?;
    let known = interfaces.into_iter().map(|one| HostAddress {
        address: one.ip(),
        index: one.index.unwrap_or(0),
        loopback: one.is_loopback(),
        up: one.oper_status == if_addrs::IfOperStatus::Up,
        interface: one.name,
    });
    Ok(known.collect())
}

/// Route of packets to an address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Route {
    /// The number of the interface.
    pub interface: u32,
    /// The router, if the destination is not on the link itself.
    pub gateway: Option<IpAddr>,
    /// True if the destination is this host.
    pub local: bool,
}

/// Returns the route of packets from `source` to `destination`, among those by the interface of number `interface` if one is given.
///
/// # Errors
/// `HostUnreachable` or `NetworkUnreachable` if there is no route; `Unsupported` where this crate cannot query the
/// system (on anything but Linux).
pub fn route(destination: IpAddr, source: Option<IpAddr>, interface: Option<u32>) -> io::Result<Route> {
    #[cfg(target_os = "linux")]
    return netlink::route(destination, source, interface);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (destination, source, interface);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_address_of_this_host_and_none_to_reach_others_from() {
        let all = addresses().expect("the system tells");
        let loopback = all.iter().find(|one| one.address == IpAddr::from([127, 0, 0, 1])).expect("it is up");
        assert!(loopback.loopback && !loopback.is_usable());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_route_to_this_host_is_local_and_one_by_an_interface_that_is_not_there_is_none() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let route = route(here, Some(here), None).expect("always routed");
        assert!(route.local && route.gateway.is_none());
        assert!(super::route(here, None, Some(0x7fff_ffff)).is_err());
    }
}
