//! Sharing of short buffers among paths: the default multipath policy of the core.
//!
//! If a buffer is too small for all paths, the paths compete for it, and with ordered data each late chunk blocks all
//! paths. This policy estimates each path's capacity, measures the cost of its head-of-line blocking to the others
//! (`hol_cost`), allocates the buffer, suspends paths that cost more than they deliver, and selects
//! the chunks that are [reinjected](reinject). docs/sharing.md describes the whole policy.
//!
//! Its inputs are reports on acknowledgements, timers and full buffers of each path, and samples of their state. After each
//! acknowledgement it returns a [`Plan`], which holds until the next one; reinjections are decided at each transmission
//! opportunity. The core carries the decisions out: it owns windows, chunks and packets.

mod allocate;
mod capacity;
mod delivery_rate;
mod duplicate;
mod hol_cost;
mod jitter;
pub mod reinject;
mod suspend;
mod view;

pub use allocate::Demand;
pub use capacity::Capacities;
pub use duplicate::duplicate_saves_time;
pub use hol_cost::Blocking;
pub use view::{PathReport, PathSample, Rules, SharingView};

use crate::path::PathId;
use crate::time::Instant;
use hol_cost::HolCosts;

/// Allocation and suspended paths that the core applies from one acknowledgement to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Bytes of the split buffer that each path may own, by position; 0 for a suspended path. Empty if each path may
    /// own an equal part.
    pub allocation: Vec<usize>,
}

/// Measurements of the paths of one association, and the plan that follows from them.
#[derive(Debug, Default)]
pub struct Sharing {
    capacities: Capacities,
    /// Created by the first report.
    hol_costs: Option<Box<HolCosts>>,
    demands: Vec<Demand>,
    plan: Plan,
}

impl Sharing {
    /// The state before any report.
    pub const NEW: Sharing = Sharing {
        capacities: Capacities::NEW,
        hol_costs: None,
        demands: Vec::new(),
        plan: Plan { allocation: Vec::new() },
    };

    /// Returns the capacity estimates of the paths, which take the events on them.
    pub fn capacities(&mut self) -> &mut Capacities {
        &mut self.capacities
    }

    /// Removes all measurements of `path`, because another path takes its position.
    pub fn forget(&mut self, path: PathId) {
        self.capacities.forget(path);
        if let Some(costs) = &mut self.hol_costs {
            costs.forget(path);
        }
    }

    /// Takes the head-of-line blocking from now on, and the new data ever sent on each path, by position. The core
    /// calls it after each acknowledgement, before [`allocate`](Self::allocate).
    pub fn on_blocking(
        &mut self,
        now: Instant,
        blocking: Option<Blocking>,
        sent: impl ExactSizeIterator<Item = u64>,
    ) {
        self.hol_costs.get_or_insert_with(|| Box::new(HolCosts::new(now))).on_report(now, blocking, sent);
    }

    /// Returns the rate at which the other paths could send if nothing were blocked, in bytes per second. A path counts
    /// if only a full buffer keeps it from sending (`is_buffer_limited`): with its BDP less the bytes in flight, in
    /// each round trip. The core calls it when nothing more can be sent.
    pub fn unused_rate(
        &self,
        rules: &Rules,
        situation: &SharingView<'_>,
        is_buffer_limited: impl Fn(PathId) -> bool,
    ) -> f64 {
        let Some(blocking) = self.blocking() else { return 0.0 };
        // Bytes per second; seconds.
        let (mut rate, mut shortest) = (0.0, f64::INFINITY);
        for sample in situation.paths.iter().filter(|sample| sample.id != blocking.path) {
            let Demand { min_rtt, bdp, .. } = self.capacities.demand(rules, sample);
            if bdp == 0 || min_rtt.is_zero() {
                continue;
            }
            let rtt = min_rtt.as_secs_f64();
            shortest = shortest.min(rtt);
            if sample.flight + situation.packet <= bdp && is_buffer_limited(sample.id) {
                rate += (bdp - sample.flight) as f64 / rtt;
            }
        }
        // The buffer that the blocked data occupies would have carried as many bytes in each round trip.
        rate.min(blocking.bytes as f64 / shortest)
    }

    /// Sets the rate in bytes per second at which the other paths could send until the next acknowledgement if nothing were blocked.
    pub fn on_stalled(&mut self, rate: f64) {
        if let Some(costs) = &mut self.hol_costs {
            costs.set_unused_rate(rate);
        }
    }

    /// Returns the head-of-line blocking of the last report.
    pub fn blocking(&self) -> Option<Blocking> {
        self.hol_costs.as_ref()?.blocking()
    }

    /// Computes the demand of each path, and allocates the buffer that is split among them; returns `None` if no buffer is split.
    pub fn allocate(&mut self, now: Instant, rules: &Rules, situation: &SharingView<'_>) -> Option<&Plan> {
        let mut demands = std::mem::take(&mut self.demands);
        demands.clear();
        demands.extend(situation.paths.iter().map(|sample| self.demand(rules, sample)));
        let buffer = situation.split_buffer.filter(|_| rules.allocates);
        if let Some(buffer) = buffer {
            self.allocate_to(&mut demands, now, rules, situation, buffer);
        }
        self.demands = demands;
        buffer.map(|_| &self.plan)
    }

    /// Returns the demands of the last allocation, by position.
    pub fn demands(&self) -> &[Demand] {
        &self.demands
    }

