//! The graceful end (RFC 9260 §9.2): T2, its guard T5, and the step from state to state.

use std::time::Duration;

use tresse_policy::engine::earlier;
use tresse_policy::{Instant, PathId};
use tresse_wire::Shutdown;

use super::control::{Control, Reason};
use super::input::BEYOND_SENT;
use super::{Association, State};
use crate::collections::{LazyBox, LazyState};
use crate::interface::event::{CloseReason, Event};

/// A shutdown: number of transmissions of its chunk, and time of the next one. The state of the association is an argument
/// of each step, and no step changes it.
#[derive(Default)]
pub(super) struct ShutdownTimers(LazyBox<Timers>);

#[derive(Copy, Clone, Debug, Default)]
struct Timers {
    /// SHUTDOWN or SHUTDOWN ACK is sent again.
    t2: Option<Instant>,
    /// The shutdown takes too long (T5-shutdown-guard).
    t5: Option<Instant>,
    backoff: u32,
}

/// Action that a timer of a shutdown asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Overdue {
    /// The chunk is retransmitted, on the usual path or on another.
    Repeat { elsewhere: bool },
    /// The time of the peer is over.
    GiveUp(CloseReason),
}

/// T5 is this many times RTO.Max (RFC 9260 §9.2). Who sends SHUTDOWN starts it, and nothing puts it off: it bounds the
/// whole of what follows, also where the SHUTDOWNs of both sides cross. Before that, and at the receiver of a SHUTDOWN, data
/// may take as long as the peer lets it flow. It also bounds how long a shutdown waits for the first keys.
const GUARD_RTOS: u32 = 5;

/// Bytes of a reason that an ABORT carries: they fit the smallest packet.
const LONGEST_REASON: usize = 480;

impl LazyState for Timers {
    const INITIAL: &Self = &Timers { t2: None, t5: None, backoff: 0 };
}

impl ShutdownTimers {
    pub(super) fn deadline(&self) -> Option<Instant> {
        earlier(self.0.t2, self.0.t5)
    }

    /// The state is `state` from now on.
    fn enter(&mut self, state: State, now: Instant, rto_max: Duration) {
        self.0.backoff = 0;
        if state == State::ShutdownSent {
            self.start_guard(now, rto_max);
        }
    }

    fn start_guard(&mut self, now: Instant, rto_max: Duration) {
        self.0.t5 = Some(now + rto_max * GUARD_RTOS);
    }

    /// The first keys, which were waited for, are there.
    pub(super) fn on_keys(&mut self) {
        if let Some(timers) = self.0.changed() {
            timers.t5 = None;
        }
    }

    /// The chunk of the state is leaving, over a path with this RTO: T2 starts.
    pub(super) fn start_t2(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        self.0.t2 = Some(now + self.period(rto, rto_max));
    }

    fn period(&self, rto: Duration, rto_max: Duration) -> Duration {
        rto.saturating_mul(1 << self.0.backoff.min(16)).min(rto_max)
    }

    /// A packet of the peer arrived: after SHUTDOWN was sent its repetitions count anew, for the peer may have much to
    /// send still (RFC 9260 §9.2). T2 comes forward with that and is never put off: a peer that keeps talking may not
    /// have heard the SHUTDOWN.
    fn on_heard(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        if self.0.backoff > 0 {
            self.0.backoff = 0;
            self.0.t2 = earlier(self.0.t2, Some(now + self.period(rto, rto_max)));
        }
    }

    /// DATA arrived although SHUTDOWN was sent: SHUTDOWN is sent again at once.
    fn on_data(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        self.0.backoff = 0;
        self.start_t2(now, rto, rto_max);
    }

    /// Takes the timer that has expired; T2 at most `most` times.
    fn pop_due(&mut self, now: Instant, most: u32) -> Option<Overdue> {
        if self.0.t5.is_some_and(|at| at <= now) {
            // Whether the peer has at least answered what was said last.
            let answered = self.0.backoff == 0;
            let reason = if answered { CloseReason::ShutdownTimeout } else { CloseReason::PathsLost };
            return Some(Overdue::GiveUp(reason));
        }
        self.0.t2.filter(|&at| at <= now)?;
        self.0.t2 = None;
        self.0.backoff += 1;
        if self.0.backoff > most {
            return Some(Overdue::GiveUp(CloseReason::PathsLost));
        }
        // Repeated chunks take turns over the paths, as data does (RFC 9260 §6.4.1).
        Some(Overdue::Repeat { elsewhere: self.0.backoff % 2 == 1 })
    }
}

impl Association {
    /// The application wants to end the association once everything queued is delivered.
    pub(crate) fn shut_down(&mut self, now: Instant) {
        if self.state == State::Established {
            self.state = State::ShutdownPending;
            if self.protection.is_pending() {
                self.shutdown.start_guard(now, self.sender.config.rto_max);
            }
            self.advance_shutdown(now);
            self.request_output();
        }
    }

