//! What a measurement came to, as lines for people and as a document for programs.

use serde::Serialize;

use super::exchange::Flow;
use super::message::Load;
use super::meter::Interval;
use crate::report::paths::PathsReport;
use crate::report::words::{rate, size};

/// One measurement, as seen by one side. Every key names its unit.
#[derive(Serialize)]
pub(super) struct Report {
    /// The peer's first address.
    peer: String,
    load: Load,
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    outward: Option<FlowReport>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    inward: Option<FlowReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<Interval>,
}

/// One direction: what was received, and what its sender says of the paths.
#[derive(Serialize)]
struct FlowReport {
    throughput_mbps: f64,
    messages: u64,
    bytes: u64,
    seconds: f64,
    #[serde(flatten)]
    paths: PathsReport,
}

impl Report {
    pub(super) fn new(peer: String, load: Load, (outward, inward): (Option<Flow>, Option<Flow>)) -> Self {
        let (outward, inward) = (outward.map(FlowReport::new), inward.map(FlowReport::new));
        Report { peer, load, outward, inward, intervals: Vec::new() }
    }

    /// With what was seen on the way.
    pub(super) fn with_intervals(self, intervals: Vec<Interval>) -> Self {
        Report { intervals, ..self }
    }

    /// The throughput of the slower direction, in bits a second.
    pub(super) fn slowest(&self) -> f64 {
        let flows = [&self.outward, &self.inward].into_iter().flatten();
        flows.map(|flow| flow.throughput_mbps * 1e6).fold(f64::INFINITY, f64::min)
    }

    /// Some lines a direction.
    pub(super) fn lines(&self) -> Vec<String> {
        let directions = [("to", &self.outward), ("from", &self.inward)];
        let mut lines = Vec::new();
        for (word, flow) in directions {
            let Some(flow) = flow else { continue };
            lines.push(format!(
                "{word} {}: {} in {:.2} s, {}",
                self.peer,
                size(flow.bytes),
                flow.seconds,
                rate(flow.throughput_mbps * 1e6)
            ));
            lines.extend(flow.paths.lines());
        }
        lines
    }
}

impl FlowReport {
    fn new(Flow { sent, got }: Flow) -> Self {
        let mbps = if got.seconds > 0.0 { got.bytes as f64 * 8e-6 / got.seconds } else { 0.0 };
        FlowReport {
            throughput_mbps: mbps,
            messages: got.messages,
            bytes: got.bytes,
            seconds: got.seconds,
            paths: sent.paths,
        }
    }
}
