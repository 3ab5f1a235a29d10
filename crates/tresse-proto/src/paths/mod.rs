//! The paths of an association: their state, and the amount of data that each may carry.
//!
//! Owns round-trip times, T3, error counters, heartbeats and windows, and calls the congestion controller once per SACK.
//! Independent of chunks and TSNs: the ring of outstanding chunks reports the bytes in flight and acknowledged, and other
//! modules decide which path sends.

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
pub(crate) use path::{Member, Path};
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

/// The paths of one association. Its methods take path ids that it assigned.
pub(crate) struct Paths {
    paths: Vec<Path>,
    /// `windows[p]` is the congestion window of path `p`.
    pub(crate) windows: Windows,
    rules: Arc<PathRules>,
    /// The kind of chunk that carries user data.
    pub(crate) data_format: DataFormat,
    /// Bytes that authentication and protection take of every packet.
    pub(crate) overhead: u16,
    primary: PathId,
    health: AssociationHealth,
    /// Time before which no further unconfirmed path is probed.
    next_probe: Instant,
    /// Largest user data, in bytes, of a chunk that fits a packet of its own on every confirmed path.
    smallest_payload: u16,
    /// Time before which no timer expires; `None` if it has to be computed. Without this cache, a simulation of two paths takes
    /// 9 % more instructions.
    quiet_until: Cell<Option<Instant>>,
    /// True while heartbeats are sent: the association is established and not shutting down.
    probing: bool,
    /// True if the peer reported the PAD chunk of a probe of the packet size as unknown: no more probes are sent.
    mtu_search_over: bool,
}

/// The settings of this module, shared by all associations that have the same.
#[derive(Debug)]
pub(crate) struct PathRules {
    rto: RtoRules,
    watch: Watch,
    /// Congestion window, in full packets, of a failed path that answers a heartbeat.
    window_after_failure: usize,
    mtu: MtuRule,
    initial_window: usize,
    /// Lower bound of ssthresh after a loss, in full packets.
    min_ssthresh: u16,
    max_paths: usize,
    concurrent: bool,
    /// True if pacing spreads the packets that the windows allow over the round trip.
    paces: bool,
    /// True if losses are detected by time, and the tail of the sent data is probed (RACK-TLP, RFC 8985).
    probes_tail: bool,
    sack_path: SackPath,
    /// Interval of round-trip measurements on a path that brings data, if SACKs take the path with the shortest round trip.
    sack_path_probes: Duration,
}

/// Effect of a SACK on one path, apart from congestion control.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathProgress {
    /// The path.
    pub(crate) path: PathId,
    /// Round-trip sample, if the timed chunk has been acknowledged: at most one chunk of a path is timed at a time (RFC 9260
    /// §6.3.1 C4).
    pub(crate) rtt: Option<Duration>,
    /// The shortest round trip of newly acknowledged chunks that were sent only once, timed or not.
    pub(crate) shortest: Option<Duration>,
    /// The path on which the SACK arrived.
    pub(crate) via: PathId,
    /// True if the earliest outstanding chunk of the path was acknowledged.
    pub(crate) earliest_acked: bool,
    /// True if a chunk was acknowledged that was sent on this path only.
    pub(crate) proven: bool,
    /// Size in bytes of the longest of these chunks that was sent only once.
    pub(crate) longest_proven: usize,
    /// Newly acknowledged bytes that earn no larger window: of chunks that were moved to this path before they counted as lost.
    pub(crate) uncredited: usize,
    /// User data of all newly acknowledged chunks, in bytes.
    pub(crate) user_data: usize,
    /// Bytes in flight after this SACK.
    pub(crate) flight_after: usize,
    /// True if the path still awaits an acknowledgement of chunks in flight, of chunks reinjected from it, or of a FORWARD TSN.
    pub(crate) awaits: bool,
    /// True if the peer may delay its SACK for the chunks in flight.
    pub(crate) late: bool,
    /// Time at which chunks that a later one overtook will count as lost unless they are acknowledged (RACK).
    pub(crate) look_again: Option<Instant>,
    /// True if a chunk that is lost now had been sent at least three times: it may be too long for the path.
    pub(crate) lost_retransmission: bool,
}

impl Paths {
    /// Creates an empty set with memory for `count` paths. User data will travel in chunks of the kind `data_format`. `rules`
    /// are those of `config`.
    ///
    /// # Errors
    /// The congestion controller does not exist, or refuses its configuration.
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

    /// Adds a path and returns its id; the first path is the primary one. `confirmed` is true if the path needs no confirmation
    /// by a heartbeat (RFC 9260 §5.4). Returns `None` if there are as many paths as allowed.
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
        // Most associations have one or two paths: doubling the capacity would waste more than it saves.
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

    /// Returns the number of slots, those of removed paths included.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns all paths by position, removed ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    /// Returns a path.
    pub(crate) fn get(&self, id: PathId) -> &Path {
        &self.paths[id.index()]
    }

