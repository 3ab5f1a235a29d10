//! Path schedulers: their contract, the views they decide by, and their names.

mod assign;
mod blest;
mod daps;
mod decision;
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
pub use decision::Decision;
pub use offer::{Offer, OpenPath, Show};

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
    /// True if it is the primary path.
    pub primary: bool,
    /// State of the path: whether it can be used.
    pub state: PathState,
    /// True if a packet of new data may leave on it now: its window, the peer's, the split buffers and the burst limit
    /// have room, and data waits that it may carry.
    pub open: bool,
    /// True if it is in fast recovery.
    pub recovering: bool,
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Slow-start threshold, bytes.
    pub ssthresh: usize,
    /// Bytes in flight.
    pub flight: usize,
    /// Bytes that the congestion window still admits; one packet may exceed it.
    pub room: usize,
    /// Bytes that were [assigned](Decision::Assign) to it and wait for its window.
    pub assigned: usize,
    /// True if a packet more may wait for its window: the peer and the split buffers have room, and it is not too much
    /// already.
    pub assignable: bool,
    /// Bytes that arrived, or so the peer says, before something that has a lower TSN.
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
    /// Rate at which data has lately been acknowledged while it was sent, bit/s; 0 when not yet known.
    pub rate: u64,
    /// Share of the bytes sent lately that were lost, from 0 to 1.
    pub loss: f64,
    /// Time at which data was last sent here; the driver's origin if never.
    pub last_sent: Instant,
}

impl PathView {
    /// A path in use that has not been measured, with no window and nothing in flight: where a test of a policy begins.
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

    /// This view after `change`, which sets what shall differ.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Decides which path gets the next data.
pub trait PathScheduler: Send {
    /// The name it is chosen by.
    fn name(&self) -> &str;

    /// The path of the next packet of new data, and how it gets it. Asked while data waits and an association has several
    /// paths, also when none is open.
    ///
    /// Asked again before [`on_sent`](Self::on_sent), it gives the same answer. To wait while nothing is in flight is not
    /// possible: an open path is used then all the same.
    fn decide(&mut self, now: Instant, offer: &Offer<'_>) -> Decision;

    /// A packet with `bytes` of DATA chunks with new data was sent on `path`, by any decision, or queued on it.
    fn on_sent(&mut self, path: PathId, bytes: usize);

    /// Reason for which it cannot go on, if it cannot; `in_order` then takes its place.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Makes a scheduler of a name.
type Make = fn() -> Box<dyn PathScheduler>;

/// The path schedulers that are always there. None of them takes a configuration.
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

/// Scheduler that takes the place of one that fails.
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

    /// `bytes` wait for its window, and more may.
    pub(super) fn assigned(path: PathView, bytes: usize) -> PathView {
        PathView { assigned: bytes, assignable: true, ..path }
    }

    /// Much data waits, and the peer can take much.
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
