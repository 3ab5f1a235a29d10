//! What all associations of a run came to, as lines for people and as a document for programs.

use serde::Serialize;

use super::args::Mode;
use super::happenings::Happening;
use super::session::Session;
use crate::args::OutputArgs;
use crate::failure::Failure;
use crate::output;
use crate::report::paths::{PathsReport, Side};
use crate::report::words::{rate, size};

/// The whole run. Every key names its unit.
#[derive(Serialize)]
pub(super) struct Summary {
    role: &'static str,
    mode: &'static str,
    lower_layer: &'static str,
    total: Totals,
    associations: Vec<AssociationReport>,
}

/// What is known before anything happened.
pub(super) struct Facts {
    pub(super) role: &'static str,
    pub(super) mode: Mode,
    pub(super) raw: bool,
}

#[derive(Serialize, Default)]
struct Totals {
    associations: u64,
    messages_sent: u64,
    bytes_sent: u64,
    messages_abandoned: u64,
    messages_received: u64,
    bytes_received: u64,
    wrong_messages: u64,
}

#[derive(Serialize)]
struct AssociationReport {
    /// How it ended, in words.
    end: String,
    complete: bool,
    outbound_streams: u16,
    inbound_streams: u16,
    seconds: f64,
    messages_sent: u64,
    bytes_sent: u64,
    sent_mbps: f64,
    /// Accepted, and given up before they were known to have arrived.
    messages_abandoned: u64,
    messages_received: u64,
    bytes_received: u64,
    received_mbps: f64,
    wrong_messages: u64,
    happenings: Vec<Happening>,
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
        Summary { role: facts.role, mode, lower_layer, total: Totals::default(), associations: Vec::new() }
    }

    /// Takes in an association that has ended.
    pub(super) fn add(&mut self, session: Session) {
        let (tally, abandoned) = (&session.tally, session.snapshot.abandoned());
        let seconds = session.elapsed.as_secs_f64();
        let mbps = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        let side = if tally.bytes_sent > 0 { Side::Sender } else { Side::Receiver };
        let report = AssociationReport {
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
            wrong_messages: tally.wrong,
            happenings: session.happenings,
            paths: PathsReport::new(&session.snapshot, side, session.elapsed),
        };
        self.total.associations += 1;
        self.total.messages_sent += tally.messages_sent;
        self.total.bytes_sent += tally.bytes_sent;
        self.total.messages_abandoned += abandoned;
        self.total.messages_received += tally.messages_received;
        self.total.bytes_received += tally.bytes_received;
        self.total.wrong_messages += tally.wrong;
        self.associations.push(report);
    }

    /// Prints it: one JSON document in one line, or lines for people.
    pub(super) fn print(&self, output: &OutputArgs) -> Result<(), Failure> {
        if output.json {
            let text = serde_json::to_string(self).map_err(Failure::running)?;
            return output::print(&(text + "\n"));
        }
        if output.quiet {
            return Ok(());
        }
        let mut lines: Vec<String> =
            self.associations.iter().take(SHOWN).flat_map(AssociationReport::lines).collect();
        if self.associations.len() > SHOWN {
            lines.push(format!(
                "… and {} associations more (all with --json)",
                self.associations.len() - SHOWN
            ));
        }
        if self.associations.len() != 1 {
            lines.push(self.total.line());
        }
        output::print(&(lines.join("\n") + "\n"))
    }
}

impl AssociationReport {
    fn lines(&self) -> Vec<String> {
        let (out, back) = (self.sent_mbps * 1e6, self.received_mbps * 1e6);
        let mut lines = vec![format!(
            "{} in {:.2} s: sent {} messages, {}, {}{}; received {} messages, {}, {}",
            self.end,
            self.seconds,
            self.messages_sent,
            size(self.bytes_sent),
            rate(out),
            given_up(self.messages_abandoned),
            self.messages_received,
            size(self.bytes_received),
            rate(back)
        )];
        lines.extend(self.paths.lines());
        lines.extend(self.happenings.iter().take(SHOWN).map(Happening::line));
        lines
    }
}

impl Totals {
    fn line(&self) -> String {
        format!(
            "{} associations: sent {} messages, {}{}; received {} messages, {}",
            self.associations,
            self.messages_sent,
            size(self.bytes_sent),
            given_up(self.messages_abandoned),
            self.messages_received,
            size(self.bytes_received)
        )
    }
}

fn given_up(messages: u64) -> String {
    if messages > 0 { format!(", {messages} of them given up") } else { String::new() }
}

/// Associations, and happenings of each, that people are shown one by one.
const SHOWN: usize = 8;
