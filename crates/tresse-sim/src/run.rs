//! Run of a scenario: it settles, measures, writes captures and traces meanwhile, and checks for an early stop.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tresse_proto::Instant;
use tresse_proto::congestion::ControllerFactory;
use tresse_proto::schedule::{PathSchedulerFactory, StreamSchedulerFactory};

use crate::error::RunError;
use crate::measure::{Snapshot, outcome};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::pcap::Capture;
use crate::recovery::Recoveries;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::setup::{CustomPolicies, RunChecks, build};
use crate::topology::Topology;
use crate::trace::Trace;
use crate::watch::Watch;
use crate::world::World;

/// Options of a run besides the scenario. Only schedulers, controllers and `reads_every` change the outcome, and `stop`
/// ends the run early.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Writer of a capture of all packets, as pcapng.
    pub pcap: Option<&'a mut dyn Write>,
    /// Writer of a trace: one JSON object in a line for every event of the sender's data.
    pub trace: Option<&'a mut dyn Write>,
    /// Function that is called at intervals with the share of the run that is done, from 0 to 1.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// Checked at intervals; once true, the run ends and returns the measurements so far.
    pub stop: Option<&'a AtomicBool>,
    /// Compute and verify packet checksums, which are omitted otherwise.
    pub checksums: bool,
    /// Stream schedulers that the scenario may name besides the built-in ones.
    pub schedulers: &'a [(String, StreamSchedulerFactory)],
    /// The same for path schedulers.
    pub path_schedulers: &'a [(String, PathSchedulerFactory)],
    /// The same for congestion controllers.
    pub controllers: &'a [(String, ControllerFactory)],
    /// Interval at which the receiver's application reads; zero to read at once.
    pub reads_every: Duration,
    /// Check all rules after every event, and the content of every message.
    pub check: bool,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("checksums", &self.checksums)
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}

/// Runs a scenario.
///
/// # Errors
/// The run cannot be set up, the transport violates its guarantees, or the capture cannot be written.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<Outcome, RunError> {
    let resolved = scenario.resolved();
    let RunOptions { pcap, trace, progress, stop, checksums, check, .. } = options;
    let RunOptions { schedulers, path_schedulers, controllers, reads_every, .. } = options;
    let layout = Topology::of(resolved);
    let capture = pcap.map(|output| Capture::new(output, &layout.topology)).transpose();
    let seed = Seed(resolved.seed);
    let mut network = Network::new(&layout.topology, seed, capture.map_err(RunError::Capture)?);
    let trace = trace.map(|output| Trace::new(output, &resolved.name, resolved.seed, resolved.paths.len()));
    let recoveries = resolved.record_recovery.then(Recoveries::default);
    network.watch = Watch::new(&layout, trace, recoveries);
    let own = CustomPolicies { schedulers, path_schedulers, controllers };
    let mut world =
        build(resolved, &layout, network, seed, RunChecks { checksums, check, reads_every }, &own)?;
    let mut pace = Pace { end: Instant::ZERO + resolved.settle + resolved.measure, progress, stop };

    let settled = Instant::ZERO + resolved.settle;
    let mut interrupted = pace.run(&mut world, settled)?;
    let before = Snapshot::take(&mut world, &layout);
    world.ledger.restart();
    if !interrupted {
        let end = pace.end;
        interrupted = pace.run(&mut world, end)?;
    }
    let after = Snapshot::take(&mut world, &layout);
    Ok(outcome(scenario, world, &before, &after, interrupted))
}

/// Runner in slices, between which it reports progress and checks for a stop.
struct Pace<'a> {
    end: Instant,
    progress: Option<&'a mut dyn FnMut(f64)>,
    stop: Option<&'a AtomicBool>,
}

impl Pace<'_> {
    /// Runs until `until`, or until everything is delivered. Returns whether it was stopped before.
    fn run(&mut self, world: &mut World<'_>, until: Instant) -> Result<bool, RunError> {
        while world.now < until && !world.is_done() {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Ok(true);
            }
            world.run_until(until.min(world.now + SLICE), EVENTS_PER_SLICE)?;
            if let Some(error) = world.network.take_capture_failure() {
                return Err(RunError::Capture(error));
            }
            if let Some(error) = world.network.take_trace_failure() {
                return Err(RunError::Trace(error));
            }
            if let Some(progress) = &mut self.progress {
                progress(world.now.as_secs_f64() / self.end.as_secs_f64());
            }
        }
        Ok(false)
    }
}

/// Virtual time of a slice, and its most events: on fast links half a second takes minutes.
const SLICE: Duration = Duration::from_millis(500);
const EVENTS_PER_SLICE: u64 = 100_000;
