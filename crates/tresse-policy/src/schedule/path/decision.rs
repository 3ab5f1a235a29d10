//! Answer of a path scheduler.

use super::PathView;
use crate::path::PathId;

/// The next packet of new data: the path, and how the path gets it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The packet leaves on this open path.
    Send(PathId),
    /// The packet is queued on this path, which is [assignable](PathView::assignable) and not open: its chunks get
    /// their TSNs and wait for the window of the path, and later data may leave on other paths meanwhile. The core
    /// calls the scheduler at once for the data behind it.
    Assign(PathId),
    /// The packet leaves on this open path, and a duplicate of every chunk in flight follows on each other path as the
    /// windows allow. The first such decision holds for the whole association from then on.
    Duplicate(PathId),
    /// No new data leaves now: the scheduler waits for a better path to open.
    Wait,
}

impl Decision {
    /// [Sends](Decision::Send) on `path`, or waits if there is none.
    pub fn send(path: Option<&PathView>) -> Self {
        path.map_or(Decision::Wait, |path| Decision::Send(path.id))
    }

    /// As [`send`](Self::send), but [assigns](Decision::Assign) to a path that is not open.
    pub fn send_or_assign(path: Option<&PathView>) -> Self {
        match path {
            Some(path) if !path.open => Decision::Assign(path.id),
            _ => Decision::send(path),
        }
    }

    /// Returns the path of the decision, if there is one.
    pub fn path(self) -> Option<PathId> {
        match self {
            Decision::Send(path) | Decision::Assign(path) | Decision::Duplicate(path) => Some(path),
            Decision::Wait => None,
        }
    }
}
