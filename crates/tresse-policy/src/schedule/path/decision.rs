//! Answer of a path scheduler.

use super::PathView;
use crate::path::PathId;

/// The next packet of new data: the path, and how the path gets it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It leaves on this open path.
    Send(PathId),
    /// It is queued on this path, which is [assignable](PathView::assignable) and not open: it gets its TSNs and waits for
    /// the window of the path, and later data may leave on other paths meanwhile. The scheduler is asked at once for the
    /// data behind it.
    Assign(PathId),
    /// It leaves on this open path, and a duplicate of every chunk in flight follows on each other path as the windows
    /// allow. Holds for the whole association from the first such decision on.
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

    /// The path of the decision, if it has one.
    pub fn path(self) -> Option<PathId> {
        match self {
            Decision::Send(path) | Decision::Assign(path) | Decision::Duplicate(path) => Some(path),
            Decision::Wait => None,
        }
    }
}
