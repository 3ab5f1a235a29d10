//! The timers of all paths: T3, heartbeats, their answers, and the decay of idle windows.
//!
//! There are few paths, so each query looks at all of them; nothing is kept sorted. The result is cached until
//! an event may have made a timer earlier; a flow of data only makes timers later.

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
    /// Something was overtaken that is overdue now, or the end of what was sent was not answered: find the losses, send a
    /// probe, or suspect the path.
    Look(PathId, LossCheck),
    /// T3: go on with `Paths::on_t3`.
    T3(PathId),
    /// A heartbeat is to be sent: fetch it from `Paths::heartbeat`. None is due before that is done.
    Heartbeat(PathId),
    /// A heartbeat stayed unanswered: go on with `Paths::on_heartbeat_expired`.
    HeartbeatExpired(PathId),
    /// A probe of the packet size is to be sent: fetch it from `Paths::mtu_probe`. None is due before that is
    /// done.
    MtuProbe(PathId),
}

/// Chunk that is to be looked after before T3 expires.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LossCheck {
    /// One that was overtaken.
    Overtaken,
    /// The end of what was sent.
    Tail,
    /// A path that has not answered that either.
    Silence,
}

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Before T3, which it puts off.
    Look,
    T3,
    HeartbeatAnswer,
    Heartbeat,
    Mtu,
    Idle,
    Pacer,
}

/// An answer to no heartbeat that was sent, or a second one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct StrayHeartbeatAck;

impl Paths {
    /// An instant before which [`pop_due`](Self::pop_due) has nothing to do. It may be too early by what
    /// timers were put off since it was worked out, never too late.
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

