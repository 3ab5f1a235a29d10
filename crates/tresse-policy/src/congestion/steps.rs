//! The steps of RFC 9260 §7.2 that most algorithms share: the conditions for growth, and the fields that change at a
//! loss, a timeout or an idle period. Each algorithm defines the amounts.

use super::controller::Sizes;
use super::window::{LARGEST, PathAck, Window};

/// Growth that a SACK has earned a window, as RFC 9260 counts it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Earned {
    /// The window stays.
    Nothing,
    /// Slow start: the window may grow by these bytes, one packet at most (§7.2.1).
    SlowStart(usize),
    /// Congestion avoidance: another window was acknowledged, worth one packet (§7.2.2).
    FullWindow,
}

impl Window {
    /// Counts what the SACK acknowledged, and says what that is worth.
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

    /// Adds `bytes`.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(LARGEST);
    }

    /// A loss: the window falls to `ssthresh` (§7.2.3).
    pub(super) fn cut_to(&mut self, ssthresh: usize) {
        self.ssthresh = ssthresh;
        self.cwnd = ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// T3 expired: one packet is left, and slow start up to `ssthresh` (§7.2.3).
    pub(super) fn time_out(&mut self, ssthresh: usize) {
        self.ssthresh = ssthresh;
        self.cwnd = self.pmdcs;
        self.partial_bytes_acked = 0;
        self.recovery = None;
    }

    /// Nothing was lost when it was cut (RFC 4015 §3): it is what it was `before`, unless it has grown beyond that meanwhile.
    pub(super) fn restore(&mut self, before: Sizes) {
        self.cwnd = self.cwnd.max(before.cwnd).min(LARGEST);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.recovery = None;
        self.one_packet = false;
    }

    /// The path was thought to have failed and answers again: slow start from so many full packets
    /// (CMT-PF: Natarajan et al.); 0 leaves the window as it is.
    pub fn reopen(&mut self, packets: usize) {
        if packets > 0 {
            self.cwnd = packets.saturating_mul(self.pmdcs).min(LARGEST);
            self.partial_bytes_acked = 0;
            self.recovery = None;
        }
    }

    /// An RTO without data: half of the window goes, and the first time ssthresh remembers it (§7.2.1).
    pub(super) fn decay(&mut self) {
        // A window below the floor stays where it is: silence is no reason to send more.
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

/// L of RFC 9260 §7.2.1: how many full packets a SACK may add in slow start, however much it
/// acknowledges. The RFC allows more where bursts are limited; 1 is what all can live with.
const SLOW_START_PACKETS: usize = 1;
