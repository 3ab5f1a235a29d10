//! Path MTU discovery by probes (RFC 8899): the size to try next, the effect of an answer or its absence, and the fallback when
//! full packets are lost.
//!
//! All sizes are those of IP packets. Independent of the format of probes and of their sending.

use std::time::Duration;

use tresse_policy::Instant;

/// The search on one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathMtu {
    /// Size of packets in use.
    size: u16,
    /// The largest size that is ever used (MAX_PLPMTU).
    ceiling: u16,
    /// Initial size, and the first fallback (BASE_PLPMTU).
    base: u16,
    /// Size that every path carries (MIN_PLPMTU).
    floor: u16,
    /// Largest size that may pass, by what is known.
    bound: u16,
    /// The size of the present probe.
    tried: u16,
    phase: Phase,
    /// Number of probes of this size that were not answered.
    failures: u8,
    /// Timeouts since a packet larger than the fallback size was acknowledged.
    timeouts: u8,
    /// True if full packets of the base size are lost, too: a probe has to show that this size passes.
    doubted: bool,
    /// True if a full packet has been sent since the last timeout, or since a full packet was acknowledged.
    full_sent: bool,
    /// The lower half of the nonce in the last probe.
    nonce: u32,
    /// Time at which the last probe was sent.
    sent: Instant,
    /// Time at which the probe counts as lost; after the search, time at which the search begins again.
    due: Instant,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// The size is given; there is no search.
    Given,
    /// No packet has been sent yet that a larger size would have changed.
    Resting,
    /// Such a packet was sent; the search begins when data is acknowledged.
    Wanted,
    /// The next probe is to be sent.
    Searching,
    /// A probe is in flight.
    Probing,
    /// The size is found. A size below the ceiling is probed again after a while.
    Complete,
}

impl PathMtu {
    /// Returns a fixed size of `mtu`.
    pub(super) fn given(mtu: usize) -> Self {
        let mtu = saturated(mtu);
        PathMtu {
            size: mtu,
            ceiling: mtu,
            base: mtu,
            floor: mtu,
            bound: mtu,
            tried: mtu,
            phase: Phase::Given,
            failures: 0,
            timeouts: 0,
            full_sent: false,
            doubted: false,
            nonce: 0,
            sent: Instant::ZERO,
            due: Instant::ZERO,
        }
    }

    /// Returns a size that is searched for, at most `ceiling`; `headers` is the length of the IP and UDP headers.
    pub(super) fn discovered(ceiling: usize, headers: usize, ipv6: bool) -> Self {
        let floor = saturated(if ipv6 { FLOOR_IPV6 } else { FLOOR_IPV4 }.min(ceiling));
        let base = saturated((BASE_PACKET + headers).min(ceiling)).max(floor);
        let phase = if usize::from(base) < ceiling { Phase::Resting } else { Phase::Complete };
        PathMtu { size: base, base, floor, tried: base, phase, ..Self::given(ceiling) }
    }

    /// Returns whether the size is given.
    pub(super) fn is_given(&self) -> bool {
        self.phase == Phase::Given
    }

    /// Returns the size of the largest packet to send.
    pub(super) fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// Returns the size of the next probe, or of the last one.
    pub(super) fn tried(&self) -> usize {
        usize::from(self.tried)
    }

    /// Returns whether the search waits until larger packets would be useful.
    #[inline]
    pub(super) fn is_resting(&self) -> bool {
        self.phase == Phase::Resting
    }

    /// Notes that larger packets would be useful.
    pub(super) fn want(&mut self) {
        if self.phase == Phase::Resting {
            self.phase = Phase::Wanted;
        }
    }

    /// Returns whether [`start`](Self::start) waits for data to be acknowledged.
    #[inline]
    pub(super) fn awaits_proof(&self) -> bool {
        self.phase == Phase::Wanted
    }