    /// The next timer that has expired at `now`. It runs no longer.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PathTimer> {
        self.quiet_until.set(None);
        loop {
            let expired = self.deadlines().filter(|&(deadline, _, _)| deadline <= now);
            // Of paths to be confirmed one is asked in an RTO: each has its turn, also behind one that never answers.
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
                    // A probe that is to confirm a path uses up this RTO's share (RFC 9260 §5.4).
                    if !path.health.confirmed() {
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

    /// A packet with `bytes` of data was sent: T3 starts if it does not run (RFC 9260 §6.3.2 R1), and the next packet may
    /// have to wait. With `late`, the peer may hold back its report on what is in flight. Returns whether nothing was in flight
    /// before.
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

    /// Notes that what was overtaken on the path was looked after: that is to be done again at `due`.
    pub(crate) fn look_again(&mut self, id: PathId, due: Option<Instant>) {
        self.path_mut(id).traffic.look_again = due;
    }

    /// Something other than data waits for an acknowledgement: T3 starts if it does not run.
    pub(crate) fn start_t3(&mut self, id: PathId, now: Instant) {
        if !self.get(id).t3_runs() {
            self.restart_t3(id, now);
        }
    }

    /// T3 starts over: the earliest outstanding chunk of the path was acknowledged.
    pub(crate) fn restart_t3(&mut self, id: PathId, now: Instant) {
        let path = self.path_mut_quietly(id);
        let before = path.t3.replace(now + path.rto());
        if before.is_none_or(|before| before > now + path.rto()) {
            self.quiet_until.set(None);
        }
    }

    /// T3 stops: nothing is outstanding on the path any more.
    pub(crate) fn stop_t3(&mut self, id: PathId) {
        let path = self.path_mut_quietly(id);
        path.forget_flight();
        // Its probes wait for data in flight to speak first.
        if path.state() == PathState::PotentiallyFailed {
            self.quiet_until.set(None);
        }
    }

    /// T3 expired: the window falls to one packet, and no more is in flight until the path has answered
    /// (RFC 9260 §7.2.3), the RTO backs off (§6.3.3 E1 and E2), and
    /// the error counters grow (§8.1, §8.2), unless it expired for a window probe that was answered.
    pub(crate) fn on_t3(&mut self, id: PathId, now: Instant) -> Failure {
        let pmdcs = self.windows[id.index()].pmdcs;
        let may_probe = !self.mtu_search_over;
        let path = self.path_mut(id);
        path.forget_flight();
        path.counters.timeouts = path.counters.timeouts.saturating_add(1);
        if path.state() == PathState::PotentiallyFailed {
            // A probe that left together with the data is not to count beside it.
            path.heartbeats.on_expired();
        }
        let smaller = path.mtu.on_timeout(may_probe);
        // At least one packet was lost; how many of the others only came too late is not known.
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

    /// Data was lost together with a packet of the set-up: T3 stops, and the window falls to one packet as by a timeout.
    /// T1 counts such errors, and backs off.
    pub(crate) fn on_lost_in_setup(&mut self, id: PathId, now: Instant) {
        let pmdcs = self.windows[id.index()].pmdcs;
        let path = self.path_mut(id);
        path.t3 = None;
        path.traffic.estimate.on_lost(pmdcs);
        self.windows.on_timeout(now, id);
    }

    /// The information for a heartbeat that leaves now, due or not.
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

    /// The information of a HEARTBEAT ACK: measures and confirms the path that it names, and clears
    /// its errors (RFC 9260 §5.4, §8.3).
    ///
    /// # Errors
    /// Information that was not sent, or that was answered before.
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
        // One that was only suspected has lost nothing that anybody knows of.
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
            self.windows[info.path.index()].reopen(self.rules.window_after_failure);
            self.path_mut_quietly(info.path).keep_cut();
        }
        self.refresh_usable(info.path);
        self.on_rtt(info.path, now - info.sent);
        // Answers must not hide that data gets no acknowledgement (RFC 9260 §8.1).
        if self.paths.iter().all(|path| path.t3.is_none()) {
            self.health.on_alive();
        }
        Ok(info.path)
    }

    /// A heartbeat stayed unanswered for one RTO (RFC 9260 §8.3).
    pub(crate) fn on_heartbeat_expired(&mut self, id: PathId) -> Failure {
        // Only a path that data would take now speaks for the association (RFC 9260 §8.1), or any that could come to
        // carry some while none does.
        if self.may_carry_new_data(id) || !self.joined().any(|path| self.accepts_data(path.id)) {
            self.health.on_error();
        }
        self.on_error(id)
    }

    /// A request of an extension that was sent on the path stayed unanswered for one RTO: as bad as a timeout of
    /// DATA, but for the window (RFC 6525 §5.1.1, RFC 5061 §5.1).
    pub(crate) fn on_request_expired(&mut self, id: PathId) -> Failure {
        self.health.on_error();
        self.on_error(id)
    }

    /// The association is established: heartbeats begin, first of all on unconfirmed paths.
    pub(crate) fn on_established(&mut self, now: Instant, rng: &mut ChaCha12Rng) {
        self.quiet_until.set(None);
        self.probing = true;
        self.next_probe = now;
        for path in &mut self.paths {
            path.heartbeats.start(now, rng);
        }
    }

    /// Answers to what was asked until now may be refused: unconfirmed paths do not wait for them, and are asked again.
    pub(crate) fn ask_again(&mut self) {
        self.quiet_until.set(None);
        self.next_probe = Instant::ZERO;
        for path in self.paths.iter_mut().filter(|path| !path.health.confirmed()) {
            path.heartbeats.on_expired();
        }
    }

    /// The association shuts down: no more heartbeats (RFC 9260 §8.3).
    pub(crate) fn stop_heartbeats(&mut self) {
        self.quiet_until.set(None);
        self.probing = false;
        for path in &mut self.paths {
            path.heartbeats.stop();
        }
    }

    /// Another RTO has passed without data on the path.
    fn decay(&mut self, id: PathId, now: Instant) {
        // A path that waits for an acknowledgement is not idle: what it lost, T3 will say.
        if self.get(id).t3_runs() {
            self.path_mut(id).traffic.idle_since = Some(now);
            return;
        }
        let decayed = self.windows.on_idle(now, id);
        self.path_mut(id).traffic.idle_since = decayed.then_some(now);
    }

    /// Time at which the first timer expires; `FAR_FUTURE` when none runs.
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
        // Who chooses between paths for SACKs by their round-trip times has to know them.
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