    /// Everything sent is acknowledged: take the next step of a shutdown, if one is on.
    ///
    /// SHUTDOWN waits for the first keys. What the peer's application has given waits for them, too, and no key message could
    /// leave behind it: the peer would never get rid of that, and never answer.
    pub(super) fn advance_shutdown(&mut self, now: Instant) {
        if !self.sender.transmission.outstanding.is_empty() || !self.sender.outbound.is_empty() {
            return;
        }
        match self.state {
            State::ShutdownPending if self.protection.is_pending() => {}
            State::ShutdownPending => self.enter(State::ShutdownSent, now),
            State::ShutdownReceived => self.enter(State::ShutdownAckSent, now),
            _ => {}
        }
    }

    fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.shutdown.enter(state, now, self.sender.config.rto_max);
        self.sender.paths.stop_heartbeats();
        let path = self.sender.paths.best_for_control();
        self.control.push(path, chunk_of(state));
    }

    pub(super) fn on_shutdown_timers(&mut self, now: Instant) {
        match self.shutdown.pop_due(now, self.sender.config.association_max_retrans) {
            None => {}
            Some(Overdue::GiveUp(reason)) => self.abort(None, reason),
            Some(Overdue::Repeat { elsewhere }) => {
                let paths = &self.sender.paths;
                let best = paths.best_for_control();
                // In SHUTDOWN-ACK-SENT the peer cannot be asked again whether it has forgotten an address.
                let kept = self
                    .renegotiation
                    .asconf
                    .as_deref()
                    .and_then(|asconf| asconf.path_instead_of(paths, best));
                let other = || kept.unwrap_or_else(|| paths.alternate(best));
                let path = if elsewhere { other() } else { best };
                self.control.push(path, chunk_of(self.state));
            }
        }
    }

    /// A packet of the peer arrived, `with_data` or not: to DATA although SHUTDOWN was sent the answer is at once SHUTDOWN and
    /// a SACK (RFC 9260 §9.2).
    pub(super) fn on_heard_in_shutdown(&mut self, now: Instant, with_data: bool) {
        if self.state != State::ShutdownSent {
            return;
        }
        let (rto, rto_max) =
            (self.sender.paths.get(self.sender.paths.best_for_control()).rto(), self.sender.config.rto_max);
        if with_data {
            self.reception.receiver.demand();
            self.shutdown.on_data(now, rto, rto_max);
            self.control.push(self.sender.paths.best_for_control(), Control::Shutdown);
        } else {
            self.shutdown.on_heard(now, rto, rto_max);
        }
    }

    /// SHUTDOWN arrived: its cumulative TSN acknowledges.
    pub(super) fn on_shutdown(&mut self, now: Instant, shutdown: &Shutdown, via: PathId) {
        let beyond_sent = || self.sender.transmission.is_beyond_sent(shutdown.cumulative_tsn);
        let renumbered = self.kept_tag || self.renegotiation.has_renumbered();
        if self.state.sends_data() && beyond_sent() && !renumbered {
            return self.fault(BEYOND_SENT);
        }
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.emit(Event::PeerShutdown);
            }
            State::ShutdownReceived => {}
            State::ShutdownSent => {
                // Both sides shut down at once.
                self.enter(State::ShutdownAckSent, now);
                return;
            }
            State::ShutdownAckSent => {
                self.control.push(via, Control::ShutdownAck);
                return;
            }
            State::Closed => return,
        }
        let mut report = self.workspace.get().report.take().unwrap_or_default();
        let forward = self.sender.transmission.forward_path();
        if self.sender.transmission.on_shutdown(now, shutdown.cumulative_tsn, via, &mut report).is_ok() {
            self.apply_report(now, &report);
            if self.sender.transmission.has_revocable() {
                self.give_up(now);
                self.sender.advance_forward(now, forward);
            }
        }
        self.workspace.get().report = Some(report);
        self.advance_shutdown(now);
    }

    /// SHUTDOWN ACK arrived: the last word is ours.
    pub(super) fn on_shutdown_ack(&mut self, via: PathId) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.control.clear();
            self.control.push(via, Control::ShutdownComplete);
            if let Some(protection) = self.protection.get() {
                protection.on_complete_sent();
            }
            self.close(CloseReason::Graceful);
        } else {
            self.counters.discards.unexpected_chunk += 1;
        }
    }

    /// Ends the association at once for the application, with an ABORT for `why` (RFC 9260 §9.1). If the peer did not answer
    /// in time, the ABORT has no cause, because no cause of RFC 9260 §3.3.10 means that; a peer that still exists then need
    /// not wait for this side.
    pub(crate) fn abort(&mut self, why: Option<&[u8]>, reason: CloseReason) {
        if self.state != State::Closed {
            self.control.clear();
            let path = self.sender.paths.best_for_control();
            let cause = why.map(|why| Reason::User(shortened(why).to_vec()));
            self.control.push(path, Control::Abort(cause));
            self.close(reason);
            self.request_output();
        }
    }
}

/// Chunk that is sent on entering the state, and again until it is answered.
fn chunk_of(state: State) -> Control {
    if state == State::ShutdownSent { Control::Shutdown } else { Control::ShutdownAck }
}

/// The part of a reason that an ABORT carries; of text in UTF-8, whole characters.
pub(super) fn shortened(why: &[u8]) -> &[u8] {
    let end = why.len().min(LONGEST_REASON);
    let end = std::str::from_utf8(why).map_or(end, |text| text.floor_char_boundary(end));
    &why[..end]
}
