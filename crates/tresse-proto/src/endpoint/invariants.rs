//! Consistency of an endpoint's tables with its associations, whenever it has been polled until it had nothing to
//! send; and queries for simulations: mechanisms that acted, and numbers that wrap soon.
//!
//! The core itself does not use it.

use super::demux::Slot;
use super::slots::Occupant;
use super::{AssociationHandle, Endpoint, Instant, Mid, Tsn};
use crate::association::Inspection;

impl AssociationHandle<'_> {
    /// Mechanisms that leave no other trace, and how often each was at work; empty before the association is set up.
    pub fn coverage(&self) -> Vec<(&'static str, u64)> {
        self.open().map(|association| Inspection(association).coverage()).unwrap_or_default()
    }
}

impl Endpoint {
    /// Lets the TSNs of the next set-up begin so many before they wrap; numbers of requests begin there too. Those behind it
    /// begin at random, as they do: the peer's tag may be the same in all of them, and only the TSN then tells what is late.
    pub fn begin_before_the_wrap(&mut self, tsns: u32) {
        self.first_tsn = Some(Tsn(tsns.wrapping_neg()));
    }

    /// Lets the messages that this side and its peers send begin so many before their numbers wrap, MIDs as well as SSNs,
    /// on every stream of associations to come; 0 for the number 0. Peers must be told of it likewise.
    pub fn begin_messages_before_the_wrap(&mut self, own: u32, peer: u32) {
        self.first_mids = [own, peer].map(|messages| Mid(messages.wrapping_neg()));
    }

    /// Checks what must hold after each event, once there is nothing more to send at `now`. Takes time linear in
    /// everything that the endpoint holds.
    ///
    /// # Errors
    /// What does not hold, in words for a developer.
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
