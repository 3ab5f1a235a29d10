//! One path after the other: the primary path as long as it has room, then the next by position.
//!
//! It optimises nothing; it is the order of the simulation model behind the first papers on CMT. It costs throughput
//! with a small send buffer, because the first path takes all data.

use super::{Decision, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "in_order".
pub(super) struct InOrder;

impl PathScheduler for InOrder {
    fn name(&self) -> &'static str {
        "in_order"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        offer.send_on_least(|path| (!path.primary, path.id))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::{offer, view};
    use super::*;

    #[test]
    fn fills_the_primary_then_the_others_by_position() {
        let (mut second, mut first) = (view(2), view(0));
        (second.primary, first.primary) = (true, false);
        let paths = [first, view(1), second];
        assert_eq!(InOrder.decide(Instant::ZERO, &offer(&paths)), Decision::Send(PathId(2)));
        InOrder.on_sent(PathId(2), 1452);
        assert_eq!(InOrder.decide(Instant::ZERO, &offer(&paths)), Decision::Send(PathId(2)));
        assert_eq!(InOrder.decide(Instant::ZERO, &offer(&paths[..2])), Decision::Send(PathId(0)));
        assert_eq!(InOrder.decide(Instant::ZERO, &offer(&paths[1..2])), Decision::Send(PathId(1)));
    }
}
