//! Addresses as a person names them: an address, an interface, a host, all of them, or whatever suits.

use std::net::{IpAddr, ToSocketAddrs};

use tresse::host::{self, HostAddress};

use crate::failure::Failure;

/// Addresses of another host: one, or all that a host name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Theirs(Vec<IpAddr>);

/// Addresses of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// One of each usable interface.
    Auto,
    /// What an address, an interface, a host name, 0.0.0.0 or :: stands for.
    These(Vec<IpAddr>),
}

/// Reads what stands for another host's addresses.
pub(crate) fn theirs(text: &str) -> Result<Theirs, String> {
    match literal(text) {
        Some(any) if any.is_unspecified() => {
            Err(format!("{any} names no other host: give an address or a host name"))
        }
        Some(address) => Ok(Theirs(vec![address])),
        None => resolved(text).map(Theirs),
    }
}

/// Reads what stands for addresses of this host.
pub(crate) fn own(text: &str) -> Result<Own, String> {
    if text.trim() == "auto" {
        return Ok(Own::Auto);
    }
    let all = host::addresses().map_err(|error| format!("this host's addresses: {error}"))?;
    match literal(text) {
        Some(any) if any.is_unspecified() => {
            let these = every(&all, any);
            if these.is_empty() {
                Err(format!("{any}: no interface has such an address"))
            } else {
                Ok(Own::These(these))
            }
        }
        Some(address) => Ok(Own::These(vec![address])),
        None => match of_interface(&all, text.trim()) {
            Some(these) => these.map(Own::These),
            None => resolved(text).map(Own::These),
        },
    }
}

fn literal(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(text).parse().ok()
}

/// What the unspecified address `any` stands for: all addresses of its family but those of one link alone.
fn every(all: &[HostAddress], any: IpAddr) -> Vec<IpAddr> {
    let fits = |one: &&HostAddress| {
        one.address.is_ipv4() == any.is_ipv4() && one.up && (one.loopback || one.is_usable())
    };
    all.iter().filter(fits).map(|one| one.address).collect()
}

/// The addresses of an interface; None where there is no such interface.
fn of_interface(all: &[HostAddress], name: &str) -> Option<Result<Vec<IpAddr>, String>> {
    let on_it: Vec<_> = all.iter().filter(|one| one.interface == name).collect();
    if on_it.is_empty() {
        return None;
    }
    let fits = |one: &&&HostAddress| one.loopback || one.is_usable();
    let these: Vec<_> = on_it.iter().filter(fits).map(|one| one.address).collect();
    let none = || format!("interface {name} is down, or has no address that others can reach");
    Some(if these.is_empty() { Err(none()) } else { Ok(these) })
}

fn resolved(text: &str) -> Result<Vec<IpAddr>, String> {
    let text = text.trim();
    let found = (text, 0).to_socket_addrs();
    let found = found.map_err(|error| {
        format!("\"{text}\" is no IP address, interface or host name that can be resolved: {error}")
    })?;
    let mut all = Vec::new();
    add_new(&mut all, found.map(|found| found.ip()));
    if all.is_empty() { Err(format!("\"{text}\" has no address")) } else { Ok(all) }
}

/// All of them, each once.
pub(crate) fn all_of(theirs: &[Theirs]) -> Vec<IpAddr> {
    let mut all = Vec::new();
    add_new(&mut all, theirs.iter().flat_map(|one| one.0.iter().copied()));
    all
}

/// The addresses to start from towards `remote`.
///
/// # Errors
/// No route leads there.
pub(crate) fn starting_from(own: &[Own], remote: &[IpAddr]) -> Result<Vec<IpAddr>, Failure> {
    let mut local = Vec::new();
    for one in if own.is_empty() { &[Own::Auto] } else { own } {
        let these = match one {
            Own::Auto => automatic(remote)?,
            Own::These(these) => these.clone(),
        };
        add_new(&mut local, these);
    }
    Ok(local)
}

