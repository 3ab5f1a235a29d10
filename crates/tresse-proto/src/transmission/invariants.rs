//! Consistency check of every sum, list and set with the ring of outstanding chunks.
//!
//! The check is one pass over the ring, in tests and simulations only. Simulations check after every event, so the pass
//! allocates only its accounts: it follows every list beside the ring, and formats text only for a fault.

use std::collections::btree_set;
use std::fmt::Debug;

use tresse_policy::PathId;

use super::Transmission;
use super::copies::Lane;
use super::outstanding::PathLoad;
use super::ring::{ChunkState, Ring, SendOrder, Sent};

/// Sums of one path's chunks in the ring so far, and the positions reached in its lists.
struct Account<'a> {
    position: usize,
    load: &'a PathLoad,
    /// The path's duplicates, if it may have any.
    lane: Option<&'a Lane>,
    /// Bytes of the path's assigned chunks, by its queue.
    waiting_bytes: usize,
    flight: usize,
    queued: usize,
    promised: usize,
    /// The next chunk of the list of chunks in flight that were sent once, which is in TSN order.
    fresh: Option<u64>,
    /// Number of other chunks in flight.
    again: usize,
    lost: btree_set::Iter<'a, u64>,
    assigned: btree_set::Iter<'a, u64>,
    assigned_bytes: usize,
    /// Bytes of abandoned chunks.
    abandoned: usize,
}

