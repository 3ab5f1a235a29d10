//! Chunks that are sent again on another path before they count as lost.
//!
//! Owns the one step that takes a chunk in flight from path to path: the bytes in flight of each path stay the sum over
//! the ring. Refuses to know why a chunk is moved and what that costs the window of its old path.

use tresse_policy::PathId;

use super::loss::Evidence;
use super::{Standing, Transmission};

/// A chunk that left a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    /// The path it left, which may be the one it waits for.
    pub(crate) from: PathId,
    /// Its length, that path's flight without it, and the highest index in flight there.
    pub(crate) bytes: usize,
    pub(crate) flight: usize,
    pub(crate) exit_point: u64,
}

impl Transmission {
    /// Takes the chunk `index`, which must be in flight, off its path; it waits to leave on `to`. Nobody knows any
    /// more which of its sendings an acknowledgement is for: it earns no path a larger window.
    pub(crate) fn move_chunk(&mut self, index: u64, to: PathId) -> Option<Moved> {
        let sent = self.outstanding.ring.get_mut(index).filter(|sent| sent.standing == Standing::InFlight)?;
        sent.early = true;
        let (from, bytes, sends, sent_at) = (sent.path, sent.bytes(), sent.sends, sent.sent_at);
        // A free packet that was granted for losses, and not needed for them, is not for what was not lost.
        if let Some(load) = self.outstanding.loads.get_mut(to.index()) {
            load.free_packet &= !load.lost.is_empty();
        }
        self.lose(index, to, Evidence::Early);
        if from != to {
            self.outstanding.untime(from, index);
        }
        if let Some(load) = self.outstanding.loads.get_mut(from.index()).filter(|_| self.rules.moved_chunk_t3)
        {
            load.departed.push((sends == 1 && from != to).then_some(index), sent_at);
        }
        Some(Moved {
            from,
            bytes,
            flight: self.outstanding.flight_on(from),
            exit_point: self.outstanding.highest_on(from),
        })
    }
}
