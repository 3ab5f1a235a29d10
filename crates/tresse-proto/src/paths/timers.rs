//! The timers of all paths: T3, heartbeats, their answers, and the decay of idle windows.
//!
//! There are few paths, so each query looks at all of them; nothing is kept sorted. The result is cached until an event may
//! have brought a timer forward. While data flows, timers are only postponed.

use rand_chacha::ChaCha12Rng;
use tresse_policy::congestion::Sizes;
use tresse_policy::{Instant, PathId, PathState};

use super::health::Failure;
use super::heartbeat::{HEARTBEAT_INFO_LEN, HeartbeatInfo};
use super::pacer::Flow;
use super::tail::Silence;
use super::{Path, Paths};
use crate::config::SackPath;

/// A timer that expired.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PathTimer {
    /// Chunks that were overtaken are overdue, or the tail was not acknowledged in time. The caller detects losses, sends a
    /// probe, or suspects the path.
    Look(PathId, LossCheck),
    /// T3 expired; the caller continues with `Paths::on_t3`.
    T3(PathId),
    /// A heartbeat is to be sent; `Paths::heartbeat` provides it. Until then no other heartbeat is due.
    Heartbeat(PathId),
    /// A heartbeat was not answered; the caller continues with `Paths::on_heartbeat_expired`.
    HeartbeatExpired(PathId),
    /// A probe of the packet size is to be sent; `Paths::mtu_probe` provides it. Until then no other probe is due.
    MtuProbe(PathId),
}

/// Reason for a check of the chunks in flight before T3 expires.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LossCheck {
    /// A later chunk overtook some of them.
    Overtaken,
    /// The last chunk was not acknowledged in time.
    Tail,
    /// The tail loss probe was not acknowledged in time, either.
    Silence,
}

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Sorted before T3, because the probe restarts T3.
    Look,
    T3,
    HeartbeatAnswer,
    Heartbeat,
    Mtu,
    Idle,
    Pacer,
}

/// A HEARTBEAT ACK that matches no heartbeat sent, or that is a second answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct StrayHeartbeatAck;

