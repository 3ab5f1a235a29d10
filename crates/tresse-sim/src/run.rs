//! Run of a scenario: settles, measures, and meanwhile writes captures and traces and checks for an early stop.

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

/// Options of a run besides the scenario. Only schedulers, controllers and the way of reading change the outcome, and
/// `stop` ends it early.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Writer of a capture of all packets, as pcapng.
    pub pcap: Option<&'a mut dyn Write>,
    /// Writer of a trace: one JSON object a line for everything that happens to the sender's data.
    pub trace: Option<&'a mut dyn Write>,
    /// Told now and then which share of the run is done, from 0 to 1.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// Looked at now and then; once true, the run ends and gives what it has measured so far.
    pub stop: Option<&'a AtomicBool>,
    /// Compute and verify packet checksums, which are left out otherwise.
    pub checksums: bool,
    /// Stream schedulers that the scenario may name besides those that are built in.
    pub schedulers: &'a [(String, StreamSchedulerFactory)],
    /// The same for path schedulers.
    pub path_schedulers: &'a [(String, PathSchedulerFactory)],
    /// The same for congestion controllers.
    pub controllers: &'a [(String, ControllerFactory)],
    /// The receiver's application reads so often; at once where it is zero.
    pub reads_every: Duration,
    /// Check the rules that always hold after every event, and the content of every message.
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
/// It cannot be set up, the transport breaks its promises, or the capture cannot be written.
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

/// Runs in slices, between which the outside world has its say.
struct Pace<'a> {
    end: Instant,
    progress: Option<&'a mut dyn FnMut(f64)>,
    stop: Option<&'a AtomicBool>,
}

impl Pace<'_> {
    /// Runs up to `until`, or until everything is delivered; tells whether it was stopped before.
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

/// Virtual time between two looks at the outside world, and most events: on fast links half a second takes minutes.
const SLICE: Duration = Duration::from_millis(500);
const EVENTS_PER_SLICE: u64 = 100_000;
