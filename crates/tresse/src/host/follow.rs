//! Addresses of an association that follow the interfaces of this host.
//!
//! The addresses of the system are read every second. New ones are bound and added (ASCONF, RFC 5061). Those missing at
//! two checks are removed, and their sockets closed once the peer has agreed. Additions come first, and while all
//! addresses are missing none is removed, so that the association survives if others replace them. With a peer that does
//! not support such changes the association keeps its addresses, and the caller is informed when a new association is due.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Interval;
use tresse_proto::{AddressChange, AddressError, AddressOutcome, Event, PathState};

use super::HostAddress;
use crate::association::Association;
use crate::endpoint::Endpoint;
use crate::error::BindError;
use crate::events::Events;

/// Change that [`follow`] reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Followed {
    /// The host has the address, and the peer was asked to add it.
    Joined(IpAddr),
    /// The host does not have the address any more, and the peer was asked to remove it.
    Left(IpAddr),
    /// The host has the address, but it cannot be used; the reason as text.
    Refused(IpAddr, String),
    /// The peer does not support changes of addresses, and those of the host have changed: a new association is due.
    Due(Due),
}

/// A new association is due.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Due {
    /// Addresses from which it could start.
    pub addresses: Vec<IpAddr>,
    /// True if no address of the present association exists any more; otherwise it continues over the remaining ones.
    pub cut_off: bool,
}

/// Adds and removes addresses of `association` as this host gets and loses them; `wanted` decides which new ones are
/// added. Calls `report` with each change. The future never completes; dropping it ends the function.
pub async fn follow(
    endpoint: &Endpoint,
    association: &Association,
    wanted: impl Fn(&HostAddress) -> bool,
    mut report: impl FnMut(&Followed),
) -> Infallible {
    let mut ticks = tokio::time::interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut events, mut forgotten) = (association.events(), Vec::new());
    let mut refusals: BTreeMap<IpAddr, Refusal> = BTreeMap::new();
    // Addresses in use that were gone at the last check.
    let mut missed: Vec<IpAddr> = Vec::new();
    // Addresses that existed and were wanted at the last check; unknown before the first.
    let mut before: Option<Vec<IpAddr>> = None;
    loop {
        wait_for_check(&mut ticks, &mut events, &mut forgotten).await;
        let Ok(there) = super::addresses() else { continue };
        refusals.retain(|address, _| there.iter().any(|one| one.address == *address));
        let used = own_addresses(association);
        let welcome: Vec<IpAddr> = there.iter().filter(|one| wanted(one)).map(|one| one.address).collect();
        let fixed = association.close_reason().is_none() && !association.takes_address_changes();
        if fixed
            && let Some(due) = due(&used, &welcome, before.as_deref(), |address| is_gone(&there, address))
        {
            report(&Followed::Due(due));
        }
        before = Some(welcome.clone());
        if fixed {
            continue;
        }
        for address in welcome.into_iter().filter(|one| !used.contains(one)) {
            let before = refusals.get(&address);
            if before.is_some_and(|before| before.outlook == Outlook::Lasts) {
                continue;
            }
            match join(endpoint, association, address) {
                Ok(()) => {
                    refusals.remove(&address);
                    report(&Followed::Joined(address));
                }
                Err(refusal) => {
                    if refusal.outlook != Outlook::IsUnderWay && before != Some(&refusal) {
                        report(&Followed::Refused(address, refusal.why.clone()));
                    }
                    refusals.insert(address, refusal);
                }
            }
        }
        let used = own_addresses(association);
        let gone: Vec<IpAddr> = used.iter().copied().filter(|address| is_gone(&there, *address)).collect();
        for address in leaving(&used, &gone, &std::mem::replace(&mut missed, gone.clone())) {
            // The last address stays until there is another.
            if association.remove_address(address).is_ok() {
                report(&Followed::Left(address));
            }
        }
        for address in forgotten.drain(..).filter(|address| is_gone(&there, *address)) {
            endpoint.remove_local_address(address);
        }
        // Another association of the endpoint may have removed an address that this one still uses.
        for address in own_addresses(association) {
            if there.iter().any(|one| one.address == address)
                && !endpoint.local_addresses().contains(&address)
            {
                let _ = endpoint.add_local_address(address);
            }
        }
    }
}

/// Waits for the next check, and collects the own addresses that the peer has removed meanwhile on request.
async fn wait_for_check(ticks: &mut Interval, events: &mut Events, forgotten: &mut Vec<IpAddr>) {
    poll_fn(|cx| {
        while let Poll::Ready(Some(event)) = Pin::new(&mut *events).poll_next(cx) {
            if let Ok(Event::OwnAddress { address, change, outcome }) = event
                && (change, outcome) == (AddressChange::Remove, AddressOutcome::Done)
            {
                forgotten.push(address);
            }
        }
        ticks.poll_tick(cx).map(drop)
    })
    .await;
}

