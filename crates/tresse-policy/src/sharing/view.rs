//! Inputs of the sharing policy: settings, paths and buffers of an association at one instant, and reports on a path.

use std::time::Duration;

use crate::path::PathId;
use crate::time::Instant;

/// The settings of the policy.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// True if the capacities (BDP) of the paths are estimated.
    pub estimates: bool,
    /// True if buffers are allocated by demand; otherwise each path may use an equal part.
    pub allocates: bool,
    /// True if allocations hold only while a buffer is short.
    pub when_short: bool,
    /// True if paths that cost the others more than they deliver are suspended.
    pub suspends: bool,
}

/// One path at one instant. Bytes are those of DATA chunks.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PathSample {
    /// The path.
    pub id: PathId,
    /// True if new data may leave on the path.
    pub carries_new_data: bool,
    /// True if streams are bound to paths, and none of the streams of this path has data.
    pub without_data: bool,
    /// True if the path is in fast recovery.
    pub recovering: bool,
    /// Bytes in flight.
    pub flight: usize,
    /// Bytes that the congestion window still admits; one packet may exceed it.
    pub room: usize,
    /// The size of a full DATA chunk (PMDCS).
    pub pmdcs: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// RTT variation (RTTVAR); zero before the first measurement.
    pub rttvar: Duration,
    /// The shortest round-trip time of packets of any length; zero before the first measurement.
    pub shortest_rtt: Duration,
    /// Part of the bytes sent lately that was lost, from 0 to 1.
    pub loss: f64,
    /// Time at which the path last carried data.
    pub last_data: Instant,
}

impl PathSample {
    /// A path without measurements and data in flight.
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
pub struct SharingView<'a> {
    /// All paths, by position.
    pub paths: &'a [PathSample],
    /// The buffer that is split among paths, in bytes; `None` if no buffer is split.
    pub split_buffer: Option<usize>,
    /// The smaller of the send buffer and the peer's receive buffer, in bytes.
    pub whole_buffer: usize,
    /// The largest DATA chunk that fits a packet on every path.
    pub packet: usize,
    /// True if streams are bound to paths, so that no other path can carry their data.
    pub bound: bool,
}

/// Report of a SACK on one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// Bytes newly acknowledged.
    pub acked: usize,
    /// Bytes that were in flight before.
    pub flight: usize,
    /// The shortest round-trip time of newly acknowledged chunks that were sent only once.
    pub rtt: Option<Duration>,
    /// The path on which the SACK arrived.
    pub return_path: PathId,
    /// The size of a full DATA chunk (PMDCS).
    pub pmdcs: usize,
}

/// The chunk in flight that keeps the cumulative TSN ack from advancing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HeadOfLine {
    /// Its TSN index.
    pub index: u64,
    /// The path on which it was sent.
    pub path: PathId,
    /// Its length in bytes.
    pub bytes: usize,
    /// Time since it was sent.
    pub age: Duration,
}
