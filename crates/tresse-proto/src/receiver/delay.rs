//! Delayed acknowledgement: the time at which a SACK is due (RFC 9260 §6.2, §6.7; CMT's delayed ack, Iyengar et al. 2006).
//!
//! Owns the SACK timer and the count of packets since the last report. This module only marks a report as due: the association
//! decides when it leaves, and on which path.

use std::time::Duration;

use tresse_policy::engine::nanos;
use tresse_policy::{Instant, PathId};

use super::pattern::Pattern;
use crate::collections::LazyBox;
use crate::config::AssociationConfig;

/// Summary of the DATA chunks of one packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PacketSummary {
    /// Number of chunks that were accepted.
    pub(crate) new: u32,
    /// Number of chunks that had arrived before.
    pub(crate) duplicates: u32,
    /// True if a TSN was missing before the packet, or is missing after it.
    pub(crate) out_of_order: bool,
    /// True if a chunk requested a report at once (I bit, RFC 7053).
    pub(crate) immediate: bool,
    /// True if a chunk was dropped for lack of window.
    pub(crate) refused: bool,
    /// True if a FORWARD TSN moved the cumulative TSN: it is reported by the rules for DATA (RFC 3758 §3.6).
    pub(crate) forwarded: bool,
}

impl PacketSummary {
    /// Returns whether the packet had DATA, or another chunk that is reported like DATA.
    pub(crate) fn any(&self) -> bool {
        self.new > 0 || self.duplicates > 0 || self.refused || self.forwarded
    }
}

/// Paths over which DATA arrived since the last report; if none arrived, those of the DATA in the last report.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sources {
    /// Path of the first packet.
    pub(crate) first: PathId,
    /// Path of the last packet.
    pub(crate) last: PathId,
    /// Paths of all these packets; empty before the first DATA.
    pub(crate) paths: PathSet,
}

/// Set of paths of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PathSet([u64; 4]);

impl PathSet {
    /// The set of `path` alone.
    pub(crate) fn only(path: PathId) -> Self {
        let mut set = PathSet::default();
        set.insert(path);
        set
    }

    /// Adds `path`.
    pub(crate) fn insert(&mut self, path: PathId) {
        self.0[path.index() / 64] |= 1 << (path.index() % 64);
    }

    /// Removes `path`.
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

/// Packets with DATA after which a report is due (RFC 9260 §6.2).
const STANDARD_FREQUENCY: u32 = 2;

/// The packets of a batch fit this fraction (1/32) of the receive buffer: a sender whose window is only a few times as large
/// would wait for reports.
const BUFFER_PARTS: usize = 32;
/// A full packet, in bytes.
const FULL_PACKET: usize = 1500;

/// Returns the number of packets in a batch. Batches are not used if it is not above `sack_frequency`.
fn batch(config: &AssociationConfig) -> u16 {
    if config.sack_frequency == 1 {
        return 1;
    }
    let fitting = config.receive_buffer.0 / (BUFFER_PARTS * FULL_PACKET);
    config.sack_batch.min(u16::try_from(fitting).unwrap_or(u16::MAX))
}

/// Rule for the time at which the next report is due, and its state.
#[derive(Debug)]
pub(super) struct Delay {
    frequency: u32,
    /// Longest delay of a report in nanoseconds.
    longest: u64,
    /// True if both sides support DAC.
    delayed_ack: bool,
    pattern: LazyBox<Pattern>,
    /// Packets in a batch of bulk data.
    batch: u16,
    /// True if a gap is reported no sooner than other data (DAC): only while data takes several paths, so that some overtakes
    /// other data. Otherwise a gap is reported at once (RFC 9260 §6.7).
    delays_gaps: bool,
    /// Packets with DATA since the last report.
    packets: u32,
    due: bool,
    /// Time at which the SACK timer expires; `FAR_FUTURE` while it does not run.
    timer: Instant,
    sources: Sources,
    /// Path of the last report, and the time by which a packet should arrive there; `FAR_FUTURE` if all reported data came over
    /// that path.
    over: PathId,
    heard_by: Instant,
    /// Number of times that the last report was repeated because nothing arrived on its path.
    repeats: u8,
}

impl Delay {
    pub(super) fn new(config: &AssociationConfig, delayed_ack: bool) -> Self {
        Delay {
            frequency: config.sack_frequency,
            longest: nanos(config.sack_delay),
            delayed_ack,
            pattern: LazyBox::default(),
            batch: batch(config),
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

    /// Applies other settings from the next packet on.
    pub(super) fn adjust(&mut self, config: &AssociationConfig) {
        self.frequency = config.sack_frequency;
        self.longest = nanos(config.sack_delay);
        self.batch = batch(config);
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
        if self.packets == 1 && self.uses_batches() {
            self.pattern.bulk.begin(now, self.batch.into());
        }
        if self.delayed_ack {
            if what.new > 0 {
                self.pattern.concurrency.on_data(now, path);
            }
            self.delays_gaps = self.pattern.concurrency.is_in_use(now);
        }

        let only_duplicates = what.new == 0 && what.duplicates > 0;
        self.due |= first_ever
            || only_duplicates
            || what.immediate
            || what.refused
            || (what.out_of_order && !self.delays_gaps);
        self.timer = self.timer.min(now + Duration::from_nanos(self.longest));
        if !self.due && self.packets >= self.frequency {
            match self.batch_ends(now) {
                Some(ends) => self.timer = self.timer.min(ends),
                None => self.due = true,
            }
        }
    }

    /// Time until which the report waits for the rest of a batch; `None` if it does not wait.
    fn batch_ends(&mut self, now: Instant) -> Option<Instant> {
        if !self.uses_batches() {
            return None;
        }
        self.pattern.bulk.waits_until(now, self.packets, self.batch.into())
    }

    fn uses_batches(&self) -> bool {
        u32::from(self.batch) > self.frequency
    }

    /// Lets the SACK timer expire. If it was running, the peer sent fewer packets than make a report due, and may be waiting
    /// for a report: from now on half of the packets that came make one due, but never fewer than in RFC 9260 §6.2. So a window smaller
    /// than the setting costs a few periods of the timer, not one in each round. A report that is due then waits for output, no
    /// longer for a time.
    pub(super) fn on_time(&mut self, now: Instant) {
        if !self.due && has_passed(self.timer, now) {
            if self.packets >= self.frequency {
                self.pattern.bulk.stop();
            } else {
                self.frequency = self.frequency.min((self.packets / 2).max(STANDARD_FREQUENCY));
            }
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
        if self.uses_batches() {
            self.pattern.bulk.on_reported(self.packets);
        }
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
        // A repeated report may take an earlier path again, when no other path is usable: these repetitions must end, too.
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

    /// Number of packets since the last report, if the next report carries it (DAC); otherwise its flags are 0 (RFC 9260
    /// §3.3.4).
    pub(super) fn counted_packets(&self) -> Option<u32> {
        self.delays_gaps.then_some(self.packets)
    }

    pub(super) fn sources(&self) -> Sources {
        self.sources
    }
}

/// Returns whether `deadline` has passed. `FAR_FUTURE` stands for no deadline.
fn has_passed(deadline: Instant, now: Instant) -> bool {
    deadline <= now && deadline < Instant::FAR_FUTURE
}
