//! One initial window for all paths of an association, as in CMT/RP.

use super::window::Window;
use crate::path::PathId;

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
