//! Notes on one path, which the pass over the chunks that a SACK changed takes for the report.

use tresse_policy::Instant;

use super::detector::NewlyAcked;

/// Notes on one path during a pass.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNote {
    /// Bytes newly acknowledged by which the path's window may grow.
    pub(super) acked: usize,
    /// Bytes newly acknowledged of chunks that were moved before they counted as lost.
    pub(super) uncredited: usize,
    /// Bytes of user data in both.
    pub(super) user_data: usize,
    pub(super) flight_before: usize,
    /// True if the earliest chunk of the path that was sent once, duplicates included, was acknowledged.
    pub(super) copy_moved: bool,
    /// Lowest index newly acknowledged on the path.
    pub(super) lowest_acked: u64,
    /// True if the path's pseudo-cumulative TSN ack advanced (CUC).
    pub(super) pseudo_moved: bool,
    /// Highest index newly acknowledged on the path that counts for missing reports (SFR).
    pub(super) highest_new: u64,
    /// The lowest such index.
    pub(super) lowest_new: u64,
    /// Time of sending of the latest newly acknowledged transmission of a chunk or duplicate sent once; known only while there
    /// are duplicates.
    pub(super) answered_at: Option<Instant>,
    /// Time of sending of the latest newly acknowledged chunk that was sent once, where the acknowledgement is unambiguous.
    pub(super) latest_new: Option<Instant>,
    /// Time of sending of the timed chunk, if its acknowledgement gives a round-trip sample.
    pub(super) rtt_from: Option<Instant>,
    /// Newly acknowledged chunks that were sent on this path alone, for loss detection by time.
    pub(super) answered: NewlyAcked,
    /// Time at which a chunk that was overtaken on the path will count as lost.
    pub(super) look_again: Option<Instant>,
    /// Index and bytes of a tail loss probe that was acknowledged, late enough for the probe to have arrived.
    pub(super) probe: Option<(u64, usize)>,
    /// Bytes of lost chunks that a tail loss probe has repaired.
    pub(super) repaired: usize,
    /// True if a chunk that was lost now had been sent three times or more.
    pub(super) lost_retransmission: bool,
    pub(super) lost: bool,
    /// True if a chunk was acknowledged that was sent on this path alone.
    pub(super) proven: bool,
    /// Size of the longest newly acknowledged chunk that was sent once, where the acknowledgement is unambiguous.
    pub(super) longest_proven: usize,
}

impl PathNote {
    /// Returns whether a chunk of the path is newly acknowledged.
    pub(super) fn is_any(&self) -> bool {
        self.acked + self.uncredited > 0
    }
}
