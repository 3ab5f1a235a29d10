//! Links that paths take: by which interface each one leaves, and what mends two that leave by one.

use std::net::IpAddr;

use tresse::host::{self, HostAddress, Route, leads_to_any};
use tresse::{Association, Endpoint};

/// Which addresses an association uses, of which interfaces; for one that chose them itself.
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

/// What is wrong with the links of an association's paths, a line each; with `all`, also which interfaces have no route to
/// the peer.
pub(crate) fn faults(association: &Association, endpoint: &Endpoint, all: bool) -> Vec<String> {
    let paths: Vec<_> = association.path_stats().iter().map(|path| (path.local, path.remote)).collect();
    let addresses = host::addresses().unwrap_or_default();
    let bound: Vec<_> =
        endpoint.local_stats().into_iter().filter(|stats| stats.interface.is_some()).collect();
    let mut lines = misled(&addresses, &paths, |local| bound.iter().any(|stats| stats.local == local));
    if all {
        lines.extend(left_out(&addresses, &paths));
    }
    lines
}

/// A line for each path that leaves by another interface than that of its address.
fn misled(
    addresses: &[HostAddress],
    paths: &[(IpAddr, IpAddr)],
    binds: impl Fn(IpAddr) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
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
        let interface = &own.interface;
        lines.push(format!(
            "path {local} -> {remote} leaves by {other}, not by {interface}: {why}; mend it with: {}",
            mend(own, by_own.as_ref())
        ));
    }
    lines
}

/// A line for each interface that no path starts from because no route leads to the peer by it.
fn left_out(addresses: &[HostAddress], paths: &[(IpAddr, IpAddr)]) -> Vec<String> {
    let remotes: Vec<_> = paths.iter().map(|(_, remote)| *remote).collect();
    let elsewhere = |to: &IpAddr| host::route(*to, None, None).is_ok_and(|route| !route.local);
    let Some(remote) = remotes.iter().copied().find(elsewhere) else { return Vec::new() };
    let used = |interface: &str| {
        let mut of_it = addresses.iter().filter(|one| one.interface == interface);
        of_it.any(|one| paths.iter().any(|(local, _)| *local == one.address))
    };
    let family = |one: &&HostAddress| one.address.is_ipv4() == remote.is_ipv4();
    let idle = addresses.iter().filter(family).filter(|one| one.is_usable() && !used(&one.interface));
    let idle = idle.filter(|one| !leads_to_any(one, &remotes));
    let line = |one: &HostAddress| {
        let (interface, address) = (&one.interface, one.address);
        format!(
            "{interface} ({address}) is not used: no route leads to {remote} by it; to use it: {}",
            mend(one, None)
        )
    };
    idle.map(line).collect()
}

/// The commands that let packets from `own` leave by its interface.
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

/// Tables of ours, by the number of the interface; Linux has its own at 253 to 255.
const FIRST_TABLE: u32 = 1000;
