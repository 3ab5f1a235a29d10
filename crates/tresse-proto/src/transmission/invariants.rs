//! Consistency of every sum, list and set with the ring of outstanding chunks.
//!
//! Checked in one pass over the ring, by tests and by simulations; nothing in the core asks. Simulations ask after every
//! event: nothing is collected to be compared, every list is followed beside the ring, and words are made for a fault only.

use std::collections::btree_set;
use std::fmt::Debug;

use tresse_policy::PathId;

use super::assigned::Queue;
use super::ring::{Ring, SendOrder, Sent};
use super::{PathLoad, Standing, Transmission};

/// What one path's chunks in the ring amount to so far, and how far its lists were followed.
struct Account<'a> {
    load: &'a PathLoad,
    flight: usize,
    queued: usize,
    promised: usize,
    /// In flight and sent once, in TSN order: the next one by the path's list.
    fresh: Option<u64>,
    /// In flight and sent again: how many.
    again: usize,
    lost: btree_set::Iter<'a, u64>,
    assigned: btree_set::Iter<'a, u64>,
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
        let accounts =
            self.outstanding.loads.iter().enumerate().map(|(path, load)| self.open_account(path, load));
        let mut accounts: Vec<Account<'_>> = accounts.collect();
        // What was given up stays among what was acknowledged, if it was.
        let abandoned = |index: &u64| {
            self.outstanding.ring.get(*index).is_some_and(|sent| sent.standing == Standing::Abandoned)
        };
        let mut noted = self.acked.iter().flatten().filter(|index| !abandoned(index));
        let mut promised = self.acked.iter().flatten().filter(|&index| !self.renegable.contains(index));
        for (index, sent) in self.outstanding.ring.iter() {
            let position = sent.path.index();
            let account = accounts.get_mut(position).ok_or_else(|| format!("{index} has no path"))?;
            account
                .enter(index, sent, &self.outstanding.ring)
                .map_err(|what| format!("path {position}: {what}"))?;
            if sent.standing == Standing::Acked {
                agree("acknowledged", &noted.next(), &Some(index))?;
            }
            if sent.released {
                agree("released", &promised.next(), &Some(index))?;
            }
        }
        agree("acknowledged", &noted.next(), &None)?;
        agree("released", &promised.next(), &None)?;
        let (mut flight, mut held, mut assigned) = (0, 0, 0);
        for (position, account) in accounts.into_iter().enumerate() {
            flight += account.flight;
            held += account.queued + account.promised;
            assigned += account.assigned_bytes;
            self.check_path(position, account).map_err(|what| format!("path {position}: {what}"))?;
        }
        agree("bytes in flight", &self.outstanding.flight, &flight)?;
        agree("bytes held", &self.outstanding.held, &held)?;
        agree("bytes assigned", &self.outstanding.assigned(), &assigned)?;
        let early = (0..).map(PathId).zip(&self.outstanding.loads).map(|(path, _)| self.early_on(path)).sum();
        agree("early arrivals", &self.outstanding.held_early(), &early)?;
        let believed = self.renegable.iter().all(|range| self.acked.holds(&range));
        agree("what may be taken back is acknowledged", &believed, &true)
    }

    fn open_account<'a>(&'a self, position: usize, load: &'a PathLoad) -> Account<'a> {
        let waiting = self.queue_of(position).map(|queue| queue.chunks.iter());
        Account {
            load,
            flight: 0,
            queued: 0,
            promised: 0,
            fresh: load.fresh.head(),
            again: 0,
            lost: load.lost.iter(),
            assigned: waiting.unwrap_or_default(),
            assigned_bytes: 0,
            abandoned: 0,
        }
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

    fn check_path(&self, position: usize, mut account: Account<'_>) -> Result<(), String> {
        let load = account.load;
        agree("flight", &(load.flight - self.check_copies(position)?), &account.flight)?;
        agree("queued", &load.queued, &account.queued)?;
        agree("promised", &load.promised, &account.promised)?;
        let assigned = self.queue_of(position).map_or(0, |queue| queue.bytes);
        agree("assigned bytes", &assigned, &account.assigned_bytes)?;
        agree("bytes given up", &account.abandoned, &0)?;
        agree("sent once, beyond the ring", &account.fresh, &None)?;
        agree("lost, beyond the ring", &account.lost.next(), &None)?;
        agree("assigned, beyond the ring", &account.assigned.next(), &None)?;
        self.check_again(position, load, account.again)?;
        let Some(timed) = load.timed.index() else { return Ok(()) };
        let measures =
            |sent: &Sent| matches!(sent.standing, Standing::InFlight | Standing::Lost) && sent.sends == 1;
        match self.outstanding.ring.get(timed) {
            Some(sent) if measures(sent) => Ok(()),
            found => Err(format!("{timed} is timed, and is {found:?}")),
        }
    }

    /// What was sent again is listed in the order of sending, not in that of the ring: as many chunks as there are,
    /// each of which belongs there, are exactly those.
    fn check_again(&self, position: usize, load: &PathLoad, count: usize) -> Result<(), String> {
        let mut listed = 0;
        // One more than there are is enough to see that there are too many.
        for index in follow(&load.again, &self.outstanding.ring).take(count + 1) {
            listed += 1;
            let belongs = self.outstanding.ring.get(index).is_some_and(|sent| {
                sent.standing == Standing::InFlight && sent.sends > 1 && sent.path.index() == position
            });
            if !belongs {
                return Err(format!("{index} is listed as sent again"));
            }
        }
        agree("chunks sent again", &listed, &count)
    }

    fn queue_of(&self, position: usize) -> Option<&Queue> {
        self.outstanding.assigned.as_deref().and_then(|assigned| assigned.queues.get(position))
    }
}

impl Account<'_> {
    fn enter(&mut self, index: u64, sent: &Sent, ring: &Ring) -> Result<(), String> {
        if sent.released {
            self.promised += sent.waiting_bytes();
        } else {
            self.queued += sent.bytes();
        }
        match sent.standing {
            Standing::InFlight => {
                self.flight += sent.bytes();
                if sent.sends == 1 {
                    agree("sent once", &self.fresh, &Some(index))?;
                    self.fresh = self.load.fresh.after(ring, index);
                } else {
                    self.again += 1;
                }
            }
            Standing::Lost => agree("lost", &self.lost.next(), &Some(&index))?,
            Standing::Assigned => {
                agree("assigned", &self.assigned.next(), &Some(&index))?;
                self.assigned_bytes += sent.bytes();
            }
            Standing::Acked => {}
            // Nothing of it counts anywhere.
            Standing::Abandoned => self.abandoned += sent.bytes(),
        }
        Ok(())
    }
}

/// The indices of a list from its head on.
#[cfg(test)]
pub(super) fn walk(order: &SendOrder, ring: &Ring) -> Vec<u64> {
    follow(order, ring).collect()
}

fn follow(order: &SendOrder, ring: &Ring) -> impl Iterator<Item = u64> {
    std::iter::successors(order.head(), move |&index| order.after(ring, index))
}

fn agree<T: PartialEq + Debug>(what: &str, counted: &T, by_ring: &T) -> Result<(), String> {
    if counted == by_ring { Ok(()) } else { Err(format!("{what}: {counted:?}, by the ring {by_ring:?}")) }
}
