//! `tresse sim`: runs one scenario, and prints its outcome and its limits.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tresse_sim::{Outcome, RunError, RunOptions, Scenario, Shares};

use crate::args::{OutputArgs, SchedulerArgs, key_value, rate};
use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::report::required;
use crate::report::words::{self, limit_words, meaning};
use crate::schedulers::UserPolicies;
use crate::signal;
use crate::written::{Written, capture_and_trace};

#[derive(Args)]
pub(crate) struct SimArgs {
    /// The scenario, a TOML file
    pub(crate) scenario: PathBuf,
    /// Seed of all random numbers; the scenario's own if not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Change one value of the scenario, such as transport.send_buffer=64KiB or path.1.delay=75ms
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) settings: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) schedulers: SchedulerArgs,
    /// Write a capture of all packets, as pcapng
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write a trace: what happened to the sender's data, one JSON object a line (docs/scenarios.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Overwrite the capture and the trace if they exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Exit with 4 if the throughput is lower than this
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) require_throughput: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: SimArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, args.seed, &args.settings)?;
    scenario.idle_settings().iter().for_each(|idle| output::say(&idle.to_string()));
    let schedulers = args.schedulers.load()?;
    let used = scenario.resolved();
    schedulers.idle(&[&used.sender, &used.receiver]).iter().for_each(|line| output::say(line));
    let written = capture_and_trace(args.pcap.as_deref(), args.trace.as_deref(), args.force)?;
    let stop = Arc::new(AtomicBool::new(false));
    let bar = progress::display(args.output.quiet || args.output.json).add(ProgressBar::new(1000));
    if let Ok(style) = ProgressStyle::with_template("{percent:>3} % [{bar:40}] {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    let mut simulation = tokio::task::spawn_blocking({
        let (stop, bar) = (Arc::clone(&stop), bar.clone());
        move || simulate(&scenario, &schedulers, written, &stop, &bar)
    });
    let outcome = tokio::select! {
        outcome = &mut simulation => outcome,
        () = signal::interrupted() => {
            stop.store(true, Ordering::Relaxed);
            simulation.await
        }
    };
    bar.finish_and_clear();
    let outcome = outcome
        .map_err(|_| Failure::running("the simulation broke down"))?
        .map_err(|failure| failure.at(args.scenario.display()))?;
    print(&outcome, &args)?;
    if outcome.interrupted {
        return Err(Failure::interrupted("interrupted: the results cover what was simulated before"));
    }
    required(args.require_throughput, outcome.throughput_mbps * 1e6)
}

/// Loads the scenario of a file, with the user's changes.
pub(crate) fn load(
    file: &Path,
    seed: Option<u64>,
    settings: &[(String, String)],
) -> Result<Scenario, Failure> {
    let mut scenario = Scenario::load(file).map_err(Failure::usage)?;
    let seed = seed.map(|seed| seed.to_string());
    let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let settings = settings.chain(seed.as_deref().map(|seed| ("seed", seed)));
    scenario.set_all(settings).map_err(Failure::usage)?;
    Ok(scenario)
}

fn simulate(
    scenario: &Scenario,
    schedulers: &UserPolicies,
    (mut capture, mut trace): (Option<Written>, Option<Written>),
    stop: &AtomicBool,
    bar: &ProgressBar,
) -> Result<Outcome, Failure> {
    let mut progress = |share: f64| bar.set_position((share * 1000.0) as u64);
    let options = RunOptions {
        pcap: capture.as_mut().map(|capture| capture as &mut dyn Write),
        trace: trace.as_mut().map(|trace| trace as &mut dyn Write),
        progress: Some(&mut progress),
        stop: Some(stop),
        schedulers: &schedulers.of_streams,
        path_schedulers: &schedulers.of_paths,
        controllers: &schedulers.controllers,
        ..RunOptions::default()
    };
    let outcome = tresse_sim::run(scenario, options).map_err(|error| match error {
        RunError::Config(_)
        | RunError::Connect(_)
        | RunError::Scheduler(_)
        | RunError::TooFewStreams { .. }
        | RunError::TooManyMessages { .. }
        | RunError::TooManyPackets { .. }
        | RunError::Message(_) => Failure::usage(error),
        _ => Failure::running(error),
    })?;
    for (what, file) in [("capture", capture), ("trace", trace)] {
        if let Some(file) = file {
            file.finish(what)?;
        }
    }
    Ok(outcome)
}

