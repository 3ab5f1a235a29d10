//! Outcome of a run: one document, with the unit of every number in its key.
//!
//! Unless a key states otherwise, all numbers are for the measured part of the run.

use serde::{Serialize, Serializer};
use tresse_proto::{Limit, LimitTimes};

use crate::record::Series;
use crate::recovery::RecoveryOutcome;

/// The version of the outcome document. It increases by one with each key that is renamed, removed or changes its unit,
/// but not with added keys.
pub const SCHEMA: u32 = 1;

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The version of this document's keys and units: [`SCHEMA`].
    pub schema: u32,
    /// The scenario's name.
    pub name: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// True if the run was stopped before its end; all numbers cover `measured_s` only.
    pub interrupted: bool,
    /// Virtual time at which the measurement began, in seconds.
    pub measured_from_s: f64,
    /// Virtual time measured, in seconds.
    pub measured_s: f64,
    /// Time from opening the association until all of the traffic's `volume` was delivered, in seconds; absent if that
    /// did not happen or the traffic has no volume.
    pub completed_s: Option<f64>,
    /// User data that the receiving application got, in Mbit/s.
    pub throughput_mbps: f64,
    /// Outcome of each stream.
    pub streams: Vec<StreamOutcome>,
    /// Outcome of each path.
    pub paths: Vec<PathOutcome>,
    /// Outcome of each pair of hosts with cross traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossOutcome>,
    /// The shares of the time that the hosts' processors worked, if the scenario lets packets cost time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// Limits of the sender.
    pub limited_by: LimitedBy,
    /// The association as a whole.
    pub association: AssociationOutcome,
    /// The state of the sender and its paths at regular intervals over the whole run, if the scenario requests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Repair of losses over the whole run, if the scenario requests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryOutcome>,
    /// Facts about the whole run.
    pub run: RunFacts,
    /// The scenario with all default values.
    pub scenario: toml::Table,
}

/// Shares of the time, from 0 to 1, that processors worked on packets.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Processors {
    /// The sender's.
    pub sender: f64,
    /// The receiver's.
    pub receiver: f64,
}

/// Outcome of one stream.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct StreamOutcome {
    /// Stream number.
    pub id: u16,
    /// User data that the receiving application got, in Mbit/s.
    pub throughput_mbps: f64,
    /// Messages that the receiving application got.
    pub messages: u64,
    /// Time from passing a message to the sending host's transport until the receiving application had it; absent if no
    /// message arrived.
    pub delay_ms: Option<Delay>,
}

/// A distribution of delays, in milliseconds.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Delay {
    /// The mean, exact.
    pub mean: f64,
    /// The median, within 0.1 % (1 % with more than 1,024 streams), as the percentiles below.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Outcome of one path, seen by the sender, with its links.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct PathOutcome {
    /// Position of the path.
    pub id: usize,
    /// State at the end; absent if the path was never added.
    pub state: Option<&'static str>,
    /// User data newly acknowledged on the path, in Mbit/s.
    pub throughput_mbps: f64,
    /// IP packets that arrived at the end of the forward link, without framing, in Mbit/s.
    pub wire_mbps: f64,
    /// Share of the forward link's packets that it dropped.
    pub loss: f64,
    /// Packets that found the forward queue full.
    pub dropped_queue_full: u64,
    /// Packets that the forward link's loss model dropped.
    pub dropped_loss: u64,
    /// Packets that the forward queue dropped although there was room: RED, CoDel.
    pub dropped_early: u64,
    /// Packets that the forward queue marked (ECN) instead of dropping them.
    pub marked: u64,
    /// Packets sent during an outage of the forward link.
    pub dropped_outage: u64,
    /// Packets with bit errors in their frame or IP header.
    pub dropped_damaged: u64,
    /// Packets larger than the forward link carries.
    pub dropped_too_large: u64,
    /// Packets with bit errors, dropped or delivered.
    pub damaged: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets that arrived later than in order.
    pub late: u64,
    /// Share of the time that the forward link's transmitter was busy.
    pub utilisation: f64,
    /// Mean number of packets that waited in the forward queue.
    pub queue_mean_packets: f64,
    /// Most packets that waited in the forward queue.
    pub queue_max_packets: usize,
    /// Share of the backward link's packets that it dropped.
    pub reverse_loss: f64,
    /// Smoothed round-trip time at the end, once measured.
    pub srtt_ms: Option<f64>,
    /// The shortest round-trip time measured until the end.
    pub min_rtt_ms: Option<f64>,
    /// Another path that shares a bottleneck with this one, as the sender's congestion control detected it at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_with: Option<usize>,
    /// Congestion window at the end.
    pub cwnd_bytes: usize,
    /// Slow-start threshold at the end.
    pub ssthresh_bytes: usize,
    /// Data chunks sent for the first time.
    pub chunks_sent: u64,
    /// Data chunks retransmitted.
    pub chunks_resent: u64,
    /// Chunks declared lost by missing reports.
    pub fast_retransmits: u64,
    /// Chunks declared lost because the receiver reported their packet as damaged.
    pub drop_reports: u64,
    /// Data chunks sent while they were in flight on another path.
    pub copies_sent: u64,
    /// Number of reductions of the window because the receiver reported marks.
    pub mark_cuts: u64,
    /// T3 expirations.
    pub timeouts: u64,
}

