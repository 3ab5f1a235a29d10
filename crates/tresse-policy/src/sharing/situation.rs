//! Views of the sharing policy: settings, paths and buffers of an association at one instant, and reports on a path.

use std::time::Duration;

use crate::path::PathId;
use crate::time::Instant;

/// The settings of the policy.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// The capacities of the paths are estimated.
    pub estimates: bool,
    /// Buffers are allocated by demand; each path may have an equal part otherwise.
    pub allocates: bool,
    /// Allocations hold only while a buffer is short, and not always.
    pub when_short: bool,
    /// Paths that cost the others more than they bring are suspended.
    pub suspends: bool,
    /// Chunks of paths that lose are duplicated on paths that a full buffer keeps from new data.
    pub duplicates: bool,
}

/// One path at one instant. Bytes are those of DATA chunks.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PathSample {
    /// The path.
    pub id: PathId,
    /// True if new data may leave on it.
    pub carries_new_data: bool,
    /// Streams are bound to paths, and none of those bound to this one has data.
    pub without_data: bool,
    /// True if it is in fast recovery.
    pub recovering: bool,
    /// Bytes in flight.
    pub flight: usize,
    /// Bytes that the congestion window still admits; one packet may exceed it.
    pub room: usize,
    /// The size of a full DATA chunk (PMDCS).
    pub pmdcs: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Its variation; zero before the first measurement.
    pub rttvar: Duration,
    /// The shortest round-trip time of packets of any length; zero before the first measurement.
    pub shortest_rtt: Duration,
    /// The part of what was lately sent that was lost, from 0 to 1.
    pub loss: f64,
    /// Time at which it last carried data.
    pub last_data: Instant,
}

impl PathSample {
    /// A path of which nothing is known.
    pub fn new(id: PathId) -> Self {
        PathSample {
            id,
            carries_new_data: true,
            without_data: false,
            recovering: false,
            flight: 0,
            room: 0,
            pmdcs: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            shortest_rtt: Duration::ZERO,
            loss: 0.0,
            last_data: Instant::ZERO,
        }
    }
}

/// Paths and buffers of an association at one instant.
#[derive(Copy, Clone, Debug)]
pub struct Situation<'a> {
    /// All paths, by position.
    pub paths: &'a [PathSample],
    /// The buffer that is split among paths, in bytes; `None` when none is.
    pub split_buffer: Option<usize>,
    /// Bytes in sequence that both buffers hold: the smaller of the two.
    pub whole_buffer: usize,
    /// The largest DATA chunk that fits a packet on every path.
    pub packet: usize,
    /// The same, but for what authentication takes of the packet.
    pub chunk: usize,
    /// Streams are bound to paths: no other path could carry theirs.
    pub bound: bool,
    /// Duplicates are being sent.
    pub duplicating: bool,
}

/// Report of a SACK on one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// Bytes newly acknowledged.
    pub acked: usize,
    /// Bytes that were in flight before.
    pub flight: usize,
    /// The shortest round trip of what was newly acknowledged and sent only once.
    pub rtt: Option<Duration>,
    /// The path that the SACK came over.
    pub return_path: PathId,
    /// The size of a full DATA chunk (PMDCS).
    pub pmdcs: usize,
}

/// The chunk in flight that keeps the cumulative acknowledgement where it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HeadOfLine {
    /// Its index.
    pub index: u64,
    /// The path it was sent on.
    pub path: PathId,
    /// Its length.
    pub bytes: usize,
    /// Time since it was sent.
    pub age: Duration,
}
