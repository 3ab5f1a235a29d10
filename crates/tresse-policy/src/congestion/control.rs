//! Interface of congestion control between the core and the controllers of this crate.

use std::num::NonZeroU64;

use super::controller::Sizes;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// A congestion controller of one association. `windows[p]` is the window of path `p`.
pub trait CongestionControl: Send {
    /// A path was added, perhaps at the position of one that was removed. Its window has the initial size of RFC 9260
    /// §7.2.1; an algorithm that shares one initial window among all paths changes it here.
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let _ = (windows, path);
    }

    /// A SACK was processed; called once per SACK, with at most one entry for each path.
    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]);

    /// T3 expired on `path` (RFC 9260 §6.3.3 E1).
    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId);

    /// Another RTO has passed in which no data was sent on `path` (RFC 9260 §7.2.1). Called again after each RTO until
    /// the window no longer changes.
    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        let _ = now;
        if let Some(window) = windows.get_mut(path.index()) {
            window.decay();
        }
    }

    /// The last reduction of the window of `path` was spurious: the data was late and not lost. `before` has the sizes
    /// before the reduction (RFC 4015 §3, RFC 9438 §4.9).
    fn on_spurious(&mut self, now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        let _ = now;
        if let Some(window) = windows.get_mut(path.index()) {
            window.restore(before);
        }
    }

    /// Returns the pacing rate of `path` in bytes per second; `None` if the controller sets none, so that the core
    /// derives it from the window.
    fn pacing_rate(&self, path: PathId) -> Option<NonZeroU64> {
        let _ = path;
        None
    }

    /// Returns another path that shares a bottleneck with this one, if the controller has detected one. Both paths then
    /// grow as one flow.
    fn shares_with(&self, path: PathId) -> Option<PathId> {
        let _ = path;
        None
    }

    /// Returns the name of a controller that failed, and the reason, once. `rfc9260` has replaced this controller.
    fn pop_failure(&mut self) -> Option<(String, String)> {
        None
    }
}
