//! Measurement of a run: its outcome, computed from the counters before and after the measured time.

use std::time::Duration;

use tresse_proto::{AssociationStats, CloseReason, Instant, LimitTimes, PathId, PathStats};

use crate::cross;
use crate::host::Host;
use crate::link::LinkCounters;
use crate::outcome::{
    AssociationOutcome, Delay, Discarded, LimitedBy, Outcome, PathOutcome, Processors, RunFacts, SCHEMA,
    StreamOutcome,
};
use crate::record::Recorder;
use crate::recovery::Recoveries;
use crate::scenario::{Resolved, Scenario};
use crate::tcp::HostCounts;
use crate::topology::Layout;
use crate::traffic::{StreamReport, describe};
use crate::world::{RECEIVER, SENDER, World};

/// All counters at one time.
pub(crate) struct Snapshot {
    at: Instant,
    sender: Option<(AssociationStats, Vec<PathStats>)>,
    receiver: Option<AssociationStats>,
    /// Counters of each path: forward, backward, and the longest forward queue since the last snapshot.
    links: Vec<(LinkCounters, LinkCounters, usize)>,
    /// Time that the processors of sender and receiver have worked, if packets cost time.
    worked: Option<[Duration; 2]>,
    /// Counters of each TCP host.
    tallies: Vec<HostCounts>,
}

impl Snapshot {
    /// Reads all counters, and resets the longest queue.
    pub(crate) fn take(world: &mut World<'_>, layout: &Layout) -> Self {
        let at = world.now;
        let network = &mut world.network;
        let mut links: Vec<(LinkCounters, LinkCounters, usize)> = Vec::with_capacity(layout.paths.len());
        for (position, path) in layout.paths.iter().enumerate() {
            let there = network.link(path.forward).counters(at);
            let back = network.link(path.backward).counters(at);
            // Paths that share links share their counters.
            let longest =
                match layout.paths[..position].iter().position(|other| other.forward == path.forward) {
                    Some(owner) => links[owner].2,
                    None => network.link(path.forward).take_longest_queue(at),
                };
            links.push((there, back, longest));
        }
        Snapshot {
            at,
            links,
            worked: world.worked(),
            tallies: cross::tallies(&world.tcp_hosts),
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

/// Returns the outcome of the time between two snapshots.
pub(crate) fn outcome(
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
        schema: SCHEMA,
        name: resolved.name.clone(),
        seed: resolved.seed,
        interrupted,
        measured_from_s: before.at.as_secs_f64(),
        measured_s: measured.as_secs_f64(),
        completed_s: completed(&world, resolved),
        throughput_mbps: rate(world.ledger.reports().map(|report| report.bytes).sum()),
        streams: streams.collect(),
        paths: paths.clone().map(|position| path_outcome(position, before, after)).collect(),
        cross: cross::outcomes(
            &resolved.cross_traffic,
            &before.tallies,
            &after.tallies,
            measured.as_secs_f64(),
        ),
        processors: processors(before, after),
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
        recovery: world.network.watch.recoveries.as_ref().map(Recoveries::outcome),
        series: world.recorder.map(Recorder::into_series),
        scenario: scenario.to_table(),
    }
}

/// Returns the shares of the measured time that the processors worked.
fn processors(before: &Snapshot, after: &Snapshot) -> Option<Processors> {
    let (before_that, until_then) = (before.worked?, after.worked?);
    let measured = after.at.since(before.at).as_secs_f64().max(1e-9);
    let share = |host: usize| until_then[host].saturating_sub(before_that[host]).as_secs_f64() / measured;
    Some(Processors { sender: share(SENDER), receiver: share(RECEIVER) })
}

/// Returns the seconds from the opening of the association until everything was delivered.
fn completed(world: &World<'_>, resolved: &Resolved) -> Option<f64> {
    let opened = world.hosts[SENDER].opened()?;
    (resolved.traffic.volume.is_some() && world.is_done()).then(|| world.now.since(opened).as_secs_f64())
}

fn path_outcome(position: usize, before: &Snapshot, after: &Snapshot) -> PathOutcome {
    let measured = after.at.since(before.at);
    let (forward, backward, queue_max_packets) = after.links[position];
    let forward = forward.since(&before.links[position].0);
    let backward = backward.since(&before.links[position].1);
    let path = after.path(position);
    let since = |count: fn(&PathStats) -> u64| path.map_or(0, count) - before.path(position).map_or(0, count);
    let delivered = |snapshot: &Snapshot| snapshot.path(position).map_or(0, PathStats::bytes_delivered);
    PathOutcome {
        id: position,
        state: path.map(|path| path.state.name()),
        throughput_mbps: mbps(delivered(after).saturating_sub(delivered(before)), measured),
        wire_mbps: mbps(forward.arrived_bytes, measured),
        loss: share(forward.dropped(), forward.decided),
        dropped_queue_full: forward.dropped_queue_full,
        dropped_loss: forward.dropped_loss,
        dropped_early: forward.dropped_early,
        marked: forward.marked,
        dropped_outage: forward.dropped_outage,
        dropped_damaged: forward.dropped_damaged,
        dropped_too_large: forward.dropped_too_large,
        damaged: forward.damaged,
        duplicated: forward.duplicated,
        late: forward.late,
        utilisation: ratio(forward.busy_nanos as f64, measured.as_nanos() as f64),
        queue_mean_packets: ratio(forward.queue_packet_nanos as f64, measured.as_nanos() as f64),
        queue_max_packets,
        reverse_loss: share(backward.dropped(), backward.decided),
        srtt_ms: path.and_then(|path| path.srtt.or(path.seen_rtt)).map(|srtt| srtt.as_secs_f64() * 1e3),
        min_rtt_ms: path.and_then(|path| path.min_rtt).map(|rtt| rtt.as_secs_f64() * 1e3),
        shares_with: path.and_then(|path| path.shares_with).map(PathId::index),
        cwnd_bytes: path.map_or(0, |path| path.cwnd),
        ssthresh_bytes: path.map_or(0, |path| path.ssthresh),
        chunks_sent: since(|path| path.chunks_sent),
        chunks_resent: since(|path| path.chunks_resent),
        fast_retransmits: since(|path| path.fast_retransmits),
        drop_reports: since(|path| path.drop_reports),
        copies_sent: since(|path| path.copies_sent),
        mark_cuts: since(|path| path.mark_cuts),
        timeouts: since(|path| path.timeouts),
    }
}

fn association_outcome(world: &mut World<'_>, before: &Snapshot, after: &Snapshot) -> AssociationOutcome {
    let received = |count: fn(&AssociationStats) -> u64| {
        after.receiver.as_ref().map_or(0, count) - before.receiver.as_ref().map_or(0, count)
    };
    let sender = after.sender.as_ref().map(|(association, _)| association);
    let ended = world.hosts[SENDER].ended();
    AssociationOutcome {
        state: sender.map(|association| association.state),
        as_planned: matches!(ended, Some(CloseReason::Graceful)),
        opened: world.hosts[SENDER].opened().is_some(),
        ended: ended.map(describe),
        scheduler_failures: world.hosts[SENDER].scheduler_failures().to_vec(),
        duplicates: received(|association| association.duplicates),
        sacks_sent: received(|association| association.sacks_sent),
        sender_discards: discarded(sender, &world.hosts[SENDER]),
        receiver_discards: discarded(after.receiver.as_ref(), &world.hosts[RECEIVER]),
    }
}

/// Returns the counters of a host's discards, in its association and its endpoint, that are not zero.
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

/// Returns 0 if the divisor is 0: no time, no packets.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
