//! BBR, version 3 (draft-ietf-ccwg-bbr): a separate model of each path, of its bandwidth and its shortest round trip.
//!
//! It sends at the rate at which the path has delivered, and keeps a little more than the BDP in flight. Rare losses do
//! not reduce the rate; losses of more than 2 % of a round trip's data do. Paths are not coupled: an association takes
//! the share of several flows on a bottleneck that several of its paths share.
//!
//! It omits two parts of the draft: the allowance for aggregated acknowledgements (§5.5.9), and the random part of the
//! time between probes. Policies have no randomness, so the path's number and its count of round trips vary that time.

use std::num::NonZeroU64;
use std::time::Duration;

use super::controller::{Ack, Controller, PathWindow, Situation, Sizes};
use crate::path::PathId;
use crate::time::Instant;

/// The controller "bbr".
#[derive(Default)]
pub(super) struct Bbr {
    /// `models[p]` is the model of path `p`.
    models: Vec<Model>,
}

impl Bbr {
    fn model(&mut self, path: PathId) -> &mut Model {
        if self.models.len() <= path.index() {
            self.models.resize_with(path.index() + 1, Model::default);
        }
        &mut self.models[path.index()]
    }
}

impl Controller for Bbr {
    fn on_path_added(&mut self, window: &PathWindow) {
        *self.model(window.path) = Model::default();
    }

    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        self.model(situation.path).on_ack(situation.now, situation.window(), ack)
    }

    fn on_loss(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        self.model(situation.path).on_loss(situation.window(), ack)
    }

    fn on_timeout(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        let window = situation.window();
        let model = self.model(situation.path);
        model.before_recovery = model.before_recovery.max(window.cwnd);
        model.timed_out = Some(situation.now);
        Some(Sizes { cwnd: window.packet.min(window.cwnd), ssthresh: window.ssthresh })
    }

    fn on_spurious(&mut self, situation: &Situation<'_>, before: Sizes) -> Sizes {
        let model = self.model(situation.path);
        (model.bandwidth_low, model.inflight_low) = (None, None);
        model.timed_out = None;
        let window = situation.window();
        Sizes { cwnd: window.cwnd.max(before.cwnd), ssthresh: window.ssthresh.max(before.ssthresh) }
    }

    /// Keeps the window while the path is idle: pacing prevents a burst afterwards (§5.4.1).
    fn on_idle(&mut self, situation: &Situation<'_>) -> Option<Sizes> {
        self.model(situation.path).was_idle = true;
        Some(situation.window().unchanged())
    }

    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        NonZeroU64::new(self.model(path).pacing_rate as u64)
    }
}

/// Phase of the model of a path (§4.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// The rate doubles in each round trip, until the bandwidth stops growing or much is lost.
    #[default]
    Startup,
    /// The rate is below the bandwidth, until the queue of Startup has drained.
    Drain,
    /// The rate is below the bandwidth: the queue of the last probe drains, and other flows get room.
    Down,
    /// The rate is the bandwidth.
    Cruise,
    /// The rate is the bandwidth for a round trip, and the bounds that losses set are discarded: the path fills.
    Refill,
    /// The rate is above the bandwidth, to find out whether more is available.
    Up,
    /// Half of the BDP is in flight for a moment, to measure the round trip without a queue.
    ProbeRtt,
}

impl Phase {
    /// Returns the multiple of the bandwidth at which the path sends.
    fn pacing_gain(self) -> f64 {
        match self {
            Phase::Startup => 2.77,
            Phase::Drain => 0.5,
            Phase::Down => 0.9,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
            Phase::Up => 1.25,
        }
    }

    /// Returns the multiple of the BDP that may be in flight.
    fn window_gain(self) -> f64 {
        match self {
            Phase::ProbeRtt => 0.5,
            Phase::Up => 2.25,
            _ => 2.0,
        }
    }

    /// Returns whether the phase looks for more bandwidth. Losses then show the limit of the path, and set no bounds
    /// until the next probe.
    fn probes(self) -> bool {
        matches!(self, Phase::Startup | Phase::Refill | Phase::Up)
    }
}

