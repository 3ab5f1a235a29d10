//! Addresses of an association that follow the interfaces of this host: who joins, who leaves.
//!
//! The system is asked every second what addresses there are. What is new is bound and added (ASCONF, RFC 5061), what is
//! gone is removed; new ones go first, so that an address which replaces the only one keeps the association alive.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::PathState;

use super::HostAddress;
use crate::association::Association;
use crate::endpoint::Endpoint;

/// What following an interface came to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Followed {
    /// The address is there, and the peer was asked to take it.
    Joined(IpAddr),
    /// The address is gone, and the peer was asked to forget it.
    Left(IpAddr),
    /// The address is there, and cannot be used; why, in words.
    Refused(IpAddr, String),
}

/// Adds and removes addresses of `association` as they come and go on this host, as far as `wanted` says so of those that
/// come, and tells `say`. It never ends; dropping it ends it.
pub async fn follow(
    endpoint: &Endpoint,
    association: &Association,
    wanted: impl Fn(&HostAddress) -> bool,
    mut say: impl FnMut(&Followed),
) -> Infallible {
    let mut ticks = tokio::time::interval(BETWEEN_LOOKS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut refused: Vec<IpAddr> = Vec::new();
    loop {
        ticks.tick().await;
        let Ok(there) = super::addresses() else { continue };
        refused.retain(|address| there.iter().any(|one| one.address == *address));
        let used = own_addresses(association);
        for one in there.iter().filter(|one| !used.contains(&one.address) && wanted(one)) {
            if refused.contains(&one.address) {
                continue;
            }
            let outcome = join(endpoint, association, one.address);
            if let Followed::Refused(address, _) = outcome {
                refused.push(address);
            }
            say(&outcome);
        }
        for address in used.into_iter().filter(|address| is_gone(&there, *address)) {
            // The last one stays until another has come.
            if association.remove_address(address).is_ok() {
                say(&Followed::Left(address));
            }
        }
    }
}

/// Whether this host has the address no longer. Loopback interfaces have more than are listed.
fn is_gone(there: &[HostAddress], address: IpAddr) -> bool {
    let listed = there.iter().any(|one| one.address == address);
    !listed && !super::route(address, None, None).is_ok_and(|route| route.local)
}

fn join(endpoint: &Endpoint, association: &Association, address: IpAddr) -> Followed {
    if !endpoint.local_addresses().contains(&address)
        && let Err(error) = endpoint.add_local_address(address)
    {
        return Followed::Refused(address, error.to_string());
    }
    match association.add_address(address) {
        Ok(()) => Followed::Joined(address),
        Err(error) => Followed::Refused(address, error.to_string()),
    }
}

/// Those that paths of the association start from.
fn own_addresses(association: &Association) -> Vec<IpAddr> {
    let paths = association.path_stats();
    let mut own: Vec<_> =
        paths.iter().filter(|path| path.state != PathState::Removed).map(|path| path.local).collect();
    own.dedup();
    own
}

/// Addresses are in use within seconds; asking costs some microseconds.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