    /// Returns the path between these addresses.
    pub(crate) fn find(&self, local: IpAddr, remote: IpAddr) -> Option<PathId> {
        self.living().find(|path| path.local == local && path.remote == remote).map(|path| path.id)
    }

    /// Returns the first path to this address of the peer, preferably a joined one, on which an answer can leave.
    pub(crate) fn find_remote(&self, remote: IpAddr) -> Option<PathId> {
        let paths = self.living().filter(|path| path.remote == remote);
        paths.min_by_key(|path| (path.member != Member::Joined, path.id)).map(|path| path.id)
    }

    /// Makes a path the primary one; a path that does not exist or is not joined changes nothing.
    pub(crate) fn set_primary(&mut self, id: PathId) {
        if self.paths.get(id.index()).is_some_and(|path| path.member == Member::Joined) {
            self.primary = id;
        }
    }

    /// Returns the next path whose state has changed since the last report, with its new state. The caller repeats this until
    /// `None`, after every event that can change a path.
    pub(crate) fn pop_state_change(&mut self) -> Option<(PathId, PathState)> {
        self.paths.iter_mut().find_map(|path| Some((path.id, path.unreported()?)))
    }

    /// Counts a packet of `bytes` bytes, SCTP headers included, with a valid verification tag. The peer's UDP port is the one
    /// from which the packet came (RFC 6951 §5.4).
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

    /// Notes that DATA arrived on the path: where SACKs take the path with the shortest round trip, it has to be measured.
    pub(crate) fn on_data_received(&mut self, id: PathId) {
        if self.path_mut_quietly(id).heartbeats.on_data() {
            self.quiet_until.set(None);
        }
    }

    /// Applies a SACK to round-trip times, T3 (RFC 9260 §6.3.2 R2 to R4), error counters (§8.1, §8.2) and windows.
    ///
    /// `acks` and `progress` are parallel and have at most one entry for each path.
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
                // While shorter packets are acknowledged, T3 does not expire for a black hole (RFC 8899 §4.3).
                let may_probe = !self.mtu_search_over;
                if step.lost_retransmission && self.path_mut(step.path).mtu.on_timeout(may_probe) {
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
                // A chunk that another path may have delivered does not end the potential failure of this one (RFC 7829 §3.2).
                if step.proven || !path.tolerance(&self.rules).has_potentially_failed() {
                    let returns = path.state() != PathState::Active;
                    path.health.on_alive();
                    if returns {
                        // The search for the packet size of the path may continue at once.
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

    /// Reduces the window of the path as for a loss, because chunks of `bytes` left the path or were found lost outside of a
    /// SACK; the window never grows. `flight` is the bytes that are still in flight, up to the index `exit_point`.
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

    /// Reduces the window as for a loss, because the chunk `index`, sent on the path, met a congestion mark; the window never
    /// grows. `flight` is the bytes in flight, up to the index `exit_point`. Returns false if the last reduction covers the
    /// chunk.
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
            // The chunk was sent with the window of the last reduction: that recovery is over.
            recovered_to: index.saturating_sub(1),
        };
        if self.windows.reduce(now, mark) {
            self.path_mut_quietly(id).keep_cut();
        }
        self.windows[id.index()].marked = true;
        true
    }

    /// Halves the window of a path that holds up a faster one, and its threshold unless the path is in slow start (Raiciu et
    /// al., NSDI 2012, §4.2). This happens at most once in `pause`, and not while the path is in fast recovery.
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

    /// Notes that the peer answered a window probe on the path without accepting its data. Neither this nor the expiration of
    /// T3 that follows is a failure (RFC 9260 §6.1 A).
    pub(crate) fn on_probe_answered(&mut self, id: PathId) {
        self.path_mut(id).probe_answered = true;
        self.on_answered(id);
    }

    /// Clears the error counters of the path and the association, because the peer answered: a FORWARD TSN or a request for
    /// instance, which T3 of the path watches like data.
    pub(crate) fn on_answered(&mut self, id: PathId) {
        self.path_mut(id).health.on_alive();
        self.refresh_usable(id);
        self.health.on_alive();
    }

    /// Returns whether no error has been counted since the peer last answered.
    pub(crate) fn is_peer_heard(&self) -> bool {
        self.health.errors() == 0
    }

    /// Applies a round-trip sample.
    pub(crate) fn on_rtt(&mut self, id: PathId, sample: Duration) {
        let rules = self.rules.rto;
        let path = self.path_mut(id);
        path.rtt.on_sample(sample, &rules);
        let srtt = path.srtt();
        self.windows[id.index()].srtt = srtt;
    }

    /// Backs the RTO off and counts an error of the path. Returns the resulting state of the association.
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

    /// Returns a path for a change that may bring its timers forward.
    fn path_mut(&mut self, id: PathId) -> &mut Path {
        self.quiet_until.set(None);
        &mut self.paths[id.index()]
    }

    /// Returns a path for a change that brings none of its timers forward.
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
            // With a window of zero packets a path would never send again.
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