/// Checks that all sums, lists and sets agree with the ring.
///
/// # Errors
/// Text on the first disagreement.
pub(crate) fn check_transmission(transmission: &Transmission) -> Result<(), String> {
    let accounts = transmission
        .outstanding
        .loads
        .iter()
        .enumerate()
        .map(|(path, load)| Account::open(transmission, path, load));
    let mut accounts: Vec<Account<'_>> = accounts.collect();
    // An abandoned chunk stays in `acked` if it was acknowledged.
    let abandoned = |index: &u64| {
        transmission.outstanding.ring.get(*index).is_some_and(|sent| sent.standing == ChunkState::Abandoned)
    };
    let mut noted = transmission.acked.iter().flatten().filter(|index| !abandoned(index));
    let mut promised =
        transmission.acked.iter().flatten().filter(|&index| !transmission.renegable.contains(index));
    for (index, sent) in transmission.outstanding.ring.iter() {
        let position = sent.path.index();
        let account = accounts.get_mut(position).ok_or_else(|| format!("{index} has no path"))?;
        account
            .enter(index, sent, &transmission.outstanding.ring)
            .map_err(|what| format!("path {position}: {what}"))?;
        if sent.standing == ChunkState::Acked {
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
        account.check(&transmission.outstanding.ring).map_err(|what| format!("path {position}: {what}"))?;
    }
    agree("bytes in flight", &transmission.outstanding.flight, &flight)?;
    agree("bytes held", &transmission.outstanding.held, &held)?;
    agree("bytes assigned", &transmission.outstanding.assigned(), &assigned)?;
    let early = (0..)
        .map(PathId)
        .zip(&transmission.outstanding.loads)
        .map(|(path, _)| transmission.early_on(path))
        .sum();
    agree("early arrivals", &transmission.outstanding.held_early(), &early)?;
    let believed = transmission.renegable.iter().all(|range| transmission.acked.holds(&range));
    agree("what may be taken back is acknowledged", &believed, &true)
}

/// Sums of the user data that was ever sent, in bytes.
#[cfg(feature = "invariants")]
pub(crate) struct UserData {
    /// Bytes sent for the first time.
    pub(crate) sent: u64,
    /// Bytes that wait for an acknowledgement: in flight, or lost.
    pub(crate) unanswered: u64,
    /// Bytes that the peer reneged on.
    pub(crate) reneged: u64,
    /// Duplicates that were sent on other paths.
    pub(crate) copies: u64,
}

/// Returns the sums over all paths.
#[cfg(feature = "invariants")]
pub(crate) fn user_data(transmission: &Transmission) -> UserData {
    let outstanding = &transmission.outstanding;
    let waits = |sent: &&Sent| matches!(sent.standing, ChunkState::InFlight | ChunkState::Lost);
    UserData {
        sent: outstanding.loads.iter().map(|load| load.history.bytes_sent).sum(),
        unanswered: outstanding
            .ring
            .iter()
            .map(|(_, sent)| sent)
            .filter(waits)
            .map(|sent| sent.user_data() as u64)
            .sum(),
        reneged: outstanding.loads.iter().map(|load| load.repairs.bytes_reneged).sum(),
        copies: outstanding.loads.iter().map(|load| load.repairs.copies_sent).sum(),
    }
}

impl<'a> Account<'a> {
    fn open(transmission: &'a Transmission, position: usize, load: &'a PathLoad) -> Self {
        let queue =
            transmission.outstanding.assigned.as_deref().and_then(|assigned| assigned.queues.get(position));
        Account {
            position,
            load,
            lane: transmission.copies.lane(PathId(position as u8)),
            waiting_bytes: queue.map_or(0, |queue| queue.bytes),
            flight: 0,
            queued: 0,
            promised: 0,
            fresh: load.fresh.head(),
            again: 0,
            lost: load.lost.iter(),
            assigned: queue.map(|queue| queue.chunks.iter()).unwrap_or_default(),
            assigned_bytes: 0,
            abandoned: 0,
        }
    }

    /// Compares the sums with those of the path, once all its chunks have been entered.
    fn check(mut self, ring: &Ring) -> Result<(), String> {
        let load = self.load;
        agree("flight", &(load.flight - self.copies()?), &self.flight)?;
        agree("queued", &load.queued, &self.queued)?;
        agree("promised", &load.promised, &self.promised)?;
        agree("assigned bytes", &self.waiting_bytes, &self.assigned_bytes)?;
        agree("bytes given up", &self.abandoned, &0)?;
        agree("sent once, beyond the ring", &self.fresh, &None)?;
        agree("lost, beyond the ring", &self.lost.next(), &None)?;
        agree("assigned, beyond the ring", &self.assigned.next(), &None)?;
        self.check_again(ring)?;
        let Some(timed) = load.timed.index() else { return Ok(()) };
        let measures =
            |sent: &Sent| matches!(sent.standing, ChunkState::InFlight | ChunkState::Lost) && sent.sends == 1;
        match ring.get(timed) {
            Some(sent) if measures(sent) => Ok(()),
            found => Err(format!("{timed} is timed, and is {found:?}")),
        }
    }

    /// Checks the path's open duplicates; returns their bytes.
    fn copies(&self) -> Result<usize, String> {
        let Some(lane) = self.lane else { return Ok(0) };
        let open = lane.under_way.iter().filter(|copy| copy.open).map(|copy| copy.bytes as usize).sum();
        agree("bytes of copies", &lane.bytes, &open)?;
        let ordered = lane.under_way.iter().is_sorted_by_key(|copy| copy.index);
        agree("copies are in order and the first is open", &(ordered, lane.front_is_open()), &(true, true))?;
        Ok(open)
    }

    /// Checks the list of retransmissions, which is in the order of sending and not in that of the ring: every chunk in the
    /// list belongs there, and the number of chunks is right.
    fn check_again(&self, ring: &Ring) -> Result<(), String> {
        let mut listed = 0;
        // One more than expected suffices to detect that there are too many.
        for index in follow(&self.load.again, ring).take(self.again + 1) {
            listed += 1;
            let belongs = ring.get(index).is_some_and(|sent| {
                sent.standing == ChunkState::InFlight && sent.sends > 1 && sent.path.index() == self.position
            });
            if !belongs {
                return Err(format!("{index} is listed as sent again"));
            }
        }
        agree("chunks sent again", &listed, &self.again)
    }

    fn enter(&mut self, index: u64, sent: &Sent, ring: &Ring) -> Result<(), String> {
        if sent.released {
            self.promised += sent.waiting_bytes();
        } else {
            self.queued += sent.bytes();
        }
        match sent.standing {
            ChunkState::InFlight => {
                self.flight += sent.bytes();
                if sent.sends == 1 {
                    agree("sent once", &self.fresh, &Some(index))?;
                    self.fresh = self.load.fresh.after(ring, index);
                } else {
                    self.again += 1;
                }
            }
            ChunkState::Lost => agree("lost", &self.lost.next(), &Some(&index))?,
            ChunkState::Assigned => {
                agree("assigned", &self.assigned.next(), &Some(&index))?;
                self.assigned_bytes += sent.bytes();
            }
            ChunkState::Acked => {}
            // An abandoned chunk must count nowhere.
            ChunkState::Abandoned => self.abandoned += sent.bytes(),
        }
        Ok(())
    }
}

/// Indices of a list, from its head on.
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
