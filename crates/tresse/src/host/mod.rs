//! Interfaces and routes of this host: the addresses from which paths can start, and the interface by which a packet
//! leaves.
//!
//! Each call queries the operating system; nothing is cached.

mod follow;
mod load;
#[cfg(target_os = "linux")]
mod netlink;
mod resolve;

pub use follow::{Due, Followed, follow};
pub use load::{Load, LoadShares};
pub use resolve::{
    Local, NameError, NoRoute, Remote, by_position, is_wanted, leads_to_any, starting_from, starting_towards,
    waiting_on,
};

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

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

/// Returns the address from which this host would send to `remote`.
///
/// # Errors
/// There is no route.
pub fn source_towards(remote: IpAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match remote {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0; 16], 0).into(),
    };
    // Connecting a UDP socket sends nothing: it queries the routing table.
    let probe = UdpSocket::bind(any)?;
    probe.connect((remote, PROBED_PORT))?;
    Ok(probe.local_addr()?.ip())
}

/// Destination port of the query: that of SCTP in UDP (RFC 6951 §5.1), because rules of routing may have ports.
const PROBED_PORT: u16 = 9899;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_address_of_this_host_and_none_to_reach_others_from() {
        let all = addresses().expect("the system tells");
        let loopback = all.iter().find(|one| one.address == IpAddr::from([127, 0, 0, 1])).expect("it is up");
        assert!(loopback.loopback && !loopback.is_usable());
    }

    #[test]
    fn the_source_towards_loopback_is_loopback() {
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(source_towards(here).expect("always routed"), here);
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
