//! Estimate of a path's bandwidth-delay product (BDP): the bytes in flight that fill the path without a standing queue.
//!
//! Data beyond it waits in a queue of the network, occupies buffer, and adds no throughput. The estimate
//! serves the allocation of buffers alone: no rule of the protocol depends on it, and congestion windows are separate.
//! It is made in rounds of one round trip (docs/sharing.md).

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::allocate::Demand;
use super::delivery_rate::DeliveryRate;
use super::jitter::Jitter;
use super::view::{PathReport, PathSample, Rules};
use crate::path::{PathId, path_entry};
use crate::time::Instant;

/// The estimates of an association's paths by position; `None` before a path's first acknowledgement.
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

/// The estimate of one path. Bytes are those of DATA chunks.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Capacity {
    /// The shortest round trip, without a standing queue; zero before the first measurement.
    min_rtt: Duration,
    /// Return path of the SACKs that measured `min_rtt`. Round trips over other return paths are not compared with it.
    return_path: PathId,
    /// Minimum round trip and return path before the last change of the return path; kept only if allocations always hold.
    former: Option<(Duration, PathId)>,
    /// BDP at the delivery rate over the former return path, with the round trip over the present, longer one.
    over_longer_return: usize,
    /// The estimate.
    bdp: usize,
    /// Step of the next growth, in packets; doubles as long as no queue shows.
    step: usize,
    /// True while no queue has shown and slow start must not be delayed: the estimate doubles each round, as the window does.
    startup: bool,
    /// True if allocations always hold, and not only while a buffer is short.
    always_allocated: bool,
    round: Option<Round>,
    jitter: Jitter,
    delivery_rate: DeliveryRate,
    suspected: Option<SuspectedQueue>,
    /// True if the path is to be filled without any queue.
    low_queue: bool,
    /// True if the estimate has changed in the last round: acknowledgements show the effect a round later.
    changed: bool,
    /// Length of the packets whose round trips count, in bytes of DATA chunks.
    packet_len: usize,
    /// Bytes acknowledged so far.
    acked: u64,
}

/// Measurements of one round, which lasts a round trip.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Round {
    since: Instant,
    /// Bytes acknowledged before the round.
    acked_before: u64,
    /// The shortest round trip. The first packet of a burst measures it: only a standing queue makes it longer.
    shortest: Option<Duration>,
    /// The shortest round trip of SACKs over another path than `Capacity::return_path`, and this path.
    elsewhere: Option<(Duration, PathId)>,
    /// Most bytes in flight.
    peak: usize,
    /// True if a buffer kept the path from sending.
    buffer_limited: bool,
}

/// State when a queue was first seen that has not disappeared since. If it stays although less is in flight, this
/// sender does not cause it.
#[derive(Copy, Clone, PartialEq, Debug)]
struct SuspectedQueue {
    rtt: Duration,
    /// Most bytes in flight then, and the estimate then.
    peak: usize,
    bdp: usize,
}

impl Capacity {
    /// Makes the estimate of a path. `startup` is given if allocations hold only while a buffer is short: the bytes
    /// that slow start had in flight before any measurement, without an allocation. It is `None` if allocations always
    /// hold, to keep queues short: such a leap would cause a queue.
    pub(crate) fn new(pmdcs: usize, startup: Option<usize>) -> Self {
        Capacity {
            min_rtt: Duration::ZERO,
            return_path: PathId::default(),
            former: None,
            over_longer_return: 0,
            bdp: Capacity::initial(pmdcs, startup),
            step: 1,
            startup: startup.is_some(),
            always_allocated: startup.is_none(),
            round: None,
            jitter: Jitter::default(),
            delivery_rate: DeliveryRate::default(),
            suspected: None,
            low_queue: false,
            changed: false,
            packet_len: 0,
            acked: 0,
        }
    }

    /// Returns the estimate before any measurement; `startup` as for [`new`](Self::new).
    pub(crate) fn initial(pmdcs: usize, startup: Option<usize>) -> usize {
        (INITIAL_PACKETS * pmdcs).max(startup.unwrap_or(0)).min(LARGEST)
    }

    /// Sets whether the path is filled without any queue. That needs a path with steady delays; on others it costs throughput.
    pub(crate) fn set_low_queue(&mut self, low_queue: bool) {
        self.low_queue = low_queue;
    }

    /// Returns the round trip without a queue; zero before the first measurement.
    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Returns the bytes in flight that fill the path.
    pub(crate) fn bdp(&self) -> usize {
        self.bdp
    }

    /// Data is sent although nothing was in flight. The round is discarded: idle time must not count in the delivery rate.
    pub(crate) fn on_busy(&mut self) {
        self.round = None;
    }

    /// A buffer keeps the path from sending. Unused capacity then does not show that the estimate is too high.
    pub(crate) fn on_buffer_limited(&mut self) {
        if let Some(round) = &mut self.round {
            round.buffer_limited = true;
        }
    }