/// The model of one path. Rates are in bytes per second.
#[derive(Clone, Debug, Default)]
struct Model {
    phase: Phase,
    /// Number of round trips, and the beginning of the current one.
    round: u64,
    round_began: Instant,
    /// Bytes delivered and lost in this round trip, and the number of SACKs in it that reported losses.
    delivered: usize,
    lost: usize,
    loss_events: u32,
    /// The highest sample of the bandwidth in this round trip.
    latest_bandwidth: f64,
    /// The highest samples of the bandwidth in the last cycle of probes and in this one.
    max_bandwidth: [f64; 2],
    /// Bounds that losses have set, valid until the next probe (`bw_lo`, `inflight_lo`; §5.5.11).
    bandwidth_low: Option<f64>,
    inflight_low: Option<f64>,
    /// Bytes in flight that the path has carried without too many losses (`inflight_hi`).
    inflight_high: Option<f64>,
    /// Bandwidth in Startup that the next round trips have to exceed, and the number of round trips that did not.
    full_bandwidth: f64,
    rounds_without_growth: u32,
    is_full: bool,
    /// The shortest round trip of the last ten seconds, and the time of its measurement.
    min_rtt: Option<(Duration, Instant)>,
    /// The shortest round trip since the last ProbeRTT, and the time of its measurement. ProbeRTT is due when it is
    /// older than five seconds.
    probed_rtt: Option<(Duration, Instant)>,
    /// True after an idle time, until a round trip is measured: the queue has drained.
    was_idle: bool,
    /// The earliest end of ProbeRTT, as time and round trip; set once little enough is in flight.
    probe_rtt_ends: Option<(Instant, u64)>,
    /// The beginning of this cycle, as time and round trip.
    cycle: (Instant, u64),
    /// True while the losses of this cycle's probe have not been judged.
    judges_probe: bool,
    /// Round trips of this probe, which raise its limit faster and faster.
    probe_rounds: u32,
    /// The window before recovery or ProbeRTT, in bytes.
    before_recovery: usize,
    /// Time of the last timeout. The recovery from it is over, and the time removed, when a chunk is acknowledged that
    /// was first sent after the timeout, and so after all chunks that the timeout declared lost.
    timed_out: Option<Instant>,
    /// Number of round trips with which the first one of a recovery is over. Until then no more is sent than is acknowledged.
    conserves_until: Option<u64>,
    pacing_rate: f64,
}

impl Model {
    fn on_ack(&mut self, now: Instant, window: &PathWindow, ack: &Ack) -> Sizes {
        let begins = self.count_round(now, ack);
        self.lost = self.lost.saturating_add(ack.lost);
        self.loss_events += u32::from(ack.lost > 0);
        self.delivered = self.delivered.saturating_add(ack.bytes);
        let sample = ack.rate as f64;
        self.latest_bandwidth = self.latest_bandwidth.max(sample);
        if ack.fully_used || sample >= self.bandwidth_seen() {
            self.max_bandwidth[1] = self.max_bandwidth[1].max(sample);
        }
        self.note_rtt(now, ack.rtt);
        self.judge_losses(now, window, ack);
        if begins {
            self.on_round(ack);
        }
        self.advance(now, window, ack, begins);
        self.probe_rtt(now, window, ack);
        if begins {
            self.forget_round();
        }
        self.set_pace(window);
        if let (Some(since), Some(rtt)) = (self.timed_out, ack.rtt)
            && now.since(since) >= rtt
        {
            self.timed_out = None;
        }
        self.window(window, ack)
    }

    /// Begins recovery: for a round trip no more is sent than is acknowledged (§5.6.4.4).
    fn on_loss(&mut self, window: &PathWindow, ack: &Ack) -> Sizes {
        self.before_recovery = self.before_recovery.max(window.cwnd);
        self.conserves_until = Some(self.round + 1);
        let kept = ack.flight_after.saturating_add(ack.bytes.max(window.packet)).min(window.cwnd);
        Sizes { cwnd: kept.max(window.packet.min(window.cwnd)), ssthresh: window.ssthresh }
    }

