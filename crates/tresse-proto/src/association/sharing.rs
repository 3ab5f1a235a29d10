//! Sharing of the buffers among the paths: `paths` and `transmission` say how each path stands, the policy plans, and
//! `transmission` keeps to the plan. Tells an adaptive stream map how the paths look, too.

use tresse_policy::maps::placement::Prospect;
use tresse_policy::sharing::{Demand, PathReport, PathSample, Sharing, Situation};
use tresse_policy::{Instant, PathId};

use super::Association;
use crate::collections::Untouched;
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;
use crate::transmission::AckReport;

impl Untouched for Sharing {
    const UNTOUCHED: &Self = &Sharing::NEW;
}

impl Association {
    /// To be called when an acknowledgement was processed, and when a path comes or goes.
    pub(super) fn share_buffers(&mut self, now: Instant) {
        let rules = *self.config.sharing();
        let adaptive = self.outbound.is_adaptive();
        if self.paths.len() < 2 || !(rules.allocates || adaptive) {
            return;
        }
        if rules.suspends {
            let transmission = &self.transmission;
            self.sharing.on_blocking(now, transmission.blocking(), transmission.new_data_sent());
        }
        let mut samples = self.take_samples();
        if self.outbound.is_mapped() && !adaptive && !self.outbound.is_empty() {
            for sample in &mut samples {
                sample.without_data = !self.outbound.has_data_for(sample.id);
            }
        }
        let buffer = self.transmission.shared_buffer();
        let situation = self.situation(&samples);
        let plan = self.sharing.allocate(now, &rules, &situation);
        if let (Some(plan), Some((_, limit))) = (plan, buffer) {
            let allocation = &plan.allocation;
            if allocation.windows(2).any(|pair| pair[0] != pair[1]) {
                self.counters.coverage.note(Mechanism::SharedByPaths);
            }
            if rules.suspends && allocation.contains(&0) {
                self.counters.coverage.note(Mechanism::PathRested);
            }
            self.transmission.allocate(allocation, limit);
        }
        if adaptive {
            self.tell_stream_map(now, &samples);
        }
        self.workspace.get().samples = samples;
    }

    /// Tells the stream map what each path promises, and the estimates which paths are to be kept free of queues.
    fn tell_stream_map(&mut self, now: Instant, samples: &[PathSample]) {
        let (buffer, packet) = (self.transmission.whole_buffer(), self.paths.smallest_chunk());
        let demands = self.sharing.demands();
        let prospects = samples.iter().zip(demands).map(|(sample, demand)| Prospect {
            flight: sample.flight,
            foothold: demand.bdp.min(FOOTHOLD_PACKETS * packet),
            rtt: demand.min_rtt,
            lately: sample.srtt.unwrap_or_default().max(demand.min_rtt),
            slack: buffer.saturating_sub(needed_by_faster(demands, demand)),
            usable: demand.bdp > 0,
        });
        self.outbound.set_prospects(now, prospects);
        // What waits in a queue of one path is buffer that another one could use.
        let short = demands.iter().map(|demand| demand.bdp).sum::<usize>() > buffer;
        for path in self.path_ids() {
            let low_queue = short || self.outbound.wants_calm(path);
            if low_queue {
                self.counters.coverage.note(Mechanism::PathCalmed);
            }
            if let Some(sharing) = self.sharing.changed() {
                sharing.capacities().set_low_queue(path, low_queue);
            }
        }
    }

    /// Tells the estimates of the paths' capacities what an acknowledgement says.
    pub(super) fn estimate_capacities(&mut self, now: Instant, report: &AckReport) {
        let rules = *self.config.sharing();
        if !rules.estimates || self.paths.len() < 2 {
            return;
        }
        for (ack, step) in report.acks.iter().zip(&report.progress) {
            let what = PathReport {
                acked: ack.acked + step.uncredited,
                flight: ack.flight_before,
                rtt: step.shortest,
                return_path: step.via,
                pmdcs: self.paths.window(ack.path).pmdcs,
            };
            self.sharing.capacities().on_sack(now, &rules, ack.path, what);
        }
    }

    /// A packet with data was sent on `path`, where nothing `was_idle` before.
    pub(super) fn note_sharing_sent(&mut self, now: Instant, path: PathId, was_idle: bool) {
        let (flight, pmdcs) = (self.transmission.flight_on(path), self.paths.get(path).pmdcs());
        if let Some(sharing) = self.sharing.changed() {
            if was_idle {
                sharing.capacities().on_busy(path);
            }
            sharing.capacities().on_sent(now, path, flight, pmdcs);
        }
    }

    pub(super) fn note_sharing_limit(&mut self, path: PathId, limit: Limit) {
        if let (Some(sharing), Limit::ReceiveBuffer | Limit::SendBuffer) = (self.sharing.changed(), limit) {
            sharing.capacities().on_buffer_limited(path);
        }
    }

    /// Nothing more can be sent: notes what the other paths could send if nothing were blocked.
    pub(super) fn note_stall(&mut self) {
        if self.sharing.blocking().is_none() {
            return;
        }
        let samples = self.take_samples();
        let is_buffer_limited =
            |path| matches!(self.limit_of(path), Limit::ReceiveBuffer | Limit::SendBuffer);
        let rate =
            self.sharing.unused_rate(self.config.sharing(), &self.situation(&samples), is_buffer_limited);
        self.sharing.on_stalled(rate);
        self.workspace.get().samples = samples;
    }

    /// How all paths stand, by position; to be given back to the workspace.
    pub(super) fn take_samples(&mut self) -> Vec<PathSample> {
        let mut samples = std::mem::take(&mut self.workspace.get().samples);
        samples.clear();
        samples
            .extend(self.path_ids().map(|path| self.paths.sample(path, self.transmission.flight_on(path))));
        samples
    }

    /// How paths and buffers stand.
    pub(super) fn situation<'a>(&self, paths: &'a [PathSample]) -> Situation<'a> {
        Situation {
            paths,
            split_buffer: self.transmission.shared_buffer().map(|(bytes, _)| bytes),
            whole_buffer: self.transmission.whole_buffer(),
            packet: self.paths.smallest_chunk(),
            chunk: self.full_chunk(),
            bound: self.outbound.is_mapped(),
            duplicating: self.transmission.mends_by_copies(),
        }
    }
}

/// What fills all paths that are faster than that of `demand`.
fn needed_by_faster(demands: &[Demand], demand: &Demand) -> usize {
    demands.iter().filter(|other| other.min_rtt < demand.min_rtt).map(|other| other.bdp).sum()
}

/// With fewer packets in flight than these, a slower path gains less than its head-of-line blocking costs.
const FOOTHOLD_PACKETS: usize = 4;
