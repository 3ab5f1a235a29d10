//! The congestion windows of the paths, and the controller that changes them.
//!
//! Independent of timers and of the data sent: its inputs are acknowledgements, losses, marks and timeouts.

use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};

use tresse_policy::congestion::Sizes;
use tresse_policy::engine::{CongestionControl, PathAck, Window};
use tresse_policy::{Instant, PathId};

/// The windows, by the position of their paths.
pub(crate) struct Windows {
    windows: Vec<Window>,
    controller: Box<dyn CongestionControl>,
    /// Largest initial ssthresh of a path, in bytes.
    most_ssthresh: usize,
}

impl Windows {
    /// Creates an empty set with memory for `count` windows.
    pub(super) fn new(controller: Box<dyn CongestionControl>, count: usize) -> Self {
        Windows { windows: Vec::with_capacity(count), controller, most_ssthresh: usize::MAX }
    }

    /// Limits ssthresh to the peer's first receiver window: slow start ends there at the latest (RFC 9260 §7.2.1).
    pub(crate) fn limit_ssthresh(&mut self, peer_window: usize) {
        self.most_ssthresh = peer_window;
        for window in &mut self.windows {
            window.ssthresh = window.ssthresh.min(peer_window.max(window.pmdcs));
        }
    }

    /// Sets the window of a path that begins, perhaps in the slot of a removed one.
    pub(super) fn begin(&mut self, path: PathId, mut window: Window) {
        window.ssthresh = window.ssthresh.min(self.most_ssthresh.max(window.pmdcs));
        match self.windows.get_mut(path.index()) {
            Some(place) => *place = window,
            None => {
                // Most associations have one or two paths; doubling would waste more than it saves.
                self.windows.reserve_exact(1);
                self.windows.push(window);
            }
        }
        self.controller.on_path_added(&mut self.windows, path);
    }

    /// Returns whether any path is in fast recovery.
    pub(crate) fn recovering(&self) -> bool {
        self.windows.iter().any(|window| window.repairs().is_some())
    }

    /// Passes a SACK to the controller.
    pub(super) fn on_sack(&mut self, now: Instant, acks: &[PathAck]) {
        self.controller.on_sack(now, &mut self.windows, acks);
    }

    /// Reduces a window for a loss or mark that no SACK reported; returns whether the window is smaller than before. RFC 9260
    /// §7.2.3 leaves four packets, which would enlarge a small window.
    pub(super) fn reduce(&mut self, now: Instant, loss: PathAck) -> bool {
        let position = loss.path.index();
        let before = self.windows[position].cwnd;
        self.controller.on_sack(now, &mut self.windows, &[loss]);
        let window = &mut self.windows[position];
        window.cwnd = window.cwnd.min(before);
        window.cwnd < before
    }

    /// Applies a timeout, or a loss in the set-up: the window falls to one packet, and no more may be in flight until the path
    /// has answered.
    pub(super) fn on_timeout(&mut self, now: Instant, path: PathId) {
        self.controller.on_timeout(now, &mut self.windows, path);
        self.windows[path.index()].one_packet = true;
    }

    /// Lets the window decay after another RTO without data on the path; returns whether it has changed.
    pub(super) fn on_idle(&mut self, now: Instant, path: PathId) -> bool {
        let before = self.windows[path.index()].cwnd;
        self.controller.on_idle(now, &mut self.windows, path);
        self.windows[path.index()].cwnd != before
    }

    /// Restores the window `before`, because the data of the last reduction was late and not lost.
    pub(super) fn on_spurious(&mut self, now: Instant, path: PathId, before: Sizes) {
        self.controller.on_spurious(now, &mut self.windows, path, before);
    }

    /// Reduces the window by a chunk of `bytes` that left the path before it counted as lost, but to no less than one packet.
    pub(crate) fn shrink(&mut self, path: PathId, bytes: usize) {
        let window = &mut self.windows[path.index()];
        window.cwnd = window.cwnd.saturating_sub(bytes).max(window.pmdcs.min(window.cwnd));
    }

    /// Returns the pacing rate of a path in bytes per second, if the controller sets one.
    pub(super) fn pacing_rate(&self, path: PathId) -> Option<NonZeroU64> {
        self.controller.pacing_rate(path)
    }

    /// Returns another path that shares a bottleneck with this one, as far as the controller knows.
    pub(super) fn shares_with(&self, path: PathId) -> Option<PathId> {
        self.controller.shares_with(path)
    }

    /// Returns the name of a controller that failed and the reason, once. It has been replaced by another one.
    pub(crate) fn pop_failure(&mut self) -> Option<(String, String)> {
        self.controller.pop_failure()
    }
}

impl Deref for Windows {
    type Target = [Window];

    #[inline]
    fn deref(&self) -> &[Window] {
        &self.windows
    }
}

impl DerefMut for Windows {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Window] {
        &mut self.windows
    }
}
