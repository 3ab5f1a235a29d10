//! The paths of an association: their state, and the amount of data that each may carry.
//!
//! Owns round-trip times, T3, error counters, heartbeats and windows; calls the congestion controller
//! once per SACK. Independent of chunks and TSNs: the ring of outstanding chunks reports the bytes in
//! flight and acknowledged, and other modules decide which path sends.

mod address;
mod adjust;
mod choice;
mod estimate;
mod fill;
mod health;
mod heartbeat;
mod limit;
mod member;
mod mtu;
mod pacer;
mod path;
mod probing;
mod rtt;
mod tail;
mod timers;
mod undo;
mod view;
mod windows;

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use address::{can_meet, is_usable, pairs, partners, unreachable};
pub(crate) use health::Failure;
pub(crate) use limit::LimitClock;
pub(crate) use member::Member;
pub(crate) use path::Path;
pub(crate) use timers::{LossCheck, PathTimer};
use tresse_policy::congestion::Sizes;
use tresse_policy::engine::{PathAck, Window};
use tresse_policy::{Instant, PathId, PathState, Registry, ScheduleError};

use crate::collections::InlineVec;
use crate::config::{AssociationConfig, LossDetection, SackPath};
use crate::fragment::DataFormat;

use fill::Arrived;
use health::{AssociationHealth, Watch};
use path::MtuRule;
use rtt::RtoRules;
use windows::Windows;

/// The paths of one association. A [`PathId`] given to its methods is one that it gave out.
pub(crate) struct Paths {
    paths: Vec<Path>,
    /// `windows[p]` is that of path `p`.
    pub(crate) windows: Windows,
    rules: Arc<PathRules>,
    /// The chunk that user data travels in.
    pub(crate) data_format: DataFormat,
    /// Bytes of every packet that authentication and protection take.
    pub(crate) overhead: u16,
    primary: PathId,
    health: AssociationHealth,
    /// Before this no further unconfirmed path is probed.
    next_probe: Instant,
    /// Most user data that a chunk carries in a packet of its own on every path, in bytes.
    smallest_payload: u16,
    /// No timer expires before this; `None` when that has to be worked out anew. Worked out for each call, a simulation of two
    /// paths takes 9 % more instructions.
    quiet_until: Cell<Option<Instant>>,
    /// Heartbeats are sent: the association is established and not shutting down.
    probing: bool,
    /// The peer complained of what fills a probe of the packet size: none is sent any more.
    mtu_search_over: bool,
}

/// The settings of this room, shared by all associations that have the same.
#[derive(Debug)]
pub(crate) struct PathRules {
    rto: RtoRules,
    watch: Watch,
    /// Full packets in the window of a path that a heartbeat has brought back.
    window_after_failure: usize,
    mtu: MtuRule,
    initial_window: usize,
    /// Full packets that a loss leaves of ssthresh at least.
    min_ssthresh: u16,
    max_paths: usize,
    concurrent: bool,
    /// True if what windows let leave is spread over the round trip.
    paces: bool,
    /// Losses are found by time, and the end of what was sent is probed.
    probes_tail: bool,
    sack_path: SackPath,
    /// Interval at which a path that brings data is measured, where SACKs go by that.
    sack_path_probes: Duration,
}

/// Effect of a SACK on one path, apart from congestion control.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathProgress {
    /// The path.
    pub(crate) path: PathId,
    /// A round-trip time, if the chunk that was timed has been acknowledged: at most one chunk of a
    /// path is timed at a time (RFC 9260 §6.3.1 C4).
    pub(crate) rtt: Option<Duration>,
    /// The shortest round trip of what was newly acknowledged and sent only once, timed or not.
    pub(crate) shortest: Option<Duration>,
    /// The path that the SACK came over.
    pub(crate) via: PathId,
    /// True if the earliest outstanding chunk of the path was acknowledged.
    pub(crate) earliest_acked: bool,
    /// True if a chunk was acknowledged that was sent on this path and on no other.
    pub(crate) proven: bool,
    /// Size of the longest of these that was sent only once.
    pub(crate) longest_proven: usize,
    /// Bytes newly acknowledged beside those that may earn a larger window: of chunks that were moved here before they
    /// counted as lost.
    pub(crate) uncredited: usize,
    /// User data of all that was newly acknowledged.
    pub(crate) user_data: usize,
    /// Bytes in flight after this SACK.
    pub(crate) flight_after: usize,
    /// True if the path has still to answer for something: what is in flight, what left it early, or a FORWARD TSN.
    pub(crate) awaits: bool,
    /// The peer may hold back its report on what is in flight.
    pub(crate) late: bool,
    /// Time at which what was overtaken on the path will count as lost, if nothing is heard of it.
    pub(crate) look_again: Option<Instant>,
    /// True if what was lost now had been sent three times and more: perhaps it is too long for the path.
    pub(crate) stubborn: bool,
}

