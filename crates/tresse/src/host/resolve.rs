//! Names of addresses: an address, an interface, a host name, all addresses, or `auto`.
//!
//! The system resolves a host name, and the thread waits for the result.

use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;

use super::{HostAddress, addresses, route, source_towards};

/// Addresses of this host; read from text as [`EndpointBuilder::local`](crate::EndpointBuilder::local) reads it. The thread
/// waits while the system resolves a host name.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Local {
    /// One address of each usable interface.
    Auto,
    /// Addresses that an address, an interface, a host name, 0.0.0.0 or :: means.
    These(Vec<IpAddr>),
}

/// Addresses of another host: one, or all of a host name. The thread waits while the system resolves a name that is read from
/// text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remote {
    addresses: Vec<IpAddr>,
    /// The own address on the link of a link-local address that was given with its interface (RFC 4007 §11).
    from: Option<IpAddr>,
}

/// A name without an address, in one line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

/// The error that there is no route to an address.
#[derive(Debug, thiserror::Error)]
#[error("no route to {remote}: {}", without_route(*remote, source))]
#[non_exhaustive]
pub struct NoRoute {
    /// The address.
    pub remote: IpAddr,
    /// Error of the system.
    pub source: std::io::Error,
}

fn without_route(remote: IpAddr, source: &std::io::Error) -> String {
    match is_link_local(remote) {
        // The system says that the argument is invalid.
        true => format!("name the interface that it is on, as in {remote}%eth0"),
        false => source.to_string(),
    }
}

impl FromStr for Remote {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if let Some((address, zone)) = zoned(text) {
            let all = own_addresses()?;
            let on_link = |one: &&HostAddress| one.interface == zone && is_link_local(one.address);
            let own = all.iter().find(on_link).map(|one| one.address);
            let own =
                own.ok_or_else(|| NameError(format!("interface {zone} has no address of its link alone")))?;
            return Ok(Remote { addresses: vec![address], from: Some(own) });
        }
        let addresses = match literal(text) {
            Some(any) if any.is_unspecified() => {
                return Err(NameError(format!("{any} names no other host: give an address or a host name")));
            }
            Some(address) => vec![address],
            None => resolved(text)?,
        };
        Ok(Remote { addresses, from: None })
    }
}

impl FromStr for Local {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.trim() == "auto" {
            return Ok(Local::Auto);
        }
        let all = own_addresses()?;
        if let Some((address, zone)) = zoned(text) {
            let there = all.iter().any(|one| one.interface == zone && one.address == address);
            let none = || NameError(format!("interface {zone} does not have the address {address}"));
            return there.then(|| Local::These(vec![address])).ok_or_else(none);
        }
        match literal(text) {
            Some(any) if any.is_unspecified() => {
                let these = every(&all, any);
                if these.is_empty() {
                    Err(NameError(format!("{any}: no interface has such an address")))
                } else {
                    Ok(Local::These(these))
                }
            }
            Some(address) => Ok(Local::These(vec![address])),
            None => match of_interface(&all, text.trim()) {
                Some(these) => these.map(Local::These),
                None => resolved(text).map(Local::These),
            },
        }
    }
}

impl From<IpAddr> for Remote {
    fn from(address: IpAddr) -> Self {
        Remote { addresses: vec![address], from: None }
    }
}

impl From<IpAddr> for Local {
    fn from(address: IpAddr) -> Self {
        Local::These(vec![address])
    }
}

impl Remote {
    /// Returns all addresses, each once.
    pub fn all_of(these: &[Remote]) -> Vec<IpAddr> {
        let mut all = Vec::new();
        add_new(&mut all, these.iter().flat_map(|one| one.addresses.iter().copied()));
        all
    }
}

fn own_addresses() -> Result<Vec<HostAddress>, NameError> {
    addresses().map_err(|error| NameError(format!("this host's addresses: {error}")))
}

/// Returns a link-local address and its interface, as in fe80::1%eth0.
fn zoned(text: &str) -> Option<(IpAddr, &str)> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let (address, zone) = text.split_once('%')?;
    let address = address.parse().ok().filter(|&address| is_link_local(address))?;
    Some((address, zone))
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn literal(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(text).parse().ok()
}

/// Returns the addresses that the unspecified address `any` means: all of its family except link-local ones.
fn every(all: &[HostAddress], any: IpAddr) -> Vec<IpAddr> {
    let fits = |one: &&HostAddress| {
        one.address.is_ipv4() == any.is_ipv4() && one.up && (one.loopback || one.is_usable())
    };
    all.iter().filter(fits).map(|one| one.address).collect()
}