    /// Counts a round trip when data is acknowledged that was sent after the round trip began (§5.5.1). Returns whether one has ended.
    fn count_round(&mut self, now: Instant, ack: &Ack) -> bool {
        let over = ack.rtt.is_some_and(|rtt| now.since(self.round_began) >= rtt);
        if over {
            self.round += 1;
            self.round_began = now;
        }
        over
    }

    /// Acts on the end of a round trip, before its sums are reset.
    fn on_round(&mut self, ack: &Ack) {
        if self.phase == Phase::Startup && !self.is_full {
            self.look_for_plateau(ack);
        }
        if self.lost > 0 && !self.phase.probes() {
            let bandwidth = self.bandwidth_low.unwrap_or_else(|| self.bandwidth_seen());
            let inflight = self.inflight_low.unwrap_or_else(|| self.target(1.0));
            self.bandwidth_low = Some((BETA * bandwidth).max(self.latest_bandwidth));
            self.inflight_low = Some((BETA * inflight).max(self.delivered as f64));
        }
    }

    fn forget_round(&mut self) {
        (self.delivered, self.lost, self.loss_events) = (0, 0, 0);
        self.latest_bandwidth = 0.0;
    }

    /// Notes that the path is full: after three round trips without growth by a quarter, or one with many losses (§5.3.1.2, §5.3.1.3).
    fn look_for_plateau(&mut self, ack: &Ack) {
        if self.bandwidth_seen() >= self.full_bandwidth * GROWTH {
            self.full_bandwidth = self.bandwidth_seen();
            self.rounds_without_growth = 0;
        } else if ack.fully_used {
            self.rounds_without_growth += 1;
        }
        let loses = self.loss_events >= LOSS_EVENTS && self.loses_too_much();
        if loses {
            self.inflight_high = Some(self.target(1.0).max(self.delivered as f64));
        }
        self.is_full |= loses || self.rounds_without_growth >= PLATEAU;
    }

    fn loses_too_much(&self) -> bool {
        self.lost as f64 > LOSS_THRESHOLD * (self.delivered as f64 + self.lost as f64)
    }

    /// Ends a probe that has lost too much: it has found the limit (§5.5.10.2).
    fn judge_losses(&mut self, now: Instant, window: &PathWindow, ack: &Ack) {
        let too_much = ack.lost > 0 && self.lost as f64 > LOSS_THRESHOLD * ack.flight_before as f64;
        if !(self.judges_probe && too_much && self.lost > window.packet) {
            return;
        }
        self.judges_probe = false;
        if ack.fully_used {
            self.inflight_high = Some((ack.flight_before as f64).max(BETA * self.target(1.0)));
        }
        if self.phase == Phase::Up {
            self.begin_cycle(now);
        }
    }

    /// Enters the next phase if its condition is met.
    fn advance(&mut self, now: Instant, window: &PathWindow, ack: &Ack, begins: bool) {
        let flight = ack.flight_after as f64;
        let since = now.since(self.cycle.0);
        match self.phase {
            Phase::Startup if self.is_full => self.phase = Phase::Drain,
            Phase::Drain if flight <= self.target(1.0) => self.begin_cycle(now),
            Phase::Down | Phase::Cruise if self.is_time_to_probe(window, since) => {
                self.phase = Phase::Refill;
                (self.bandwidth_low, self.inflight_low) = (None, None);
                (self.probe_rounds, self.judges_probe) = (0, true);
                self.cycle = (now, self.round);
            }
            Phase::Down if flight <= self.target(1.0).min(self.with_headroom()) => self.phase = Phase::Cruise,
            Phase::Refill if begins && self.round > self.cycle.1 => {
                self.phase = Phase::Up;
                self.cycle = (now, self.round);
            }
            Phase::Up => {
                if begins {
                    self.raise_limit(window);
                }
                let long = self.min_rtt.is_some_and(|(rtt, _)| since > rtt);
                if long && flight >= self.target(Phase::Up.pacing_gain()) {
                    self.begin_cycle(now);
                }
            }
            _ => {}
        }
    }

