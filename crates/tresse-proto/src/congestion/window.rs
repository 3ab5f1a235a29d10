//! The congestion window of one path, and what a SACK says about that path.
//!
//! All sizes are bytes of user data: chunk headers count neither in windows nor in flight. RFC 9260
//! §7.2 speaks of the PMDCS, a full DATA chunk with its header; its place is taken by `payload`, the
//! user data of such a chunk, so that windows hold the same number of full packets as in the RFC.

use std::time::Duration;

use crate::fragment::Carrier;
use crate::path_id::PathId;

/// The congestion state of one path.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Window {
    /// Congestion window.
    pub(crate) cwnd: usize,
    /// Slow-start threshold.
    pub(crate) ssthresh: usize,
    /// Bytes acknowledged towards the next growth in congestion avoidance (RFC 9260 §7.2.2).
    pub(crate) partial_bytes_acked: usize,
    /// User data of one full DATA chunk on this path.
    pub(crate) payload: usize,
    /// In fast recovery until this index is passed.
    pub(crate) recovery: Option<u64>,
    /// That recovery began with a congestion mark: nothing was lost.
    pub(crate) marked: bool,
    /// Whether the window has shrunk for lack of data since data was last sent.
    pub(crate) decayed: bool,
    /// Smoothed round-trip time, once measured.
    pub(crate) srtt: Option<Duration>,
    /// Whether the path is confirmed and active; coupled algorithms leave out the others.
    pub(crate) usable: bool,
}

impl Window {
    /// An initial window (RFC 9260 §7.2.1) for chunks of this kind: `initial` bytes, or the RFC's choice when that is 0.
    ///
    /// ssthresh starts higher than any buffer can be, which the RFC allows.
    pub(crate) fn carrying(carrier: Carrier, payload: usize, ipv6: bool, initial: usize) -> Self {
        let cwnd = match initial {
            0 => rfc_initial_window(carrier, payload, ipv6),
            _ => initial.min(LARGEST).max(payload),
        };
        Window {
            cwnd,
            ssthresh: LARGEST,
            partial_bytes_acked: 0,
            payload,
            recovery: None,
            marked: false,
            decayed: false,
            srtt: None,
            usable: false,
        }
    }

    /// An initial window for DATA chunks.
    #[cfg(test)]
    pub(crate) fn new(payload: usize, ipv6: bool, initial: usize) -> Self {
        Self::carrying(Carrier::Data, payload, ipv6, initial)
    }

    /// Bytes that may be sent with `flight` bytes in flight. While this is not 0, one packet may
    /// exceed the window by less than a full payload (RFC 9260 §6.1 B).
    pub(crate) fn room(&self, flight: usize) -> usize {
        self.cwnd.saturating_sub(flight)
    }

    /// The window after half of it is taken away, but at least four full packets (RFC 9260 §7.2.3).
    pub(crate) fn halved(&self) -> usize {
        (self.cwnd / 2).max(self.floor())
    }

    /// What a loss leaves at least: four full packets (RFC 9260 §7.2.3).
    pub(super) fn floor(&self) -> usize {
        MIN_SSTHRESH_PACKETS * self.payload
    }
}

/// What one SACK did on one path, as the ring of outstanding chunks found it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathAck {
    /// The path.
    pub(crate) path: PathId,
    /// Bytes newly acknowledged by the cumulative TSN or by gap blocks.
    pub(crate) acked: usize,
    /// Bytes in flight before this SACK.
    pub(crate) flight_before: usize,
    /// Bytes in flight after it, before anything else is sent.
    pub(crate) flight_after: usize,
    /// Whether the CUC rule lets the window grow.
    pub(crate) may_grow: bool,
    /// Whether missing reports newly marked a chunk of this path as lost.
    pub(crate) lost: bool,
    /// Highest outstanding index of the path: the exit point of a recovery that begins now.
    pub(crate) exit_point: u64,
    /// Everything up to this index is acknowledged: the cumulative TSN, or the path's
    /// pseudo-cumulative one where the switch `pseudo_cumulative_recovery` says so.
    pub(crate) recovered_to: u64,
}

fn rfc_initial_window(carrier: Carrier, payload: usize, ipv6: bool) -> usize {
    let three_packets = if ipv6 { INITIAL_IPV6 } else { INITIAL_IPV4 } - 3 * carrier.header_len();
    (4 * payload).min((2 * payload).max(three_packets))
}

/// Three full chunks of user data of an Ethernet packet, headers included (RFC 9260 §7.2.1).
const INITIAL_IPV4: usize = 4404;
/// The same for IPv6.
const INITIAL_IPV6: usize = 4344;
/// No threshold falls below this many full packets.
const MIN_SSTHRESH_PACKETS: usize = 4;
/// No window grows beyond this: no buffer, and so no flight, is larger.
pub(super) const LARGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_holds_three_ethernet_packets() {
        assert_eq!(Window::new(1452, false, 0).cwnd, 3 * 1452);
        assert_eq!(Window::new(1432, true, 0).cwnd, 3 * 1432);
        assert_eq!(Window::carrying(Carrier::IData, 1448, false, 0).cwnd, 3 * 1448);
    }

    #[test]
    fn the_initial_window_holds_four_small_packets_and_two_large_ones() {
        assert_eq!(Window::new(528, false, 0).cwnd, 4 * 528);
        assert_eq!(Window::new(8952, false, 0).cwnd, 2 * 8952);
    }

    #[test]
    fn a_configured_initial_window_holds_at_least_one_packet() {
        assert_eq!(Window::new(1452, false, 10_000).cwnd, 10_000);
        assert_eq!(Window::new(1452, false, 100).cwnd, 1452);
        assert_eq!(Window::new(1452, false, usize::MAX).cwnd, LARGEST);
    }

    #[test]
    fn room_is_what_flight_leaves() {
        let window = Window { cwnd: 10_000, ..Window::new(1452, false, 0) };
        assert_eq!(window.room(4_000), 6_000);
        assert_eq!(window.room(10_500), 0);
    }
}
