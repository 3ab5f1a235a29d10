//! Worked cases against a ring of a few chunks, and random ones against the sums that must always hold.
//!
//! The initial TSN is 1 unless a test says otherwise, so that a chunk's index is its TSN.

mod abandoned;
mod assigned;
mod blocking;
mod budget;
mod by_time;
mod copies;
mod latency_copies;
mod losses;
mod moves;
mod order;
mod property;
mod reported;
mod resends;
mod sacks;
mod timing;
mod undone;

use std::time::Duration;

use bytes::Bytes;
use tresse_wire::{DataFlags, Fsn, GapBlock, List, Mid, Ppid, StreamId};

use super::invariants::walk;
use super::ring::{Ring, SendOrder};
use super::*;
use crate::config::{BufferSplit, Experiment, SplitCounts};
use crate::interface::stats::Limit;

/// Size of most chunks of these tests, header included.
const LEN: usize = 1000;
/// Of which that is the header.
const HEADER: usize = 16;
/// And that the user data.
const DATA: usize = LEN - HEADER;

/// A sender without an association around it. Every step checks that the books balance.
struct Bench {
    sent: Transmission,
    now: Instant,
    report: AckReport,
    config: AssociationConfig,
    /// A path is in fast recovery.
    recovering: bool,
}

/// A gap block from offset to offset, both inclusive.
type Block = (u16, u16);

impl Bench {
    fn new(paths: usize, config: &AssociationConfig) -> Self {
        Self::starting_at(Tsn(1), paths, config)
    }

