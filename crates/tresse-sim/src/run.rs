//! From a scenario to its outcome: builds the world, lets it settle, measures.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tresse_proto::{
    AssociationConfig, AssociationStats, Connect, Endpoint, EndpointConfig, Instant, LimitTimes, PathStats,
};

use crate::error::RunError;
use crate::host::Host;
use crate::link::LinkCounters;
use crate::network::Network;
use crate::outcome::{
    AssociationOutcome, Delay, Discarded, LimitedBy, Outcome, PathOutcome, RunFacts, StreamOutcome,
};
use crate::pcap::Capture;
use crate::record::Recorder;
use crate::route::LinkId;
use crate::scenario::{Resolved, Scenario};
use crate::seed::{Seed, unit_interval};
use crate::topology::{Disjoint, Topology};
use crate::traffic::{Application, Bulk, BulkSpec, Ledger, Sink, StreamReport, pattern};
use crate::world::World;

/// What a run does besides measuring. Nothing of it changes the outcome, except that `stop` ends it early.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Where a capture of all packets goes, as pcapng.
    pub pcap: Option<&'a mut dyn Write>,
    /// Told now and then which share of the run is done, from 0 to 1.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// Looked at now and then; once true, the run ends and gives what it has measured so far.
    pub stop: Option<&'a AtomicBool>,
    /// Compute and verify packet checksums, which are left out otherwise.
    pub checksums: bool,
    /// Check the rules that always hold after every event, and the content of every message.
    pub check: bool,
}

/// Runs a scenario.
///
/// # Errors
/// When it cannot be set up, when the transport breaks its promises, or when the capture cannot be written.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<Outcome, RunError> {
    let resolved = scenario.resolved();
    let RunOptions { pcap, progress, stop, checksums, check } = options;
    let disjoint = Topology::disjoint(&links(resolved));
    let capture = pcap.map(|output| Capture::new(output, &disjoint.topology)).transpose();
    let seed = Seed(resolved.seed);
    let network = Network::new(&disjoint.topology, seed, capture.map_err(RunError::Capture)?);
    let mut world = build(resolved, &disjoint, network, seed, Build { checksums, check })?;
    let mut pace = Pace { end: Instant::ZERO + resolved.settle + resolved.measure, progress, stop };

    let settled = Instant::ZERO + resolved.settle;
    let mut interrupted = pace.run(&mut world, settled)?;
    let before = Snapshot::take(&mut world, &disjoint);
    world.ledger.restart();
    if !interrupted {
        let end = pace.end;
        interrupted = pace.run(&mut world, end)?;
    }
    let after = Snapshot::take(&mut world, &disjoint);
    Ok(outcome(scenario, world, &before, &after, interrupted))
}

struct Build {
    checksums: bool,
    check: bool,
}

const SENDER: usize = 0;
const RECEIVER: usize = 1;
const SENDER_PORT: u16 = 49_152;
const RECEIVER_PORT: u16 = 5_001;

fn links(resolved: &Resolved) -> Vec<(crate::link::LinkSpec, crate::link::LinkSpec)> {
    resolved.paths.iter().map(|path| (path.forward, path.backward)).collect()
}

