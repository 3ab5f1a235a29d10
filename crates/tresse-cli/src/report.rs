//! What a transfer came to, as lines for people and as a document for programs.

use std::time::Duration;

use serde::{Serialize, Serializer};
use tresse::{Association, AssociationStats, Limit, LimitTimes, PathStats};

use crate::failure::Failure;
use crate::output;

/// One transfer, as seen by one side. Every key names its unit.
#[derive(Serialize)]
pub(crate) struct Report {
    name: String,
    size_bytes: u64,
    /// Bytes that an earlier transfer had brought.
    resumed_bytes: u64,
    complete: bool,
    seconds: f64,
    throughput_mbps: f64,
    blake3: Option<String>,
    paths: Vec<PathReport>,
    /// The sender's view; absent at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
}

#[derive(Serialize)]
struct PathReport {
    id: usize,
    local: String,
    remote: String,
    state: &'static str,
    /// Packets in this transfer's direction, headers of SCTP included.
    wire_mbps: f64,
    share: f64,
    srtt_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_resent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
}

#[derive(Serialize)]
struct LimitedBy {
    #[serde(serialize_with = "shares")]
    total: LimitTimes,
    #[serde(serialize_with = "shares_of_each")]
    paths: Vec<LimitTimes>,
}

/// What went where, taken from the association while it is there.
pub(crate) struct Snapshot {
    association: AssociationStats,
    paths: Vec<PathStats>,
}

impl Snapshot {
    pub(crate) fn take(association: &Association) -> Self {
        Snapshot { association: association.stats(), paths: association.path_stats() }
    }
}

/// Which side reports.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// What the file was and how long it took.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) resumed: u64,
    pub(crate) elapsed: Duration,
    /// Of the whole file, once everything is through.
    pub(crate) digest: Option<[u8; 32]>,
}

impl Report {
    pub(crate) fn new(facts: Facts, snapshot: &Snapshot, side: Side) -> Self {
        let seconds = facts.elapsed.as_secs_f64();
        let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        let carried = |path: &PathStats| match side {
            Side::Sender => path.packet_bytes_sent,
            Side::Receiver => path.packet_bytes_received,
        };
        let all: u64 = snapshot.paths.iter().map(carried).sum();
        let sending = |count: u64| (side == Side::Sender).then_some(count);
        let paths = snapshot.paths.iter().map(|path| PathReport {
            id: path.id.index(),
            local: path.local.to_string(),
            remote: path.remote.to_string(),
            state: path.state.name(),
            wire_mbps: mbps(carried(path)),
            share: if all > 0 { carried(path) as f64 / all as f64 } else { 0.0 },
            srtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            chunks_sent: sending(path.chunks_sent),
            chunks_resent: sending(path.chunks_resent),
            timeouts: sending(path.timeouts),
        });
        let limited_by = (side == Side::Sender).then(|| LimitedBy {
            total: snapshot.association.limited_by,
            paths: snapshot.paths.iter().map(|path| path.limited_by).collect(),
        });
        Report {
            name: facts.name,
            size_bytes: facts.size,
            resumed_bytes: facts.resumed,
            complete: facts.digest.is_some(),
            seconds,
            throughput_mbps: mbps(facts.size.saturating_sub(facts.resumed)),
            blake3: facts.digest.map(|digest| blake3::Hash::from(digest).to_hex().to_string()),
            paths: paths.collect(),
            limited_by,
        }
    }

    /// Prints it: one JSON document in one line, or lines for people.
    pub(crate) fn print(&self, json: bool) -> Result<(), Failure> {
        let mut text =
            if json { serde_json::to_string(self).map_err(Failure::running)? } else { self.lines() };
        text.push('\n');
        output::print(&text)
    }

