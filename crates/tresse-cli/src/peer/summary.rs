//! Summary of all associations of a run, as lines for people and as a document for programs.

use serde::Serialize;

use super::args::Mode;
use super::event_log::EventRecord;
use super::session::Session;
use crate::args::OutputArgs;
use crate::failure::Failure;
use crate::output;
use crate::report::paths::{PathsReport, Side};
use crate::report::words::{rate, size};

/// The version of the document.
const SCHEMA: u32 = 1;

/// The whole run. Every key names its unit.
#[derive(Serialize)]
pub(super) struct Summary {
    /// The version of this document (docs/schemas).
    schema: u32,
    role: &'static str,
    mode: &'static str,
    lower_layer: &'static str,
    total: Totals,
    /// The first associations that ended. Their number is bounded, because a server may run for months.
    associations: Vec<AssociationReport>,
    #[serde(skip)]
    kept: usize,
}

/// Facts that are known at the beginning.
pub(super) struct Facts {
    pub(super) role: &'static str,
    pub(super) mode: Mode,
    pub(super) raw: bool,
    /// Requested output, which determines the number of associations that are kept.
    pub(super) output: OutputArgs,
}

#[derive(Serialize, Default)]
struct Totals {
    associations: u64,
    /// Set-ups of this side that failed.
    associations_not_set_up: u64,
    messages_sent: u64,
    bytes_sent: u64,
    messages_abandoned: u64,
    messages_received: u64,
    bytes_received: u64,
    messages_not_echoed: u64,
    wrong_messages: u64,
}

#[derive(Serialize)]
struct AssociationReport {
    /// The reason for which it ended, as text.
    end: String,
    complete: bool,
    outbound_streams: u16,
    inbound_streams: u16,
    seconds: f64,
    messages_sent: u64,
    bytes_sent: u64,
    sent_mbps: f64,
    /// Messages that were accepted, and abandoned before they were acknowledged.
    messages_abandoned: u64,
    messages_received: u64,
    bytes_received: u64,
    received_mbps: f64,
    /// Messages without the echo that was due from this side, or with `--await-echo` from the peer.
    messages_not_echoed: u64,
    wrong_messages: u64,
    events: Vec<EventRecord>,
    #[serde(flatten)]
    paths: PathsReport,
}

impl Summary {
    pub(super) fn new(facts: Facts) -> Self {
        let mode = match facts.mode {
            Mode::Discard => "discard",
            Mode::Echo => "echo",
            Mode::Generate => "generate",
        };
        let lower_layer = if facts.raw { "ip" } else { "udp" };
        let kept = match facts.output {
            OutputArgs { json: true, .. } => LISTED,
            OutputArgs { quiet: true, .. } => 0,
            _ => SHOWN,
        };
        Summary {
            schema: SCHEMA,
            role: facts.role,
            mode,
            lower_layer,
            total: Totals::default(),
            associations: Vec::new(),
            kept,
        }
    }

    /// Counts an association that was never set up.
    pub(super) fn add_failed(&mut self) {
        self.total.associations_not_set_up += 1;
    }

    /// Adds an association that has ended.
    pub(super) fn add(&mut self, session: Session) {
        let (tally, abandoned) = (&session.tally, session.snapshot.abandoned());
        self.total.associations += 1;
        self.total.messages_sent += tally.messages_sent;
        self.total.bytes_sent += tally.bytes_sent;
        self.total.messages_abandoned += abandoned;
        self.total.messages_received += tally.messages_received;
        self.total.bytes_received += tally.bytes_received;
        self.total.messages_not_echoed += tally.not_echoed;
        self.total.wrong_messages += tally.wrong;
        if self.associations.len() < self.kept {
            self.associations.push(AssociationReport::new(session));
        }
    }

    /// Prints the summary: one JSON document in one line, or lines for people.
    pub(super) fn print(&self, output: &OutputArgs) -> Result<(), Failure> {
        if output.json {
            let text = serde_json::to_string(self).map_err(Failure::running)?;
            return output::print(&(text + "\n"));
        }
        if output.quiet {
            return Ok(());
        }
        let mut lines: Vec<String> = self.associations.iter().flat_map(AssociationReport::lines).collect();
        let more = self.total.associations.saturating_sub(self.associations.len() as u64);
        if more > 0 {
            lines.push(format!("… and {more} associations more (the first {LISTED} with --json)"));
        }
        if self.total.associations != 1 || self.total.associations_not_set_up > 0 {
            lines.push(self.total.line());
        }
        output::print(&(lines.join("\n") + "\n"))
    }
}

