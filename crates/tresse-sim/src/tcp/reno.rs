//! Reno's congestion window (RFC 5681), counted in bytes as RFC 3465 does.
//!
//! Owns the arithmetic only. The sender decides what was lost, and when.

use super::segment::MSS;

/// A congestion window.
#[derive(Clone, Debug)]
pub(super) struct Reno {
    window: u64,
    threshold: u64,
    /// Bytes acknowledged in congestion avoidance that have not moved the window yet.
    credit: u64,
}

impl Reno {
    /// A window of `segments` full segments.
    pub(super) fn new(segments: u32) -> Self {
        Reno { window: u64::from(segments) * FULL, threshold: u64::MAX, credit: 0 }
    }

    /// Bytes that may be under way.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// New data was acknowledged while the window was in use.
    pub(super) fn on_acknowledged(&mut self, bytes: u64) {
        if self.window < self.threshold {
            // L = 2: an acknowledgement of two segments opens the window by two.
            self.window += bytes.min(2 * FULL);
            return;
        }
        self.credit += bytes;
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window += FULL;
        }
    }

    /// Loss was told by duplicates, with `flight` bytes under way (§3.2).
    pub(super) fn on_loss(&mut self, flight: u64) {
        self.threshold = (flight / 2).max(2 * FULL);
        self.window = self.threshold;
        self.credit = 0;
    }

    /// The timer expired with `flight` bytes under way (§3.1).
    pub(super) fn on_timeout(&mut self, flight: u64) {
        self.threshold = (flight / 2).max(2 * FULL);
        self.restart();
    }

    /// The window after a timeout, the threshold staying what it was: for a second timeout in a row, or a lost SYN.
    pub(super) fn restart(&mut self) {
        self.window = FULL;
        self.credit = 0;
    }
}

/// A full segment.
const FULL: u64 = MSS as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_doubles_in_a_round_trip_then_grows_by_a_segment() {
        let mut reno = Reno::new(4);
        reno.on_loss(16 * FULL);
        assert_eq!(reno.window(), 8 * FULL, "half of what was under way");
        reno.on_timeout(16 * FULL);
        assert_eq!(reno.window(), FULL);
        for _ in 0..7 {
            reno.on_acknowledged(FULL);
        }
        assert_eq!(reno.window(), 8 * FULL, "slow start up to the threshold");
        for _ in 0..8 {
            reno.on_acknowledged(FULL);
        }
        assert_eq!(reno.window(), 9 * FULL, "a segment for a window");
        reno.on_loss(FULL);
        assert_eq!(reno.window(), 2 * FULL, "never below two segments");
    }
}
