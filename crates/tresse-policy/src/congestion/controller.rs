//! Congestion controllers that applications bring along: what they are shown, and what they answer.
//!
//! A controller of this kind answers for one path at a time, having seen the windows of all. It owns no window: the core
//! changes them too, when data moves to another path or packets become smaller, so what is remembered of them is stale.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::panics::Made;
use crate::path::PathId;
use crate::time::Instant;

/// Makes a controller of its opaque configuration, or says in its own words what is wrong with that.
pub type ControllerFactory = Arc<dyn Fn(&str) -> Made<dyn Controller> + Send + Sync>;

/// The window of one path. Sizes are bytes of DATA chunks, their headers included (RFC 9260 §1.3).
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathWindow {
    /// The path.
    pub path: PathId,
    /// Congestion window.
    pub cwnd: usize,
    /// Slow-start threshold; at first no smaller than what the peer can take.
    pub ssthresh: usize,
    /// A full packet's DATA chunk (the PMDCS of RFC 9260).
    pub packet: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The shortest round trip since the path was added.
    pub min_rtt: Option<Duration>,
    /// True if the path is confirmed and active. What couples paths had better leave out the others.
    pub usable: bool,
    /// True if a loss is being made good (fast recovery, RFC 9260 §7.2.4).
    pub recovering: bool,
}

impl PathWindow {
    /// A path in use that has not been measured, in slow start: where a test of a controller begins.
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

    /// Returns whether RFC 9260 §7.2.1 would speak of slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }

    /// As it stands.
    pub fn unchanged(&self) -> Sizes {
        Sizes { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// Larger by these bytes.
    pub fn grown_by(&self, bytes: usize) -> Sizes {
        let cwnd = self.cwnd.saturating_add(bytes).min(Sizes::LARGEST);
        Sizes { cwnd, ssthresh: self.ssthresh }
    }

    /// Cut to these bytes, from where slow start does not begin anew; to a full packet at least.
    pub fn cut_to(&self, bytes: usize) -> Sizes {
        let cwnd = bytes.max(self.packet);
        Sizes { cwnd, ssthresh: cwnd }
    }
}

/// Sizes that a window is to have: the answer of a controller, in bytes of DATA chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Congestion window: a full packet of the path at least, unless it was smaller before, and [`Sizes::LARGEST`] at most.
    pub cwnd: usize,
    /// Slow-start threshold, within the same bounds.
    pub ssthresh: usize,
}

impl Sizes {
    /// No buffer, and so no flight, is larger.
    pub const LARGEST: usize = super::window::LARGEST;
}

/// Time of an event on one path, and the windows of all paths.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct Situation<'a> {
    /// Now.
    pub now: Instant,
    /// The path that the answer is for.
    pub path: PathId,
    /// Those of all paths: `windows[p]` is that of path `p`.
    pub windows: &'a [PathWindow],
}

impl<'a> Situation<'a> {
    /// An event on `path` at `now`, among these windows.
    pub const fn new(now: Instant, path: PathId, windows: &'a [PathWindow]) -> Self {
        Situation { now, path, windows }
    }

    /// The window that the answer is for.
    pub fn window(&self) -> &PathWindow {
        &self.windows[self.path.index()]
    }
}

/// Report of a SACK on one path, in bytes of DATA chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// Newly acknowledged.
    pub bytes: usize,
    /// In flight before the SACK.
    pub flight_before: usize,
    /// In flight after it, before anything else is sent.
    pub flight_after: usize,
    /// True if the window may grow: nothing is being made good, and the rule for growth under CMT agrees (CUC, the switch
    /// `cwnd_update`). A controller that grows all the same is not kept from it.
    pub may_grow: bool,
    /// True if the window was used to the full, or would have been but for pacing; RFC 9260 §7.2 lets none grow that
    /// was not.
    pub fully_used: bool,
    /// Found to be lost since data of the path was acknowledged before.
    pub lost: usize,
    /// The round trip of the newest data acknowledged, if it was sent only once.
    pub rtt: Option<Duration>,
    /// Delivered over the last round trip, bytes a second; 0 while not known.
    pub rate: u64,
}

impl Ack {
    /// A report of `bytes` newly acknowledged, which may let a window grow that was fully used; nothing is in flight or
    /// lost, and nothing was measured: where a test of a controller begins.
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

/// A congestion controller of an application's own: one for each association. What happens is always told of one path;
/// what it answers is that path's new window.
///
/// An answer out of bounds, a panic, or a [`failure`](Self::failure) ends its work: the controller `rfc9260` goes on with
/// the windows as they stand, in this association, which is told so by
/// `Event::SchedulerFailed`.
pub trait Controller: Send {
    /// A path was added, perhaps in the place of one that is gone; its window is an initial one.
    fn on_path_added(&mut self, window: &PathWindow) {
        let _ = window;
    }

    /// Data of the path was newly acknowledged. Asked once for each SACK and path, before a loss in the same SACK.
    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes;

    /// Data of the path was lost, or met a congestion mark (ECN), and nothing was being made good before. Where no SACK
    /// said so, the window does not grow whatever is answered.
    fn on_loss(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes;

    /// T3 of the path expired. `None`, as without this hook, does as RFC 9260 §7.2.3 says: one packet, and slow start up to
    /// half of the window.
    fn on_timeout(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        let _ = situation;
        None
    }

    /// The loss that the window was last cut for was none: the data was late. The window was `before` then. As without
    /// this hook, window and threshold are the larger of both (RFC 4015 §3).
    fn on_spurious(&mut self, situation: &Situation<'_>, before: Sizes) -> Sizes {
        let window = situation.window();
        Sizes { cwnd: window.cwnd.max(before.cwnd), ssthresh: window.ssthresh.max(before.ssthresh) }
    }

    /// Another RTO has passed without data on the path. `None`, as without this hook, does as RFC 9260 §7.2.1 says: half of
    /// the window goes, down to four packets. Asked again after each RTO until the window stays as it is.
    fn on_idle(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        let _ = situation;
        None
    }

    /// The most that the path sends from now on, bytes a second; asked after each answer. `None`, as without this hook, paces at a
    /// multiple of window over round-trip time (RFC 9002 §7.7). Means nothing where the switch `pacing` is off.
    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        let _ = path;
        None
    }

    /// Reason for which it cannot go on, on one line; looked at after every hook.
    fn failure(&self) -> Option<String> {
        None
    }
}
