//! Result of a measurement, as lines for people and as a document for programs.

use serde::Serialize;

use tresse::Limit;

use super::clock::Offset;
use super::compare::Compared;
use super::events::PathEvent;
use super::exchange::Flow;
use super::former::ReplacedAssociation;
use super::message::{Delay, Load, Processor};
use super::meter::Interval;
use crate::report::paths::PathsReport;
use crate::report::words::{explained, rate, size};

/// Report on one measurement, as seen by one side. Every key names its unit; docs/schemas/perf.schema.json has them all.
#[derive(Serialize)]
pub(super) struct Report {
    /// The version of this document.
    schema: u32,
    /// The peer's first address.
    peer: String,
    load: Load,
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    outward: Option<FlowReport>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    inward: Option<FlowReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<PathEvent>,
    /// Earlier associations, if this host's addresses changed; all other keys are about the last one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    former: Vec<ReplacedAssociation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<Interval>,
}

/// Report on one direction: the data received, and the sender's report on the paths.
#[derive(Serialize)]
struct FlowReport {
    throughput_mbps: f64,
    messages: u64,
    bytes: u64,
    seconds: f64,
    /// Delay from sending a message until its arrival, corrected by the offset of the clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Delay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_processor: Option<Processor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_processor: Option<Processor>,
    /// The limit, by all measurements; absent if none stands out.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    /// Data received by stream, if streams have loads of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    streams: Vec<StreamReport>,
    #[serde(flatten)]
    paths: PathsReport,
}

/// One stream.
#[derive(Serialize)]
struct StreamReport {
    id: u16,
    throughput_mbps: f64,
    messages: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Delay>,
}

/// The version of the documents of `tresse perf`.
pub(super) const SCHEMA: u32 = 1;

impl Report {
    /// Creates a report. `clocks` is the offset of the peer's clock; without it, there are no delays.
    pub(super) fn new(
        peer: String,
        load: Load,
        (outward, inward): (Option<Flow>, Option<Flow>),
        clocks: Option<Offset>,
    ) -> Self {
        let outward = outward.map(|flow| FlowReport::new(flow, clocks));
        let back = clocks.map(|offset| Offset { ahead_ms: -offset.ahead_ms, ..offset });
        let inward = inward.map(|flow| FlowReport::new(flow, back));
        let (events, former, intervals) = (Vec::new(), Vec::new(), Vec::new());
        Report { schema: SCHEMA, peer, load, outward, inward, events, former, compared: None, intervals }
    }

    /// Returns the report with the associations that this one has replaced.
    pub(super) fn with_former(self, former: Vec<ReplacedAssociation>) -> Self {
        Report { former, ..self }
    }

    /// Returns the report with the events of paths.
    pub(super) fn with_events(self, events: Vec<PathEvent>) -> Self {
        Report { events, ..self }
    }

    /// Returns the report with the rates of each path alone, in Mbit/s.
    pub(super) fn compared(self, single_mbps: Vec<f64>) -> Self {
        let together_mbps = self.slowest() / 1e6;
        Report { compared: Some(Compared::new(single_mbps, together_mbps)), ..self }
    }

    /// Returns the report with its intervals.
    pub(super) fn with_intervals(self, intervals: Vec<Interval>) -> Self {
        Report { intervals, ..self }
    }

    /// Returns the throughput of the slower direction, in bits a second.
    pub(super) fn slowest(&self) -> f64 {
        let flows = [&self.outward, &self.inward].into_iter().flatten();
        flows.map(|flow| flow.throughput_mbps * 1e6).fold(f64::INFINITY, f64::min)
    }

    /// Returns some lines for each direction.
    pub(super) fn lines(&self) -> Vec<String> {
        let directions = [("to", &self.outward), ("from", &self.inward)];
        let mut lines: Vec<String> = self.former.iter().map(ReplacedAssociation::line).collect();
        for (word, flow) in directions {
            let Some(flow) = flow else { continue };
            lines.push(format!(
                "{word} {}: {} in {:.2} s, {}",
                self.peer,
                size(flow.bytes),
                flow.seconds,
                rate(flow.throughput_mbps * 1e6)
            ));
            lines.extend(flow.lines());
        }
        if let Some(compared) = &self.compared {
            let flow = self.outward.as_ref().or(self.inward.as_ref());
            lines.extend(compared.lines(flow.and_then(|flow| flow.verdict)));
        }
        lines
    }
}

