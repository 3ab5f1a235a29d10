//! The paths with room in turn, a packet each.
//!
//! Optimises simplicity: with data to send all the time, windows decide each path's share anyway. It
//! loses on delay when there is little data and paths differ.

use super::{Asked, Offer, OpenPath, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "round_robin".
#[derive(Default)]
pub(super) struct RoundRobin {
    last: Option<PathId>,
}

impl RoundRobin {
    /// The first of the open paths after the last that had its turn.
    fn next(&self, open: impl Iterator<Item = PathId>) -> Option<PathId> {
        open.min_by_key(|&path| (self.last.is_some_and(|last| path <= last), path))
    }
}

impl PathScheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn asked(&self) -> Asked {
        Asked::WhenSeveralAreOpen
    }

    fn pick(&mut self, _now: Instant, offer: &Offer<'_>) -> Option<PathId> {
        self.next(offer.open().map(|path| path.id))
    }

    fn pick_unseen(&mut self, open: &[OpenPath]) -> Option<PathId> {
        self.next(open.iter().map(|path| path.id))
    }

    fn on_sent(&mut self, path: PathId, _bytes: usize) {
        self.last = Some(path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::PathView;
    use super::super::tests::{offer, view};
    use super::*;

    fn turn(scheduler: &mut RoundRobin, paths: &[PathView]) -> Option<u8> {
        let path = scheduler.pick(Instant::ZERO, &offer(paths))?;
        let open: Vec<_> = paths.iter().map(|path| OpenPath { id: path.id, allowance: 1452 }).collect();
        assert_eq!(scheduler.pick_unseen(&open), Some(path));
        scheduler.on_sent(path, 1452);
        Some(path.0)
    }

    #[test]
    fn goes_round_and_skips_paths_without_room() {
        let mut scheduler = RoundRobin::default();
        let paths = [view(0), view(1), view(2)];
        let turns: Vec<_> = (0..4).filter_map(|_| turn(&mut scheduler, &paths)).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        assert_eq!(turn(&mut scheduler, &paths[2..]), Some(2));
        assert_eq!(turn(&mut scheduler, &paths[..2]), Some(0));
        assert_eq!(turn(&mut scheduler, &paths), Some(1));
    }
}