impl Paths {
    /// Returns an instant before which [`pop_due`](Self::pop_due) has nothing to do. The instant is never too late; it is too
    /// early if timers were postponed after it was computed.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let until = match self.quiet_until.get() {
            Some(until) => until,
            None => {
                let until = self.earliest();
                self.quiet_until.set(Some(until));
                until
            }
        };
        debug_assert!(until <= self.earliest(), "a timer was brought forward unnoticed");
        (until != Instant::FAR_FUTURE).then_some(until)
    }

    /// Returns the next timer that has expired at `now`, and stops it.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PathTimer> {
        self.quiet_until.set(None);
        loop {
            let expired = self.deadlines().filter(|&(deadline, _, _)| deadline <= now);
            // One unconfirmed path is probed per RTO. They take turns, so that one that never answers does not hold up the
            // others.
            let asked = |kind, id| (kind == Kind::Heartbeat).then(|| self.get(id).heartbeats.since());
            let first = expired.min_by_key(|&(deadline, kind, id)| (deadline, kind, asked(kind, id), id));
            let (_, kind, id) = first?;
            let path = self.path_mut(id);
            match kind {
                Kind::Look => {
                    let traffic = &mut *path.traffic;
                    if traffic.look_again.take_if(|due| *due <= now).is_some() {
                        return Some(PathTimer::Look(id, LossCheck::Overtaken));
                    }
                    let silence = traffic.tail.on_due(now, (path.rtt.srtt(), path.rtt.rttvar()));
                    if silence == Silence::First {
                        traffic.silent_since = now;
                    }
                    if path.state() == PathState::Active {
                        let look =
                            if silence == Silence::First { LossCheck::Tail } else { LossCheck::Silence };
                        return Some(PathTimer::Look(id, look));
                    }
                }
                Kind::T3 => {
                    path.t3 = None;
                    return Some(PathTimer::T3(id));
                }
                Kind::HeartbeatAnswer => {
                    path.heartbeats.on_expired();
                    return Some(PathTimer::HeartbeatExpired(id));
                }
                Kind::Heartbeat => {
                    path.heartbeats.on_due();
                    let rto = path.rto();
                    // A probe of an unconfirmed path uses up the share of this RTO (RFC 9260 §5.4). Those of an inactive one are
                    // as far apart as HB.interval, and with its long RTO two of them would hold up the others for ever.
                    if path.state() == PathState::Unconfirmed {
                        self.next_probe = now + rto;
                    }
                    return Some(PathTimer::Heartbeat(id));
                }
                Kind::Mtu => {
                    let reachable = path.state() == PathState::Active;
                    let probes = path.mtu.on_due(now, reachable);
                    self.refresh_payload(id);
                    if probes {
                        return Some(PathTimer::MtuProbe(id));
                    }
                }
                Kind::Idle => self.decay(id, now),
                Kind::Pacer => path.traffic.pacer.on_due(now),
            }
        }
    }

    /// Notes that a packet with `bytes` of chunks and data among them was sent. T3 starts if it does not run (RFC 9260 §6.3.2
    /// R1), and pacing may delay the next packet. With `late`, the peer may delay its SACK for the chunks in flight. Returns
    /// whether nothing was in flight before.
    pub(crate) fn on_data_sent(&mut self, id: PathId, now: Instant, bytes: usize, late: bool) -> bool {
        let windows = &mut self.windows;
        let path = &mut self.paths[id.index()];
        let traffic = &mut *path.traffic;
        let flow = || Flow::of(&windows[id.index()], windows.pacing_rate(id));
        let ready = if self.rules.paces { traffic.pacer.on_sent(now, bytes, flow) } else { None };
        let was_idle = path.t3.is_none();
        let starts = was_idle || traffic.idle_since.is_none();
        if was_idle {
            path.t3 = Some(now + path.rtt.rto());
            traffic.estimate.on_busy();
            traffic.fill.on_busy();
        }
        traffic.last_data = now;
        traffic.idle_since = Some(now);
        windows[id.index()].decayed = false;
        let mut probe = None;
        if self.rules.probes_tail && traffic.look_again.is_none() && !traffic.tail.stands(late) {
            traffic.tail.arm(now, (path.rtt.srtt(), path.rtt.rttvar()), late, path.t3);
            probe = traffic.tail.due();
        }
        let quiet = self.quiet_until.get().filter(|_| !starts);
        let at_most = |until: Instant, other: Option<Instant>| other.map_or(until, |other| until.min(other));
        self.quiet_until.set(quiet.map(|until| at_most(at_most(until, ready), probe)));
        was_idle
    }

    /// Notes that the overtaken chunks of the path were checked; the next check is due at `due`.
    pub(crate) fn look_again(&mut self, id: PathId, due: Option<Instant>) {
        self.path_mut(id).traffic.look_again = due;
    }

    /// Starts T3 if it does not run, because a chunk other than DATA awaits an acknowledgement.
    pub(crate) fn start_t3(&mut self, id: PathId, now: Instant) {
        if !self.get(id).t3_runs() {
            self.restart_t3(id, now);
        }
    }

    /// Restarts T3, because the earliest outstanding chunk of the path was acknowledged.
    pub(crate) fn restart_t3(&mut self, id: PathId, now: Instant) {
        let path = self.path_mut_quietly(id);
        let before = path.t3.replace(now + path.rto());
        if before.is_none_or(|before| before > now + path.rto()) {
            self.quiet_until.set(None);
        }
    }

    /// Stops T3, because nothing is outstanding on the path any more.
    pub(crate) fn stop_t3(&mut self, id: PathId) {
        let path = self.path_mut_quietly(id);
        path.forget_flight();
        // A potentially failed path is not probed by heartbeats while data is in flight.
        if path.state() == PathState::PotentiallyFailed {
            self.quiet_until.set(None);
        }
    }

    /// Applies an expiration of T3. The window falls to one packet, and no more may be in flight until the path has answered
    /// (RFC 9260 §7.2.3). The RTO backs off (§6.3.3 E1 and E2). The error counters grow (§8.1, §8.2), unless T3 expired for a
    /// window probe that was answered.
    pub(crate) fn on_t3(&mut self, id: PathId, now: Instant) -> Failure {
        let pmdcs = self.windows[id.index()].pmdcs;
        let may_probe = !self.mtu_search_over;
        let path = self.path_mut(id);
        path.forget_flight();
        path.counters.timeouts = path.counters.timeouts.saturating_add(1);
        if path.state() == PathState::PotentiallyFailed {
            // A heartbeat that was sent together with the data must not count as a second error.
            path.heartbeats.on_expired();
        }
        let smaller = path.mtu.on_timeout(may_probe);
        // At least one packet was lost. How many of the others were only late is unknown.
        path.traffic.estimate.on_lost(pmdcs);
        if smaller {
            self.refresh_payload(id);
        }
        let before = Sizes::from(self.window(id));
        let first = !self.window(id).one_packet;
        self.windows.on_timeout(now, id);
        if first && self.rules.probes_tail {
            let cwnd = self.window(id).cwnd;
            self.path_mut_quietly(id).note_cut(before, cwnd);
        }
        if std::mem::take(&mut self.path_mut(id).probe_answered) {
            let rules = self.rules.rto;
            self.path_mut(id).rtt.back_off(&rules);
            return self.health.verdict();
        }
        self.health.on_error();
        self.on_error(id)
    }

    /// Stops T3 and reduces the window to one packet as after a timeout, because data was lost together with a packet of the
    /// set-up. T1 counts such errors and backs off.
    pub(crate) fn on_lost_in_setup(&mut self, id: PathId, now: Instant) {
        let pmdcs = self.windows[id.index()].pmdcs;
        let path = self.path_mut(id);
        path.t3 = None;
        path.traffic.estimate.on_lost(pmdcs);
        self.windows.on_timeout(now, id);
    }

    /// Returns the Heartbeat Info of a heartbeat that leaves now, due or not.
    pub(crate) fn heartbeat(
        &mut self,
        id: PathId,
        now: Instant,
        rng: &mut ChaCha12Rng,
    ) -> [u8; HEARTBEAT_INFO_LEN] {
        let path = self.path_mut(id);
        path.counters.heartbeats_sent = path.counters.heartbeats_sent.saturating_add(1);
        let rto = path.rto();
        let nonce = path.heartbeats.on_sent(now, rto, rng);
        HeartbeatInfo { path: id, sent: now, nonce }.to_bytes()
    }

    /// Applies the Heartbeat Info of a HEARTBEAT ACK: measures and confirms the path that it names, and clears its errors (RFC
    /// 9260 §5.4, §8.3).
    ///
    /// # Errors
    /// No heartbeat was sent with this information, or it was answered before.
    pub(crate) fn on_heartbeat_ack(
        &mut self,
        now: Instant,
        info: &[u8],
    ) -> Result<PathId, StrayHeartbeatAck> {
        let info = HeartbeatInfo::parse(info).ok_or(StrayHeartbeatAck)?;
        self.quiet_until.set(None);
        let path = self.paths.get_mut(info.path.index()).ok_or(StrayHeartbeatAck)?;
        if path.mtu.accept(now, info.nonce, info.sent) {
            self.refresh_payload(info.path);
        } else if !path.heartbeats.accept(&info) {
            return Err(StrayHeartbeatAck);
        }
        let path = &mut self.paths[info.path.index()];
        path.counters.heartbeats_acked = path.counters.heartbeats_acked.saturating_add(1);
        // A path that was only suspected has no known losses; its window stays.
        let failed = matches!(path.state(), PathState::PotentiallyFailed | PathState::Inactive)
            && path.health.errors() > 0;
        if let Some(traffic) = path.traffic.changed() {
            traffic.tail.on_answered();
        }
        let confirmed_before = path.health.confirmed();
        path.health.on_confirmed();
        if !confirmed_before {
            // From now on chunks have to fit this path too.
            self.refresh_payload(info.path);
        }
        if failed && self.get(info.path).tolerance(&self.rules).has_potentially_failed() {
            // The timeout may still prove spurious: the answer says nothing about the data.
            self.windows[info.path.index()].reopen(self.rules.window_after_failure);
        }
        self.refresh_usable(info.path);
        self.on_rtt(info.path, now - info.sent);
        // Answers to heartbeats must not hide that data is not acknowledged (RFC 9260 §8.1).
        if self.paths.iter().all(|path| path.t3.is_none()) {
            self.health.on_alive();
        }
        Ok(info.path)
    }

    /// Counts an error, because a heartbeat was not answered for one RTO (RFC 9260 §8.3).
    pub(crate) fn on_heartbeat_expired(&mut self, id: PathId) -> Failure {
        // The association's counter grows only for a path that may carry new data now (RFC 9260 §8.1); if no path accepts data,
        // for any path.
        if self.may_carry_new_data(id) || !self.joined().any(|path| self.accepts_data(path.id)) {
            self.health.on_error();
        }
        self.on_error(id)
    }

    /// Counts an error as for a timeout of DATA, because a request of an extension, sent on the path, was not answered for one
    /// RTO; the window stays unchanged (RFC 6525 §5.1.1, RFC 5061 §5.1).
    pub(crate) fn on_request_expired(&mut self, id: PathId) -> Failure {
        self.health.on_error();
        self.on_error(id)
    }

    /// Starts heartbeats, on unconfirmed paths first, because the association is established.
    pub(crate) fn on_established(&mut self, now: Instant, rng: &mut ChaCha12Rng) {
        self.quiet_until.set(None);
        self.probing = true;
        self.next_probe = now;
        for path in &mut self.paths {
            path.heartbeats.start(now, rng);
        }
    }

    /// Lets unconfirmed paths be probed again without a wait for earlier answers, because the peer may have refused those
    /// heartbeats.
    pub(crate) fn ask_again(&mut self) {
        self.quiet_until.set(None);
        self.next_probe = Instant::ZERO;
        for path in self.paths.iter_mut().filter(|path| !path.health.confirmed()) {
            path.heartbeats.on_expired();
        }
    }

    /// Stops all heartbeats, because the association shuts down (RFC 9260 §8.3).
    pub(crate) fn stop_heartbeats(&mut self) {
        self.quiet_until.set(None);
        self.probing = false;
        for path in &mut self.paths {
            path.heartbeats.stop();
        }
    }

    /// Decays the window, because another RTO has passed without data on the path.
    fn decay(&mut self, id: PathId, now: Instant) {
        // A path that awaits an acknowledgement is not idle: T3 detects its losses.
        if self.get(id).t3_runs() {
            self.path_mut(id).traffic.idle_since = Some(now);
            return;
        }
        let decayed = self.windows.on_idle(now, id);
        self.path_mut(id).traffic.idle_since = decayed.then_some(now);
    }

    /// Returns the time at which the first timer expires; `FAR_FUTURE` if none runs.
    #[cold]
    fn earliest(&self) -> Instant {
        self.deadlines().map(|(deadline, _, _)| deadline).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn deadlines(&self) -> impl Iterator<Item = (Instant, Kind, PathId)> {
        self.paths.iter().flat_map(|path| {
            [
                (path.traffic.next_look(), Kind::Look),
                (path.t3, Kind::T3),
                (path.heartbeats.answer_due(), Kind::HeartbeatAnswer),
                (self.heartbeat_due(path), Kind::Heartbeat),
                (self.mtu_due(path), Kind::Mtu),
                (path.idle_due(), Kind::Idle),
                (path.traffic.pacer.deadline(), Kind::Pacer),
            ]
            .into_iter()
            .filter_map(|(deadline, kind)| Some((deadline?, kind, path.id)))
        })
    }

    fn heartbeat_due(&self, path: &Path) -> Option<Instant> {
        // If SACKs take the path with the shortest round trip, all paths have to be measured.
        let chooses = self.rules.sack_path == SackPath::Fastest && self.paths.len() > 1;
        let wanted = chooses.then_some(self.rules.sack_path_probes);
        if self.probing {
            let wanted_back = self.rules.probes_tail
                && path.state() != PathState::Active
                && self.paths.iter().any(|path| path.state() == PathState::Active && path.t3_runs());
            path.heartbeat_due(
                path.watch(&self.rules).heartbeat_interval,
                self.next_probe,
                wanted,
                wanted_back,
            )
        } else {
            None
        }
    }
}
