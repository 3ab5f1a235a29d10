//! What every sum, list and set of this room must agree on: the ring is the truth, and all else follows from it.
//!
//! Checked in one pass over the ring, by tests and by simulations; nothing in the core asks.

use super::ring::{Ring, Sent};
use super::{PathLoad, SendOrder, Standing, Transmission};

/// What one path's chunks in the ring amount to.
#[derive(Default, PartialEq, Eq, Debug)]
struct Account {
    flight: usize,
    queued: usize,
    promised: usize,
    /// In flight and sent once, in TSN order.
    fresh: Vec<u64>,
    /// In flight and sent again, in TSN order.
    again: Vec<u64>,
    lost: Vec<u64>,
    assigned: Vec<u64>,
    assigned_bytes: usize,
    /// Bytes of what was given up.
    abandoned: usize,
}

impl Transmission {
    /// Checks that everything agrees with the ring.
    ///
    /// # Errors
    /// What does not.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let mut accounts: Vec<Account> = self.loads.iter().map(|_| Account::default()).collect();
        let (mut acked, mut released) = (Vec::new(), Vec::new());
        for (index, sent) in self.ring.iter() {
            let account = accounts.get_mut(sent.path.index()).ok_or(format!("{index} has no path"))?;
            account.enter(index, sent);
            if sent.standing == Standing::Acked {
                acked.push(index);
            }
            if sent.released {
                released.push(index);
            }
        }
        for (position, (load, account)) in self.loads.iter().zip(&accounts).enumerate() {
            self.check_path(position, load, account).map_err(|what| format!("path {position}: {what}"))?;
        }
        let flight: usize = accounts.iter().map(|account| account.flight).sum();
        agree("bytes in flight", &self.flight, &flight)?;
        let held: usize = accounts.iter().map(|account| account.queued + account.promised).sum();
        agree("bytes held", &self.held, &held)?;
        let assigned: usize = accounts.iter().map(|account| account.assigned_bytes).sum();
        agree("bytes assigned", &self.assigned(), &assigned)?;
        // What was given up stays among what was acknowledged, if it was.
        let abandoned =
            |index: &u64| self.ring.get(*index).is_some_and(|sent| sent.standing == Standing::Abandoned);
        let noted = self.acked.iter().flatten().filter(|index| !abandoned(index)).collect();
        agree("acknowledged", &noted, &acked)?;
        let promised = self.acked.iter().flatten().filter(|&index| !self.renegable.contains(index)).collect();
        agree("released", &promised, &released)?;
        let believed = self.renegable.iter().flatten().all(|index| self.acked.contains(index));
        agree("what may be taken back is acknowledged", &believed, &true)
    }

    /// The copies that one path has under way, in bytes.
    fn check_copies(&self, position: usize) -> Result<usize, String> {
        let Some(lane) = self.copies.as_deref().and_then(|copies| copies.lanes.get(position)) else {
            return Ok(0);
        };
        let open = lane.under_way.iter().filter(|copy| copy.open).map(|copy| copy.bytes as usize).sum();
        agree("bytes of copies", &lane.bytes, &open)?;
        let ordered = lane.under_way.iter().is_sorted_by_key(|copy| copy.index);
        agree("copies are in order and the first is open", &(ordered, lane.front_is_open()), &(true, true))?;
        Ok(open)
    }

    fn check_path(&self, position: usize, load: &PathLoad, account: &Account) -> Result<(), String> {
        let mut again = walk(&load.again, &self.ring);
        again.sort_unstable();
        let waiting = self.assigned.as_deref().and_then(|assigned| assigned.queues.get(position));
        let counted = Account {
            flight: load.flight - self.check_copies(position)?,
            queued: load.queued,
            promised: load.promised,
            fresh: walk(&load.fresh, &self.ring),
            again,
            lost: load.lost.iter().copied().collect(),
            assigned: waiting.iter().flat_map(|queue| &queue.chunks).copied().collect(),
            assigned_bytes: waiting.map_or(0, |queue| queue.bytes),
            abandoned: 0,
        };
        agree("chunks", &counted, account)?;
        let Some(timed) = load.timed.index() else { return Ok(()) };
        let measures =
            |sent: &Sent| matches!(sent.standing, Standing::InFlight | Standing::Lost) && sent.sends == 1;
        match self.ring.get(timed) {
            Some(sent) if measures(sent) => Ok(()),
            found => Err(format!("{timed} is timed, and is {found:?}")),
        }
    }
}

impl Account {
    fn enter(&mut self, index: u64, sent: &Sent) {
        if sent.released {
            self.promised += sent.waiting_bytes();
        } else {
            self.queued += sent.bytes();
        }
        match sent.standing {
            Standing::InFlight => {
                self.flight += sent.bytes();
                if sent.sends == 1 { &mut self.fresh } else { &mut self.again }.push(index);
            }
            Standing::Lost => self.lost.push(index),
            Standing::Assigned => {
                self.assigned.push(index);
                self.assigned_bytes += sent.bytes();
            }
            Standing::Acked => {}
            // Nothing of it counts anywhere.
            Standing::Abandoned => self.abandoned += sent.bytes(),
        }
    }
}

/// The indices of a list from its head on.
pub(super) fn walk(order: &SendOrder, ring: &Ring) -> Vec<u64> {
    std::iter::successors(order.head(), |&index| order.after(ring, index)).collect()
}

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, counted: &T, by_ring: &T) -> Result<(), String> {
    if counted == by_ring { Ok(()) } else { Err(format!("{what}: {counted:?}, by the ring {by_ring:?}")) }
}