impl FlowReport {
    fn new(Flow { sent, got }: Flow, clocks: Option<Offset>) -> Self {
        let corrected = |delay: Option<Delay>| {
            delay.zip(clocks).map(|(delay, clocks)| delay.corrected(clocks.ahead_ms, clocks.error_ms))
        };
        let mbps = |bytes: u64| if got.seconds > 0.0 { bytes as f64 * 8e-6 / got.seconds } else { 0.0 };
        let streams = got.streams.iter().map(|(id, stream)| StreamReport {
            id: *id,
            throughput_mbps: mbps(stream.bytes),
            messages: stream.messages,
            bytes: stream.bytes,
            delay: corrected(stream.delay),
        });
        let processors = [sent.processor, got.processor];
        let busy = processors.iter().flatten().any(Processor::is_exhausted);
        let limit = sent.paths.main_limit();
        // A faster host does not help a sender that has no data, or no path for it.
        let idle = matches!(limit, Some(Limit::Application | Limit::Scheduler | Limit::Path));
        let verdict = if busy && !idle { Some(Limit::Host) } else { limit };
        FlowReport {
            streams: streams.collect(),
            throughput_mbps: mbps(got.bytes),
            messages: got.messages,
            bytes: got.bytes,
            seconds: got.seconds,
            delay: corrected(got.delay),
            sender_processor: sent.processor,
            receiver_processor: got.processor,
            verdict: verdict.map(Limit::name),
            paths: sent.paths,
        }
    }
    /// Returns one line for each path, then lines on their limits, the processors, delays and streams, and an explanation of the main
    /// limit.
    fn lines(&self) -> Vec<String> {
        let mut lines = self.paths.plain_lines();
        let used = |who: &str, processor: &Option<Processor>| {
            let Processor { running, waiting, idle } = (*processor)?;
            let (running, waiting) = (running * 100.0, waiting * 100.0);
            let idle = idle.map(|idle| format!(" (its host {:.0} % idle)", idle * 100.0));
            let idle = idle.unwrap_or_default();
            Some(format!("{who} {running:.0} % running and {waiting:.0} % waiting for it{idle}"))
        };
        let used = [used("sender", &self.sender_processor), used("receiver", &self.receiver_processor)];
        let used: Vec<_> = used.into_iter().flatten().collect();
        if !used.is_empty() {
            lines.push(format!("  processor: {}", used.join(", ")));
        }
        if let Some(Delay { p50_ms, p95_ms, p99_ms, max_ms, error_ms }) = self.delay {
            lines.push(format!(
                "  messages took {p50_ms:.1} ms (median), {p95_ms:.1} (95 %), {p99_ms:.1} (99 %), {max_ms:.1} at most; \
                 clocks agree within {error_ms:.2} ms"
            ));
        }
        for stream in &self.streams {
            let mut line = format!("  stream {}: {}", stream.id, rate(stream.throughput_mbps * 1e6));
            line.push_str(&format!(", {} messages", stream.messages));
            if let Some(Delay { p50_ms, p99_ms, .. }) = stream.delay {
                line.push_str(&format!(", {p50_ms:.1} ms (median), {p99_ms:.1} (99 %)"));
            }
            lines.push(line);
        }
        let verdict = self.verdict.and_then(|name| Limit::ALL.into_iter().find(|limit| limit.name() == name));
        match verdict {
            Some(Limit::Host) if self.paths.main_limit() != Some(Limit::Host) => {
                lines.push("  a host set the pace: its processor had no time left".to_owned());
            }
            verdict => lines.extend(verdict.map(|limit| format!("  {}", explained(limit)))),
        }
        lines
    }
}
