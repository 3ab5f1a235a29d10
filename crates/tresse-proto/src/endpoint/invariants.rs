//! Consistency of an endpoint's tables with its associations, to be checked after the endpoint was polled until it had nothing to
//! send; and queries for simulations: mechanisms that acted, and numbers that wrap soon. The core does not use this module.

use super::slots::{Occupant, Slot};
use super::{AssociationHandle, Endpoint, Instant, Mid, Tsn};
use crate::association::Inspection;

impl AssociationHandle<'_> {
    /// Returns the mechanisms that no other counter shows, and how often each acted; empty before the association is set up.
    pub fn coverage(&self) -> Vec<(&'static str, u64)> {
        self.open().map(|association| Inspection(association).coverage()).unwrap_or_default()
    }
}

impl Endpoint {
    /// Lets the TSNs of the next set-up begin `tsns` before they wrap, and the sequence numbers of its requests as well. Later
    /// set-ups have random initial TSNs as usual: the peer's tag may be the same in all of them, and then only the TSN shows
    /// which packets are late.
    pub fn begin_before_the_wrap(&mut self, tsns: u32) {
        self.first_tsn = Some(Tsn(tsns.wrapping_neg()));
    }

    /// Lets the MIDs and SSNs of messages begin `own` (this side's) and `peer` (the peers') before they wrap, on every stream of
    /// future associations; 0 for numbers that begin at 0. The peers must be configured accordingly.
    pub fn begin_messages_before_the_wrap(&mut self, own: u32, peer: u32) {
        self.first_mids = [own, peer].map(|messages| Mid(messages.wrapping_neg()));
    }

    /// Checks the conditions that hold after each event, once there is nothing more to send at `now`. Takes time linear in all
    /// that the endpoint stores.
    ///
    /// # Errors
    /// The condition that does not hold, in words for a developer.
    pub fn check_invariants(&self, now: Instant) -> Result<(), String> {
        if let Some(&slot) = self.ready.front() {
            return Err(format!("association {slot} may still have something to send"));
        }
        if let Some(slot) = self.deadlines.slots().find(|&slot| self.slots.get(slot).is_none()) {
            return Err(format!("a deadline is filed for association {slot}, which is gone"));
        }
        (0..self.slots.end()).try_for_each(|slot| {
            self.check_slot(slot, now).map_err(|what| format!("association {slot}: {what}"))
        })
    }

    fn check_slot(&self, slot: Slot, now: Instant) -> Result<(), String> {
        let filed = self.deadlines.of(slot);
        let (deadline, active) = match self.slots.get(slot) {
            Some(Occupant::Open(association)) => {
                Inspection(association).check()?;
                (association.deadline(), association.may_have_output())
            }
            Some(Occupant::Setup(setup)) => {
                setup.check_invariants()?;
                (setup.deadline(), setup.is_due())
            }
            Some(Occupant::Failed(_)) | None => (None, false),
        };
        if active {
            return Err("it may have something to send and is not asked".to_owned());
        }
        match deadline {
            Some(at) if at <= now => Err(format!("its deadline {at:?} has passed")),
            Some(at) if filed.is_none_or(|filed| filed > at) => {
                Err(format!("its deadline is {at:?}, and {filed:?} is filed"))
            }
            _ => Ok(()),
        }
    }
}
