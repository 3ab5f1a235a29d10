//! Round robin over the paths with room, a packet each.
//!
//! It is simple: with a steady backlog the windows determine each path's share under any scheduler. It costs delay if
//! there is little data and paths differ.

use super::{Decision, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "round_robin".
#[derive(Default)]
pub(super) struct RoundRobin {
    last: Option<PathId>,
}

impl PathScheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        // The first open path after the path that was served last.
        let next = offer.open_ids().min_by_key(|&path| (self.last.is_some_and(|last| path <= last), path));
        next.map_or(Decision::Wait, Decision::Send)
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
        let path = scheduler.decide(Instant::ZERO, &offer(paths)).path()?;
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
