//! Interface of congestion control between the core and the controllers of this crate.

use std::num::NonZeroU64;

use super::controller::Sizes;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// Decides over the windows of one association. `windows[p]` is the window of path `p`.
pub trait CongestionControl: Send {
    /// A path was added, perhaps in the place of one that is gone. Its window stands at the initial values of
    /// RFC 9260 §7.2.1; an algorithm that shares one initial window among all paths changes that here.
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let _ = (windows, path);
    }

    /// A SACK was processed; called once per SACK, with at most one entry for each path.
    fn on_sack(&mut self, now: Instant, windows: &mut [Window], acks: &[PathAck]);

    /// T3 expired on `path` (RFC 9260 §6.3.3 E1).
    fn on_timeout(&mut self, now: Instant, windows: &mut [Window], path: PathId);

    /// Another retransmission timeout has passed without data sent on `path` (RFC 9260 §7.2.1).
    /// Called until it leaves the window as it is.
    fn on_idle(&mut self, now: Instant, windows: &mut [Window], path: PathId) {
        let _ = now;
        if let Some(window) = windows.get_mut(path.index()) {
            window.decay();
        }
    }

    /// The loss that the window of `path` was last cut for was none: the data was late. The window was `before` then
    /// (RFC 4015 §3, RFC 9438 §4.9).
    fn on_spurious(&mut self, now: Instant, windows: &mut [Window], path: PathId, before: Sizes) {
        let _ = now;
        if let Some(window) = windows.get_mut(path.index()) {
            window.restore(before);
        }
    }

    /// The most that `path` sends, bytes a second; `None` where its window says so alone.
    fn pacing_rate(&self, path: PathId) -> Option<NonZeroU64> {
        let _ = path;
        None
    }

    /// Another path with which this one shares a bottleneck, as far as the controller has found out: then both are one flow.
    fn shares_with(&self, path: PathId) -> Option<PathId> {
        let _ = path;
        None
    }

    /// The name of a controller that could not go on, and why, once: `rfc9260` has taken its place.
    fn pop_failure(&mut self) -> Option<(String, String)> {
        None
    }
}