    /// Begins a cycle, in which the queue of the last probe drains first, and forgets the bandwidth of two cycles ago.
    fn begin_cycle(&mut self, now: Instant) {
        self.phase = Phase::Down;
        self.cycle = (now, self.round);
        if self.max_bandwidth[1] > 0.0 {
            self.max_bandwidth = [self.max_bandwidth[1], 0.0];
        }
    }

    /// Returns whether a probe is due: after two to three seconds, or as many round trips as Reno needs to recover from
    /// a loss (§5.3.3.8).
    fn is_time_to_probe(&self, window: &PathWindow, since: Duration) -> bool {
        let scattered = (self.round * 7 + u64::from(window.path.0) * 3) % 11;
        let wait = PROBE_WAIT + Duration::from_millis(scattered * 100);
        let packets = self.target(1.0) / window.packet.max(1) as f64;
        since >= wait || (self.round - self.cycle.1) as f64 >= packets.clamp(1.0, MOST_ROUNDS)
    }

    /// Raises the limit after a round trip of a probe, by twice as much each time (§5.3.3.6).
    fn raise_limit(&mut self, window: &PathWindow) {
        self.probe_rounds += 1;
        let step = (1_u64 << self.probe_rounds.min(30)) as f64 * window.packet as f64;
        self.inflight_high = self.inflight_high.map(|high| high + step);
    }

    fn note_rtt(&mut self, now: Instant, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        // The first round trip after an idle time measures the path without a queue, as a ProbeRTT does (§5.3.4.3).
        if std::mem::take(&mut self.was_idle) && self.is_time_to_probe_rtt(now) {
            self.probed_rtt = None;
        }
        if self.probed_rtt.is_none_or(|(least, _)| rtt <= least) {
            self.probed_rtt = Some((rtt, now));
        }
        let stale = self.min_rtt.is_some_and(|(_, since)| now.since(since) > RTT_MEMORY);
        if stale || self.min_rtt.is_none_or(|(least, _)| rtt <= least) {
            self.min_rtt = Some((rtt, now));
        }
    }

    /// Begins or ends ProbeRTT (§5.3.4): the queue drains for a moment if no round trip was as short for five seconds.
    fn probe_rtt(&mut self, now: Instant, window: &PathWindow, ack: &Ack) {
        if self.phase != Phase::ProbeRtt {
            if self.is_time_to_probe_rtt(now) && self.is_full {
                self.before_recovery = self.before_recovery.max(window.cwnd);
                self.phase = Phase::ProbeRtt;
                (self.probe_rtt_ends, self.probed_rtt) = (None, None);
            }
            return;
        }
        let reached = ack.flight_after as f64 <= self.floor(window).max(self.target(0.5));
        match self.probe_rtt_ends {
            None if reached => self.probe_rtt_ends = Some((now + PROBE_RTT_TIME, self.round + 1)),
            Some((end, round)) if now >= end && self.round >= round => {
                self.min_rtt = self.probed_rtt.or(self.min_rtt);
                (self.bandwidth_low, self.inflight_low) = (None, None);
                self.begin_cycle(now);
                self.phase = Phase::Cruise;
            }
            _ => {}
        }
    }

    fn is_time_to_probe_rtt(&self, now: Instant) -> bool {
        self.probed_rtt.is_some_and(|(_, since)| now.since(since) > PROBE_RTT_EACH)
    }

    /// Returns the highest bandwidth of this cycle of probes and the last, in bytes per second.
    fn bandwidth_seen(&self) -> f64 {
        self.max_bandwidth[0].max(self.max_bandwidth[1])
    }

    fn bandwidth(&self) -> f64 {
        self.bandwidth_low.map_or(self.bandwidth_seen(), |low| low.min(self.bandwidth_seen()))
    }

    /// Returns `gain` times the BDP, in bytes; 0 before the first measurement.
    fn target(&self, gain: f64) -> f64 {
        self.min_rtt.map_or(0.0, |(rtt, _)| gain * self.bandwidth() * rtt.as_secs_f64())
    }