/// Outcome of one pair of hosts with cross traffic.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct CrossOutcome {
    /// Position of the pair.
    pub id: usize,
    /// Kind of traffic: `bulk` or `web`.
    pub kind: &'static str,
    /// The path that it crosses.
    pub path: usize,
    /// True if the data is sent from the receiver's side to the sender's.
    pub reverse: bool,
    /// Data that the application received, in Mbit/s; with `web` only that of answers.
    pub throughput_mbps: f64,
    /// Segments with data, SYN or FIN that the sender of the data sent.
    pub segments: u64,
    /// Retransmitted segments among these.
    pub segments_resent: u64,
    /// Windows halved because of loss.
    pub recoveries: u64,
    /// Expirations of retransmission timers.
    pub timeouts: u64,
    /// Requests that were answered completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    /// Mean time from opening the connection until the whole answer had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ms: Option<f64>,
}

/// Shares of time by limit. Each set adds up to 1 unless no time has passed.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct LimitedBy {
    /// The association.
    pub total: Shares,
    /// Each path.
    pub paths: Vec<Shares>,
}

/// Share of the time that each limit held.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Shares([(Limit, f64); Limit::ALL.len()]);

impl Shares {
    /// Returns the share of `limit`.
    pub fn of(&self, limit: Limit) -> f64 {
        self.0.iter().find(|(name, _)| *name == limit).map_or(0.0, |(_, share)| *share)
    }
}

impl From<LimitTimes> for Shares {
    fn from(times: LimitTimes) -> Self {
        Shares(times.shares())
    }
}

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(limit, share)| (limit.name(), share)))
    }
}

/// The association as a whole.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct AssociationOutcome {
    /// The sender's state at the end, by its name in RFC 9260 §4; absent if there was no association.
    pub state: Option<&'static str>,
    /// Reason for which the association ended before the run, if it did.
    pub ended: Option<String>,
    /// True if it ended as the scenario plans: shut down at `traffic.stop`, with all messages delivered.
    #[serde(skip)]
    pub as_planned: bool,
    /// True if the sender has opened it: a run may end before that.
    #[serde(skip)]
    pub opened: bool,
    /// Schedulers and controllers of the sender that failed, with the reasons; `first_come`, `in_order` or `rfc9260`
    /// replaced them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduler_failures: Vec<String>,
    /// Data chunks that arrived at the receiver more than once.
    pub duplicates: u64,
    /// SACKs that the receiver sent.
    pub sacks_sent: u64,
    /// Counts of discards at the sender, by reason, over the whole run; reasons that never occurred are omitted.
    pub sender_discards: Discarded,
    /// Counts of discards at the receiver.
    pub receiver_discards: Discarded,
}

/// Counters of discarded packets and chunks by reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Discarded(pub Vec<(&'static str, u64)>);

impl Serialize for Discarded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(reason, count)| (reason, count)))
    }
}

/// Facts about the run as a whole, settling included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RunFacts {
    /// A hash of all packets with their times: equal for equal runs, on every machine.
    pub trace_hash: String,
    /// Packets passed to links.
    pub packets: u64,
    /// Data chunks sent, retransmissions included.
    pub data_chunks: u64,
    /// Packets for addresses without a route.
    pub unroutable_packets: u64,
    /// Messages passed to the transport.
    pub messages_accepted: u64,
    /// Messages that the receiving application got.
    pub messages_delivered: u64,
    /// Events simulated.
    pub events: u64,
}
