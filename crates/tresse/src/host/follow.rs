//! Addresses of an association that follow the interfaces of this host.
//!
//! The addresses of the system are read every second. New ones are bound and added (ASCONF, RFC 5061), missing ones are
//! removed, and their sockets closed once the peer has agreed; additions come first, so that the association survives if an
//! address replaces the only one. With a peer that does not support such changes the association keeps its addresses, and the
//! caller learns when a new association is due.

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

/// Outcome of following an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Followed {
    /// The address is there, and the peer was asked to take it.
    Joined(IpAddr),
    /// The address is gone, and the peer was asked to forget it.
    Left(IpAddr),
    /// The address exists and cannot be used; the reason as text.
    Refused(IpAddr, String),
    /// The peer does not support changes of addresses, and the host has others than the association: a new association is due.
    Due(Due),
}

/// A new association is due.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Due {
    /// Addresses that it could start from.
    pub addresses: Vec<IpAddr>,
    /// True if no address of the present association exists any more; otherwise it continues over the remaining ones.
    pub cut_off: bool,
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
    let (mut events, mut forgotten) = (association.events(), Vec::new());
    let mut refusals: BTreeMap<IpAddr, Refusal> = BTreeMap::new();
    // What was there and wanted at the last look; before the first, that is not known.
    let mut before: Option<Vec<IpAddr>> = None;
    loop {
        look(&mut ticks, &mut events, &mut forgotten).await;
        let Ok(there) = super::addresses() else { continue };
        refusals.retain(|address, _| there.iter().any(|one| one.address == *address));
        let used = own_addresses(association);
        let welcome: Vec<IpAddr> = there.iter().filter(|one| wanted(one)).map(|one| one.address).collect();
        let fixed = association.close_reason().is_none() && !association.takes_address_changes();
        if fixed
            && let Some(due) = due(&used, &welcome, before.as_deref(), |address| is_gone(&there, address))
        {
            say(&Followed::Due(due));
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
                    say(&Followed::Joined(address));
                }
                Err(refusal) => {
                    if refusal.outlook != Outlook::IsUnderWay && before != Some(&refusal) {
                        say(&Followed::Refused(address, refusal.why.clone()));
                    }
                    refusals.insert(address, refusal);
                }
            }
        }
        for address in used.into_iter().filter(|address| is_gone(&there, *address)) {
            // The last one stays until another has come.
            if association.remove_address(address).is_ok() {
                say(&Followed::Left(address));
            }
        }
        for address in forgotten.drain(..).filter(|address| is_gone(&there, *address)) {
            endpoint.remove_local_address(address);
        }
        // Another association of the endpoint may have given up what this one still has.
        for address in own_addresses(association) {
            if there.iter().any(|one| one.address == address)
                && !endpoint.local_addresses().contains(&address)
            {
                let _ = endpoint.add_local_address(address);
            }
        }
    }
}

/// Waits for the next look, and takes note of the own addresses that the peer has forgotten meanwhile, as it was asked to.
async fn look(ticks: &mut Interval, events: &mut Events, forgotten: &mut Vec<IpAddr>) {
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

/// Returns whether a new association is due: an address has come since the last look, or none of those in use is left.
fn due(
    used: &[IpAddr],
    welcome: &[IpAddr],
    before: Option<&[IpAddr]>,
    is_gone: impl Fn(IpAddr) -> bool,
) -> Option<Due> {
    // Those that the association was not begun with had their reasons.
    let has_come =
        |address: &IpAddr| !used.contains(address) && before.is_some_and(|before| !before.contains(address));
    let cut_off = used.iter().all(|address| is_gone(*address));
    let due = cut_off || welcome.iter().any(has_come);
    due.then(|| Due { addresses: welcome.to_vec(), cut_off })
}

/// Returns whether this host has the address no longer. Loopback interfaces have more than are listed.
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
    /// An answer of the peer is all that is missing.
    IsUnderWay,
    /// It may succeed one day.
    MayChange,
    /// None while the host has the address.
    Lasts,
}

impl From<BindError> for Refusal {
    fn from(error: BindError) -> Self {
        let outlook = match &error {
            // An address of IPv6 is listed before it is known that nobody else has it (RFC 4862 section 5.4).
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
            // The peer has not answered yet that it has forgotten the address.
            AddressError::Known { .. } => Outlook::IsUnderWay,
            AddressError::TooManyRequests | AddressError::NotOpen { .. } => Outlook::IsUnderWay,
            AddressError::TooManyPaths { .. } => Outlook::MayChange,
            _ => Outlook::Lasts,
        };
        Refusal { why: error.to_string(), outlook }
    }
}

/// Has the address join; or says why it cannot.
fn join(endpoint: &Endpoint, association: &Association, address: IpAddr) -> Result<(), Refusal> {
    if !endpoint.local_addresses().contains(&address) {
        endpoint.add_local_address(address)?;
    }
    Ok(association.add_address(address)?)
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
}