    /// Begins the search, if it is wanted and has not begun before.
    pub(super) fn start(&mut self) {
        if self.phase == Phase::Wanted {
            self.search(Instant::ZERO);
        }
    }

    /// Returns the time at which [`on_due`](Self::on_due) has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Given | Phase::Resting | Phase::Wanted => None,
            Phase::Searching => Some(Instant::ZERO),
            Phase::Probing => Some(self.due),
            Phase::Complete => (self.size < self.ceiling && self.due != Instant::ZERO).then_some(self.due),
        }
    }

    /// Handles a probe without an answer, or the time of the next probe. Returns whether a probe is to be sent. `reachable` is
    /// true if the path answers at all; otherwise an unanswered probe shows nothing about its size.
    pub(super) fn on_due(&mut self, now: Instant, reachable: bool) -> bool {
        match self.phase {
            Phase::Probing => {
                self.failures += u8::from(reachable);
                self.phase = Phase::Searching;
                if self.failures >= MAX_PROBES {
                    self.give_up(now);
                }
            }
            Phase::Complete => {
                self.bound = self.ceiling;
                self.search(now);
            }
            Phase::Given | Phase::Resting | Phase::Wanted | Phase::Searching => {}
        }
        reachable && self.phase == Phase::Searching
    }

    /// Notes that a probe of the size [`tried`](Self::tried) is sent.
    pub(super) fn on_probe_sent(&mut self, now: Instant, nonce: u64, rto: Duration) {
        self.phase = Phase::Probing;
        (self.nonce, self.sent) = (nonce as u32, now);
        self.due = now + rto.max(PROBE_TIMER);
    }

    /// Returns whether an answer with `nonce`, and with `sent` as the time of its probe, matches the last probe. The size of
    /// that probe is used from then on.
    pub(super) fn accept(&mut self, now: Instant, nonce: u64, sent: Instant) -> bool {
        let fits = self.phase == Phase::Probing && (self.nonce, self.sent) == (nonce as u32, sent);
        if fits {
            self.size = self.tried;
            self.doubted = false;
            (self.timeouts, self.full_sent) = (0, false);
            self.search(now);
        }
        fits
    }

    /// Notes that a packet with data of `bytes` was sent; returns whether a larger packet would have been useful.
    #[inline]
    pub(super) fn on_data_sent(&mut self, bytes: usize) -> bool {
        self.full_sent |= bytes > usize::from(self.fallback());
        self.phase == Phase::Resting && bytes + NEARLY_FULL >= self.size()
    }

    /// Notes that data was acknowledged whose packet had at least `bytes` and was sent once, or that nothing is in flight any
    /// more (`drained`): a large enough packet ends the suspicion of a black hole, and so does `drained` if a full packet was
    /// among the data. Returns whether the next probe is due sooner: an acknowledged full packet shows that its size passes,
    /// even if no probe was answered.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Instant, bytes: usize, drained: bool) -> bool {
        // Full packets that timed out may have been retransmitted on another path: short ones behind them show nothing.
        if bytes > usize::from(self.fallback()) || drained && self.full_sent {
            (self.timeouts, self.full_sent) = (0, false);
        }
        let cleared = self.doubted && bytes + NEARLY_FULL >= self.size();
        if cleared {
            self.doubted = false;
            self.search(now);
        }
        cleared
    }

    /// Handles an expiration of T3. Several in a row with full packets indicate a black hole (RFC 8899 §4.3): the size is
    /// reduced. Returns whether it was. `may_probe` is true if probes may be sent.
    pub(super) fn on_timeout(&mut self, may_probe: bool) -> bool {
        if self.phase == Phase::Given || !std::mem::take(&mut self.full_sent) {
            return false;
        }
        self.timeouts += 1;
        if self.timeouts < BLACK_HOLE_TIMEOUTS {
            return false;
        }
        if self.size > self.base {
            return self.fall_to(self.base);
        }
        if !may_probe {
            return self.fall_to(self.floor);
        }
        // The path has more likely failed than that it drops packets of the base size: probes will show.
        self.timeouts = 0;
        self.doubted = self.size > self.floor;
        self.search(Instant::ZERO);
        false
    }

    /// Applies a router's report that packets may have at most `size` bytes (RFC 8899 §4.6.2). Returns whether the size in use
    /// is reduced.
    pub(super) fn on_too_big(&mut self, now: Instant, size: usize) -> bool {
        let size = saturated(size);
        let probing = self.phase == Phase::Probing;
        if self.phase == Phase::Given || size < self.floor {
            return false;
        }
        if size < self.size {
            let falls = self.fall_to(self.base.min(size));
            self.bound = size;
            self.search(now);
            return falls;
        }
        if probing && size < self.tried {
            self.bound = size;
            self.search(now);
        }
        false
    }

    /// Returns the size that is used after a black hole is detected.
    fn fallback(&self) -> u16 {
        if self.size > self.base { self.base } else { self.floor }
    }

    /// Excludes the size that was tried.
    fn give_up(&mut self, now: Instant) {
        if std::mem::take(&mut self.doubted) && self.tried == self.size {
            self.size = self.floor;
            self.bound = self.ceiling;
        } else {
            self.bound = self.tried - 1;
        }
        self.search(now);
    }

    fn fall_to(&mut self, size: u16) -> bool {
        let falls = size < self.size;
        if falls {
            self.size = size;
            self.timeouts = 0;
            self.bound = self.ceiling;
            self.search(Instant::ZERO);
        }
        falls
    }

    /// Chooses the size of the next probe, or ends the search.
    fn search(&mut self, now: Instant) {
        self.failures = 0;
        match self.next_size() {
            Some(size) => {
                self.tried = size;
                self.phase = Phase::Searching;
            }
            None => {
                self.phase = Phase::Complete;
                self.due = now + RAISE_TIMER;
            }
        }
    }

    /// Returns the next size to try: first the ceiling, which most paths carry; then the largest usual size; then the middle.
    fn next_size(&self) -> Option<u16> {
        if self.doubted {
            return Some(self.size);
        }
        if self.bound <= self.size {
            return None;
        }
        if self.bound == self.ceiling {
            return Some(self.ceiling);
        }
        let usual = USUAL.into_iter().find(|&usual| usual <= self.bound && usual > self.size);
        let middle = self.size + (self.bound - self.size).div_ceil(2);
        usual.or_else(|| (self.bound - self.size >= FINEST_STEP).then_some(middle))
    }
}

