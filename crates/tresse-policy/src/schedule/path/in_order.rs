//! One path after the other: the primary as long as it has room, then the next by position.
//!
//! Optimises nothing; it is the order of the simulation model behind the first papers on CMT. It
//! loses when the send buffer is small: then the first path takes all the data there is.

use super::{Asked, Offer, PathScheduler};
use crate::path::PathId;
use crate::time::Instant;

/// The path scheduler "in_order".
pub(super) struct InOrder;

impl PathScheduler for InOrder {
    fn name(&self) -> &'static str {
        "in_order"
    }

    fn asked(&self) -> Asked {
        Asked::WhenSeveralAreOpen
    }

    fn pick(&mut self, _now: Instant, offer: &Offer<'_>) -> Option<PathId> {
        offer.open().min_by_key(|path| (!path.primary, path.id)).map(|path| path.id)
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
        assert_eq!(InOrder.pick(Instant::ZERO, &offer(&paths)), Some(PathId(2)));
        InOrder.on_sent(PathId(2), 1452);
        assert_eq!(InOrder.pick(Instant::ZERO, &offer(&paths)), Some(PathId(2)));
        assert_eq!(InOrder.pick(Instant::ZERO, &offer(&paths[..2])), Some(PathId(0)));
        assert_eq!(InOrder.pick(Instant::ZERO, &offer(&paths[1..2])), Some(PathId(1)));
    }
}
