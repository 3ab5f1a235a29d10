//! Evidence that a path carries its capacity: a standing queue in the network.
//!
//! A full packet has a round-trip time of at least `min_rtt`. If the shortest RTT of a round is longer, there was a queue
//! during the whole round, and the link was never idle. Independent of windows: the result is for reports, and no rule depends
//! on it. A path that becomes longer permanently counts as full from then on.

use std::time::Duration;

use tresse_policy::engine::nanos;
use tresse_policy::{Instant, PathId};

/// The evidence of one path. Times are in nanoseconds: they are used for every acknowledgement, and durations take divisions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fill {
    /// The shortest round-trip time of a full packet for the last two return paths; the present one first.
    shortest: [Option<(PathId, u64)>; 2],
    /// Time at which the present round began; a round lasts a round trip.
    since: Instant,
    /// Bytes acknowledged in the round.
    acked: usize,
    /// The shortest round-trip time of the round.
    quickest: Option<u64>,
    /// Smoothed round-trip time over all samples (RFC 9260 section 6.3.1 C3), and the shortest of them.
    seen: Option<(u64, u64)>,
    full: bool,
}

/// Content of an acknowledgement.
pub(super) struct Arrived {
    /// Acknowledged bytes of DATA chunks.
    pub(super) bytes: usize,
    /// The shortest round-trip time of the acknowledged chunks.
    pub(super) rtt: Option<Duration>,
    /// The return path of the acknowledgement.
    pub(super) via: PathId,
    /// Size of a full DATA chunk.
    pub(super) pmdcs: usize,
}

impl Fill {
    pub(super) const NEW: Self =
        Fill { shortest: [None; 2], since: Instant::ZERO, acked: 0, quickest: None, seen: None, full: false };

    /// Returns whether the path was full in the last round.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the shortest round-trip time over all return paths.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.seen.map(|(_, shortest)| Duration::from_nanos(shortest))
    }

    /// Returns the smoothed round-trip time over all return paths.
    pub(super) fn seen_rtt(&self) -> Option<Duration> {
        self.seen.map(|(smoothed, _)| Duration::from_nanos(smoothed))
    }

    /// Begins anew, because data is sent after nothing was in flight.
    pub(super) fn on_busy(&mut self) {
        self.quickest = None;
        self.full = false;
    }

    pub(super) fn on_acked(&mut self, now: Instant, what: &Arrived) {
        if self.quickest.is_none() {
            (self.since, self.acked) = (now, 0);
        } else {
            self.acked += what.bytes;
        }
        let rtt = what.rtt.map(nanos);
        if let Some(rtt) = rtt {
            // Rounded so that the average is never below the shortest.
            self.seen = Some(self.seen.map_or((rtt, rtt), |(smoothed, shortest)| {
                (smoothed - smoothed / 8 + rtt / 8, shortest.min(rtt))
            }));
        }
        // Short packets have shorter round trips.
        if let Some(rtt) = rtt.filter(|_| what.bytes + what.bytes / ALIKE >= what.pmdcs) {
            self.see(what.via, rtt);
        }
        let (Some(quickest), Some((_, least))) = (self.quickest, self.shortest[0]) else { return };
        let elapsed = now - self.since;
        if nanos(elapsed) < quickest || elapsed.is_zero() {
            return;
        }
        let longer = Duration::from_nanos(quickest.saturating_sub(least));
        let queued =
            self.acked as f64 / elapsed.as_secs_f64() * longer.as_secs_f64() / what.pmdcs.max(1) as f64;
        self.full = longer >= SHORTEST_QUEUE && queued >= QUEUED;
        self.quickest = None;
    }

    fn see(&mut self, via: PathId, rtt: u64) {
        if self.shortest[0].is_none_or(|(known, _)| known != via) {
            self.shortest.swap(0, 1);
            if self.shortest[0].is_none_or(|(known, _)| known != via) {
                self.shortest[0] = Some((via, rtt));
            }
            self.quickest = None;
        }
        if let Some((_, least)) = &mut self.shortest[0] {
            *least = rtt.min(*least);
        }
        self.quickest = Some(self.quickest.map_or(rtt, |quickest| quickest.min(rtt)));
    }
}