/// Returns a new association that is due: an address has been added since the last check, or none of those in use is left.
fn due(
    used: &[IpAddr],
    welcome: &[IpAddr],
    before: Option<&[IpAddr]>,
    is_gone: impl Fn(IpAddr) -> bool,
) -> Option<Due> {
    // Addresses that existed when the association began were left out on purpose.
    let has_come =
        |address: &IpAddr| !used.contains(address) && before.is_some_and(|before| !before.contains(address));
    let cut_off = used.iter().all(|address| is_gone(*address));
    let due = cut_off || welcome.iter().any(has_come);
    due.then(|| Due { addresses: welcome.to_vec(), cut_off })
}

/// Returns the addresses to be removed, of those `used`: those that are `gone` and were `missed` at the last check. While all are gone,
/// none is removed: no path could carry the request, and the addition of a new address would wait behind it (RFC 5061 §5.1). If a host
/// loses all its addresses, the last ones mostly follow the first before the next check.
fn leaving(used: &[IpAddr], gone: &[IpAddr], missed: &[IpAddr]) -> Vec<IpAddr> {
    if used.iter().all(|address| gone.contains(address)) {
        return Vec::new();
    }
    gone.iter().copied().filter(|address| missed.contains(address)).collect()
}

/// Returns whether this host does not have the address any more. Loopback interfaces have more addresses than are listed.
fn is_gone(there: &[HostAddress], address: IpAddr) -> bool {
    let listed = there.iter().any(|one| one.address == address);
    !listed && !super::route(address, None, None).is_ok_and(|route| route.local)
}

/// Reason for which an address of the host is not used.
#[derive(PartialEq, Eq, Debug)]
struct Refusal {
    why: String,
    outlook: Outlook,
}

/// Prospect of another attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Outlook {
    /// Only an answer of the peer, or of the system, is missing.
    IsUnderWay,
    /// A later attempt may succeed.
    MayChange,
    /// No attempt can succeed while the host has the address.
    Lasts,
}

impl From<BindError> for Refusal {
    fn from(error: BindError) -> Self {
        let outlook = match &error {
            // An IPv6 address is listed before duplicate address detection has ended (RFC 4862 §5.4).
            BindError::Io { source, .. } | BindError::Raw { source, .. }
                if source.kind() == ErrorKind::AddrNotAvailable =>
            {
                Outlook::IsUnderWay
            }
            BindError::Io { .. } | BindError::Raw { .. } | BindError::PortTaken { .. } => Outlook::MayChange,
            _ => Outlook::Lasts,
        };
        Refusal { why: error.to_string(), outlook }
    }
}

impl From<AddressError> for Refusal {
    fn from(error: AddressError) -> Self {
        let outlook = match &error {
            // The peer has not answered the removal of the address yet.
            AddressError::Known { .. } => Outlook::IsUnderWay,
            AddressError::TooManyRequests | AddressError::NotOpen { .. } => Outlook::IsUnderWay,
            AddressError::TooManyPaths { .. } => Outlook::MayChange,
            _ => Outlook::Lasts,
        };
        Refusal { why: error.to_string(), outlook }
    }
}

/// Binds the address and adds it to the association, or returns the reason for which that is not possible.
fn join(endpoint: &Endpoint, association: &Association, address: IpAddr) -> Result<(), Refusal> {
    if !endpoint.local_addresses().contains(&address) {
        endpoint.add_local_address(address)?;
    }
    Ok(association.add_address(address)?)
}

/// Returns the addresses from which paths of the association start.
fn own_addresses(association: &Association) -> Vec<IpAddr> {
    let paths = association.path_stats();
    let mut own: Vec<_> =
        paths.iter().filter(|path| path.state != PathState::Removed).map(|path| path.local).collect();
    own.dedup();
    own
}

/// Time between checks: an address is in use within seconds, and a check takes some microseconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_association_is_due_when_an_address_has_come_or_none_is_left() {
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        let gone = |left: &'static [u8]| {
            move |address: IpAddr| !left.iter().any(|last| address == IpAddr::from([192, 0, 2, *last]))
        };
        assert_eq!(due(&[a], &[a, b], None, gone(&[1, 2])), None, "it began without that one");
        assert_eq!(due(&[a], &[a, b], Some(&[a, b]), gone(&[1, 2])), None, "nothing is new");
        let come = due(&[a], &[a, b], Some(&[a]), gone(&[1, 2])).expect("one has come");
        assert_eq!((come.addresses, come.cut_off), (vec![a, b], false));
        for before in [None, Some(&[c][..])] {
            let replaced = due(&[a, b], &[c], before, gone(&[3])).expect("all are gone");
            assert_eq!((replaced.addresses, replaced.cut_off), (vec![c], true));
        }
        assert_eq!(due(&[a, b], &[b], Some(&[a, b]), gone(&[2])), None, "one is left");
    }

    #[test]
    fn no_address_is_removed_while_all_are_gone() {
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        let none: [IpAddr; 0] = [];
        assert_eq!(leaving(&[a, b], &[a], &[]), none, "the other one may follow");
        assert_eq!(leaving(&[a, b], &[a, b], &[a]), none);
        assert_eq!(leaving(&[a, b, c], &[a, b], &[a, b]), [a, b], "one has come");
        assert_eq!(leaving(&[a, b], &[a], &[a]), [a]);
        assert_eq!(leaving(&[a, b], &[], &[a]), none, "it is back");
    }
}
