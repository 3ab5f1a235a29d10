//! The steps of RFC 9260 §7.2 that most algorithms share: the conditions for growth, and the fields that change at a
//! loss, a timeout or an idle period. Each algorithm defines the amounts.

use super::controller::Sizes;
use super::window::{LARGEST, PathAck, Window};

/// Growth of a window due to a SACK, as RFC 9260 counts it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Earned {
    /// The window does not grow.
    Nothing,
    /// Slow start: the window may grow by these bytes, one packet at most (§7.2.1).
    SlowStart(usize),
    /// Congestion avoidance: another window was acknowledged, worth one packet (§7.2.2).
    FullWindow,
}

impl Window {
    /// Counts the acknowledged bytes of the SACK, and returns the growth that they allow.
    pub(super) fn earned(&mut self, ack: &PathAck) -> Earned {
        let earned = if self.growth_allowed(ack) { self.count(ack) } else { Earned::Nothing };
        if ack.flight_after == 0 {
            self.partial_bytes_acked = 0;
        }
        earned
    }

    fn count(&mut self, ack: &PathAck) -> Earned {
        let fully_used = self.is_fully_used(ack);
        if self.cwnd <= self.ssthresh {
            let bytes = ack.acked.min(SLOW_START_PACKETS * self.pmdcs);
            return if fully_used { Earned::SlowStart(bytes) } else { Earned::Nothing };
        }
        self.partial_bytes_acked = self.partial_bytes_acked.saturating_add(ack.acked);
        if self.partial_bytes_acked < self.cwnd {
            return Earned::Nothing;
        }
        if fully_used {
            self.partial_bytes_acked -= self.cwnd;
            Earned::FullWindow
        } else {
            self.partial_bytes_acked = self.cwnd;
            Earned::Nothing
        }
    }

    /// Adds `bytes` to the window.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(LARGEST);
    }

    /// Reduces the window to `ssthresh` after a loss (§7.2.3).
    pub(super) fn cut_to(&mut self, ssthresh: usize) {
        self.ssthresh = ssthresh;
        self.cwnd = ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// Reduces the window to one packet after T3 expired; slow start leads up to `ssthresh` (§7.2.3).
    pub(super) fn time_out(&mut self, ssthresh: usize) {
        self.ssthresh = ssthresh;
        self.cwnd = self.pmdcs;
        self.partial_bytes_acked = 0;
        self.recovery = None;
    }

    /// Restores the sizes from `before` a spurious reduction (RFC 4015 §3); a size that has grown beyond its former value stays.
    pub(super) fn restore(&mut self, before: Sizes) {
        self.cwnd = self.cwnd.max(before.cwnd).min(LARGEST);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.recovery = None;
        self.one_packet = false;
    }

    /// Begins slow start with so many full packets, because a path that seemed to have failed is acknowledged again
    /// (CMT-PF: Natarajan et al.). With 0 the window stays as it is.
    pub fn reopen(&mut self, packets: usize) {
        if packets > 0 {
            self.cwnd = packets.saturating_mul(self.pmdcs).min(LARGEST);
            self.partial_bytes_acked = 0;
            self.recovery = None;
        }
    }

    /// Halves the window after an RTO without data; the first time, ssthresh keeps its size (§7.2.1).
    pub(super) fn decay(&mut self) {
        // A window below the floor must not grow because the path is idle.
        let decayed = self.halved().min(self.cwnd);
        if decayed == self.cwnd {
            return;
        }
        if !self.decayed {
            self.ssthresh = self.cwnd;
            self.decayed = true;
        }
        self.cwnd = decayed;
    }
}

/// L of RFC 9260 §7.2.1: most full packets that a SACK may add in slow start, whatever it acknowledges. The RFC allows
/// more if bursts are limited; 1 is always allowed.
const SLOW_START_PACKETS: usize = 1;