fn build<'w>(
    resolved: &Resolved,
    disjoint: &Disjoint,
    network: Network<'w>,
    seed: Seed,
    options: Build,
) -> Result<World<'w>, RunError> {
    let addresses = |node: crate::route::NodeId| disjoint.topology.addresses[node.index()].clone();
    let traffic = &resolved.traffic;
    let message = pattern(traffic.message_size);
    let jitter = unit_interval(&mut seed.generator("start of the sender"));
    let bulk = Bulk::new(BulkSpec {
        connect: Connect {
            local: addresses(disjoint.sender),
            remote: addresses(disjoint.receiver),
            remote_port: RECEIVER_PORT,
            encapsulation_port: None,
            config: resolved.sender.clone(),
        },
        streams: traffic.streams,
        message: message.clone(),
        ordered: traffic.ordered,
        refill: traffic.refill,
        start: Instant::ZERO + traffic.start + resolved.start_jitter.mul_f64(jitter),
        stop: traffic.stop.map(|stop| Instant::ZERO + stop),
    });
    let sink = Sink::new(options.check.then_some(message));

    let endpoint = |port, listen, template: &AssociationConfig, name: &str| {
        let config = EndpointConfig {
            port,
            listen,
            checksum_offload: !options.checksums,
            ..EndpointConfig::default()
        };
        Endpoint::new(config, template.clone(), seed.bytes(name))
    };
    let sending = endpoint(SENDER_PORT, false, &resolved.sender, "sender")?;
    let mut receiving = endpoint(RECEIVER_PORT, true, &resolved.receiver, "receiver")?;
    receiving.set_local_addresses(addresses(disjoint.receiver));
    let applications: [Box<dyn Application>; 2] = [Box::new(bulk), Box::new(sink)];
    let nodes = [disjoint.sender, disjoint.receiver];

    let mut residents = vec![None; disjoint.topology.addresses.len()];
    let mut hosts = Vec::new();
    for ((node, endpoint), application) in nodes.into_iter().zip([sending, receiving]).zip(applications) {
        let number = hosts.len() as u16;
        residents[node.index()] = Some(number);
        hosts.push(Host::new(number, node, endpoint, application));
    }
    let forward: Vec<LinkId> = disjoint.paths.iter().map(|(forward, _)| *forward).collect();
    let recorder =
        resolved.record_interval.map(|interval| Recorder::new(interval, SENDER, RECEIVER, forward));
    let ledger = Ledger::new(traffic.streams);
    let mut world = World {
        network,
        hosts,
        residents,
        ledger,
        recorder,
        check: options.check,
        now: Instant::ZERO,
        events: 0,
    };
    for host in &mut world.hosts {
        host.arm(Instant::ZERO, &mut world.network);
    }
    if let Some(recorder) = &world.recorder {
        recorder.start(&mut world.network);
    }
    Ok(world)
}

/// Runs in slices, between which the outside world has its say.
struct Pace<'a> {
    end: Instant,
    progress: Option<&'a mut dyn FnMut(f64)>,
    stop: Option<&'a AtomicBool>,
}

impl Pace<'_> {
    /// Runs up to `until`; tells whether it was stopped before.
    fn run(&mut self, world: &mut World<'_>, until: Instant) -> Result<bool, RunError> {
        while world.now < until {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Ok(true);
            }
            world.run_until(until.min(world.now + SLICE))?;
            if let Some(error) = world.network.take_capture_failure() {
                return Err(RunError::Capture(error));
            }
            if let Some(progress) = &mut self.progress {
                progress(world.now.as_secs_f64() / self.end.as_secs_f64());
            }
        }
        Ok(false)
    }
}

/// Virtual time between two looks at the outside world.
const SLICE: Duration = Duration::from_millis(500);

/// All counters at one time.
struct Snapshot {
    at: Instant,
    sender: Option<(AssociationStats, Vec<PathStats>)>,
    receiver: Option<AssociationStats>,
    /// By path: forward, backward, and the longest forward queue since the snapshot before.
    links: Vec<(LinkCounters, LinkCounters, usize)>,
}

impl Snapshot {
    fn take(world: &mut World<'_>, disjoint: &Disjoint) -> Self {
        let at = world.now;
        let network = &mut world.network;
        let links = disjoint.paths.iter().map(|&(forward, backward)| {
            let there = network.link(forward).counters(at);
            let back = network.link(backward).counters(at);
            (there, back, network.link(forward).take_longest_queue(at))
        });
        Snapshot {
            at,
            links: links.collect(),
            sender: world.hosts[SENDER].stats(at),
            receiver: world.hosts[RECEIVER].stats(at).map(|(association, _)| association),
        }
    }

    fn path(&self, position: usize) -> Option<&PathStats> {
        let (_, paths) = self.sender.as_ref()?;
        paths.iter().find(|path| path.id.index() == position)
    }

    fn limits(&self) -> LimitTimes {
        self.sender.as_ref().map(|(association, _)| association.limited_by).unwrap_or_default()
    }
}

