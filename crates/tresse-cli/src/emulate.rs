//! `tresse emulate`: a scenario's paths in real time, between the UDP sockets of real programs.

mod alarm;
mod args;
mod lateness;
mod relay;
mod turn;

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use tresse_sim::Emulation;
use tresse_sim::link::LinkCounters;

pub(crate) use args::EmulateArgs;
use lateness::LatenessReport;
use relay::Relay;

use crate::failure::Failure;
use crate::sim::load;
use crate::written::Written;
use crate::{output, signal};

pub(crate) async fn run(args: EmulateArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, args.seed, &args.settings)?;
    let idle = scenario.idle_settings().into_iter().filter(|idle| !idle.is_late());
    idle.for_each(|idle| output::say(&idle.to_string()));
    let name = scenario.resolved().name.clone();
    let (client, server) = args.addresses(scenario.resolved().paths.len())?;
    let mut capture =
        args.pcap.as_deref().map(|path| Written::create("--pcap", path, args.force)).transpose()?;
    let mut relay = Relay::bind(client.clone(), server.clone(), args.server_port, args.port).await?;
    if !args.output.quiet {
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "{}", greeting(&name, &client, &server, args.server_port, relay.port()?));
    }
    capture.iter_mut().for_each(Written::keep);
    let capturing = capture.as_mut().map(|file| file as &mut dyn Write);
    let mut emulation = Emulation::new(&scenario, capturing).map_err(Failure::running)?;
    let interrupted = tokio::select! {
        outcome = relay.run(&mut emulation) => return outcome,
        () = timer(args.end.duration) => false,
        () = signal::interrupted() => true,
    };
    let report = Report::new(&name, scenario.resolved().seed, &relay, &mut emulation);
    drop(emulation);
    if let Some(capture) = capture {
        capture.finish("capture")?;
    }
    print(&report, &args)?;
    if interrupted && args.end.duration.is_some() {
        return Err(Failure::interrupted("interrupted: the counts cover what went through before"));
    }
    Ok(())
}

/// Returns a line with the addresses and ports by which both sides reach each other through the emulation.
fn greeting(name: &str, client: &[IpAddr], server: &[IpAddr], server_port: u16, port: u16) -> String {
    let list = |addresses: &[IpAddr]| addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",");
    let (client, server) = (list(client), list(server));
    format!(
        "tresse: emulating {name} between clients on {client} that take UDP port {port} of {server} for the server's, \
         and the server on UDP port {server_port} there; end with Ctrl-C"
    )
}

async fn timer(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// The version of the document.
const SCHEMA: u32 = 1;

/// Result of an emulation.
#[derive(Serialize)]
struct Report {
    /// The version of this document (docs/schemas).
    schema: u32,
    name: String,
    seed: u64,
    elapsed_s: f64,
    paths: Vec<PathReport>,
    /// Datagrams from neither client nor server.
    strangers: u64,
    /// Datagrams that came out of a link and that the system refused to send.
    unsent: u64,
    /// Time from the arrival of packets at the end of their links until they were sent; absent without packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<LatenessReport>,
    /// True if the relay's thread had a real-time priority.
    in_real_time: bool,
}

#[derive(Serialize)]
struct PathReport {
    id: usize,
    to_server: LinkReport,
    to_client: LinkReport,
}

#[derive(Serialize)]
struct LinkReport {
    packets: u64,
    arrived: u64,
    arrived_bytes: u64,
    dropped_queue_full: u64,
    dropped_early: u64,
    dropped_loss: u64,
    dropped_outage: u64,
    dropped_damaged: u64,
    dropped_too_large: u64,
    damaged: u64,
    duplicated: u64,
    late: u64,
}

impl Report {
    fn new(name: &str, seed: u64, relay: &Relay, emulation: &mut Emulation<'_>) -> Self {
        let (strangers, unsent) = relay.discarded();
        let counters = emulation.counters(relay.now()).into_iter().enumerate();
        Report {
            schema: SCHEMA,
            name: name.to_owned(),
            seed,
            elapsed_s: relay.elapsed().as_secs_f64(),
            paths: counters
                .map(|(id, (forward, backward))| PathReport {
                    id,
                    to_server: forward.into(),
                    to_client: backward.into(),
                })
                .collect(),
            strangers,
            unsent,
            late: relay.lateness(),
            in_real_time: relay.in_real_time(),
        }
    }
}

impl From<LinkCounters> for LinkReport {
    fn from(counters: LinkCounters) -> Self {
        LinkReport {
            packets: counters.offered,
            arrived: counters.arrived,
            arrived_bytes: counters.arrived_bytes,
            dropped_queue_full: counters.dropped_queue_full,
            dropped_early: counters.dropped_early,
            dropped_loss: counters.dropped_loss,
            dropped_outage: counters.dropped_outage,
            dropped_damaged: counters.dropped_damaged,
            dropped_too_large: counters.dropped_too_large,
            damaged: counters.damaged,
            duplicated: counters.duplicated,
            late: counters.late,
        }
    }
}

fn print(report: &Report, args: &EmulateArgs) -> Result<(), Failure> {
    let text = match (args.output.json, args.output.quiet) {
        (true, _) => serde_json::to_string_pretty(report).map_err(Failure::running)? + "\n",
        (false, true) => return Ok(()),
        (false, false) => lines(report),
    };
    output::print(&text)
}

fn lines(report: &Report) -> String {
    let mut lines =
        vec![format!("{}: emulated for {:.1} s, seed {}", report.name, report.elapsed_s, report.seed)];
    lines.push("  path  towards     packets   dropped      MB   Mbit/s in the mean".to_owned());
    for path in &report.paths {
        for (towards, link) in [("server", &path.to_server), ("client", &path.to_client)] {
            lines.push(format!(
                "  {:>4}  {towards}   {:>9} {:>9} {:>7.2} {:>8.3}",
                path.id,
                link.packets,
                link.dropped(),
                link.arrived_bytes as f64 / 1e6,
                link.arrived_bytes as f64 * 8e-6 / report.elapsed_s.max(1e-9),
            ));
        }
    }
    if let Some(LatenessReport { p50_ms, p99_ms, p999_ms, max_ms }) = report.late {
        lines.push(format!(
            "  packets left {p50_ms:.2} ms late (median), {p99_ms:.2} (99 %), {p999_ms:.2} (99.9 %), {max_ms:.2} at most"
        ));
        if p99_ms >= 1.0 && !report.in_real_time {
            lines.push(
                "  other work of this machine came first: with the right to real-time scheduling (root, or ulimit -r) \
                 packets leave on time"
                    .to_owned(),
            );
        }
    }
    for (count, what) in [
        (report.strangers, "datagrams came from neither client nor server"),
        (report.unsent, "datagrams were refused by the system"),
    ] {
        if count > 0 {
            lines.push(format!("  {count} {what}"));
        }
    }
    lines.join("\n") + "\n"
}

impl LinkReport {
    fn dropped(&self) -> u64 {
        self.dropped_queue_full
            + self.dropped_early
            + self.dropped_loss
            + self.dropped_outage
            + self.dropped_damaged
            + self.dropped_too_large
    }
}
