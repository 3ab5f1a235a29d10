//! Delayed acknowledgement: the time at which a SACK is due (RFC 9260 §6.2, §6.7; CMT's delayed ack, Iyengar et al. 2006).
//!
//! Owns the SACK timer and the count of packets since the last report. Only marks a report as due:
//! the association decides when it leaves, and on which path.

use std::time::Duration;

use tresse_policy::engine::nanos;
use tresse_policy::{Instant, PathId};

use crate::collections::{LazyBox, LazyState};
use crate::config::AssociationConfig;

/// Summary of the DATA chunks of one packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PacketSummary {
    /// Chunks that were accepted.
    pub(crate) new: u32,
    /// Chunks that had arrived before.
    pub(crate) duplicates: u32,
    /// A TSN was missing before the packet or is missing after it.
    pub(crate) out_of_order: bool,
    /// A chunk asked for a report at once (I bit, RFC 7053).
    pub(crate) immediate: bool,
    /// A chunk was dropped for lack of window.
    pub(crate) refused: bool,
    /// A FORWARD-TSN moved the cumulative TSN: reported by the rules for DATA (RFC 3758 §3.6).
    pub(crate) forwarded: bool,
}

impl PacketSummary {
    /// Returns whether the packet had DATA, or what is reported like it, at all.
    pub(crate) fn any(&self) -> bool {
        self.new > 0 || self.duplicates > 0 || self.refused || self.forwarded
    }
}

/// Paths that brought the DATA since the last report. When none came since, those of what the last report covered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sources {
    /// Path of the first packet.
    pub(crate) first: PathId,
    /// Path of the last packet.
    pub(crate) last: PathId,
    /// All their paths; empty until the first DATA.
    pub(crate) paths: PathSet,
}

/// Some of the paths of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PathSet([u64; 4]);

impl PathSet {
    /// Only `path`.
    pub(crate) fn only(path: PathId) -> Self {
        let mut set = PathSet::default();
        set.insert(path);
        set
    }

    /// Adds `path`.
    pub(crate) fn insert(&mut self, path: PathId) {
        self.0[path.index() / 64] |= 1 << (path.index() % 64);
    }

    /// Takes `path` out.
    pub(crate) fn remove(&mut self, path: PathId) {
        self.0[path.index() / 64] &= !(1 << (path.index() % 64));
    }

    /// Number of paths in the set.
    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether `path` is in the set.
    pub(crate) fn contains(&self, path: PathId) -> bool {
        self.0[path.index() / 64] & (1 << (path.index() % 64)) != 0
    }
}

/// Arrival of new data over more than one path, as with CMT.
#[derive(Debug)]
struct Concurrency {
    /// Path of the latest new data, and when it came.
    path: PathId,
    at: Instant,
    /// Until when data of another path counts as recent.
    until: Instant,
}

impl LazyState for Concurrency {
    const INITIAL: &Self = &Concurrency { path: PathId(0), at: Instant::FAR_FUTURE, until: Instant::ZERO };
}

impl Default for Concurrency {
    fn default() -> Self {
        let Concurrency { path, at, until } = *Concurrency::INITIAL;
        Concurrency { path, at, until }
    }
}

impl Concurrency {
    fn on_data(&mut self, now: Instant, path: PathId) {
        if self.path != path {
            if self.at < Instant::FAR_FUTURE {
                self.until = self.at + CONCURRENT_FOR;
            }
            self.path = path;
        }
        self.at = now;
    }

