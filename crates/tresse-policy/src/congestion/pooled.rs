//! Common steps of both versions of CMT/RP: those of RFC 9260, with each growth scaled by the path's share of a
//! resource that all paths pool. Each version defines the resource, and the reduction after a loss.

use super::CongestionControl;
use super::group::{Group, whole_bytes};
use super::initial::SharedInitial;
use super::steps::Earned;
use super::window::{PathAck, Window};
use crate::path::PathId;
use crate::time::Instant;

/// A controller with pooled resources.
pub(super) struct Pooled {
    initial: SharedInitial,
    /// The path's share of the pool, from 0 to 1.
    share: fn(&Group, &Window) -> f64,
    /// The window that a loss leaves, in bytes.
    after_loss: fn(&Group, &Window) -> usize,
}

impl Pooled {
    pub(super) fn new(share: fn(&Group, &Window) -> f64, after_loss: fn(&Group, &Window) -> usize) -> Self {
        Pooled { initial: SharedInitial::default(), share, after_loss }
    }
}

impl CongestionControl for Pooled {
    fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        self.initial.on_path_added(windows, path);
    }

    fn on_sack(&mut self, _now: Instant, windows: &mut [Window], acks: &[PathAck]) {
        let group = Group::of(windows);
        for ack in acks {
            let Some(window) = windows.get_mut(ack.path.index()) else { continue };
            let share = (self.share)(&group, window);
            match window.earned(ack) {
                Earned::Nothing => {}
                Earned::SlowStart(bytes) => window.grow(whole_bytes(bytes as f64 * share)),
                Earned::FullWindow => window.grow(whole_bytes(window.pmdcs as f64 * share)),
            }
            if window.recovery_begins(ack) {
                window.cut_to((self.after_loss)(&group, window));
            }
        }
    }

    fn on_timeout(&mut self, _now: Instant, windows: &mut [Window], path: PathId) {
        let group = Group::of(windows);
        let Some(window) = windows.get_mut(path.index()) else { return };
        window.time_out((self.after_loss)(&group, window));
    }
}