fn saturated(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

/// BASE_PLPMTU (RFC 8899 §5.1.2): an SCTP packet that nearly every path carries.
const BASE_PACKET: usize = 1200;
/// Size that every IPv4 host must accept, in fragments if need be (RFC 791).
const FLOOR_IPV4: usize = 576;
/// Size that every IPv6 link must carry (RFC 8200 §5).
const FLOOR_IPV6: usize = 1280;
/// Probes of one size before it counts as too large (MAX_PROBES).
const MAX_PROBES: u8 = 3;
/// The shortest wait for an answer (PROBE_TIMER).
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// Time after which a size below the ceiling is probed again (PMTU_RAISE_TIMER).
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// Consecutive timeouts of full packets that indicate a black hole: a single one is ordinary loss.
const BLACK_HOLE_TIMEOUTS: u8 = 2;
/// A packet with less free space than this would have been larger if possible.
const NEARLY_FULL: usize = 64;
/// Least gain, in bytes, for which the search goes on.
const FINEST_STEP: u16 = 32;
/// Usual sizes of links and tunnels, the largest first: jumbo frames, Ethernet, PPPoE, and inside tunnels.
const USUAL: [u16; 8] = [9000, 4352, 1500, 1492, 1472, 1440, 1400, 1280];

#[cfg(test)]
mod tests;
