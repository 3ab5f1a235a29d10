//! Input of a path scheduler: the backlog, and the paths that could carry it.

use std::cell::{Cell, OnceCell};
use std::fmt;

use super::{Decision, PathView};
use crate::path::PathId;

/// A path on which a packet of new data may leave now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpenPath {
    /// The path.
    pub id: PathId,
    /// Bytes of DATA chunks that the peer's window allows in this packet.
    pub allowance: usize,
}

impl OpenPath {
    /// A path, and the bytes of DATA chunks that the peer's window allows in its packet.
    pub fn new(id: PathId, allowance: usize) -> Self {
        OpenPath { id, allowance }
    }
}

/// Function that adds the views of all paths to a vector.
pub type FillViews<'a> = &'a dyn Fn(&mut Vec<PathView>);

/// New data that is waiting, and the paths that may carry it.
///
/// The ids of the open paths are known at once. The views of all paths are computed when a scheduler first reads one.
pub struct Offer<'a> {
    /// User data that waits to be sent on all streams, bytes.
    pub unsent: usize,
    /// True if the send buffer limits the application: it refused a message, and has been at least half full since. More data
    /// then follows what waits.
    pub buffer_limited: bool,
    /// True if the stream map binds streams to paths: a path may then carry only a part of what waits.
    pub streams_bound: bool,
    /// Bytes of DATA chunks that the peer's window allows beyond the data in flight.
    pub peer_window: usize,
    /// The open paths of a lazy offer; empty for others.
    open: &'a [OpenPath],
    views: OnceCell<&'a [PathView]>,
    hidden: Cell<Option<(&'a mut Vec<PathView>, FillViews<'a>)>>,
}

impl<'a> Offer<'a> {
    /// An offer of `paths`, by ascending id, for tests of policies.
    pub fn new(paths: &'a [PathView], unsent: usize, peer_window: usize) -> Self {
        let views = OnceCell::from(paths);
        let (open, hidden) = (&[][..], Cell::new(None));
        Offer { unsent, buffer_limited: false, streams_bound: false, peer_window, open, views, hidden }
    }

    /// Makes an offer whose views `show` computes into `views` when a scheduler first reads one. `open` has the open
    /// paths, by ascending id.
    pub fn lazy(
        open: &'a [OpenPath],
        views: &'a mut Vec<PathView>,
        show: FillViews<'a>,
        unsent: usize,
        peer_window: usize,
    ) -> Self {
        let hidden = Cell::new(Some((views, show)));
        let views = OnceCell::new();
        Offer { unsent, buffer_limited: false, streams_bound: false, peer_window, open, views, hidden }
    }

    /// Returns every path that may carry new data, by ascending id, open or not.
    pub fn paths(&self) -> &'a [PathView] {
        self.views.get_or_init(|| {
            self.hidden.take().map_or(&[], |(views, show)| {
                show(views);
                views
            })
        })
    }

    /// Returns the ids of the paths on which a packet may leave now, ascending. Computes no views.
    pub fn open_ids(&self) -> impl Iterator<Item = PathId> {
        let given = if self.open.is_empty() { self.views.get().copied() } else { None };
        let viewed = given.unwrap_or_default().iter().filter(|path| path.open).map(|path| path.id);
        self.open.iter().map(|path| path.id).chain(viewed)
    }

    /// Returns the paths on which a packet may leave now.
    pub fn open(&self) -> impl Iterator<Item = &'a PathView> + use<'a> {
        self.paths().iter().filter(|path| path.open)
    }

    /// Returns the paths on which a packet may leave now, or to which it may be assigned.
    pub fn available(&self) -> impl Iterator<Item = &'a PathView> + use<'a> {
        self.paths().iter().filter(|path| path.open || path.assignable)
    }

    /// [Sends](Decision::Send) on the open path with the smallest `key`. Computes views only if several are open.
    pub fn send_on_least<K: Ord>(&self, key: impl Fn(&PathView) -> K) -> Decision {
        let mut open = self.open_ids();
        match (open.next(), open.next()) {
            (None, _) => Decision::Wait,
            (Some(only), None) => Decision::Send(only),
            _ => Decision::send(self.open().min_by_key(|path| key(path))),
        }
    }

    /// Returns the path with the shortest smoothed round-trip time of `paths`. A path without a measurement comes last:
    /// it gets its first data, and so its first measurement, when the others are full.
    pub fn fastest(paths: impl Iterator<Item = &'a PathView>) -> Option<&'a PathView> {
        paths.min_by_key(|path| Offer::by_rtt(path))
    }

    /// The order of [`fastest`](Self::fastest), as a key.
    pub fn by_rtt(path: &PathView) -> impl Ord + use<> {
        (path.srtt.is_none(), path.srtt, !path.primary, path.id)
    }
}

impl fmt::Debug for Offer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Offer")
            .field("unsent", &self.unsent)
            .field("buffer_limited", &self.buffer_limited)
            .field("streams_bound", &self.streams_bound)
            .field("peer_window", &self.peer_window)
            .field("open", &self.open_ids().collect::<Vec<_>>())
            .field("paths", &self.views.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::BUILT_IN;
    use super::super::tests::{offer, with_srtt};
    use super::*;
    use crate::time::Instant;

    fn open(ids: &[u8]) -> Vec<OpenPath> {
        ids.iter().map(|&id| OpenPath { id: PathId(id), allowance: 1452 }).collect()
    }

    /// Returns the names of the schedulers that read the views when these paths are open.
    fn looking(ids: &[u8]) -> Vec<&'static str> {
        let open = open(ids);
        let looks = |make: &fn() -> Box<dyn super::super::PathScheduler>| {
            let views_read = Cell::new(false);
            let show = |views: &mut Vec<PathView>| {
                views_read.set(true);
                views.extend([0, 1].map(|id| PathView { open: ids.contains(&id), ..with_srtt(id, 20) }));
            };
            let mut views = Vec::new();
            make().decide(Instant::ZERO, &Offer::lazy(&open, &mut views, &show, 1 << 20, 1 << 20));
            views_read.get()
        };
        BUILT_IN.iter().filter(|(_, make)| looks(make)).map(|&(name, _)| name).collect()
    }

    #[test]
    fn views_are_computed_only_for_schedulers_that_look_at_them() {
        assert_eq!(looking(&[]), ["blest", "daps", "otias", "stms"]);
        assert_eq!(looking(&[1]), ["blest", "daps", "ecf", "otias", "stms"]);
        let but_round_robin = |name: &&str| *name != "round_robin";
        let all: Vec<_> = BUILT_IN.iter().map(|&(name, _)| name).filter(but_round_robin).collect();
        assert_eq!(looking(&[0, 1]), all);
    }

    #[test]
    fn open_paths_are_the_same_before_and_after_a_look() {
        let paths = [0, 1, 2].map(|id| PathView { open: id != 1, ..with_srtt(id, 20) });
        let (open, mut views) = (open(&[0, 2]), Vec::new());
        let show = |views: &mut Vec<PathView>| views.extend(paths.clone());
        let offered = Offer::lazy(&open, &mut views, &show, 1, 1);
        let ids = |offer: &Offer<'_>| offer.open_ids().collect::<Vec<_>>();
        assert_eq!(ids(&offered), [PathId(0), PathId(2)]);
        assert_eq!(offered.paths(), paths);
        assert_eq!(ids(&offered), [PathId(0), PathId(2)]);
        assert_eq!(ids(&offer(&paths)), [PathId(0), PathId(2)]);
    }
}