    fn starting_at(initial: Tsn, paths: usize, config: &AssociationConfig) -> Self {
        let mut sent = Transmission::new(initial, 1_000_000, DataFormat::Data, config, config.delayed_ack);
        sent.cover_paths(paths);
        let (report, config) = (AckReport::default(), config.clone());
        Bench { sent, now: Instant::ZERO, report, config, recovering: false }
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Sends a chunk of `len` bytes in order; returns its TSN.
    fn send(&mut self, path: u8, len: usize) -> u32 {
        self.send_message(path, len, false)
    }

    /// Sends a whole message in a chunk of `len` bytes; returns its TSN.
    fn send_message(&mut self, path: u8, len: usize, unordered: bool) -> u32 {
        let fragment = Fragment {
            stream: StreamId(0),
            mid: Mid(0),
            fsn: Fsn(0),
            ppid: Ppid(0),
            flags: DataFlags { unordered, ..DataFlags::WHOLE }.into(),
            payload: Bytes::from(vec![0; len - HEADER]),
        };
        let tsn = self.sent.outstanding.number(&fragment).tsn;
        self.sent.record(self.now, fragment, None, PathId(path));
        self.check();
        tsn.0
    }

    /// One chunk on each of `paths`, in this order.
    fn send_over(&mut self, paths: &[u8]) {
        for &path in paths {
            self.send(path, LEN);
        }
    }

    fn sack(&mut self, via: u8, cumulative: u32, gaps: &[Block]) {
        self.hear(via, cumulative, gaps, &[], 1).expect("a sound SACK");
    }

    fn nr_sack(&mut self, via: u8, cumulative: u32, renegable: &[Block], non_renegable: &[Block]) {
        self.hear(via, cumulative, renegable, non_renegable, 1).expect("a sound NR-SACK");
    }

    /// A SACK that stands for `packets` packets (CMT-DAC).
    fn sack_for(&mut self, via: u8, cumulative: u32, gaps: &[Block], packets: u8) {
        self.hear(via, cumulative, gaps, &[], packets).expect("a sound SACK");
    }

    fn hear(
        &mut self,
        via: u8,
        cumulative: u32,
        renegable: &[Block],
        non_renegable: &[Block],
        dac_count: u8,
    ) -> Result<(), SackFault> {
        self.hear_window(via, cumulative, renegable, non_renegable, dac_count, 1_000_000)
    }

    fn hear_window(
        &mut self,
        via: u8,
        cumulative: u32,
        renegable: &[Block],
        non_renegable: &[Block],
        dac_count: u8,
        a_rwnd: u32,
    ) -> Result<(), SackFault> {
        let (renegable, non_renegable) = (blocks(renegable), blocks(non_renegable));
        let view = SackView {
            cumulative_tsn: Tsn(cumulative),
            a_rwnd,
            renegable: List::Values(&renegable),
            non_renegable: List::Values(&non_renegable),
            duplicates: List::Values(&[]),
            dac_count,
        };
        let outcome = self.sent.on_sack(self.now, view, PathId(via), self.recovering, &mut self.report);
        self.check();
        outcome
    }

    /// A SACK without gap blocks that reports `duplicates`.
    fn hear_duplicates(&mut self, cumulative: u32, duplicates: &[Tsn]) {
        let view = SackView {
            cumulative_tsn: Tsn(cumulative),
            a_rwnd: 1_000_000,
            renegable: List::Values(&[]),
            non_renegable: List::Values(&[]),
            duplicates: List::Values(duplicates),
            dac_count: 1,
        };
        let outcome = self.sent.on_sack(self.now, view, PathId(0), self.recovering, &mut self.report);
        outcome.expect("a sound SACK");
        self.check();
    }

    fn time_out(&mut self, path: u8, target: u8) -> usize {
        let count = self.sent.on_timeout(PathId(path), PathId(target));
        self.check();
        count
    }

    /// Sends again the first lost chunk that waits for `path`; returns its TSN.
    fn resend(&mut self, path: u8) -> Option<u32> {
        let index = self.sent.next_resend(PathId(path))?.index;
        let tsn = self.sent.resend(self.now, index).map(|data| data.tsn.0);
        self.sent.outstanding.on_resent(PathId(path));
        self.check();
        tsn
    }

    /// Everything that waits to be sent again on `path`, by TSN.
    fn resend_all(&mut self, path: u8) -> Vec<u32> {
        std::iter::from_fn(|| self.resend(path)).collect()
    }

    /// TSNs that wait to be sent again on `path`.
    fn lost(&self, path: u8) -> Vec<u32> {
        self.load(path).lost.iter().map(|&index| index as u32).collect()
    }

    fn flight(&self, path: u8) -> usize {
        self.load(path).flight
    }

    fn queued(&self, path: u8) -> usize {
        self.load(path).queued
    }

    /// Missing reports of a chunk.
    fn misses(&self, index: u64) -> u8 {
        self.sent.outstanding.ring.get(index).expect("in the ring").misses
    }

    fn load(&self, path: u8) -> &PathLoad {
        &self.sent.outstanding.loads[usize::from(path)]
    }

    /// Report of the last SACK on `path`.
    fn ack(&self, path: u8) -> Option<&tresse_policy::engine::PathAck> {
        self.report.acks.iter().find(|ack| ack.path == PathId(path))
    }

    fn progress(&self, path: u8) -> Option<&crate::paths::PathProgress> {
        self.report.progress.iter().find(|progress| progress.path == PathId(path))
    }

    /// Every sum and list agrees with the ring.
    fn check(&self) {
        assert_eq!(check_transmission(&self.sent), Ok(()));
        for (position, load) in self.sent.outstanding.loads.iter().enumerate() {
            let timed = load.timed.index().and_then(|timed| self.sent.outstanding.ring.get(timed));
            assert!(timed.is_none_or(|chunk| chunk.path.index() == position), "timed on path {position}");
        }
    }
}

fn blocks(blocks: &[Block]) -> Vec<GapBlock> {
    blocks.iter().map(|&(start, end)| GapBlock { start, end }).collect()
}

/// Nothing beyond RFC 9260.
fn plain() -> AssociationConfig {
    AssociationConfig::preset("rfc9260").expect("a preset")
}

/// The recommended settings for several paths.
/// With losses as RFC 9260 finds them, by missing reports.
fn cmt() -> AssociationConfig {
    AssociationConfig { loss_detection: LossDetection::Rfc9260, ..AssociationConfig::default() }
}