/// Least number of packets in the queue of a full path. Adaptive buffer shares keep about one.
const QUEUED: f64 = 0.75;
/// Least queueing delay of a full path; a shorter delay may come from a busy processor.
const SHORTEST_QUEUE: Duration = Duration::from_micros(500);
/// Packets count as equally long if their lengths differ by less than the shorter length divided by this.
const ALIKE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1000;

    /// Acknowledges a packet each `gap` for `rounds` round trips of `rtt`, all in milliseconds, on the return path `via`.
    fn carry(fill: &mut Fill, begin: u64, (rounds, rtt, gap): (u64, u64, u64), via: u8) -> u64 {
        let mut at = begin;
        while at < begin + rounds * rtt {
            at += gap;
            let rtt = Some(Duration::from_millis(rtt));
            let what = Arrived { bytes: PACKET, rtt, via: PathId(via), pmdcs: PACKET };
            fill.on_acked(Instant::ZERO + Duration::from_millis(at), &what);
        }
        at
    }

    #[test]
    fn a_path_is_full_as_long_as_a_queue_stands() {
        let mut fill = Fill::NEW;
        let at = carry(&mut fill, 0, (3, 20, 2), 0);
        assert!(!fill.is_full());
        let at = carry(&mut fill, at, (3, 24, 2), 0);
        assert!(fill.is_full(), "two packets wait");
        assert_eq!(fill.min_rtt(), Some(Duration::from_millis(20)));
        let at = carry(&mut fill, at, (3, 21, 2), 0);
        assert!(!fill.is_full(), "half a packet");
        carry(&mut fill, at, (3, 40, 2), 0);
        fill.on_busy();
        assert!(!fill.is_full(), "it was idle");
    }

    #[test]
    fn a_longer_way_back_is_no_queue() {
        let mut fill = Fill::NEW;
        let at = carry(&mut fill, 0, (3, 20, 2), 0);
        let at = carry(&mut fill, at, (3, 50, 2), 1);
        assert!(!fill.is_full());
        let at = carry(&mut fill, at, (3, 56, 2), 1);
        assert!(fill.is_full());
        let at = carry(&mut fill, at, (3, 20, 2), 0);
        assert!(!fill.is_full());
        carry(&mut fill, at, (3, 26, 2), 0);
        assert!(fill.is_full(), "the shorter minimum is remembered");
    }

    #[test]
    fn the_average_is_never_below_the_shortest() {
        let mut fill = Fill::NEW;
        let at = carry(&mut fill, 0, (30, 20, 2), 0);
        // The return path changes while a queue stands: the shortest over the new one is longer than the average.
        let at = carry(&mut fill, at, (1, 90, 90), 1);
        assert!(fill.seen_rtt() < Some(Duration::from_millis(30)));
        assert_eq!(fill.min_rtt(), Some(Duration::from_millis(20)), "over the return path before");
        carry(&mut fill, at, (200, 20, 2), 0);
        assert!(fill.min_rtt() <= fill.seen_rtt());
        let mut fill = Fill::NEW;
        for rtt in [8, 9, 15, 8, 8, 8, 8, 8, 8, 8, 8, 8] {
            let rtt = Some(Duration::from_nanos(rtt));
            fill.on_acked(Instant::ZERO, &Arrived { bytes: 1, rtt, via: PathId(0), pmdcs: PACKET });
            assert!(fill.min_rtt() <= fill.seen_rtt(), "{fill:?}");
        }
    }

    #[test]
    fn short_packets_show_no_queue() {
        let mut fill = Fill::NEW;
        let quick = Arrived {
            bytes: 100,
            rtt: Some(Duration::from_millis(2)),
            via: PathId::default(),
            pmdcs: PACKET,
        };
        fill.on_acked(Instant::ZERO, &quick);
        carry(&mut fill, 0, (3, 20, 2), 0);
        assert!(!fill.is_full());
    }
}