/// Returns the addresses of an interface; `None` if there is no such interface.
fn of_interface(all: &[HostAddress], name: &str) -> Option<Result<Vec<IpAddr>, NameError>> {
    let on_it: Vec<_> = all.iter().filter(|one| one.interface == name).collect();
    if on_it.is_empty() {
        return None;
    }
    let fits = |one: &&&HostAddress| one.loopback || one.is_usable();
    let these: Vec<_> = on_it.iter().filter(fits).map(|one| one.address).collect();
    let none = || NameError(format!("interface {name} is down, or has no address that others can reach"));
    Some(if these.is_empty() { Err(none()) } else { Ok(these) })
}

fn resolved(text: &str) -> Result<Vec<IpAddr>, NameError> {
    let text = text.trim();
    let found = (text, 0).to_socket_addrs();
    let found = found.map_err(|error| {
        NameError(format!(
            "\"{text}\" is no IP address, interface or host name that can be resolved: {error}"
        ))
    })?;
    let mut all = Vec::new();
    add_new(&mut all, found.map(|found| found.ip()));
    if all.is_empty() { Err(NameError(format!("\"{text}\" has no address"))) } else { Ok(all) }
}

/// Returns the addresses from which to start towards `remote`; if `own` is empty, as with [`Local::Auto`].
///
/// # Errors
/// There is no route.
pub fn starting_from(own: &[Local], remote: &[IpAddr]) -> Result<Vec<IpAddr>, NoRoute> {
    let mut local = Vec::new();
    for one in if own.is_empty() { &[Local::Auto] } else { own } {
        let these = match one {
            Local::Auto => automatic(remote)?,
            Local::These(these) => these.clone(),
        };
        add_new(&mut local, these);
    }
    Ok(local)
}

/// As [`starting_from`], for link-local addresses that were given with their interface, too.
///
/// # Errors
/// There is no route.
pub fn starting_towards(own: &[Local], remote: &[Remote]) -> Result<Vec<IpAddr>, NoRoute> {
    let (on_link, beyond): (Vec<Remote>, Vec<Remote>) =
        remote.iter().cloned().partition(|one| one.from.is_some());
    let mut local = Vec::new();
    if own.contains(&Local::Auto) || own.is_empty() {
        add_new(&mut local, on_link.iter().filter_map(|one| one.from));
    }
    let named = |one: &&Local| !beyond.is_empty() || **one != Local::Auto;
    let own: Vec<Local> = own.iter().filter(named).cloned().collect();
    if !own.is_empty() || local.is_empty() {
        add_new(&mut local, starting_from(&own, &Remote::all_of(&beyond))?);
    }
    Ok(local)
}

/// Returns the addresses at which to wait: with [`Local::Auto`] all that others can reach.
///
/// # Errors
/// Error of the system if it does not report its addresses; `AddrNotAvailable` if there are none.
pub fn waiting_on(own: &[Local]) -> std::io::Result<Vec<IpAddr>> {
    let mut local = Vec::new();
    for one in own {
        let these = match one {
            Local::Auto => {
                addresses()?.into_iter().filter(HostAddress::is_usable).map(|one| one.address).collect()
            }
            Local::These(these) => these.clone(),
        };
        add_new(&mut local, these);
    }
    let none = "no interface is up with an address that others can reach";
    if local.is_empty() {
        Err(std::io::Error::new(std::io::ErrorKind::AddrNotAvailable, none))
    } else {
        Ok(local)
    }
}

