//! Congestion window of one path, and the effect of a SACK on this path.
//!
//! All sizes are bytes of DATA chunks, their headers included, as RFC 9260 counts outstanding data (§1.3) and windows (§7.2).

use std::time::Duration;

use super::controller::Sizes;
use crate::path::PathId;

/// The congestion state of one path.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: usize,
    /// Slow-start threshold.
    pub ssthresh: usize,
    /// Bytes acknowledged towards the next growth in congestion avoidance (RFC 9260 §7.2.2).
    pub partial_bytes_acked: usize,
    /// Path Maximum DATA Chunk Size (RFC 9260 §1.3): one full DATA chunk, its header included.
    pub pmdcs: usize,
    /// True if T3 expired and nothing sent on the path was acknowledged since: then at most one packet may be in
    /// flight (RFC 9260 §7.2.3).
    pub one_packet: bool,
    /// The exit point of fast recovery, as a TSN index: recovery ends when everything up to it is acknowledged.
    pub recovery: Option<u64>,
    /// True if that recovery began with a congestion mark (ECN), so that nothing was lost.
    pub marked: bool,
    /// True if the window was reduced for lack of data since data was last sent.
    pub decayed: bool,
    /// True if pacing delays packets that the window allows: the window then counts as fully used (RFC 9002 §7.8).
    pub held: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// True if the path is confirmed and active; coupled algorithms leave out the others.
    pub usable: bool,
    /// Lower bound of the threshold after a loss, in full packets.
    pub min_ssthresh: u16,
}

impl Window {
    /// Returns an initial window (RFC 9260 §7.2.1): `initial` bytes, or the RFC's value if `initial` is 0.
    ///
    /// ssthresh starts higher than any buffer can be, which the RFC allows.
    pub fn new(pmdcs: usize, ipv6: bool, initial: usize) -> Self {
        let cwnd = match initial {
            0 => rfc_initial_window(pmdcs, ipv6),
            _ => initial.min(LARGEST).max(pmdcs),
        };
        Window {
            cwnd,
            ssthresh: LARGEST,
            partial_bytes_acked: 0,
            pmdcs,
            one_packet: false,
            recovery: None,
            marked: false,
            decayed: false,
            held: false,
            srtt: None,
            usable: false,
            min_ssthresh: 4,
        }
    }

    /// Returns the bytes that may be sent with `flight` bytes in flight. If this is not 0, one packet may exceed the
    /// window by less than a PMDCS (RFC 9260 §6.1 B).
    pub fn room(&self, flight: usize) -> usize {
        if flight < self.gate() { self.cwnd.saturating_sub(flight) } else { 0 }
    }

    /// Returns the bytes in flight at which sending stops: the congestion window, or 1 after T3, so that one packet is
    /// sent. A window of one PMDCS would allow several smaller packets.
    pub fn gate(&self) -> usize {
        if self.one_packet { 1 } else { self.cwnd }
    }

    /// Returns whether the whole window was used when a SACK arrived, or pacing alone prevented that (RFC 9260 §7.2.1).
    pub(super) fn is_fully_used(&self, ack: &PathAck) -> bool {
        self.held || ack.flight_before >= self.cwnd
    }

    /// Returns half of the window, but at least [`min_ssthresh`](Self::min_ssthresh) full packets (RFC 9260 §7.2.3).
    pub fn halved(&self) -> usize {
        (self.cwnd / 2).max(self.floor())
    }

    /// Returns the least window after a loss, in bytes: four full packets (RFC 9260 §7.2.3), or as many as a setting requires.
    pub(super) fn floor(&self) -> usize {
        usize::from(self.min_ssthresh) * self.pmdcs
    }
}

impl From<&Window> for Sizes {
    /// Returns the present sizes.
    fn from(window: &Window) -> Self {
        Sizes { cwnd: window.cwnd, ssthresh: window.ssthresh }
    }
}

/// Effect of one SACK on one path, determined from the outstanding chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathAck {
    /// The path.
    pub path: PathId,
    /// Bytes newly acknowledged by the cumulative TSN or by gap blocks.
    pub acked: usize,
    /// Bytes that were declared lost, and so are not in flight any more.
    pub lost_bytes: usize,
    /// Round-trip time of the newest acknowledged chunk that was sent only once (Karn's rule).
    pub rtt: Option<Duration>,
    /// Bytes in flight before this SACK.
    pub flight_before: usize,
    /// Bytes in flight after it, before anything else is sent.
    pub flight_after: usize,
    /// True if CUC, the rule for window growth under CMT, lets the window grow.
    pub may_grow: bool,
    /// True if missing reports newly marked a chunk of this path as lost.
    pub lost: bool,
    /// Highest outstanding TSN index of the path: the exit point of a recovery that begins now.
    pub exit_point: u64,
    /// Everything up to this index is acknowledged: the cumulative TSN, or the path's pseudo-cumulative TSN if the
    /// switch `pseudo_cumulative_recovery` is on.
    pub recovered_to: u64,
}

fn rfc_initial_window(pmdcs: usize, ipv6: bool) -> usize {
    let three_packets = if ipv6 { INITIAL_IPV6 } else { INITIAL_IPV4 };
    (4 * pmdcs).min((2 * pmdcs).max(three_packets))
}

/// Bytes of three full DATA chunks in Ethernet packets over IPv4 (RFC 9260 §7.2.1).
const INITIAL_IPV4: usize = 4404;
/// The same over IPv6.
const INITIAL_IPV6: usize = 4344;
/// Upper bound of a window.
pub(super) const LARGEST: usize = Sizes::LARGEST;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_pacing_keeps_from_being_filled_counts_as_used() {
        let window = Window::new(1468, false, 0);
        let ack = |flight_before| PathAck {
            path: PathId(0),
            acked: 1468,
            lost_bytes: 0,
            rtt: None,
            flight_before,
            flight_after: 0,
            may_grow: true,
            lost: false,
            exit_point: 3,
            recovered_to: 0,
        };
        assert!(window.is_fully_used(&ack(window.cwnd)));
        assert!(!window.is_fully_used(&ack(window.cwnd - 1)));
        assert!(Window { held: true, ..window }.is_fully_used(&ack(1468)));
    }

    #[test]
    fn the_initial_window_holds_three_ethernet_packets() {
        assert_eq!(Window::new(1468, false, 0).cwnd, 3 * 1468);
        assert_eq!(Window::new(1448, true, 0).cwnd, 3 * 1448);
    }

    #[test]
    fn the_initial_window_holds_four_small_packets_and_two_large_ones() {
        assert_eq!(Window::new(544, false, 0).cwnd, 4 * 544);
        assert_eq!(Window::new(8968, false, 0).cwnd, 2 * 8968);
    }

    #[test]
    fn a_configured_initial_window_holds_at_least_one_packet() {
        assert_eq!(Window::new(1468, false, 10_000).cwnd, 10_000);
        assert_eq!(Window::new(1468, false, 100).cwnd, 1468);
        assert_eq!(Window::new(1468, false, usize::MAX).cwnd, LARGEST);
    }

    #[test]
    fn room_is_what_flight_leaves() {
        let window = Window { cwnd: 10_000, ..Window::new(1468, false, 0) };
        assert_eq!((window.room(4_000), window.gate()), (6_000, 10_000));
        assert_eq!(window.room(10_500), 0);
    }

    #[test]
    fn after_a_timeout_nothing_joins_what_is_in_flight() {
        let window = Window { cwnd: 1468, one_packet: true, ..Window::new(1468, false, 0) };
        assert_eq!([window.room(0), window.room(17)], [1468, 0]);
    }
}
