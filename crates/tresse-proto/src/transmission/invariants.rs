//! Consistency of every sum, list and set with the ring of outstanding chunks.
//!
//! Checked in one pass over the ring, by tests and by simulations only. Simulations check after every event, so the check
//! allocates nothing: it follows every list beside the ring, and makes text only for a fault.

use std::collections::btree_set;
use std::fmt::Debug;

use tresse_policy::PathId;

use super::Transmission;
use super::assigned::Queue;
use super::outstanding::PathLoad;
use super::ring::{Ring, SendOrder, Sent, Standing};

/// Sum of one path's chunks in the ring so far, and how far its lists were followed.
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

/// Checks that everything agrees with the ring.
///
/// # Errors
/// What does not.
pub(crate) fn check_transmission(room: &Transmission) -> Result<(), String> {
    let accounts =
        room.outstanding.loads.iter().enumerate().map(|(path, load)| open_account(room, path, load));
    let mut accounts: Vec<Account<'_>> = accounts.collect();
    // What was given up stays among what was acknowledged, if it was.
    let abandoned = |index: &u64| {
        room.outstanding.ring.get(*index).is_some_and(|sent| sent.standing == Standing::Abandoned)
    };
    let mut noted = room.acked.iter().flatten().filter(|index| !abandoned(index));
    let mut promised = room.acked.iter().flatten().filter(|&index| !room.renegable.contains(index));
    for (index, sent) in room.outstanding.ring.iter() {
        let position = sent.path.index();
        let account = accounts.get_mut(position).ok_or_else(|| format!("{index} has no path"))?;
        account
            .enter(index, sent, &room.outstanding.ring)
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
        check_path(room, position, account).map_err(|what| format!("path {position}: {what}"))?;
    }
    agree("bytes in flight", &room.outstanding.flight, &flight)?;
    agree("bytes held", &room.outstanding.held, &held)?;
    agree("bytes assigned", &room.outstanding.assigned(), &assigned)?;
    let early = (0..).map(PathId).zip(&room.outstanding.loads).map(|(path, _)| room.early_on(path)).sum();
    agree("early arrivals", &room.outstanding.held_early(), &early)?;
    let believed = room.renegable.iter().all(|range| room.acked.holds(&range));
    agree("what may be taken back is acknowledged", &believed, &true)
}

fn open_account<'a>(room: &'a Transmission, position: usize, load: &'a PathLoad) -> Account<'a> {
    let waiting = queue_of(room, position).map(|queue| queue.chunks.iter());
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
fn check_copies(room: &Transmission, position: usize) -> Result<usize, String> {
    let Some(lane) = room.copies.lane(PathId(position as u8)) else {
        return Ok(0);
    };
    let open = lane.under_way.iter().filter(|copy| copy.open).map(|copy| copy.bytes as usize).sum();
    agree("bytes of copies", &lane.bytes, &open)?;
    let ordered = lane.under_way.iter().is_sorted_by_key(|copy| copy.index);
    agree("copies are in order and the first is open", &(ordered, lane.front_is_open()), &(true, true))?;
    Ok(open)
}

fn check_path(room: &Transmission, position: usize, mut account: Account<'_>) -> Result<(), String> {
    let load = account.load;
    agree("flight", &(load.flight - check_copies(room, position)?), &account.flight)?;
    agree("queued", &load.queued, &account.queued)?;
    agree("promised", &load.promised, &account.promised)?;
    let assigned = queue_of(room, position).map_or(0, |queue| queue.bytes);
    agree("assigned bytes", &assigned, &account.assigned_bytes)?;
    agree("bytes given up", &account.abandoned, &0)?;
    agree("sent once, beyond the ring", &account.fresh, &None)?;
    agree("lost, beyond the ring", &account.lost.next(), &None)?;
    agree("assigned, beyond the ring", &account.assigned.next(), &None)?;
    check_again(room, position, load, account.again)?;
    let Some(timed) = load.timed.index() else { return Ok(()) };
    let measures =
        |sent: &Sent| matches!(sent.standing, Standing::InFlight | Standing::Lost) && sent.sends == 1;
    match room.outstanding.ring.get(timed) {
        Some(sent) if measures(sent) => Ok(()),
        found => Err(format!("{timed} is timed, and is {found:?}")),
    }
}

/// Checks that what was sent again is listed in the order of sending, not in that of the ring: as many chunks as there
/// are, each of which belongs there, are exactly those.
fn check_again(room: &Transmission, position: usize, load: &PathLoad, count: usize) -> Result<(), String> {
    let mut listed = 0;
    // One more than there are is enough to see that there are too many.
    for index in follow(&load.again, &room.outstanding.ring).take(count + 1) {
        listed += 1;
        let belongs = room.outstanding.ring.get(index).is_some_and(|sent| {
            sent.standing == Standing::InFlight && sent.sends > 1 && sent.path.index() == position
        });
        if !belongs {
            return Err(format!("{index} is listed as sent again"));
        }
    }
    agree("chunks sent again", &listed, &count)
}

fn queue_of(room: &Transmission, position: usize) -> Option<&Queue> {
    room.outstanding.assigned.as_deref().and_then(|assigned| assigned.queues.get(position))
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