/// Returns, by position, the addresses that routing selects for each of `remote`; then one of each further interface
/// with a route to any of them.
fn automatic(remote: &[IpAddr]) -> Result<Vec<IpAddr>, NoRoute> {
    let mut local = routed(remote)?;
    let all = addresses().unwrap_or_default();
    if is_here(remote) {
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

/// Returns whether one of `remote` is an address of this host.
fn is_here(remote: &[IpAddr]) -> bool {
    remote.iter().any(|to| route(*to, None, None).is_ok_and(|route| route.local))
}

/// Returns whether [`Local::Auto`] includes an address that was added since.
pub fn is_wanted(own: &HostAddress, remote: &[IpAddr]) -> bool {
    own.is_usable() && !is_here(remote) && leads_to_any(own, remote)
}

/// Returns the pairs of addresses that make paths by position: for each family in turn, the shorter list is repeated.
pub fn by_position(local: &[IpAddr], remote: &[IpAddr]) -> Vec<(IpAddr, IpAddr)> {
    let mut pairs = Vec::new();
    for v4 in [true, false] {
        let of_family =
            |all: &[IpAddr]| all.iter().copied().filter(|one| one.is_ipv4() == v4).collect::<Vec<_>>();
        let (local, remote) = (of_family(local), of_family(remote));
        let count = if local.is_empty() || remote.is_empty() { 0 } else { local.len().max(remote.len()) };
        pairs.extend((0..count).map(|at| (local[at % local.len()], remote[at % remote.len()])));
    }
    pairs
}

/// Returns whether there is a route from `own`, by its interface, to one of `remote`.
pub fn leads_to_any(own: &HostAddress, remote: &[IpAddr]) -> bool {
    let mut family = remote.iter().filter(|to| to.is_ipv4() == own.address.is_ipv4());
    family.any(|&to| route(to, Some(own.address), Some(own.index)).is_ok())
}

/// Returns, for each of a peer's addresses, the own address that routing selects.
fn routed(to: &[IpAddr]) -> Result<Vec<IpAddr>, NoRoute> {
    let (mut local, mut failure) = (Vec::new(), None);
    for &remote in to {
        match source_towards(remote) {
            Ok(own) => add_new(&mut local, [own]),
            Err(source) => failure = Some(NoRoute { remote, source }),
        }
    }
    // A host name may have addresses of a family that this host does not have.
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
        assert_eq!("127.0.0.1".parse(), Ok(Local::These(vec![here])));
        assert_eq!(" auto ".parse(), Ok(Local::Auto));
        let Ok(Local::These(all)) = "0.0.0.0".parse() else { panic!("loopback is there") };
        assert!(all.contains(&here) && all.iter().all(IpAddr::is_ipv4), "{all:?}");
        let documented: IpAddr = "2001:db8::1".parse().expect("an address");
        assert_eq!("[2001:db8::1]".parse(), Ok(Remote::from(documented)));
        assert!(Remote::all_of(&["localhost".parse().expect("every host has it")]).contains(&here));
        let Ok(Local::These(of_lo)) = "lo".parse() else { return };
        assert!(of_lo.contains(&here), "{of_lo:?}");
    }

    #[test]
    fn an_address_of_one_link_is_named_with_its_interface() {
        let address = "fe80::1".parse().expect("an address");
        assert_eq!(zoned("[fe80::1%eth0]"), Some((address, "eth0")));
        assert_eq!(zoned(" fe80::1%eth0"), zoned("[fe80::1%eth0]"));
        assert_eq!(zoned("fe80::1"), None);
        assert_eq!(zoned("2001:db8::1%eth0"), None, "it means the same everywhere");
        let refused = |error: NameError| error.to_string();
        let remote = "fe80::1%no-such-0".parse::<Remote>().map_err(refused).expect_err("refused");
        assert_eq!(remote, "interface no-such-0 has no address of its link alone");
        let local = "fe80::1%no-such-0".parse::<Local>().map_err(refused).expect_err("refused");
        assert_eq!(local, "interface no-such-0 does not have the address fe80::1");
        let unnamed = NoRoute { remote: address, source: std::io::ErrorKind::InvalidInput.into() };
        assert_eq!(
            unnamed.to_string(),
            "no route to fe80::1: name the interface that it is on, as in fe80::1%eth0"
        );
    }

    #[test]
    fn the_shorter_list_of_a_family_starts_over() {
        let [a, b, c, six] =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"].map(|text| text.parse().expect("one"));
        assert_eq!(by_position(&[a, b], &[c]), [(a, c), (b, c)]);
        assert_eq!(by_position(&[a, six], &[b, c]), [(a, b), (a, c)]);
        assert_eq!(by_position(&[six], &[a]), []);
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        let refused = |error: NameError| error.to_string();
        assert!(
            "0.0.0.0"
                .parse::<Remote>()
                .map_err(refused)
                .expect_err("refused")
                .contains("names no other host")
        );
        assert!(
            "no such name".parse::<Local>().map_err(refused).expect_err("refused").contains("no such name")
        );
    }

    #[test]
    fn to_this_host_routing_alone_chooses() {
        let here = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(starting_from(&[], &[here]).expect("always routed"), [here]);
        assert_eq!(starting_from(&[Local::These(vec![here]), Local::Auto], &[here]).expect("routed"), [here]);
    }
}
