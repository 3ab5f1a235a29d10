//! Sharing of the buffers among the paths: `paths` and `transmission` provide the state of each path, the policy returns a plan,
//! and `transmission` enforces it. An adaptive stream map gets forecasts of the paths from here, too.

use tresse_policy::maps::placement::PathForecast;
use tresse_policy::sharing::{Demand, PathReport, PathSample, Sharing, SharingView};
use tresse_policy::{Instant, PathId};

use super::sender::Sender;
use crate::collections::{LazyBox, LazyState};
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;
use crate::transmission::AckReport;

impl LazyState for Sharing {
    const INITIAL: &Self = &Sharing::NEW;
}

/// Measurements of the paths that share the buffers; allocated at first use, in associations with several paths.
#[derive(Default)]
pub(super) struct SharedBuffers(LazyBox<Sharing>);

impl SharedBuffers {
    /// Allocates the buffers to the paths anew. To be called after an acknowledgement, and after a path was added, removed or
    /// changed its state.
    pub(super) fn share(&mut self, now: Instant, sender: &mut Sender, samples: &mut Vec<PathSample>) {
        let rules = *sender.config.sharing();
        let adaptive = sender.outbound.is_adaptive();
        if sender.paths.len() < 2 || !(rules.allocates || adaptive) {
            return;
        }
        if rules.suspends {
            let transmission = &sender.transmission;
            self.0.on_blocking(
                now,
                transmission.outstanding.blocking(),
                transmission.outstanding.new_data_sent(),
            );
        }
        sender.fill_samples(samples);
        if sender.outbound.is_mapped() && !adaptive && !sender.outbound.is_empty() {
            for sample in &mut *samples {
                sample.without_data = !sender.outbound.has_data_for(sample.id);
            }
        }
        let plan = self.0.allocate(now, &rules, &situation(sender, samples));
        if let (Some(plan), Some((_, limit))) = (plan, sender.transmission.shared_buffer()) {
            let allocation = &plan.allocation;
            if allocation.windows(2).any(|pair| pair[0] != pair[1]) {
                sender.coverage.note(Mechanism::SharedByPaths);
            }
            if rules.suspends && allocation.contains(&0) {
                sender.coverage.note(Mechanism::PathRested);
            }
            sender.transmission.allocate(allocation, limit);
        }
        if adaptive {
            self.update_stream_map(now, sender, samples);
        }
    }

    /// Passes forecasts of the paths to the stream map, and sets which paths are in low-queue mode.
    fn update_stream_map(&mut self, now: Instant, sender: &mut Sender, samples: &[PathSample]) {
        let (buffer, packet) = (sender.transmission.whole_buffer(), sender.paths.smallest_chunk());
        let demands = self.0.demands();
        let forecasts = samples.iter().zip(demands).map(|(sample, demand)| PathForecast {
            flight: sample.flight,
            foothold: demand.bdp.min(FOOTHOLD_PACKETS * packet),
            rtt: demand.min_rtt,
            lately: sample.srtt.unwrap_or_default().max(demand.min_rtt),
            slack: buffer.saturating_sub(needed_by_faster(demands, demand)),
            usable: demand.bdp > 0,
        });
        sender.outbound.set_prospects(now, forecasts);
        // Data in the queue of one path occupies buffer that another path could use.
        let short = demands.iter().map(|demand| demand.bdp).sum::<usize>() > buffer;
        for path in sender.path_ids() {
            let low_queue = short || sender.outbound.avoids_queue(path);
            if low_queue {
                sender.coverage.note(Mechanism::PathCalmed);
            }
            if let Some(sharing) = self.0.changed() {
                sharing.capacities().set_low_queue(path, low_queue);
            }
        }
    }

    /// Passes the report on an acknowledgement to the estimates of the paths' capacities.
    pub(super) fn on_report(&mut self, now: Instant, sender: &Sender, report: &AckReport) {
        let rules = *sender.config.sharing();
        if rules.estimates && sender.paths.len() > 1 {
            for (ack, step) in report.acks.iter().zip(&report.progress) {
                let what = PathReport {
                    acked: ack.acked + step.uncredited,
                    flight: ack.flight_before,
                    rtt: step.shortest,
                    return_path: step.via,
                    pmdcs: sender.paths.window(ack.path).pmdcs,
                };
                self.0.capacities().on_sack(now, &rules, ack.path, what);
            }
        }
    }

    /// Handles a packet with data that was sent on `path`; `was_idle` says that nothing was in flight there before.
    pub(super) fn on_sent(&mut self, path: PathId, was_idle: bool) {
        if let Some(sharing) = self.0.changed().filter(|_| was_idle) {
            sharing.capacities().on_busy(path);
        }
    }

    /// Notes that `limit` keeps `path` from sending more.
    pub(super) fn on_limit(&mut self, path: PathId, limit: Limit) {
        if let (Some(sharing), Limit::ReceiveBuffer | Limit::SendBuffer) = (self.0.changed(), limit) {
            sharing.capacities().on_buffer_limited(path);
        }
    }

    /// Notes that data is in flight on `path` again, because the peer reneged.
    pub(super) fn on_reneged(&mut self, path: PathId) {
        if let Some(sharing) = self.0.changed() {
            sharing.capacities().on_busy(path);
        }
    }

    /// Notes that a timer expired on `path`.
    pub(super) fn on_timeout(&mut self, path: PathId) {
        if let Some(sharing) = self.0.changed() {
            sharing.capacities().on_timeout(path);
        }
    }

    /// Drops the measurements of `path`: a new path has its slot.
    pub(super) fn forget(&mut self, path: PathId) {
        if let Some(sharing) = self.0.changed() {
            sharing.forget(path);
        }
    }

    /// Handles the end of output: notes the rate at which buffer-limited paths could send if nothing were blocked. `limit_of`
    /// returns the limit of a path; it is `None` if no path is limited by a buffer.
    pub(super) fn on_dry(
        &mut self,
        sender: &Sender,
        limit_of: Option<impl Fn(PathId) -> Limit>,
        samples: &mut Vec<PathSample>,
    ) {
        if self.0.blocking().is_none() {
            return;
        }
        let rate = limit_of.map_or(0.0, |limit_of| {
            sender.fill_samples(samples);
            let is_buffer_limited = |path| matches!(limit_of(path), Limit::ReceiveBuffer | Limit::SendBuffer);
            self.0.unused_rate(sender.config.sharing(), &situation(sender, samples), is_buffer_limited)
        });
        self.0.on_stalled(rate);
    }
}

/// The view of paths and buffers for the sharing policy.
fn situation<'a>(sender: &Sender, paths: &'a [PathSample]) -> SharingView<'a> {
    SharingView {
        paths,
        split_buffer: sender.transmission.shared_buffer().map(|(bytes, _)| bytes),
        whole_buffer: sender.transmission.whole_buffer(),
        packet: sender.paths.smallest_chunk(),
        bound: sender.outbound.is_mapped(),
    }
}

/// Bytes that fill all paths whose minimum RTT is shorter than that of `demand`.
fn needed_by_faster(demands: &[Demand], demand: &Demand) -> usize {
    demands.iter().filter(|other| other.min_rtt < demand.min_rtt).map(|other| other.bdp).sum()
}

/// With fewer packets in flight than these, a slower path gains less than its head-of-line blocking costs.
const FOOTHOLD_PACKETS: usize = 4;