    fn lines(&self) -> String {
        let what = if self.complete { "" } else { " (not complete)" };
        let mut lines = vec![format!(
            "{}{what}: {} in {:.2} s, {}",
            self.name,
            size(self.size_bytes),
            self.seconds,
            rate(self.throughput_mbps * 1e6)
        )];
        if self.resumed_bytes > 0 {
            lines.push(format!("  {} of it were here from an earlier transfer", size(self.resumed_bytes)));
        }
        for path in &self.paths {
            let mut line = format!(
                "  path {}: {} -> {}, {}, {}, {:.0} % of the bytes",
                path.id,
                path.local,
                path.remote,
                path.state,
                rate(path.wire_mbps * 1e6),
                path.share * 100.0
            );
            if let (Some(sent), Some(resent)) = (path.chunks_sent, path.chunks_resent) {
                line.push_str(&format!(", {resent} of {} chunks sent again", sent.saturating_add(resent)));
            }
            if let Some(limits) = self.limited_by.as_ref().and_then(|limits| limits.paths.get(path.id)) {
                line.push_str(&format!("; limited by {}", limit_words(limits.shares())));
            }
            lines.push(line);
        }
        if let Some(limits) = &self.limited_by {
            lines.push(format!("  in total limited by {}", limit_words(limits.total.shares())));
        }
        if let Some(digest) = &self.blake3 {
            lines.push(format!("  BLAKE3 {digest}"));
        }
        lines.join("\n")
    }
}

/// As a map from limits to their shares of the time.
fn shares<S: Serializer>(times: &LimitTimes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.shares().map(|(limit, share)| (limit.name(), share)))
}

fn shares_of_each<S: Serializer>(times: &[LimitTimes], serializer: S) -> Result<S::Ok, S::Error> {
    /// One element of the list.
    struct Shares<'a>(&'a LimitTimes);
    impl Serialize for Shares<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            shares(self.0, serializer)
        }
    }
    serializer.collect_seq(times.iter().map(Shares))
}

/// The limits that held for at least one percent of the time, the longest first.
pub(crate) fn limit_words(shares: impl IntoIterator<Item = (Limit, f64)>) -> String {
    let mut shares: Vec<(Limit, f64)> = shares.into_iter().filter(|(_, share)| *share >= 0.01).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let word =
        |(limit, share): &(Limit, f64)| format!("{} {:.0} %", limit.name().replace('_', " "), share * 100.0);
    let words = shares.iter().map(word).collect::<Vec<_>>().join(", ");
    if words.is_empty() { "nothing".to_owned() } else { words }
}

/// A rate with three digits, in the unit that suits it.
pub(crate) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{} Gbit/s", three_digits(rate / 1e9)),
        rate if rate >= 1e6 => format!("{} Mbit/s", three_digits(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} kbit/s", three_digits(rate / 1e3)),
        rate => format!("{} bit/s", three_digits(rate)),
    }
}

/// A size with three digits, in the unit that suits it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes as f64 {
        size if size >= 1e9 => format!("{} GB", three_digits(size / 1e9)),
        size if size >= 1e6 => format!("{} MB", three_digits(size / 1e6)),
        size if size >= 1e3 => format!("{} kB", three_digits(size / 1e3)),
        _ => format!("{bytes} B"),
    }
}

fn three_digits(number: f64) -> String {
    let decimals = match number {
        number if number >= 100.0 || number == 0.0 => 0,
        number if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(rate(1_234_000_000.0), "1.23 Gbit/s");
        assert_eq!(rate(56_000.0), "56.0 kbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(size(1_000_000_000), "1.00 GB");
        assert_eq!(size(176_488_000), "176 MB");
        assert_eq!(size(999), "999 B");
    }

    #[test]
    fn the_longest_limit_comes_first() {
        let mut times = LimitTimes::default();
        times.add(Limit::CongestionWindow, Duration::from_secs(6));
        times.add(Limit::ReceiveBuffer, Duration::from_secs(3));
        times.add(Limit::Nothing, Duration::from_secs(1));
        assert_eq!(limit_words(times.shares()), "congestion window 60 %, receive buffer 30 %, nothing 10 %");
        assert_eq!(limit_words([]), "nothing");
    }
}