    /// Returns the limit less the headroom for other flows, in bytes.
    fn with_headroom(&self) -> f64 {
        self.inflight_high.map_or(f64::INFINITY, |high| high * (1.0 - HEADROOM))
    }

    fn floor(&self, window: &PathWindow) -> f64 {
        (LEAST_PACKETS * window.packet) as f64
    }

    fn set_pace(&mut self, window: &PathWindow) {
        let rate = match self.bandwidth() {
            // Before the first sample of the bandwidth, the rate follows from the window.
            0.0 => window.srtt.map_or(0.0, |srtt| window.cwnd as f64 / srtt.as_secs_f64().max(1e-6)),
            bandwidth => bandwidth * MARGIN,
        };
        let rate = self.phase.pacing_gain() * rate;
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Computes the window from the model, within the bounds that losses have set (§5.6.4).
    fn window(&mut self, window: &PathWindow, ack: &Ack) -> Sizes {
        let packet = window.packet as f64;
        let run = (self.pacing_rate * RUN_TIME).clamp(2.0 * packet, LARGEST_RUN);
        let most = (self.target(self.phase.window_gain()) + 3.0 * run).max(self.floor(window));
        let mut cwnd = window.cwnd as f64;
        if self.conserves_until.is_some_and(|round| window.recovering && self.round < round) {
            cwnd = cwnd.max(ack.flight_after as f64 + ack.bytes as f64);
        } else {
            self.conserves_until = None;
            if self.phase != Phase::ProbeRtt && self.timed_out.is_none() {
                cwnd = cwnd.max(std::mem::take(&mut self.before_recovery) as f64);
            }
            let grown = cwnd + ack.bytes as f64;
            cwnd = if self.is_full {
                grown.min(most)
            } else if cwnd < most {
                grown
            } else {
                cwnd
            };
        }
        let bound = match self.phase {
            Phase::Startup | Phase::Drain => f64::INFINITY,
            Phase::Refill | Phase::Up => self.inflight_high.unwrap_or(f64::INFINITY),
            Phase::Down | Phase::Cruise | Phase::ProbeRtt => self.with_headroom(),
        };
        let bound = bound.min(self.inflight_low.unwrap_or(f64::INFINITY));
        let bound = if self.phase == Phase::ProbeRtt { bound.min(self.target(0.5)) } else { bound };
        let cwnd = cwnd.min(bound).max(self.floor(window)).min(Sizes::LARGEST as f64) as usize;
        let ssthresh = if self.is_full { cwnd } else { window.ssthresh };
        Sizes { cwnd, ssthresh }
    }
}

/// Part of a window that remains after losses (§2.7).
const BETA: f64 = 0.7;
/// Part of a round trip's data that may be lost.
const LOSS_THRESHOLD: f64 = 0.02;
/// Number of SACKs with losses in a round trip at which these may end Startup.
const LOSS_EVENTS: u32 = 6;
/// Part of the limit that is left to other flows while there is no probe.
const HEADROOM: f64 = 0.15;
/// Growth of the bandwidth in a round trip below which Startup has found it, and number of such round trips.
const GROWTH: f64 = 1.25;
const PLATEAU: u32 = 3;
/// Pacing rate as a part of the bandwidth, so that there is no standing queue.
const MARGIN: f64 = 0.99;
/// Packets that may always be in flight.
const LEAST_PACKETS: usize = 4;
/// Least time between probes of the bandwidth, and the most round trips between them.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const MOST_ROUNDS: f64 = 63.0;
/// Length of the filter of the shortest round trip (MinRTTFilterLen).
const RTT_MEMORY: Duration = Duration::from_secs(10);
/// Time between probes of the round trip, and the duration of a probe.
const PROBE_RTT_EACH: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Time whose data may leave at once, in seconds, and the most bytes of it (§5.6.3).
const RUN_TIME: f64 = 0.001;
const LARGEST_RUN: f64 = 65_536.0;

#[cfg(test)]
mod tests;