fn print(outcome: &Outcome, args: &SimArgs) -> Result<(), Failure> {
    let text = match (args.output.json, args.output.quiet) {
        (true, _) => serde_json::to_string_pretty(outcome).map_err(Failure::running)? + "\n",
        (false, true) => return Ok(()),
        (false, false) => lines(outcome),
    };
    output::print(&text)
}

/// Returns the lines for people: tables of streams, paths and cross traffic, and the limits.
fn lines(outcome: &Outcome) -> String {
    let mut lines = vec![format!(
        "{}: {:.3} Mbit/s over {:.1} s, seed {}",
        outcome.name, outcome.throughput_mbps, outcome.measured_s, outcome.seed
    )];
    lines.push("  stream     Mbit/s   delay ms: mean      p50      p95      p99".to_owned());
    for stream in outcome.streams.iter().take(SHOWN_STREAMS) {
        let mut line = format!("  {:>6} {:>10.3}", stream.id, stream.throughput_mbps);
        if let Some(delay) = stream.delay_ms {
            line.push_str(&format!(
                "       {:>8.1} {:>8.1} {:>8.1} {:>8.1}",
                delay.mean, delay.p50, delay.p95, delay.p99
            ));
        }
        lines.push(line);
    }
    if outcome.streams.len() > SHOWN_STREAMS {
        lines.push(format!("  … {} more streams (--json has all)", outcome.streams.len() - SHOWN_STREAMS));
    }
    lines.push("  path       Mbit/s   used     loss   srtt ms  min ms   queue   limited by".to_owned());
    for (path, limits) in outcome.paths.iter().zip(&outcome.limited_by.paths) {
        lines.push(format!(
            "  {:>4}   {:>10.3} {:>4.0} % {:>6.2} % {:>9} {:>7} {:>7.1}   {}",
            path.id,
            path.throughput_mbps,
            path.utilisation * 100.0,
            path.loss * 100.0,
            or_dash(path.srtt_ms),
            or_dash(path.min_rtt_ms),
            path.queue_mean_packets,
            in_words(limits)
        ));
    }
    for path in &outcome.paths {
        if let Some(other) = path.shares_with.filter(|other| *other < path.id) {
            lines
                .push(format!("  path {} shares a bottleneck with path {other}: both are one flow", path.id));
        }
    }
    if !outcome.cross.is_empty() {
        lines.push("  cross         Mbit/s   segments   resent".to_owned());
    }
    for pair in &outcome.cross {
        let mut line = format!(
            "  {:>4} {:<5} {:>8.3} {:>10} {:>8}",
            pair.id, pair.kind, pair.throughput_mbps, pair.segments, pair.segments_resent
        );
        if let (Some(answers), Some(mean)) = (pair.answers, pair.answer_ms) {
            line.push_str(&format!("   {answers} answers, {mean:.0} ms in the mean"));
        }
        lines.push(line);
    }
    if outcome.association.state.is_none() && outcome.association.ended.is_none() {
        let reason = match outcome.association.opened {
            true => "the handshake found no way through the paths, or began late (start_jitter)",
            false => "the run ended before its start (traffic.start, start_jitter)",
        };
        lines.push(format!("  no association was set up: {reason}"));
    } else {
        if let Some(busy) = outcome.processors {
            let [sender, receiver] = [busy.sender, busy.receiver].map(|share| share * 100.0);
            lines.push(format!("  processors busy: sender {sender:.0} %, receiver {receiver:.0} %"));
        }
        lines.push(format!("  in total limited by {}", in_words(&outcome.limited_by.total)));
        lines.extend(meaning(&by_name(&outcome.limited_by.total)).map(|meaning| format!("  {meaning}")));
    }
    if let Some(completed) = outcome.completed_s {
        lines.push(format!("  everything was delivered after {completed:.3} s"));
    }
    for failure in &outcome.association.scheduler_failures {
        lines.push(format!("  failed and was replaced: {failure}"));
    }
    if outcome.association.as_planned {
        lines.push("  the association was shut down at the end of its traffic (traffic.stop)".to_owned());
    } else if let Some(ended) = &outcome.association.ended {
        lines.push(format!("  the association ended early: {ended}"));
    }
    lines.join("\n") + "\n"
}

fn or_dash(millis: Option<f64>) -> String {
    millis.map_or("-".to_owned(), |millis| format!("{millis:.1}"))
}

fn in_words(shares: &Shares) -> String {
    limit_words(&by_name(shares))
}

fn by_name(shares: &Shares) -> words::Shares {
    tresse::Limit::ALL.map(|limit| (limit.name().to_owned(), shares.of(limit))).into()
}

/// Most streams with a line; the others are only counted.
const SHOWN_STREAMS: usize = 16;
