//! Estimate of a path's bandwidth-delay product (BDP): the bytes in flight that fill the path without a standing queue.
//!
//! Data beyond it waits in a queue of the network, occupies buffer, and adds no throughput. The estimate
//! serves the allocation of buffers alone: no rule of the protocol depends on it, and congestion windows are separate.
//! It is made in rounds of one round trip (docs/sharing.md).

mod lower_bound;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::delivery_rate::DeliveryRate;
use super::jitter::Jitter;
use super::view::PathReport;
use crate::path::PathId;
use crate::time::Instant;
use lower_bound::LowerBound;

/// The estimate of one path. Bytes are those of DATA chunks.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Capacity {
    /// The shortest round trip, without a standing queue; zero before the first measurement.
    min_rtt: Duration,
    /// The path of the SACKs that `min_rtt` was measured by. Round trips over other return paths are not compared with it.
    return_path: PathId,
    /// The same two of the return path before, where allocations always hold.
    former: Option<(Duration, PathId)>,
    /// The BDP at the delivery rate of then over the present, longer return path.
    over_longer_return: usize,
    /// The estimate.
    bdp: usize,
    /// The step by which it grows next, in packets; doubles as long as no queue shows.
    step: usize,
    /// No queue has shown yet, and slow start is not to be held up: the estimate doubles each round, as a window does there.
    startup: bool,
    /// Allocations hold always, and not only while a buffer is short.
    always_allocated: bool,
    round: Option<Round>,
    jitter: Jitter,
    delivery_rate: DeliveryRate,
    suspected: Option<SuspectedQueue>,
    /// The path is to be filled without any queue.
    low_queue: bool,
    /// The estimate has changed in the last round: acknowledgements tell of the change a round later.
    changed: bool,
    /// User data of the packets whose round trips count.
    packet_len: usize,
    lower_bound: LowerBound,
    /// Bytes acknowledged so far.
    acked: u64,
}

/// Measurements since a round began. It lasts a round trip.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Round {
    since: Instant,
    /// Bytes acknowledged until then.
    acked_before: u64,
    /// The shortest round trip. The first packet of a burst has it: only a standing queue makes it longer.
    shortest: Option<Duration>,
    /// The same of SACKs that came over another path than `Capacity::return_path`, and which.
    elsewhere: Option<(Duration, PathId)>,
    /// Most bytes in flight.
    peak: usize,
    /// A buffer kept the path from sending.
    buffer_limited: bool,
}

/// The state when a queue was first seen that has not gone since: if it stays although less is in flight, it is none of ours.
#[derive(Copy, Clone, PartialEq, Debug)]
struct SuspectedQueue {
    rtt: Duration,
    /// Most bytes in flight, and the estimate.
    peak: usize,
    bdp: usize,
}