    /// T3 of `path` has expired. If SACKs arrived over this path until recently, the BDP over the present, longer return
    /// path counts at once. Before the timeout, more data would only have waited in the peer's buffer for the chunks
    /// lost on `path`.
    pub(crate) fn on_timeout_of(&mut self, path: PathId) {
        if self.former.is_some_and(|(_, former)| former == path) {
            self.bdp = self.bdp.max(self.over_longer_return);
        }
        self.over_longer_return = 0;
    }

    /// A SACK has acknowledged bytes of the path, or declared some lost.
    pub(crate) fn on_sack(&mut self, now: Instant, mut report: PathReport) {
        self.acked += report.acked as u64;
        self.compare_len(&mut report);
        if let Some(rtt) = report.rtt.filter(|&rtt| rtt < self.min_rtt) {
            // A shorter round trip counts at once, before the round is over, however little was in flight.
            self.set_return_path(report.return_path, rtt);
        }
        let round = self.round.get_or_insert_with(|| Round::new(now, self.acked));
        round.on_sack(&report, self.return_path);
        let rtt = round.shortest.or(round.elsewhere.map(|(rtt, _)| rtt)).filter(|rtt| !rtt.is_zero());
        let elapsed = now - round.since;
        if let Some(rtt) = rtt
            && elapsed >= rtt
        {
            let rate = (self.acked - round.acked_before) as f64 / elapsed.as_secs_f64();
            let over = std::mem::replace(round, Round::new(now, self.acked));
            self.on_round(&over, rate, rtt, report.pmdcs.max(1));
        }
    }

    /// Makes `path` the return path of SACKs; a round trip over it took `rtt`. If the return path was known before, its
    /// former minimum shows how much a queue adds to `rtt`. Former minima are kept only if allocations always hold.
    /// Otherwise there are queues at times, and each measurement may contain one.
    fn set_return_path(&mut self, path: PathId, rtt: Duration) {
        let known = self.former.filter(|&(_, former)| former == path && former != self.return_path);
        if self.always_allocated && path != self.return_path && !self.min_rtt.is_zero() {
            (self.former, self.over_longer_return) = (Some((self.min_rtt, self.return_path)), 0);
        }
        self.return_path = path;
        self.min_rtt = known.map_or(rtt, |(min_rtt, _)| min_rtt.min(rtt));
    }

    /// Removes the round trip from the report of a short packet. Short packets are faster, so full packets would seem to queue. Only
    /// packets count that are about as long as the longest; a longer packet discards earlier measurements.
    fn compare_len(&mut self, report: &mut PathReport) {
        let len = report.acked.min(report.pmdcs);
        if report.rtt.is_none() {
            return;
        }
        if len + len / ALIKE < self.packet_len {
            report.rtt = None;
        } else if len > self.packet_len + self.packet_len / ALIKE {
            self.packet_len = len;
            self.min_rtt = Duration::ZERO;
            (self.former, self.over_longer_return) = (None, 0);
            self.round = None;
        }
    }

    /// Ends a round in which `rate` bytes per second were acknowledged and the shortest round trip was `rtt`.
    fn on_round(&mut self, round: &Round, rate: f64, rtt: Duration, pmdcs: usize) {
        if let (None, Some((_, path))) = (round.shortest, round.elsewhere) {
            // The path of the SACKs has changed for the whole round.
            let before = self.min_rtt;
            self.set_return_path(path, rtt);
            self.over_longer_return =
                if before.is_zero() { 0 } else { scaled(self.bdp, before, self.min_rtt) };
        }
        if self.min_rtt.is_zero() || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        self.jitter.on_round(rtt, round.peak);
        self.delivery_rate.on_round(round.peak, rate);
        if std::mem::take(&mut self.changed) {
            // The data of this round was sent before the change.
            return;
        }
        let longer = (rtt - self.min_rtt).saturating_sub(self.jitter_allowed());
        let standing_queue =
            if self.delivers_more() { 0.0 } else { rate * longer.as_secs_f64() / pmdcs as f64 };
        if standing_queue > if self.low_queue { LOW_QUEUE_SHRINKS } else { QUEUE_SHRINKS } {
            if !self.has_become_longer(round.peak, rate, rtt) {
                self.shrink(round, standing_queue, pmdcs);
            }
        } else {
            self.suspected = None;
            self.grow_or_return(round, standing_queue, pmdcs);
        }
    }

    /// Returns the time by which a round trip may exceed the minimum without showing a queue: 0 if allocations always
    /// hold, to keep queues short, because a queue as long as the jitter would be too long.
    fn jitter_allowed(&self) -> Duration {
        if self.always_allocated {
            Duration::ZERO
        } else {
            self.jitter.allowance().min(self.min_rtt / MOST_JITTER)
        }
    }

    /// Returns whether the path varies so much that its round trips do not show a queue, while more bytes in flight
    /// still raise the delivery rate.
    fn delivers_more(&self) -> bool {
        self.jitter_allowed() > self.min_rtt / JITTERY && self.delivery_rate.rises_with_flight()
    }

