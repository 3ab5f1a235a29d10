//! Path schedulers: their trait, the views that they get, their decisions, and their names.

mod assign;
mod blest;
mod daps;
mod ecf;
mod in_order;
mod lowest_rtt;
mod most_room;
mod offer;
mod otias;
mod redundant;
mod round_robin;
mod stms;

use std::time::Duration;

use crate::path::PathId;
use crate::path::PathState;
use crate::time::Instant;

pub use assign::most_assigned;
pub use offer::{FillViews, Offer, OpenPath};

use blest::Blest;
use daps::Daps;
use ecf::Ecf;
use in_order::InOrder;
use lowest_rtt::LowestRtt;
use most_room::MostRoom;
use otias::Otias;
use redundant::Redundant;
use round_robin::RoundRobin;
use stms::Stms;

/// One path at one instant, as schedulers see it. Bytes are of DATA chunks, headers included (RFC 9260 §1.3).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// True if this is the primary path.
    pub primary: bool,
    /// State of the path, which shows whether it can be used.
    pub state: PathState,
    /// True if a packet of new data may leave on the path now: its congestion window, the peer's window, its part of
    /// split buffers and the burst limit have room, and data is waiting that this path may carry.
    pub open: bool,
    /// True if the path is in fast recovery.
    pub recovering: bool,
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Slow-start threshold, bytes.
    pub ssthresh: usize,
    /// Bytes in flight.
    pub flight: usize,
    /// Bytes that the congestion window still admits; one packet may exceed it.
    pub room: usize,
    /// Bytes that were [assigned](Decision::Assign) to the path and wait for its congestion window.
    pub assigned: usize,
    /// True if another packet may be [assigned](Decision::Assign) to the path: the peer's window and the split buffers
    /// have room, and fewer bytes wait than the bound on assigned data.
    pub assignable: bool,
    /// Bytes sent on the path that the peer has acknowledged by gap ack blocks, above the cumulative TSN.
    pub early: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Variation of the round-trip time; zero before the first measurement.
    pub rttvar: Duration,
    /// The shortest and the longest round-trip time measured so far; zero before the first.
    pub rtt_range: (Duration, Duration),
    /// Retransmission timeout with its back-off.
    pub rto: Duration,
    /// Largest IP packet, bytes with all headers.
    pub mtu: usize,
    /// Rate at which data was lately acknowledged while the path was sending, bit/s; 0 before the first measurement.
    pub rate: u64,
    /// Part of the bytes sent lately that was lost, from 0 to 1.
    pub loss: f64,
    /// Time at which data was last sent on the path; the driver's origin if never.
    pub last_sent: Instant,
}

impl PathView {
    /// An active path without measurements, congestion window and data in flight, for tests of policies.
    pub const fn new(id: PathId) -> Self {
        PathView {
            id,
            primary: false,
            state: PathState::Active,
            open: false,
            recovering: false,
            cwnd: 0,
            ssthresh: 0,
            flight: 0,
            room: 0,
            assigned: 0,
            assignable: false,
            early: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            rtt_range: (Duration::ZERO, Duration::ZERO),
            rto: Duration::from_secs(1),
            mtu: 1500,
            rate: 0,
            loss: 0.0,
            last_sent: Instant::ZERO,
        }
    }

    /// Returns this view, changed by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

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

/// Scheduler that selects the path of the next packet of new data.
pub trait PathScheduler: Send {
    /// The name in the registry.
    fn name(&self) -> &str;

    /// Selects the path of the next packet of new data, and how the path gets it. The core calls it while data waits
    /// and the association has several paths, even if none of them is open.
    ///
    /// If it is called again before [`on_sent`](Self::on_sent), it must give the same answer. While nothing is in
    /// flight, [`Decision::Wait`] has no effect: the core then uses an open path.
    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision;

    /// A packet with `bytes` bytes of DATA chunks of new data was sent on `path`, or assigned to it, whatever the
    /// decision was.
    fn on_sent(&mut self, path: PathId, bytes: usize);

    /// Returns the reason for which the scheduler cannot continue, if there is one; `in_order` then replaces it.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Makes a scheduler.
type Make = fn() -> Box<dyn PathScheduler>;

/// The built-in path schedulers by name. None of them takes a configuration.
pub(super) const BUILT_IN: &[(&str, Make)] = &[
    ("blest", || Box::new(Blest::default())),
    ("daps", || Box::new(Daps::default())),
    ("ecf", || Box::new(Ecf::default())),
    ("in_order", || Box::new(InOrder)),
    ("lowest_rtt", || Box::new(LowestRtt)),
    ("most_room", || Box::new(MostRoom)),
    ("otias", || Box::new(Otias)),
    ("redundant", || Box::new(Redundant)),
    ("round_robin", || Box::new(RoundRobin::default())),
    ("stms", || Box::new(Stms::default())),
];

/// Returns the scheduler that replaces one that fails.
pub fn fallback() -> Box<dyn PathScheduler> {
    Box::new(InOrder)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A usable path with room; the first one is primary.
    pub(crate) fn view(id: u8) -> PathView {
        PathView {
            primary: id == 0,
            open: true,
            cwnd: 14_520,
            ssthresh: 65_536,
            room: 14_520,
            ..PathView::new(PathId(id))
        }
    }

    pub(crate) fn with_srtt(id: u8, millis: u64) -> PathView {
        let srtt = Duration::from_millis(millis);
        PathView { srtt: Some(srtt), rtt_range: (srtt, srtt), ..view(id) }
    }

    /// The path without room in its window.
    pub(crate) fn full(path: PathView) -> PathView {
        PathView { open: false, flight: path.cwnd, room: 0, ..path }
    }

    /// The path with `bytes` bytes assigned to it, to which more may be assigned.
    pub(super) fn assigned(path: PathView, bytes: usize) -> PathView {
        PathView { assigned: bytes, assignable: true, ..path }
    }

    /// An offer of these paths with much waiting data and a large window of the peer.
    pub(crate) fn offer(paths: &[PathView]) -> Offer<'_> {
        Offer::new(paths, 1 << 20, 1 << 20)
    }

    #[test]
    fn every_built_in_scheduler_has_the_name_that_it_is_found_by() {
        for (name, make) in BUILT_IN {
            assert_eq!(make().name(), *name);
        }
    }

    #[test]
    fn all_decide_repeatably_and_none_picks_from_nothing() {
        let paths = [with_srtt(1, 30), with_srtt(2, 20), view(3)];
        for (name, make) in BUILT_IN {
            let mut scheduler = make();
            assert_eq!(scheduler.decide(Instant::ZERO, &offer(&[])), Decision::Wait, "{name}");
            let closed = paths.clone().map(full);
            assert_eq!(scheduler.decide(Instant::ZERO, &offer(&closed)), Decision::Wait, "{name}");
            for _ in 0..5 {
                let first = scheduler.decide(Instant::ZERO, &offer(&paths));
                let path = first.path().expect(name);
                assert_eq!(scheduler.decide(Instant::ZERO, &offer(&paths)), first, "{name}");
                scheduler.on_sent(path, 1452);
            }
        }
    }
}
