//! Addresses that a host adds and removes while its association runs, and the times of these changes.

use std::collections::VecDeque;
use std::net::IpAddr;

use tresse_proto::{AddressChange, AddressError, AssociationId, Instant};

use super::AppContext;
use crate::error::RunError;

/// Address changes that are not yet due.
#[derive(Clone, Debug, Default)]
pub struct AddressPlan {
    to_come: VecDeque<(Instant, AddressChange, IpAddr)>,
}

impl AddressPlan {
    /// Makes a plan of these changes, given in any order. At one time additions come first, so that there is always an address.
    pub fn new(changes: impl IntoIterator<Item = (Instant, AddressChange, IpAddr)>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|(at, change, address)| (*at, *change != AddressChange::Add, *address));
        AddressPlan { to_come: changes.into() }
    }

    /// Returns the time of the next change; the association must be established.
    pub(super) fn due(&self) -> Option<Instant> {
        self.to_come.front().map(|(at, ..)| *at)
    }

    /// Makes the changes that are due.
    ///
    /// # Errors
    /// A change that the transport refuses, unless its association is about to end.
    pub(super) fn on_due(&mut self, turn: &mut AppContext<'_>, id: AssociationId) -> Result<(), RunError> {
        while let Some(&(_, change, address)) = self.to_come.front().filter(|(at, ..)| *at <= turn.now) {
            self.to_come.pop_front();
            if change == AddressChange::Add && turn.ledger.is_closing() {
                // The sender adds none any more. A path of the receiver's address alone would be none of the scenario.
                self.to_come.retain(|(_, _, other)| *other != address);
                continue;
            }
            let Some(mut association) = turn.endpoint.association(id) else { continue };
            let begun = match change {
                AddressChange::Remove => association.remove_address(turn.now, address),
                _ => association.add_address(turn.now, address),
            };
            match begun {
                Ok(()) => {}
                Err(AddressError::NotOpen { .. }) => self.to_come.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
