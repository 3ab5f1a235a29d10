//! Links of paths: the interface by which each path leaves, and the commands that separate two paths on one interface.

use std::net::IpAddr;

use tresse::host::{self, HostAddress, Route, leads_to_any};
use tresse::{Association, Endpoint};

/// Returns a line with the own addresses of an association, and their interfaces. Used if the host chose the addresses.
pub(crate) fn used(association: &Association) -> String {
    let known = host::addresses().unwrap_or_default();
    let name = |local: IpAddr| match known.iter().find(|one| one.address == local) {
        Some(one) => format!("{local} ({})", one.interface),
        None => local.to_string(),
    };
    let mut used: Vec<String> = association.path_stats().iter().map(|path| name(path.local)).collect();
    used.dedup();
    format!("from {}", used.join(", "))
}

/// Fault of a link, and the commands that correct it.
pub(crate) struct Fault {
    pub(crate) says: String,
    pub(crate) mend: String,
}

impl Fault {
    fn line(&self) -> String {
        format!("{}; mend it with: {}", self.says, self.mend)
    }
}

/// Returns one line for each fault of the links of an association's paths; with `all`, also for interfaces without a route to the peer.
pub(crate) fn faults(association: &Association, endpoint: &Endpoint, all: bool) -> Vec<String> {
    let paths: Vec<_> = association.path_stats().iter().map(|path| (path.local, path.remote)).collect();
    let bound: Vec<_> =
        endpoint.local_stats().into_iter().filter(|stats| stats.interface.is_some()).collect();
    let mut faults = misrouted(&paths, |local| bound.iter().any(|stats| stats.local == local));
    if all {
        faults.extend(left_out(&paths));
    }
    faults.iter().map(Fault::line).collect()
}

/// Returns the faults of paths whose packets leave by another interface than that of their local address. `binds` returns whether packets
/// from an address leave by its interface wherever that interface has a route to the destination.
pub(crate) fn misrouted(paths: &[(IpAddr, IpAddr)], binds: impl Fn(IpAddr) -> bool) -> Vec<Fault> {
    let addresses = host::addresses().unwrap_or_default();
    let mut faults = Vec::new();
    for &(local, remote) in paths {
        let Some(own) = addresses.iter().find(|one| one.address == local && !one.loopback) else { continue };
        let Ok(route) = host::route(remote, Some(local), None) else { continue };
        let by_own = host::route(remote, Some(local), Some(own.index)).ok();
        if route.local || route.interface == own.index || (by_own.is_some() && binds(local)) {
            continue;
        }
        let other = addresses.iter().find(|one| one.index == route.interface);
        let other =
            other.map_or_else(|| format!("interface {}", route.interface), |one| one.interface.clone());
        let why = match by_own {
            Some(_) => "the system does not bind sockets to interfaces",
            None => "no route leads there by it",
        };
        faults.push(Fault {
            says: format!("path {local} -> {remote} leaves by {other}, not by {}: {why}", own.interface),
            mend: mend(own, by_own.as_ref()),
        });
    }
    faults
}

/// Returns the faults of interfaces that no path uses because they have no route to the peer.
pub(crate) fn left_out(paths: &[(IpAddr, IpAddr)]) -> Vec<Fault> {
    let addresses = host::addresses().unwrap_or_default();
    let remotes: Vec<_> = paths.iter().map(|(_, remote)| *remote).collect();
    let elsewhere = |to: &IpAddr| host::route(*to, None, None).is_ok_and(|route| !route.local);
    let Some(remote) = remotes.iter().copied().find(elsewhere) else { return Vec::new() };
    let used = |interface: &str| {
        let mut of_it = addresses.iter().filter(|one| one.interface == interface);
        of_it.any(|one| paths.iter().any(|(local, _)| *local == one.address))
    };
    let family = |one: &&HostAddress| one.address.is_ipv4() == remote.is_ipv4();
    let idle = addresses.iter().filter(family).filter(|one| one.is_usable() && !used(&one.interface));
    let fault = |one: &HostAddress| Fault {
        says: format!("{} ({}) is not used: no route leads to {remote} by it", one.interface, one.address),
        mend: mend(one, None),
    };
    idle.filter(|one| !leads_to_any(one, &remotes)).map(fault).collect()
}

/// Returns the commands after which packets from `own` leave by its interface.
fn mend(own: &HostAddress, route: Option<&Route>) -> String {
    let HostAddress { address, interface, index, .. } = own;
    let ip = if address.is_ipv4() { "ip" } else { "ip -6" };
    let table = FIRST_TABLE + index;
    let via = match route {
        Some(Route { gateway: Some(gateway), .. }) => format!("via {gateway} "),
        Some(_) => String::new(),
        None => "via ROUTER ".to_owned(),
    };
    let note = if route.is_none() { format!(" (ROUTER: the router on {interface})") } else { String::new() };
    format!(
        "{ip} route add default {via}dev {interface} table {table} && {ip} rule add from {address} table {table}{note}"
    )
}

/// First routing table of the commands, to which the interface's index is added. Linux uses the tables 253 to 255 itself.
const FIRST_TABLE: u32 = 1000;
