//! Path MTU, found by probing (RFC 8899): the size to try next, the meaning of an answer or
//! its absence, and the fallback when full packets vanish.
//!
//! All sizes are those of IP packets. Independent of the format of probes and of their sending.

use std::time::Duration;

use tresse_policy::Instant;

/// The search on one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathMtu {
    /// Size of packets.
    size: u16,
    /// The largest size that is ever used (MAX_PLPMTU).
    ceiling: u16,
    /// Size to start with, and to fall back to (BASE_PLPMTU).
    base: u16,
    /// Size that every path carries (MIN_PLPMTU).
    floor: u16,
    /// No size above this one passes, by what is known now.
    bound: u16,
    /// The size that is being tried.
    tried: u16,
    phase: Phase,
    /// Number of attempts in vain.
    failures: u8,
    /// Timeouts since a packet was acknowledged that is larger than what would be fallen back to.
    timeouts: u8,
    /// Full packets of the base size vanish too: it has to be shown to pass.
    doubted: bool,
    /// A full packet has been sent since the last timeout, or since one was acknowledged.
    full_sent: bool,
    /// The lower half of the nonce in the last probe.
    nonce: u32,
    /// Time at which that was sent.
    sent: Instant,
    /// Time at which it counts as lost; or, with the search over, at which it begins again.
    due: Instant,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is searched for: the size is given.
    Given,
    /// Nothing was sent yet that would gain by a larger size.
    Resting,
    /// Such a packet was sent; data has to be acknowledged before the search begins.
    Wanted,
    /// The next probe is to be sent.
    Searching,
    /// A probe is on its way.
    Probing,
    /// The size is found; a smaller one than the ceiling is questioned again after a while.
    Complete,
}

impl PathMtu {
    /// The size is `mtu`, whatever happens.
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

    /// The size is at most `ceiling` and to be found out; `headers` are those of IP and UDP.
    pub(super) fn discovered(ceiling: usize, headers: usize, ipv6: bool) -> Self {
        let floor = saturated(if ipv6 { FLOOR_IPV6 } else { FLOOR_IPV4 }.min(ceiling));
        let base = saturated((BASE_PACKET + headers).min(ceiling)).max(floor);
        let phase = if usize::from(base) < ceiling { Phase::Resting } else { Phase::Complete };
        PathMtu { size: base, base, floor, tried: base, phase, ..Self::given(ceiling) }
    }

    /// Returns whether nothing is searched for.
    pub(super) fn is_given(&self) -> bool {
        self.phase == Phase::Given
    }

    /// The largest packet to send.
    pub(super) fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// The size that the next, or the last, probe has.
    pub(super) fn tried(&self) -> usize {
        usize::from(self.tried)
    }

    /// Returns whether the search waits for larger packets to be of use.
    #[inline]
    pub(super) fn is_resting(&self) -> bool {
        self.phase == Phase::Resting
    }

    /// Larger packets would be of use.
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

    /// The search begins, if it is wanted and has not begun before.
    pub(super) fn start(&mut self) {
        if self.phase == Phase::Wanted {
            self.search(Instant::ZERO);
        }
    }

    /// Time at which [`on_due`](Self::on_due) has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Given | Phase::Resting | Phase::Wanted => None,
            Phase::Searching => Some(Instant::ZERO),
            Phase::Probing => Some(self.due),
            Phase::Complete => (self.size < self.ceiling && self.due != Instant::ZERO).then_some(self.due),
        }
    }

    /// A probe stayed unanswered, or it is time for the next: whether one is to be sent. `reachable` says whether
    /// the path answers anything at all; when it does not, nothing follows about sizes.
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

    /// A probe of size [`tried`](Self::tried) leaves.
    pub(super) fn on_probe_sent(&mut self, now: Instant, nonce: u64, rto: Duration) {
        self.phase = Phase::Probing;
        (self.nonce, self.sent) = (nonce as u32, now);
        self.due = now + rto.max(PROBE_TIMER);
    }

    /// Returns whether an answer with `nonce`, and with `sent` for the time of its probe, is that to the last probe. Then
    /// its size has been shown to pass.
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

    /// A packet with data of `bytes` was sent; returns whether a larger one would have been of use.
    #[inline]
    pub(super) fn on_data_sent(&mut self, bytes: usize) -> bool {
        self.full_sent |= bytes > usize::from(self.fallback());
        self.phase == Phase::Resting && bytes + NEARLY_FULL >= self.size()
    }

    /// Data was acknowledged whose packet had at least `bytes` and was sent once, or nothing is in flight any more
    /// (`drained`): whether full packets vanish is open again. Returns whether there is something to probe sooner than
    /// before: a full packet that arrived leaves no doubt that its size passes, whatever became of probes.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Instant, bytes: usize, drained: bool) -> bool {
        if bytes > usize::from(self.fallback()) || drained {
            (self.timeouts, self.full_sent) = (0, false);
        }
        let cleared = self.doubted && bytes + NEARLY_FULL >= self.size();
        if cleared {
            self.doubted = false;
            self.search(now);
        }
        cleared
    }

    /// T3 expired. When that happens again and again to full packets, they vanish in a black hole
    /// (RFC 8899 §4.3): the size falls. Returns whether it does. `may_probe` says whether probes could tell more.
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
        // More likely the path leads nowhere than that it does not carry even this: probes will say.
        self.timeouts = 0;
        self.doubted = self.size > self.floor;
        self.search(Instant::ZERO);
        false
    }

    /// A router said that packets may have no more than `size` bytes (RFC 8899 §4.6.2). Returns whether the size
    /// falls.
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

    /// Size to which it falls when its packets vanish.
    fn fallback(&self) -> u16 {
        if self.size > self.base { self.base } else { self.floor }
    }

    /// The size that was tried does not pass.
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

    /// Chooses the next size, or ends the search.
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

    /// First the ceiling, which most paths carry; then the largest of the usual sizes; then the middle.
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
/// Time after which a size below the ceiling is questioned (PMTU_RAISE_TIMER).
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// Timeouts in a row on full packets that make a black hole: one alone is ordinary loss.
const BLACK_HOLE_TIMEOUTS: u8 = 2;
/// A packet that has less room left than this would have been larger.
const NEARLY_FULL: usize = 64;
/// The search ends when less than this could be gained.
const FINEST_STEP: u16 = 32;
/// Sizes that links and tunnels have, the largest first: jumbo frames, Ethernet, PPPoE, and what tunnels leave.
const USUAL: [u16; 8] = [9000, 4352, 1500, 1492, 1472, 1440, 1400, 1280];

#[cfg(test)]
mod tests;
