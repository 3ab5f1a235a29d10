//! Selection of the path whose window has the most room.
//!
//! It uses the windows evenly, for paths of similar delay. It costs delay if delays differ: a path with a long round
//! trip has a large window, and so much room. It gets data that the other path would have delivered earlier.

use std::cmp::Reverse;

use super::{Decision, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "most_room".
pub(super) struct MostRoom;

impl PathScheduler for MostRoom {
    fn name(&self) -> &'static str {
        "most_room"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        offer.send_on_least(|path| (Reverse(path.room), !path.primary, path.id))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::super::PathView;
    use super::super::tests::{offer, view};
    use super::*;

    #[test]
    fn takes_the_open_path_with_the_most_room_and_the_primary_among_equals() {
        let with_room = |id, room| PathView { room, ..view(id) };
        let pick =
            |paths: &[PathView]| MostRoom.decide(Instant::ZERO, &offer(paths)).path().map(|path| path.0);
        assert_eq!(pick(&[with_room(0, 3000), with_room(1, 9000), with_room(2, 6000)]), Some(1));
        assert_eq!(pick(&[with_room(1, 3000), with_room(0, 3000)]), Some(0));
        let shut = PathView { open: false, ..with_room(1, 9000) };
        assert_eq!(pick(&[with_room(0, 3000), shut, with_room(2, 6000)]), Some(2), "closed by a buffer");
    }
}
