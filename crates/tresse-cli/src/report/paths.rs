//! Data carried by each path and its limits, as lines for people and as values for programs.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tresse::{Association, AssociationStats, Limit, PathId, PathStats};

use super::words::{Shares, limit_words, main_limit, meaning, printable, rate, shares};

/// The paths of one association, as seen by one side. Every key names its unit.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PathsReport {
    paths: Vec<PathReport>,
    /// Limits of the sender; absent at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
}

#[derive(Clone, Serialize, Deserialize)]
struct PathReport {
    id: usize,
    local: IpAddr,
    remote: IpAddr,
    state: String,
    /// Rate of the packets in the direction of the transfer, headers of SCTP included.
    wire_mbps: f64,
    share: f64,
    srtt_ms: Option<f64>,
    /// The shortest round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_rtt_ms: Option<f64>,
    /// At the sender: another path that was found to share a bottleneck with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shares_with: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_resent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
}

#[derive(Clone, Serialize, Deserialize)]
struct LimitedBy {
    total: Shares,
    paths: Vec<Shares>,
}

/// Counters of an association by path, read while it exists.
#[derive(Clone)]
pub(crate) struct Snapshot {
    association: AssociationStats,
    paths: Vec<PathStats>,
}

impl Snapshot {
    pub(crate) fn take(association: &Association) -> Self {
        Snapshot { association: association.stats(), paths: association.path_stats() }
    }

    /// Returns the counts since `earlier`.
    pub(crate) fn since(mut self, earlier: &Snapshot) -> Self {
        let before = &earlier.association.limited_by;
        self.association.limited_by = self.association.limited_by.since(before);
        for path in &mut self.paths {
            let Some(before) = earlier.paths.iter().find(|one| one.id == path.id) else { continue };
            path.packet_bytes_sent -= before.packet_bytes_sent.min(path.packet_bytes_sent);
            path.packet_bytes_received -= before.packet_bytes_received.min(path.packet_bytes_received);
            path.chunks_sent -= before.chunks_sent.min(path.chunks_sent);
            path.chunks_resent -= before.chunks_resent.min(path.chunks_resent);
            path.timeouts -= before.timeouts.min(path.timeouts);
            path.limited_by = path.limited_by.since(&before.limited_by);
        }
        self
    }

    /// Returns the number of abandoned messages.
    pub(crate) fn abandoned(&self) -> u64 {
        let total = self.association.abandoned.total();
        total.sent + total.unsent
    }
}

/// Side that reports.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl PathsReport {
    /// Creates the report on traffic that took `elapsed`.
    pub(crate) fn new(snapshot: &Snapshot, side: Side, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        let carried = |path: &PathStats| match side {
            Side::Sender => path.packet_bytes_sent,
            Side::Receiver => path.packet_bytes_received,
        };
        let all: u64 = snapshot.paths.iter().map(carried).sum();
        let sending = |count: u64| (side == Side::Sender).then_some(count);
        let paths = snapshot.paths.iter().map(|path| PathReport {
            id: path.id.index(),
            local: path.local,
            remote: path.remote,
            state: path.state.name().to_owned(),
            wire_mbps: mbps(carried(path)),
            share: if all > 0 { carried(path) as f64 / all as f64 } else { 0.0 },
            srtt_ms: path.srtt.or(path.seen_rtt).map(|srtt| srtt.as_secs_f64() * 1e3),
            min_rtt_ms: path.min_rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
            shares_with: path.shares_with.map(PathId::index),
            chunks_sent: sending(path.chunks_sent),
            chunks_resent: sending(path.chunks_resent),
            timeouts: sending(path.timeouts),
        });
        let limited_by = (side == Side::Sender).then(|| LimitedBy {
            total: shares(&snapshot.association.limited_by),
            paths: snapshot.paths.iter().map(|path| shares(&path.limited_by)).collect(),
        });
        PathsReport { paths: paths.collect(), limited_by }
    }

    /// Returns the limit that held for most of the time, of all paths together; `None` if there is none.
    pub(crate) fn main_limit(&self) -> Option<Limit> {
        main_limit(&self.limited_by.as_ref()?.total)
    }

    /// Returns one line for each path, one for all together, and an explanation of the main limit.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.plain_lines();
        let meaning = self.limited_by.as_ref().and_then(|limits| meaning(&limits.total));
        lines.extend(meaning.map(|meaning| format!("  {meaning}")));
        lines
    }

    /// Like [`PathsReport::lines`], without the explanation.
    pub(crate) fn plain_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for path in &self.paths {
            let mut line = format!(
                "  path {}: {} -> {}, {}, {}, {:.0} % of the bytes",
                path.id,
                path.local,
                path.remote,
                printable(&path.state),
                rate(path.wire_mbps * 1e6),
                path.share * 100.0
            );
            match (path.srtt_ms, path.min_rtt_ms) {
                (Some(srtt), Some(min)) => {
                    line.push_str(&format!(", round trip {srtt:.1} ms, {min:.1} at least"))
                }
                (Some(srtt), None) => line.push_str(&format!(", round trip {srtt:.1} ms")),
                _ => {}
            }
            if let (Some(sent), Some(resent)) = (path.chunks_sent, path.chunks_resent) {
                line.push_str(&format!(", {resent} of {} chunks sent again", sent.saturating_add(resent)));
            }
            if let Some(other) = path.shares_with {
                line.push_str(&format!(", shares a bottleneck with path {other}"));
            }
            if let Some(limits) = self.limited_by.as_ref().and_then(|limits| limits.paths.get(path.id)) {
                line.push_str(&format!("; limited by {}", limit_words(limits)));
            }
            lines.push(line);
        }
        if let Some(limits) = &self.limited_by {
            lines.push(format!("  in total limited by {}", limit_words(&limits.total)));
        }
        lines
    }
}
