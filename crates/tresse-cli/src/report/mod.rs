//! Result of a command, as lines for people and as a document for programs.

pub(crate) mod paths;
pub(crate) mod words;

use std::time::Duration;

use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use paths::{PathsReport, Side, Snapshot};
use words::{rate, size};

/// The version of the document.
const SCHEMA: u32 = 1;

/// Report on one transfer, as seen by one side. Every key names its unit.
#[derive(Serialize)]
pub(crate) struct Report {
    /// The version of this document (docs/schemas).
    schema: u32,
    name: String,
    size_bytes: u64,
    /// Bytes that an earlier transfer had stored.
    resumed_bytes: u64,
    complete: bool,
    seconds: f64,
    throughput_mbps: f64,
    blake3: Option<String>,
    #[serde(flatten)]
    paths: PathsReport,
}

/// Checks that a throughput is at least what the user requires, both in bits a second.
///
/// # Errors
/// The throughput is lower.
pub(crate) fn required(least: Option<u64>, measured: f64) -> Result<(), Failure> {
    match least {
        Some(least) if measured < least as f64 => {
            let (least, measured) = (rate(least as f64), rate(measured));
            Err(Failure::missed(format!("{least} is required, and {measured} was measured")))
        }
        _ => Ok(()),
    }
}

/// Name and size of a file, and the time that its transfer took.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) resumed: u64,
    pub(crate) elapsed: Duration,
    /// Digest of the whole file; `None` if the transfer is not complete.
    pub(crate) digest: Option<[u8; 32]>,
}

impl Report {
    pub(crate) fn new(facts: Facts, snapshot: &Snapshot, side: Side) -> Self {
        let seconds = facts.elapsed.as_secs_f64();
        let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        Report {
            schema: SCHEMA,
            name: facts.name,
            size_bytes: facts.size,
            resumed_bytes: facts.resumed,
            complete: facts.digest.is_some(),
            seconds,
            throughput_mbps: mbps(facts.size.saturating_sub(facts.resumed)),
            blake3: facts.digest.map(|digest| blake3::Hash::from(digest).to_hex().to_string()),
            paths: PathsReport::new(snapshot, side, facts.elapsed),
        }
    }

    /// Prints the report: one JSON document in one line, or lines for people.
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
        lines.extend(self.paths.lines());
        if let Some(digest) = &self.blake3 {
            lines.push(format!("  BLAKE3 {digest}"));
        }
        lines.join("\n")
    }
}