    fn is_in_use(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// Time for which data of one path makes gaps in that of another nothing unusual: RTO.Min (RFC 9260 §16). What a path
/// has not brought by then its sender takes for lost.
const CONCURRENT_FOR: Duration = Duration::from_secs(1);

/// Packets with DATA after which a report is due (RFC 9260 §6.2).
const STANDARD_FREQUENCY: u32 = 2;

/// Decides when the next report is due.
#[derive(Debug)]
pub(super) struct Delay {
    frequency: u32,
    /// In nanoseconds.
    longest: u64,
    /// Both sides know DAC.
    delayed_ack: bool,
    concurrency: LazyBox<Concurrency>,
    /// A gap waits for its report as though nothing were missing (DAC): only while data overtakes data because it takes
    /// another path. Otherwise a gap is reported at once (RFC 9260 §6.7).
    delays_gaps: bool,
    /// Packets with DATA since the last report.
    packets: u32,
    due: bool,
    /// Time at which the SACK timer runs out; `FAR_FUTURE` while it does not run.
    timer: Instant,
    sources: Sources,
    /// The path of the last report, and when it should have been heard; `FAR_FUTURE` where it brought all that was
    /// reported.
    over: PathId,
    heard_by: Instant,
    /// Number of times that the last report was repeated because nothing arrived on the path that it took.
    repeats: u8,
}

impl Delay {
    pub(super) fn new(config: &AssociationConfig, delayed_ack: bool) -> Self {
        Delay {
            frequency: config.sack_frequency,
            longest: nanos(config.sack_delay),
            delayed_ack,
            concurrency: LazyBox::default(),
            delays_gaps: false,
            packets: 0,
            due: false,
            timer: Instant::FAR_FUTURE,
            sources: Sources::default(),
            over: PathId::default(),
            heard_by: Instant::FAR_FUTURE,
            repeats: 0,
        }
    }

    /// Goes by other settings from the next packet on.
    pub(super) fn adjust(&mut self, config: &AssociationConfig) {
        self.frequency = config.sack_frequency;
        self.longest = nanos(config.sack_delay);
    }

    pub(super) fn on_packet(&mut self, now: Instant, path: PathId, what: PacketSummary) {
        let mut first_ever = false;
        if self.packets == 0 {
            first_ever = self.sources.paths == PathSet::default();
            self.sources = Sources { first: path, last: path, paths: PathSet::only(path) };
            self.repeats = 0;
        } else {
            self.sources.last = path;
            self.sources.paths.insert(path);
        }
        self.packets = self.packets.saturating_add(1);
        if self.delayed_ack {
            if what.new > 0 {
                self.concurrency.on_data(now, path);
            }
            self.delays_gaps = self.concurrency.is_in_use(now);
        }

        let only_duplicates = what.new == 0 && what.duplicates > 0;
        self.due |= first_ever
            || self.packets >= self.frequency
            || only_duplicates
            || what.immediate
            || what.refused
            || (what.out_of_order && !self.delays_gaps);
        self.timer = self.timer.min(now + Duration::from_nanos(self.longest));
    }

    /// Time has passed. Where the SACK timer ran out, the peer sent less than it takes until a report is due, and perhaps
    /// waits for one: from now on one is due after half as many packets, and never after fewer than RFC 9260 §6.2 has. A
    /// window smaller than the setting so costs a few rounds of the timer, not each round. What is due waits for output then,
    /// not for time.
    pub(super) fn on_time(&mut self, now: Instant) {
        if !self.due && has_passed(self.timer, now) {
            self.frequency = self.frequency.min((self.packets / 2).max(STANDARD_FREQUENCY));
            self.due = true;
        }
    }

    pub(super) fn demand(&mut self) {
        self.due = true;
    }

    pub(super) fn demand_elsewhere(&mut self) {
        self.sources.paths.remove(self.over);
        self.repeats = self.repeats.saturating_add(1);
        self.due = true;
    }

    pub(super) fn on_reported(&mut self) {
        self.packets = 0;
        self.due = false;
        self.timer = Instant::FAR_FUTURE;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due || has_passed(self.timer, now)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.due {
            return None;
        }
        Some(self.timer.min(self.heard_by)).filter(|&deadline| deadline < Instant::FAR_FUTURE)
    }

    pub(super) fn on_reported_over(&mut self, path: PathId, heard_by: Instant) {
        // A repeat may leave where an earlier one did, when no other path is usable: that must come to an end, too.
        let departs =
            self.sources.paths != PathSet::only(path) && u32::from(self.repeats) <= self.sources.paths.len();
        self.over = path;
        self.heard_by = if departs { heard_by } else { Instant::FAR_FUTURE };
    }

    pub(super) fn pop_watched(&mut self, now: Instant) -> Option<PathId> {
        let due = has_passed(self.heard_by, now);
        if due {
            self.heard_by = Instant::FAR_FUTURE;
        }
        due.then_some(self.over)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.due || self.packets > 0
    }

    /// Number of packets that the next report stands for, where it says so (DAC); elsewhere its flags are 0 (RFC 9260
    /// §3.3.4).
    pub(super) fn counted_packets(&self) -> Option<u32> {
        self.delays_gaps.then_some(self.packets)
    }

    pub(super) fn sources(&self) -> Sources {
        self.sources
    }
}

/// Returns whether it is time; for what does not run it never is.
fn has_passed(deadline: Instant, now: Instant) -> bool {
    deadline <= now && deadline < Instant::FAR_FUTURE
}