fn outcome(
    scenario: &Scenario,
    mut world: World<'_>,
    before: &Snapshot,
    after: &Snapshot,
    interrupted: bool,
) -> Outcome {
    let resolved = scenario.resolved();
    let measured = after.at.since(before.at);
    let rate = |bytes: u64| mbps(bytes, measured);
    let paths = 0..resolved.paths.len();
    let path_limits = |position: usize| {
        let of =
            |snapshot: &Snapshot| snapshot.path(position).map(|path| path.limited_by).unwrap_or_default();
        of(after).since(&of(before)).into()
    };
    let streams = world.ledger.reports().enumerate().map(|(id, report)| StreamOutcome {
        id: id as u16,
        throughput_mbps: rate(report.bytes),
        messages: report.messages,
        delay_ms: delay(report),
    });
    let data_chunks = after.sender.iter().flat_map(|(_, paths)| paths);
    Outcome {
        name: resolved.name.clone(),
        seed: resolved.seed,
        interrupted,
        measured_s: measured.as_secs_f64(),
        throughput_mbps: rate(world.ledger.reports().map(|report| report.bytes).sum()),
        streams: streams.collect(),
        paths: paths.clone().map(|position| path_outcome(position, before, after)).collect(),
        limited_by: LimitedBy {
            total: after.limits().since(&before.limits()).into(),
            paths: paths.map(path_limits).collect(),
        },
        association: association_outcome(&mut world, before, after),
        run: RunFacts {
            trace_hash: format!("{:016x}", world.network.trace_hash()),
            packets: world.network.packets(),
            data_chunks: data_chunks.map(|path| path.chunks_sent + path.chunks_resent).sum(),
            unroutable_packets: world.network.unroutable(),
            messages_accepted: world.ledger.total_accepted(),
            messages_delivered: world.ledger.total_delivered(),
            events: world.events,
        },
        series: world.recorder.map(Recorder::into_series),
        scenario: scenario.to_table(),
    }
}

fn path_outcome(position: usize, before: &Snapshot, after: &Snapshot) -> PathOutcome {
    let measured = after.at.since(before.at);
    let (forward, backward, queue_max_packets) = after.links[position];
    let forward = forward.since(&before.links[position].0);
    let backward = backward.since(&before.links[position].1);
    let path = after.path(position);
    let since = |count: fn(&PathStats) -> u64| path.map_or(0, count) - before.path(position).map_or(0, count);
    PathOutcome {
        id: position,
        state: path.map(|path| path.state.name()),
        throughput_mbps: mbps(since(|path| path.bytes_acked), measured),
        wire_mbps: mbps(forward.arrived_bytes, measured),
        loss: share(forward.dropped(), forward.offered),
        dropped_queue_full: forward.dropped_queue_full,
        dropped_loss: forward.dropped_loss,
        queue_mean_packets: ratio(forward.queue_packet_nanos as f64, measured.as_nanos() as f64),
        queue_max_packets,
        reverse_loss: share(backward.dropped(), backward.offered),
        srtt_ms: path.and_then(|path| path.srtt).map(|srtt| srtt.as_secs_f64() * 1e3),
        cwnd_bytes: path.map_or(0, |path| path.cwnd),
        ssthresh_bytes: path.map_or(0, |path| path.ssthresh),
        chunks_sent: since(|path| path.chunks_sent),
        chunks_resent: since(|path| path.chunks_resent),
        fast_retransmits: since(|path| path.fast_retransmits),
        timeouts: since(|path| path.timeouts),
    }
}

fn association_outcome(world: &mut World<'_>, before: &Snapshot, after: &Snapshot) -> AssociationOutcome {
    let received = |count: fn(&AssociationStats) -> u64| {
        after.receiver.as_ref().map_or(0, count) - before.receiver.as_ref().map_or(0, count)
    };
    let sender = after.sender.as_ref().map(|(association, _)| association);
    AssociationOutcome {
        state: sender.map(|association| association.state),
        ended: world.hosts[SENDER].ended(),
        duplicates: received(|association| association.duplicates),
        sacks_sent: received(|association| association.sacks_sent),
        sender_discards: discarded(sender, &world.hosts[SENDER]),
        receiver_discards: discarded(after.receiver.as_ref(), &world.hosts[RECEIVER]),
    }
}

/// What a host threw away: its association's counters and its endpoint's, where not zero.
fn discarded(association: Option<&AssociationStats>, host: &Host) -> Discarded {
    let mut counters = host.discards().named();
    let association = association.map(|association| association.discards.named()).unwrap_or_default();
    for ((_, count), (_, more)) in counters.iter_mut().zip(association) {
        *count += more;
    }
    counters.retain(|(_, count)| *count > 0);
    Discarded(counters)
}

fn delay(report: &StreamReport) -> Option<Delay> {
    Some(Delay {
        mean: report.mean_delay_ms()?,
        p50: report.delay_quantile_ms(0.50)?,
        p95: report.delay_quantile_ms(0.95)?,
        p99: report.delay_quantile_ms(0.99)?,
        max: report.delay_quantile_ms(1.0)?,
    })
}

fn mbps(bytes: u64, over: Duration) -> f64 {
    ratio(bytes as f64 * 8.0 / 1e6, over.as_secs_f64())
}

fn share(part: u64, whole: u64) -> f64 {
    ratio(part as f64, whole as f64)
}

/// 0 when there was nothing to divide by: no time, no packets.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