/// The addresses to wait on: with `auto` all that others can reach.
pub(crate) fn waiting_on(own: &[Own]) -> Result<Vec<IpAddr>, Failure> {
    let mut local = Vec::new();
    for one in own {
        let these = match one {
            Own::Auto => {
                let all = host::addresses().map_err(Failure::running)?;
                all.into_iter().filter(HostAddress::is_usable).map(|one| one.address).collect()
            }
            Own::These(these) => these.clone(),
        };
        add_new(&mut local, these);
    }
    match local.is_empty() {
        true => {
            Err(Failure::usage("--listen auto: no interface is up with an address that others can reach"))
        }
        false => Ok(local),
    }
}

/// By position those that routing would take for each of `remote`; then one of each further interface by which a route
/// leads to any of them.
fn automatic(remote: &[IpAddr]) -> Result<Vec<IpAddr>, Failure> {
    let mut local = routed(remote)?;
    let all = host::addresses().unwrap_or_default();
    let here = |to: &IpAddr| host::route(*to, None, None).is_ok_and(|route| route.local);
    if remote.iter().any(here) {
        return Ok(local);
    }
    for one in all.iter().filter(|one| one.is_usable()) {
        let same_way = |other: &HostAddress| {
            other.interface == one.interface && other.address.is_ipv4() == one.address.is_ipv4()
        };
        let taken = all.iter().any(|other| same_way(other) && local.contains(&other.address));
        if !taken && leads_to_any(one, remote) {
            local.push(one.address);
        }
    }
    Ok(local)
}

/// Whether a route leads from `own` by its interface to one of `remote`.
pub(crate) fn leads_to_any(own: &HostAddress, remote: &[IpAddr]) -> bool {
    let mut family = remote.iter().filter(|to| to.is_ipv4() == own.address.is_ipv4());
    family.any(|&to| host::route(to, Some(own.address), Some(own.index)).is_ok())
}

/// For each of a peer's addresses the own one that routing would take.
fn routed(to: &[IpAddr]) -> Result<Vec<IpAddr>, Failure> {
    let (mut local, mut failure) = (Vec::new(), None);
    for &remote in to {
        match tresse::source_towards(remote) {
            Ok(source) => add_new(&mut local, [source]),
            Err(error) => failure = Some(Failure::unreachable(format!("no route to {remote}: {error}"))),
        }
    }
    // A host name has addresses of families that this host need not have.
    match failure {
        Some(failure) if local.is_empty() => Err(failure),
        _ => Ok(local),
    }
}

fn add_new(known: &mut Vec<IpAddr>, more: impl IntoIterator<Item = IpAddr>) {
    for address in more {
        if !known.contains(&address) {
            known.push(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_addresses() {
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(own("127.0.0.1"), Ok(Own::These(vec![here])));
        assert_eq!(own(" auto "), Ok(Own::Auto));
        let Ok(Own::These(all)) = own("0.0.0.0") else { panic!("loopback is there") };
        assert!(all.contains(&here) && all.iter().all(IpAddr::is_ipv4), "{all:?}");
        let Ok(Own::These(of_lo)) = own("lo") else { return };
        assert!(of_lo.contains(&here), "{of_lo:?}");
        assert_eq!(theirs("[2001:db8::1]"), Ok(Theirs(vec!["2001:db8::1".parse().expect("an address")])));
        assert!(all_of(&[theirs("localhost").expect("every host has it")]).contains(&here));
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        assert!(theirs("0.0.0.0").expect_err("refused").contains("names no other host"));
        assert!(own("no such name").expect_err("refused").contains("no such name"));
    }

    #[test]
    fn to_this_host_routing_alone_chooses() {
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(starting_from(&[], &[here]).expect("always routed"), [here]);
        assert_eq!(starting_from(&[Own::These(vec![here]), Own::Auto], &[here]).expect("routed"), [here]);
    }
}