impl AssociationReport {
    fn new(session: Session) -> Self {
        let (tally, abandoned) = (&session.tally, session.snapshot.abandoned());
        let seconds = session.elapsed.as_secs_f64();
        let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        let side = if tally.bytes_sent > 0 { Side::Sender } else { Side::Receiver };
        AssociationReport {
            end: tresse::Ended(session.reason).to_string(),
            complete: session.complete,
            outbound_streams: session.streams.0,
            inbound_streams: session.streams.1,
            seconds,
            messages_sent: tally.messages_sent,
            bytes_sent: tally.bytes_sent,
            sent_mbps: mbps(tally.bytes_sent),
            messages_abandoned: abandoned,
            messages_received: tally.messages_received,
            bytes_received: tally.bytes_received,
            received_mbps: mbps(tally.bytes_received),
            messages_not_echoed: tally.not_echoed,
            wrong_messages: tally.wrong,
            events: session.events,
            paths: PathsReport::new(&session.snapshot, side, session.elapsed),
        }
    }

    fn lines(&self) -> Vec<String> {
        let (out, back) = (self.sent_mbps * 1e6, self.received_mbps * 1e6);
        let mut lines = vec![format!(
            "{} in {:.2} s: sent {} messages, {}, {}{}; received {} messages, {}, {}{}",
            self.end,
            self.seconds,
            self.messages_sent,
            size(self.bytes_sent),
            rate(out),
            given_up(self.messages_abandoned),
            self.messages_received,
            size(self.bytes_received),
            rate(back),
            not_echoed(self.messages_not_echoed)
        )];
        lines.extend(self.paths.lines());
        lines.extend(self.events.iter().take(SHOWN).map(EventRecord::line));
        lines
    }
}

impl Totals {
    fn line(&self) -> String {
        format!(
            "{} associations{}: sent {} messages, {}{}; received {} messages, {}{}",
            self.associations,
            not_set_up(self.associations_not_set_up),
            self.messages_sent,
            size(self.bytes_sent),
            given_up(self.messages_abandoned),
            self.messages_received,
            size(self.bytes_received),
            not_echoed(self.messages_not_echoed)
        )
    }
}

fn not_set_up(associations: u64) -> String {
    if associations > 0 { format!(", and {associations} not set up") } else { String::new() }
}

fn not_echoed(messages: u64) -> String {
    if messages > 0 { format!("; {messages} not echoed") } else { String::new() }
}

fn given_up(messages: u64) -> String {
    if messages > 0 { format!(", {messages} of them given up") } else { String::new() }
}

/// Most associations, and events of each, that are printed as lines.
const SHOWN: usize = 8;
/// Most associations in a JSON document.
const LISTED: usize = 1000;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use tresse::{AssociationConfig, CloseReason, Endpoint, EndpointConfig, Peer};

    use super::super::session::Transferred;
    use super::*;
    use crate::report::paths::Snapshot;

    fn facts(json: bool, quiet: bool) -> Facts {
        Facts { role: "server", mode: Mode::Echo, raw: false, output: OutputArgs { json, quiet } }
    }

    /// Snapshot of an association.
    async fn snapshot() -> Snapshot {
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let bind = |config| Endpoint::bind(&here, 0, config, AssociationConfig::default()).expect("free");
        let server = bind(EndpointConfig::listening(5001));
        let client = bind(EndpointConfig::default());
        let peer = Peer::new(here, 5001).with_udp_port(server.udp_port());
        Snapshot::take(&client.connect(peer).await.expect("the server answers"))
    }

    #[tokio::test]
    async fn what_is_kept_of_ended_associations_is_bounded_by_what_is_printed() {
        let snapshot = snapshot().await;
        for (facts, kept) in
            [(facts(true, false), LISTED), (facts(false, false), SHOWN), (facts(false, true), 0)]
        {
            let mut summary = Summary::new(facts);
            for _ in 0..LISTED + 100 {
                summary.add(Session {
                    tally: Transferred { messages_received: 3, not_echoed: 1, ..Transferred::default() },
                    reason: CloseReason::Graceful,
                    streams: (1, 1),
                    elapsed: Duration::from_secs(1),
                    snapshot: snapshot.clone(),
                    complete: true,
                    events: Vec::new(),
                });
            }
            assert_eq!(summary.associations.len(), kept);
            let total = &summary.total;
            assert_eq!(total.associations, LISTED as u64 + 100);
            assert_eq!(total.messages_received, 3 * total.associations);
            assert_eq!(total.messages_not_echoed, total.associations);
        }
    }
}
