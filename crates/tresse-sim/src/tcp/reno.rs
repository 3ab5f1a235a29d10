//! Congestion window of Reno (RFC 5681), counted in bytes as in RFC 3465.
//!
//! Owns the arithmetic only. The sender detects losses.

use super::segment::MSS;

/// A congestion window.
#[derive(Clone, Debug)]
pub(super) struct Reno {
    window: u64,
    threshold: u64,
    /// Bytes acknowledged in congestion avoidance since the last growth.
    credit: u64,
}

impl Reno {
    /// A window of `segments` full segments.
    pub(super) fn new(segments: u32) -> Self {
        Reno { window: u64::from(segments) * FULL, threshold: u64::MAX, credit: 0 }
    }

    /// Returns the bytes that may be in flight.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// New data was acknowledged while the window was fully used.
    pub(super) fn on_acknowledged(&mut self, bytes: u64) {
        if self.window < self.threshold {
            // L = 2: an acknowledgement of two segments makes the window grow by two.
            self.window += bytes.min(2 * FULL);
            return;
        }
        self.credit += bytes;
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window += FULL;
        }
    }

    /// Selective acknowledgements showed a loss, with `flight` bytes in flight (§3.2).
    pub(super) fn on_loss(&mut self, flight: u64) {
        self.threshold = (flight / 2).max(2 * FULL);
        self.window = self.threshold;
        self.credit = 0;
    }

    /// The timer expired with `flight` bytes in flight (§3.1).
    pub(super) fn on_timeout(&mut self, flight: u64) {
        self.threshold = (flight / 2).max(2 * FULL);
        self.restart();
    }

    /// Sets the window after a timeout, without a change of the threshold: for a second timeout in a row, or a lost SYN.
    pub(super) fn restart(&mut self) {
        self.window = FULL;
        self.credit = 0;
    }
}

/// Payload bytes of a full segment.
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