    /// Reduces the estimate by the standing queue of `queue` packets except one, or in low-queue mode by its whole packets.
    fn shrink(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        self.startup = false;
        let packets = if self.low_queue { queue.floor() } else { queue - 1.0 };
        let excess = (packets * pmdcs as f64) as usize;
        let least = (round.peak / 4 * 3).max(SMALLEST_PACKETS * pmdcs);
        self.bdp = self.bdp.min(round.peak.saturating_sub(excess).max(least));
        self.step = 1;
        self.changed = true;
    }

    /// Returns whether the path itself has become longer: a delay that stays although less is in flight is not this sender's queue.
    fn has_become_longer(&mut self, peak: usize, rate: f64, rtt: Duration) -> bool {
        let now = SuspectedQueue { rtt, peak, bdp: self.bdp };
        let first = *self.suspected.get_or_insert(now);
        if rtt > first.rtt + first.rtt / ALIKE as u32 {
            // The queue still grows.
            self.suspected = Some(now);
            return false;
        }
        if peak > first.peak / 4 * 3 {
            return false;
        }
        // A queue of this sender becomes shorter by as much as the flight.
        let expected = (first.peak - peak) as f64 / rate.max(1.0);
        if rtt.as_secs_f64() + expected / 2.0 <= first.rtt.as_secs_f64() {
            self.suspected = Some(now);
            return false;
        }
        self.bdp = scaled(self.bdp.max(first.bdp), self.min_rtt, rtt);
        self.min_rtt = rtt;
        (self.former, self.over_longer_return) = (None, 0);
        self.suspected = None;
        true
    }

    /// Ends a round without a long queue: the estimate grows if the path used it, or loses a part of what was not used.
    fn grow_or_return(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        let used = round.peak + pmdcs;
        let least = if self.low_queue { LOW_QUEUE_GROWS } else { QUEUE_GROWS };
        self.startup &= queue <= least;
        // A full buffer leaves each path less than a packet, so two thirds of the estimate count as full use.
        let enough = if round.buffer_limited && !self.always_allocated { self.bdp / 3 * 2 } else { self.bdp };
        let grows = used >= enough && queue <= least;
        if grows && self.startup {
            // The next round shows whether the estimate is used, and slow start never sends more than a window.
            self.bdp = (2 * self.bdp).min(LARGEST);
        } else if grows {
            self.bdp = (self.bdp + self.step * pmdcs).min(LARGEST);
            self.step = (self.step * 2).min(self.bdp / pmdcs).max(1);
            self.changed = true;
        } else {
            self.step = 1;
        }
        if used < self.bdp && !round.buffer_limited && !grows {
            // The unused part may go to other paths.
            self.bdp -= (self.bdp - used) / 4;
        }
    }
}

/// Returns the BDP with the round trip `to` in place of `from`, at the same rate.
fn scaled(bdp: usize, from: Duration, to: Duration) -> usize {
    ((bdp as f64 * to.div_duration_f64(from)) as usize).min(LARGEST)
}

impl Round {
    fn new(since: Instant, acked_before: u64) -> Self {
        Round { since, acked_before, shortest: None, elsewhere: None, peak: 0, buffer_limited: false }
    }

    fn on_sack(&mut self, report: &PathReport, return_path: PathId) {
        self.peak = self.peak.max(report.flight);
        let Some(rtt) = report.rtt else { return };
        if report.return_path == return_path {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        } else if self.elsewhere.is_none_or(|(shortest, _)| rtt < shortest) {
            self.elsewhere = Some((rtt, report.return_path));
        }
    }
}

/// The estimate before the first measurement, in full packets: an initial window (RFC 6928).
const INITIAL_PACKETS: usize = 10;
/// The smallest estimate: one packet in flight, and one that its acknowledgement allows.
const SMALLEST_PACKETS: usize = 2;
/// A standing queue of more packets than this shrinks the estimate.
const QUEUE_SHRINKS: f64 = 2.5;
/// A standing queue of fewer packets than this lets the estimate grow: the path may not be full. In between the
/// estimate stays: one waiting packet keeps the link busy between two acknowledgements.
const QUEUE_GROWS: f64 = 0.75;
/// The same two in low-queue mode: with whole packets in flight that just fill a path, less than one packet waits.
const LOW_QUEUE_SHRINKS: f64 = 1.1;
const LOW_QUEUE_GROWS: f64 = 0.25;
/// Upper bound of the jitter, as a part of the minimum RTT: where each packet takes long, this sender's own packets cause more.
const MOST_JITTER: u32 = 4;
/// Jitter above this part of the minimum RTT makes the delivery rate count. On a steady path round trips are more reliable.
const JITTERY: u32 = 16;
/// Lengths and round trips that differ by less than this part of the shorter one count as alike.
const ALIKE: usize = 8;
/// The largest estimate: no buffer is larger.
const LARGEST: usize = 1 << 30;
