//! Common steps of both versions of CMT/RP: those of RFC 9260, with each growth scaled by the path's share of a
//! resource that all paths pool, and one initial window for all paths. Each version defines the resource, and the
//! reduction after a loss.

use super::CongestionControl;
use super::group::{Group, whole_bytes};
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

/// Shares one initial window among the paths as they are added.
#[derive(Default)]
pub(super) struct SharedInitial {
    /// The window that each path would have had alone.
    alone: Vec<usize>,
}

impl SharedInitial {
    /// Takes the window of `path`, added at the end or at the position of a removed path. This window and the others
    /// that still have their initial value become min(⌈4 packets / n⌉, initial window), but at least one packet. A
    /// configured initial window of more than four packets is divided by n instead.
    pub(super) fn on_path_added(&mut self, windows: &mut [Window], path: PathId) {
        let (before, now) = (self.alone.len(), windows.len());
        self.alone.resize(now, 0);
        self.alone[path.index()] = windows[path.index()].cwnd;
        for (place, (window, &alone)) in windows.iter_mut().zip(&self.alone).enumerate() {
            if place == path.index() || window.cwnd == part(alone, window.pmdcs, before) {
                window.cwnd = part(alone, window.pmdcs, now);
            }
        }
    }
}

fn part(alone: usize, pmdcs: usize, paths: usize) -> usize {
    let divided = alone.max(4 * pmdcs).div_ceil(paths.max(1));
    divided.min(alone).max(pmdcs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: usize = 1468;

    fn shared(count: usize, initial: usize) -> Vec<usize> {
        let mut windows = Vec::new();
        let mut shared = SharedInitial::default();
        for place in 0..count {
            windows.push(Window::new(M, false, initial));
            shared.on_path_added(&mut windows, PathId(place as u8));
        }
        windows.iter().map(|window| window.cwnd).collect()
    }

    #[test]
    fn paths_share_four_packets() {
        assert_eq!(shared(1, 0), [3 * M], "a single path starts as in RFC 9260");
        assert_eq!(shared(2, 0), [2 * M; 2]);
        assert_eq!(shared(3, 0), [1958; 3]);
        assert_eq!(shared(6, 0), [M; 6]);
    }

    #[test]
    fn a_larger_configured_window_is_divided() {
        assert_eq!(shared(2, 20 * M), [10 * M; 2]);
    }

    #[test]
    fn a_window_in_use_is_left_alone() {
        let mut shared = SharedInitial::default();
        let mut windows = vec![Window::new(M, false, 0)];
        shared.on_path_added(&mut windows, PathId(0));
        windows[0].cwnd = 9 * M;
        windows.push(Window::new(M, false, 0));
        shared.on_path_added(&mut windows, PathId(1));
        assert_eq!([windows[0].cwnd, windows[1].cwnd], [9 * M, 2 * M]);
        // Another path takes the place of the first.
        windows[0] = Window::new(M, false, 0);
        windows[1].cwnd = 7 * M;
        shared.on_path_added(&mut windows, PathId(0));
        assert_eq!([windows[0].cwnd, windows[1].cwnd], [2 * M, 7 * M]);
    }
}