    fn allocate_to(
        &mut self,
        demands: &mut [Demand],
        now: Instant,
        rules: &Rules,
        situation: &SharingView<'_>,
        buffer: usize,
    ) {
        let suspends = rules.suspends && self.suspend(demands, situation);
        let needed: usize = demands.iter().map(Demand::buffer_needed).sum();
        let suffices = rules.when_short && needed <= situation.whole_buffer;
        let equal = demands.iter().all(|demand| demand.bdp <= buffer / demands.len());
        let mut allocation = std::mem::take(&mut self.plan.allocation);
        if suffices && equal && !suspends {
            allocation.clear();
        } else {
            let rule = if suffices { allocate::equal_or_demand } else { allocate::shortest_first };
            rule(demands, buffer, &mut allocation);
            if let Some(costs) = self.hol_costs.as_deref_mut().filter(|_| rules.suspends) {
                suspend::suspend_or_try(now, buffer, situation, demands, costs, &mut allocation);
            }
        }
        self.plan.allocation = allocation;
    }

    /// Removes the demand of paths that cost the others too much; returns whether there are any. If streams are bound
    /// to paths there are none, because no other path could carry their data.
    fn suspend(&self, demands: &mut [Demand], situation: &SharingView<'_>) -> bool {
        let Some(costs) = self.hol_costs.as_deref().filter(|_| !situation.bound) else { return false };
        suspend::suspend(demands, |path| suspend::costs_too_much(costs, path))
    }

    /// Returns the part of a buffer that a path could use; nothing while it carries no new data. A path whose streams
    /// have no data needs only the bytes that it has in flight.
    fn demand(&self, rules: &Rules, sample: &PathSample) -> Demand {
        let mut demand = self.capacities.demand(rules, sample);
        if let Some(costs) = &self.hol_costs {
            demand.blocked_time = costs.blocked_time(sample.id);
            demand.most_blocked = costs.most_blocked(sample.id);
        }
        if sample.without_data {
            demand.bdp = demand.bdp.min(sample.flight);
        }
        demand
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PACKET: usize = 1000;
    const RULES: Rules = Rules { estimates: true, allocates: true, when_short: true, suspends: true };

    /// Two paths of 20 and 100 ms without acknowledgements: each has the initial estimate of ten packets.
    fn paths() -> [PathSample; 2] {
        [20, 100].map(|millis| PathSample {
            pmdcs: PACKET,
            shortest_rtt: Duration::from_millis(millis),
            srtt: Some(Duration::from_millis(millis)),
            ..PathSample::new(PathId(u8::from(millis == 100)))
        })
    }

    fn situation(paths: &[PathSample], buffer: usize) -> SharingView<'_> {
        SharingView { paths, split_buffer: Some(buffer), whole_buffer: buffer, packet: PACKET, bound: false }
    }

    fn allocate(sharing: &mut Sharing, rules: &Rules, paths: &[PathSample], buffer: usize) -> Vec<usize> {
        let plan = sharing.allocate(Instant::ZERO, rules, &situation(paths, buffer));
        plan.expect("a buffer is split").allocation.clone()
    }

    #[test]
    fn parts_are_equal_while_the_buffer_suffices_and_by_demand_while_it_is_short() {
        let mut sharing = Sharing::NEW;
        assert_eq!(allocate(&mut sharing, &RULES, &paths(), 20 * PACKET), [0_usize; 0]);
        assert_eq!(allocate(&mut sharing, &RULES, &paths(), 16 * PACKET), [10 * PACKET, 6 * PACKET]);
        let always = Rules { when_short: false, ..RULES };
        assert_eq!(allocate(&mut sharing, &always, &paths(), 40 * PACKET), [10 * PACKET, 10 * PACKET]);
        assert_eq!(sharing.demands().iter().map(|demand| demand.bdp).sum::<usize>(), 20 * PACKET);
    }

    #[test]
    fn nothing_is_allocated_where_no_buffer_is_split_but_demands_are_known() {
        let paths = paths();
        let unsplit = SharingView { split_buffer: None, ..situation(&paths, 16 * PACKET) };
        let mut sharing = Sharing::NEW;
        assert_eq!(sharing.allocate(Instant::ZERO, &RULES, &unsplit), None);
        assert_eq!(sharing.demands().len(), 2);
    }

    #[test]
    fn a_path_that_displaces_more_than_it_brings_is_suspended() {
        let (mut sharing, paths) = (Sharing::NEW, paths());
        let blocking = Blocking { path: PathId(1), bytes: 8 * PACKET };
        sharing.on_blocking(Instant::ZERO, Some(blocking), [0, PACKET as u64].into_iter());
        let rate = sharing.unused_rate(&RULES, &situation(&paths, 20 * PACKET), |_| true);
        assert_eq!(rate.round(), 400_000.0, "what is blocked, once in 20 ms, and not ten packets");
        sharing.on_stalled(rate);
        let later = Instant::ZERO + Duration::from_millis(100);
        sharing.on_blocking(later, None, [0, PACKET as u64].into_iter());
        let allocation = allocate(&mut sharing, &RULES, &paths, 20 * PACKET);
        assert_eq!(allocation, [20 * PACKET, 0], "the other one may have all");
        let lenient = Rules { suspends: false, ..RULES };
        assert!(!allocate(&mut sharing, &lenient, &paths, 16 * PACKET).contains(&0));
    }
}
