//! Congestion controllers of applications: their trait, its views, and its answers.
//!
//! Such a controller decides on one path at a time, and sees the windows of all paths. It should not remember windows
//! from one call to the next: the core changes them too, when data moves to another path or the path MTU becomes
//! smaller.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::panics::Made;
use crate::path::PathId;
use crate::time::Instant;

/// Makes a controller from its configuration, or returns the reason for which the controller refuses it. The core does
/// not interpret the configuration.
pub type ControllerFactory = Arc<dyn Fn(&str) -> Made<dyn Controller> + Send + Sync>;

/// Congestion window and measurements of one path. Sizes are bytes of DATA chunks, their headers included (RFC 9260
/// §1.3).
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathWindow {
    /// The path.
    pub path: PathId,
    /// Congestion window.
    pub cwnd: usize,
    /// Slow-start threshold; initially at least the peer's receive window.
    pub ssthresh: usize,
    /// The size of a DATA chunk in a full packet (PMDCS of RFC 9260).
    pub packet: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The shortest round-trip time since the path was added, once measured.
    pub min_rtt: Option<Duration>,
    /// True if the path is confirmed and active. Coupled algorithms should leave out other paths.
    pub usable: bool,
    /// True if the path is in fast recovery (RFC 9260 §7.2.4).
    pub recovering: bool,
}

impl PathWindow {
    /// A usable path without measurements, in slow start, for tests of controllers.
    pub const fn new(path: PathId, cwnd: usize, packet: usize) -> Self {
        let ssthresh = Sizes::LARGEST;
        PathWindow {
            path,
            cwnd,
            ssthresh,
            packet,
            srtt: None,
            min_rtt: None,
            usable: true,
            recovering: false,
        }
    }

    /// Returns whether the path is in slow start: cwnd is at most ssthresh (RFC 9260 §7.2.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }

    /// Returns the present sizes.
    pub fn unchanged(&self) -> Sizes {
        Sizes { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// Returns the present sizes with `bytes` added to the congestion window, up to [`Sizes::LARGEST`].
    pub fn grown_by(&self, bytes: usize) -> Sizes {
        let cwnd = self.cwnd.saturating_add(bytes).min(Sizes::LARGEST);
        Sizes { cwnd, ssthresh: self.ssthresh }
    }

    /// Returns sizes of `bytes`, at least one full packet, for window and threshold, as after a loss (RFC 9260 §7.2.3).
    pub fn cut_to(&self, bytes: usize) -> Sizes {
        let cwnd = bytes.max(self.packet);
        Sizes { cwnd, ssthresh: cwnd }
    }
}

/// New congestion window and threshold, the answer of a controller, in bytes of DATA chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Congestion window: a full packet of the path at least, unless it was smaller before, and [`Sizes::LARGEST`] at most.
    pub cwnd: usize,
    /// Slow-start threshold, within the same bounds.
    pub ssthresh: usize,
}

impl Sizes {
    /// The largest size, 1 GiB. No buffer is larger, so no more can be in flight.
    pub const LARGEST: usize = 1 << 30;
}

/// Time of an event on one path, and the windows of all paths.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct Situation<'a> {
    /// Time of the event.
    pub now: Instant,
    /// The path that the answer is for.
    pub path: PathId,
    /// The windows of all paths: `windows[p]` is that of path `p`.
    pub windows: &'a [PathWindow],
}

impl<'a> Situation<'a> {
    /// An event on `path` at `now`, among these windows.
    pub const fn new(now: Instant, path: PathId, windows: &'a [PathWindow]) -> Self {
        Situation { now, path, windows }
    }

    /// Returns the window that the answer is for.
    pub fn window(&self) -> &PathWindow {
        &self.windows[self.path.index()]
    }
}

/// Report of a SACK on one path, in bytes of DATA chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// Bytes newly acknowledged.
    pub bytes: usize,
    /// Bytes in flight before the SACK.
    pub flight_before: usize,
    /// Bytes in flight after the SACK, before anything else is sent.
    pub flight_after: usize,
    /// True if the window may grow: the path is not in fast recovery, and the rule for growth under CMT allows it
    /// (CUC, the switch `cwnd_update`). The core does not enforce this: a larger window in the answer is applied in
    /// any case.
    pub may_grow: bool,
    /// True if the window was fully used before the SACK, or only pacing prevented that; RFC 9260 §7.2 lets only such
    /// a window grow.
    pub fully_used: bool,
    /// Bytes declared lost since the last SACK that acknowledged data of the path, by this SACK too.
    pub lost: usize,
    /// Round-trip time of the newest chunk acknowledged, if it was sent only once (Karn's rule).
    pub rtt: Option<Duration>,
    /// Delivery rate over the last round trip, bytes per second; 0 before the first measurement.
    pub rate: u64,
}

impl Ack {
    /// A report of `bytes` newly acknowledged, for tests of controllers: the window was fully used and may grow,
    /// nothing is in flight or lost, and nothing was measured.
    pub const fn new(bytes: usize) -> Self {
        Ack {
            bytes,
            flight_before: bytes,
            flight_after: 0,
            may_grow: true,
            fully_used: true,
            lost: 0,
            rtt: None,
            rate: 0,
        }
    }
}

/// A congestion controller of an application; each association has its own. Each call is about one path, and the
/// answer is the new window of that path.
///
/// If an answer is out of bounds, or the controller panics or reports a [`failure`](Self::failure), `rfc9260` replaces
/// it in this association and continues with the present windows. The application gets `Event::SchedulerFailed`.
pub trait Controller: Send {
    /// A path was added, perhaps at the position of one that was removed; its window has its initial size.
    fn on_path_added(&mut self, window: &PathWindow) {
        let _ = window;
    }

    /// Data of the path was newly acknowledged. Called once for each SACK and path, before [`on_loss`](Self::on_loss)
    /// for the same SACK.
    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes;

    /// Data of the path was lost or got a congestion mark (ECN), and the path was not in fast recovery before. If no
    /// SACK reported this, the core does not let the window grow, whatever the answer.
    fn on_loss(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes;

    /// T3 of the path expired. With `None`, the default, the window becomes one packet and the threshold half of the
    /// window (RFC 9260 §7.2.3).
    fn on_timeout(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        let _ = situation;
        None
    }

    /// The last reduction of the window was spurious: the data was late and not lost. `before` has the sizes before
    /// the reduction. The default answers the larger of the present and of these sizes (RFC 4015 §3).
    fn on_spurious(&mut self, situation: &Situation<'_>, before: Sizes) -> Sizes {
        let window = situation.window();
        Sizes { cwnd: window.cwnd.max(before.cwnd), ssthresh: window.ssthresh.max(before.ssthresh) }
    }

    /// Another RTO has passed in which no data was sent on the path. With `None`, the default, the window is halved,
    /// down to four packets (RFC 9260 §7.2.1). Called again after each RTO until the window no longer changes.
    fn on_idle(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        let _ = situation;
        None
    }

    /// Pacing rate of the path from now on, bytes per second; called after each answer. With `None`, the default, the
    /// rate is a multiple of cwnd / srtt (RFC 9002 §7.7). It has no effect if the switch `pacing` is off.
    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        let _ = path;
        None
    }

    /// Returns the reason for which the controller cannot continue, on one line, if there is one. Called after every other method.
    fn failure(&self) -> Option<String> {
        None
    }
}