impl Paths {
    /// No paths yet, and room for `count`; user data will travel in chunks of the kind `data_format`. `rules` are those of
    /// `config`.
    ///
    /// # Errors
    /// A congestion controller that does not exist, or refuses its configuration.
    pub(crate) fn new(
        config: &AssociationConfig,
        registry: &Registry,
        rules: Arc<PathRules>,
        data_format: DataFormat,
        now: Instant,
        count: usize,
    ) -> Result<Self, ScheduleError> {
        let controller =
            registry.build_controller(&config.congestion_control, &config.congestion_control_config)?;
        Ok(Paths {
            paths: Vec::with_capacity(count),
            windows: Windows::new(controller, count),
            rules,
            data_format,
            overhead: 0,
            primary: PathId(0),
            health: AssociationHealth::new(config.association_max_retrans),
            next_probe: now,
            smallest_payload: 0,
            quiet_until: Cell::new(None),
            probing: false,
            mtu_search_over: false,
        })
    }

    /// Adds a path; the first is the primary one. `confirmed` says that it needs no proof by
    /// heartbeat (RFC 9260 §5.4). `None` when there are as many as allowed.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: IpAddr,
        encapsulation_port: Option<u16>,
        confirmed: bool,
    ) -> Option<PathId> {
        if self.paths.len() >= self.rules.max_paths {
            return None;
        }
        let id = PathId(u8::try_from(self.paths.len()).ok()?);
        let (path, window) = self.fresh(id, now, (local, remote), encapsulation_port, confirmed);
        // Most associations have one or two paths; doubling would waste more than it saves.
        self.paths.reserve_exact(1);
        self.quiet_until.set(None);
        self.paths.push(path);
        self.windows.begin(id, window);
        self.refresh_payload(id);
        Some(id)
    }

    fn fresh(
        &self,
        id: PathId,
        now: Instant,
        between: (IpAddr, IpAddr),
        encapsulation_port: Option<u16>,
        confirmed: bool,
    ) -> (Path, Window) {
        let sizes = (self.rules.mtu, self.data_format, &self.rules.rto);
        let path = Path::new(id, between, encapsulation_port, confirmed, sizes, now);
        let ipv6 = between.1.is_ipv6();
        let window = Window::new(path.pmdcs(), ipv6, self.rules.initial_window);
        (path, Window { usable: confirmed, min_ssthresh: self.rules.min_ssthresh, ..window })
    }

    /// Number of places, those of removed paths included.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// All of them, by position, removed ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    /// One of them.
    pub(crate) fn get(&self, id: PathId) -> &Path {
        &self.paths[id.index()]
    }

    /// The path between these addresses.
    pub(crate) fn find(&self, local: IpAddr, remote: IpAddr) -> Option<PathId> {
        self.living().find(|path| path.local == local && path.remote == remote).map(|path| path.id)
    }

    /// The first path to this address of the peer, at best one that can be answered on.
    pub(crate) fn find_remote(&self, remote: IpAddr) -> Option<PathId> {
        let paths = self.living().filter(|path| path.remote == remote);
        paths.min_by_key(|path| (path.member != Member::Joined, path.id)).map(|path| path.id)
    }

    /// Prefers another path; one that does not exist, or is removed, changes nothing.
    pub(crate) fn set_primary(&mut self, id: PathId) {
        if self.paths.get(id.index()).is_some_and(|path| path.member == Member::Joined) {
            self.primary = id;
        }
    }

    /// The next path whose state has changed since this was last asked, with its new state. To be
    /// asked until there is none, after whatever can change a path.
    pub(crate) fn pop_state_change(&mut self) -> Option<(PathId, PathState)> {
        self.paths.iter_mut().find_map(|path| Some((path.id, path.unreported()?)))
    }

    /// A packet of `bytes` arrived, SCTP headers included, and its tag is right: the peer is where it
    /// came from (RFC 6951 §5.4).
    pub(crate) fn on_packet_received(
        &mut self,
        id: PathId,
        now: Instant,
        bytes: usize,
        encapsulation_port: Option<u16>,
    ) {
        let path = self.path_mut_quietly(id);
        path.heard = now;
        path.counters.packets_received += 1;
        path.counters.packet_bytes_received += bytes as u64;
        if path.encapsulation_port != encapsulation_port {
            path.encapsulation_port = encapsulation_port;
            self.refresh_payload(id);
        }
    }

    /// DATA arrived on the path: where SACKs take the fastest way, its round-trip time is wanted.
    pub(crate) fn on_data_received(&mut self, id: PathId) {
        if self.path_mut_quietly(id).heartbeats.on_data() {
            self.quiet_until.set(None);
        }
    }

    /// A SACK was processed: times, T3 (RFC 9260 §6.3.2 R2 to R4), error counters (§8.1, §8.2), windows.
    ///
    /// `acks` and `progress` are in step and have at most one entry for each path.
    pub(crate) fn on_sack(&mut self, now: Instant, acks: &[PathAck], progress: &[PathProgress]) {
        for step in progress {
            if let Some(sample) = step.rtt {
                self.on_rtt(step.path, sample);
            }
            if !step.awaits {
                self.stop_t3(step.path);
            } else if step.earliest_acked || !self.get(step.path).t3_runs() {
                self.restart_t3(step.path, now);
            }
            if self.rules.probes_tail {
                let due = self.path_mut_quietly(step.path).look_after(now, step);
                self.quiet_until
                    .set(self.quiet_until.get().map(|until| due.map_or(until, |due| until.min(due))));
                // As long as shorter packets arrive, T3 does not tell of a black hole (RFC 8899 §4.3).
                let may_probe = !self.mtu_search_over;
                if step.stubborn && self.path_mut(step.path).mtu.on_timeout(may_probe) {
                    self.refresh_payload(step.path);
                }
            }
        }
        let mut any = false;
        for (ack, step) in acks.iter().zip(progress) {
            let path = &mut self.paths[ack.path.index()];
            let acked = ack.acked + step.uncredited;
            path.traffic.estimate.on_sack(now, acked, ack.lost_bytes, path.rtt.srtt());
            path.counters.bytes_acked += step.user_data as u64;
            let pmdcs = self.windows[ack.path.index()].pmdcs;
            path.traffic
                .fill
                .on_acked(now, &Arrived { bytes: acked, rtt: step.shortest, via: step.via, pmdcs });
            self.windows[ack.path.index()].held = path.is_held(now);
            if acked > 0 {
                self.windows[ack.path.index()].one_packet = false;
                path.probe_answered = false;
                let longest = path.ip_packet_len(step.longest_proven);
                any = true;
                if path.mtu.on_acked(now, longest, step.flight_after == 0) {
                    self.quiet_until.set(None);
                }
                // What another path may have brought does not clear a suspicion (RFC 7829 §3.2).
                if step.proven || !path.tolerance(&self.rules).has_potentially_failed() {
                    let returns = path.state() != PathState::Active;
                    path.health.on_alive();
                    if returns {
                        // The search for its packet size may go on at once.
                        self.quiet_until.set(None);
                        self.refresh_usable(ack.path);
                    }
                }
                self.health.on_alive();
            }
        }
        if any && self.paths.iter().any(|path| path.mtu.awaits_proof()) {
            self.begin_mtu_search();
        }
        let lossy = acks.iter().filter(|ack| ack.lost && self.rules.probes_tail);
        let before: InlineVec<(PathId, Sizes)> =
            lossy.map(|ack| (ack.path, Sizes::from(self.window(ack.path)))).collect();
        self.windows.on_sack(now, acks);
        for &(path, before) in before.iter() {
            let cwnd = self.window(path).cwnd;
            self.path_mut_quietly(path).note_cut(before, cwnd);
        }
    }

    /// Chunks of `bytes` left the path or were found lost outside of a SACK: its window is reduced as for a loss, and never
    /// grows. `flight` is what is left in flight, up to `exit_point`.
    pub(crate) fn on_late_loss(
        &mut self,
        now: Instant,
        id: PathId,
        bytes: usize,
        flight: usize,
        exit_point: u64,
    ) {
        let loss = PathAck {
            path: id,
            acked: 0,
            lost_bytes: bytes,
            rtt: None,
            flight_before: flight + bytes,
            flight_after: flight,
            may_grow: false,
            lost: true,
            exit_point,
            recovered_to: 0,
        };
        if self.windows.reduce(now, loss) {
            self.path_mut_quietly(id).keep_cut();
        }
    }

    /// The chunk `index`, sent on the path, met a congestion mark: the window is reduced as for a loss, and never
    /// grows. `flight` is the bytes in flight, up to `exit_point`. Returns false if the window was already reduced for data
    /// sent up to there.
    pub(crate) fn on_mark(
        &mut self,
        now: Instant,
        id: PathId,
        index: u64,
        flight: usize,
        exit_point: u64,
    ) -> bool {
        if self.window(id).recovery.is_some_and(|until| index <= until) {
            return false;
        }
        let mark = PathAck {
            path: id,
            acked: 0,
            lost_bytes: 0,
            rtt: None,
            flight_before: flight,
            flight_after: flight,
            may_grow: false,
            lost: true,
            exit_point,
            // What is sent after a window was cut is sent by the smaller one.
            recovered_to: index.saturating_sub(1),
        };
        if self.windows.reduce(now, mark) {
            self.path_mut_quietly(id).keep_cut();
        }
        self.windows[id.index()].marked = true;
        true
    }

    /// The path holds up a faster one: its window is halved, and its threshold unless slow start still looks for one
    /// (Raiciu et al., NSDI 2012, §4.2). At most once in `pause`, and not while it repairs losses.
    pub(crate) fn penalise(&mut self, id: PathId, now: Instant, pause: Duration) {
        let window = &mut self.windows[id.index()];
        let path = &mut self.paths[id.index()];
        if window.recovery.is_some() || now.since(path.traffic.penalised) < pause {
            return;
        }
        path.traffic.penalised = now;
        if window.cwnd > window.ssthresh {
            window.ssthresh = (window.ssthresh / 2).max(2 * window.pmdcs);
        }
        window.cwnd = (window.cwnd / 2).max(window.pmdcs.min(window.cwnd));
    }

    /// The peer answered without taking what probes its closed window on the path: no failure, and neither is
    /// that T3 will expire for it (RFC 9260 §6.1 A).
    pub(crate) fn on_probe_answered(&mut self, id: PathId) {
        self.path_mut(id).probe_answered = true;
        self.on_answered(id);
    }

    /// The peer acknowledged what is no data but is watched by T3 of the path like data.
    pub(crate) fn on_answered(&mut self, id: PathId) {
        self.path_mut(id).health.on_alive();
        self.refresh_usable(id);
        self.health.on_alive();
    }

    /// Returns whether the peer has answered since anything was found unanswered.
    pub(crate) fn is_peer_heard(&self) -> bool {
        self.health.errors() == 0
    }

    /// A round-trip time was measured.
    pub(crate) fn on_rtt(&mut self, id: PathId, sample: Duration) {
        let rules = self.rules.rto;
        let path = self.path_mut(id);
        path.rtt.on_sample(sample, &rules);
        let srtt = path.srtt();
        self.windows[id.index()].srtt = srtt;
    }

    /// The RTO backs off and the path's error counter grows. Returns where that leaves the association.
    fn on_error(&mut self, id: PathId) -> Failure {
        let rto = self.rules.rto;
        let tolerance = self.get(id).tolerance(&self.rules);
        let path = self.path_mut(id);
        path.rtt.back_off(&rto);
        path.health.on_error(&tolerance);
        let errors = path.health.errors();
        self.refresh_usable(id);
        let successor = self.alternate(id);
        let switches = id == self.primary && tolerance.primary.is_some_and(|most| errors > most);
        let primary_changed = switches && self.usable(successor);
        if primary_changed {
            self.primary = successor;
        }
        Failure { primary_changed, ..self.health.verdict() }
    }

    fn refresh_usable(&mut self, id: PathId) {
        let usable = self.get(id).state() == PathState::Active;
        self.windows[id.index()].usable = usable;
    }

    /// A path of which anything may be changed.
    fn path_mut(&mut self, id: PathId) -> &mut Path {
        self.quiet_until.set(None);
        &mut self.paths[id.index()]
    }

    /// A path that is changed in a way that brings none of its timers forward.
    pub(crate) fn path_mut_quietly(&mut self, id: PathId) -> &mut Path {
        &mut self.paths[id.index()]
    }
}

impl PathRules {
    pub(crate) fn new(config: &AssociationConfig) -> Self {
        PathRules {
            rto: RtoRules { initial: config.rto_initial, min: config.rto_min, max: config.rto_max },
            watch: Watch::new(config),
            window_after_failure: config.potentially_failed_window as usize,
            mtu: if config.mtu_discovery {
                MtuRule::UpTo(config.mtu.0)
            } else {
                MtuRule::Given(config.mtu.0)
            },
            initial_window: config.initial_window.0,
            // A window of no packet would never send one again.
            min_ssthresh: config.experiment.min_ssthresh.max(1),
            max_paths: usize::from(config.max_paths),
            concurrent: config.concurrent,
            paces: config.pacing,
            probes_tail: config.loss_detection == LossDetection::Rack,
            sack_path: config.sack_path,
            sack_path_probes: config.sack_path_probes,
        }
    }
}

#[cfg(test)]
mod tests;
