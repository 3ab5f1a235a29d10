//! Capacity estimates of an association's paths, each created with the path's first acknowledgement, and their inputs.

use std::time::Duration;

use super::allocate::Demand;
use super::capacity::Capacity;
use super::view::{PathReport, PathSample, Rules};
use crate::path::{PathId, path_entry};
use crate::time::Instant;

/// The estimates by position; `None` before a path's first acknowledgement.
#[derive(Debug, Default)]
pub struct Capacities(Vec<Option<Box<Capacity>>>);

impl Capacities {
    pub(crate) const NEW: Self = Capacities(Vec::new());

    /// Removes the estimate of `path`, because another path takes its position.
    pub(crate) fn forget(&mut self, path: PathId) {
        if let Some(capacity) = self.0.get_mut(path.index()) {
            *capacity = None;
        }
    }

    /// A SACK has acknowledged bytes of `path`, or declared some lost.
    pub fn on_sack(&mut self, now: Instant, rules: &Rules, path: PathId, report: PathReport) {
        let startup = rules.when_short.then_some(report.flight);
        path_entry(&mut self.0, path)
            .get_or_insert_with(|| Box::new(Capacity::new(report.pmdcs, startup)))
            .on_sack(now, report);
    }

    /// Data is sent on `path` although nothing was in flight there.
    pub fn on_busy(&mut self, path: PathId) {
        if let Some(capacity) = self.get_mut(path) {
            capacity.on_busy();
        }
    }

    /// A full buffer keeps `path` from sending.
    pub fn on_buffer_limited(&mut self, path: PathId) {
        if let Some(capacity) = self.get_mut(path) {
            capacity.on_buffer_limited();
        }
    }

    /// T3 of `path` has expired.
    pub fn on_timeout(&mut self, path: PathId) {
        for capacity in self.0.iter_mut().flatten() {
            capacity.on_timeout_of(path);
        }
    }

    /// Sets whether `path` is filled without any queue, because latency-critical data is on it, or another path needs
    /// the buffer.
    pub fn set_low_queue(&mut self, path: PathId, low_queue: bool) {
        if let Some(capacity) = self.get_mut(path) {
            capacity.set_low_queue(low_queue);
        }
    }

    /// Returns the part of a buffer that a path could use, without the data that it blocks; 0 while it carries no new data.
    pub(crate) fn demand(&self, rules: &Rules, sample: &PathSample) -> Demand {
        if !sample.carries_new_data {
            return Demand::default();
        }
        let (min_rtt, bdp) = match self.get(sample.id) {
            Some(capacity) => (capacity.min_rtt(), capacity.bdp()),
            None => {
                let startup = rules.when_short.then_some(sample.flight);
                (Duration::ZERO, Capacity::initial(sample.pmdcs, startup))
            }
        };
        // Before a full packet has measured a round trip, that of any packet counts.
        let min_rtt = if min_rtt.is_zero() { sample.shortest_rtt } else { min_rtt };
        Demand { min_rtt, bdp, ..Demand::default() }
    }

    fn get(&self, path: PathId) -> Option<&Capacity> {
        self.0.get(path.index())?.as_deref()
    }

    fn get_mut(&mut self, path: PathId) -> Option<&mut Capacity> {
        self.0.get_mut(path.index())?.as_deref_mut()
    }
}