impl Capacity {
    /// Of a path that had `startup` bytes in flight before anything was known of it, where allocations hold only while a
    /// buffer is short: slow start went on without them. `None` where they hold always, to keep queues short: a leap
    /// would be a queue.
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
            lower_bound: LowerBound::new(),
            acked: 0,
        }
    }

    /// The estimate before any measurement; `startup` as for [`new`](Self::new).
    pub(crate) fn initial(pmdcs: usize, startup: Option<usize>) -> usize {
        (INITIAL_PACKETS * pmdcs).max(startup.unwrap_or(0)).min(LARGEST)
    }

    /// Has the path filled without any queue, or no longer. That takes a steady path; elsewhere it costs throughput.
    pub(crate) fn set_low_queue(&mut self, low_queue: bool) {
        self.low_queue = low_queue;
    }

    /// The round trip without a queue; zero when not yet known.
    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Bytes in flight that fill the path.
    pub(crate) fn bdp(&self) -> usize {
        self.bdp
    }

    /// Bytes that the path holds for certain without a queue: less than the estimate where a buffer has kept the path
    /// from ever using that.
    pub(crate) fn lower_bound(&self) -> usize {
        self.lower_bound.bytes().min(self.bdp)
    }

    /// A packet with data was sent, of at most `pmdcs` bytes, and `flight` bytes are in flight now.
    pub(crate) fn on_sent(&mut self, now: Instant, flight: usize, pmdcs: usize) {
        self.lower_bound.on_sent(now, flight, pmdcs);
    }

    /// Data is sent although nothing was in flight: idleness says nothing of the delivery rate.
    pub(crate) fn on_busy(&mut self) {
        self.round = None;
    }

    /// A buffer keeps the path from sending: that it is not full says nothing of its capacity.
    pub(crate) fn on_buffer_limited(&mut self) {
        if let Some(round) = &mut self.round {
            round.buffer_limited = true;
        }
    }

    /// T3 of `path` has expired. If SACKs came back over it until lately, the longer return path that they take now
    /// counts at once. Before, what had been sent more would only have waited in the peer's buffer for what was lost
    /// there.
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
            // However little was in flight, and so before any round is over.
            self.set_return_path(report.return_path, rtt);
        }
        self.lower_bound.on_sack(now, &report, self.min_rtt, self.bdp);
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

    /// SACKs come over `path` from now on, where one took `rtt`. What a queue adds to that shows if the return path was
    /// known before. Nothing is remembered where allocations hold only while a buffer is short: queues stand there
    /// otherwise, and each measurement of then may contain one.
    fn set_return_path(&mut self, path: PathId, rtt: Duration) {
        let known = self.former.filter(|&(_, former)| former == path && former != self.return_path);
        if self.always_allocated && path != self.return_path && !self.min_rtt.is_zero() {
            (self.former, self.over_longer_return) = (Some((self.min_rtt, self.return_path)), 0);
        }
        self.return_path = path;
        self.min_rtt = known.map_or(rtt, |(min_rtt, _)| min_rtt.min(rtt));
    }

    /// Short packets are faster: beside their round trips, full ones would seem to queue. Only those count that are about
    /// as long as the longest.
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

    /// A round is over in which `rate` bytes a second were acknowledged and the shortest round trip was `rtt`.
    fn on_round(&mut self, round: &Round, rate: f64, rtt: Duration, pmdcs: usize) {
        if let (None, Some((_, path))) = (round.shortest, round.elsewhere) {
            // SACKs have changed their path for good.
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
            // This round tells of what was sent before.
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

    /// Time by which a round trip may exceed the minimum without a queue. Where allocations hold always, to keep queues
    /// short, a queue of as much as the jitter would be one too long.
    fn jitter_allowed(&self) -> Duration {
        if self.always_allocated {
            Duration::ZERO
        } else {
            self.jitter.allowance().min(self.min_rtt / MOST_JITTER)
        }
    }

    /// Returns whether the path varies so much that its round trips tell of no queue, while more in flight still
    /// delivers more.
    fn delivers_more(&self) -> bool {
        self.jitter_allowed() > self.min_rtt / JITTERY && self.delivery_rate.rises_with_flight()
    }

    /// Takes away the standing queue of `queue` packets, but for one, or whole packets of it if none is wanted.
    fn shrink(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        self.startup = false;
        let packets = if self.low_queue { queue.floor() } else { queue - 1.0 };
        let excess = (packets * pmdcs as f64) as usize;
        let least = (round.peak / 4 * 3).max(SMALLEST_PACKETS * pmdcs);
        self.bdp = self.bdp.min(round.peak.saturating_sub(excess).max(least));
        self.step = 1;
        self.changed = true;
    }

    /// Returns whether the path itself has become longer: what stays although less is in flight is no queue of ours.
    fn has_become_longer(&mut self, peak: usize, rate: f64, rtt: Duration) -> bool {
        let now = SuspectedQueue { rtt, peak, bdp: self.bdp };
        let first = *self.suspected.get_or_insert(now);
        if rtt > first.rtt + first.rtt / ALIKE as u32 {
            // A queue that still grows.
            self.suspected = Some(now);
            return false;
        }
        if peak > first.peak / 4 * 3 {
            return false;
        }
        // A queue shortens by as much as the flight.
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

    /// After a round without a long queue: grows if the path used the estimate, or returns a part of what it did not use.
    fn grow_or_return(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        let used = round.peak + pmdcs;
        let least = if self.low_queue { LOW_QUEUE_GROWS } else { QUEUE_GROWS };
        if self.startup && round.buffer_limited && used < self.bdp {
            // The estimate has doubled, and a buffer does not let the path show that it can use that.
            self.startup = false;
            self.bdp = used;
        }
        self.startup &= queue <= least;
        // A buffer that is full leaves less than a packet to each.
        let enough = if round.buffer_limited && !self.always_allocated { self.bdp / 3 * 2 } else { self.bdp };
        let grows = used >= enough && queue <= least;
        if grows && self.startup {
            // Whether it is used shows at once, and more than a window in slow start is never sent.
            self.bdp = (2 * self.bdp).min(LARGEST);
        } else if grows {
            self.bdp = (self.bdp + self.step * pmdcs).min(LARGEST);
            self.step = (self.step * 2).min(self.bdp / pmdcs).max(1);
            self.changed = true;
        } else {
            self.step = 1;
        }
        if used < self.bdp && !round.buffer_limited && !grows {
            // What is not used may go to others.
            self.bdp -= (self.bdp - used) / 4;
        }
    }
}

/// BDP with the round trip `to` in place of `from`, at the same rate.
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
/// No estimate is smaller: one packet on its way, and one that its acknowledgement lets out.
const SMALLEST_PACKETS: usize = 2;
/// A standing queue of more packets than this shrinks the estimate.
const QUEUE_SHRINKS: f64 = 2.5;
/// One of fewer than this lets it grow: the path may not be full. In between it stays: a packet that waits keeps the link busy
/// between two acknowledgements.
const QUEUE_GROWS: f64 = 0.75;
/// The same two where no queue is wanted: the whole packets in flight that fill a path keep less than one waiting.
const LOW_QUEUE_SHRINKS: f64 = 1.1;
const LOW_QUEUE_GROWS: f64 = 0.25;
/// Jitter is taken to be no more than this part of the minimum RTT: where each packet takes long, packets of ours cause more.
const MOST_JITTER: u32 = 4;
/// With jitter above this part of the minimum RTT the delivery rate is asked. On a steady path round trips know better.
const JITTERY: u32 = 16;
/// Lengths and round trips that differ by less than this part of the shorter one count as alike.
const ALIKE: usize = 8;
/// No buffer is larger.
const LARGEST: usize = 1 << 30;
