//! Graceful shutdown (RFC 9260 §9.2): its timers T2 and T5, and its state transitions; and the ABORT of the application.

use std::time::Duration;

use tresse_policy::engine::earlier;
use tresse_policy::{Instant, PathId};
use tresse_wire::Shutdown;

use super::control::{Control, Reason};
use super::input::BEYOND_SENT;
use super::{Association, State};
use crate::collections::{LazyBox, LazyState};
use crate::interface::event::{CloseReason, Event};

/// Timers of a shutdown, and the number of retransmissions of its chunk. The state of the association is an argument of each
/// step, and no step changes it.
#[derive(Default)]
pub(super) struct ShutdownTimers(LazyBox<Timers>);

#[derive(Copy, Clone, Debug, Default)]
struct Timers {
    /// Time at which SHUTDOWN or SHUTDOWN ACK is retransmitted (T2-shutdown).
    t2: Option<Instant>,
    /// Time at which the association ends at the latest (T5-shutdown-guard).
    t5: Option<Instant>,
    backoff: u32,
}

/// Action after the expiry of a timer of a shutdown.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Overdue {
    /// The chunk is retransmitted, on the usual path or on another.
    Repeat { elsewhere: bool },
    /// The association ends, because the peer did not answer in time.
    GiveUp(CloseReason),
}

/// Duration of T5 in multiples of RTO.Max (RFC 9260 §9.2). The sender of SHUTDOWN starts T5 and never extends it: it bounds all
/// that follows, also if both sides send SHUTDOWN. Before that, and at the receiver of a SHUTDOWN, data may take as long as the
/// peer's window requires. T5 also bounds the time for which a shutdown waits for the first keys.
const GUARD_RTOS: u32 = 5;

/// Most bytes of a reason in an ABORT: so many fit the smallest packet.
const LONGEST_REASON: usize = 480;

impl LazyState for Timers {
    const INITIAL: &Self = &Timers { t2: None, t5: None, backoff: 0 };
}

impl ShutdownTimers {
    pub(super) fn deadline(&self) -> Option<Instant> {
        earlier(self.0.t2, self.0.t5)
    }

    /// Handles the transition to `state`.
    fn enter(&mut self, state: State, now: Instant, rto_max: Duration) {
        self.0.backoff = 0;
        if state == State::ShutdownSent {
            self.start_guard(now, rto_max);
        }
    }

    fn start_guard(&mut self, now: Instant, rto_max: Duration) {
        self.0.t5 = Some(now + rto_max * GUARD_RTOS);
    }

    /// Stops T5, which bounded the wait for the first keys.
    pub(super) fn on_keys(&mut self) {
        if let Some(timers) = self.0.changed() {
            timers.t5 = None;
        }
    }

    /// Starts T2: SHUTDOWN or SHUTDOWN ACK leaves. `rto` is the RTO of the path for control chunks.
    pub(super) fn start_t2(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        self.0.t2 = Some(now + self.period(rto, rto_max));
    }

    fn period(&self, rto: Duration, rto_max: Duration) -> Duration {
        rto.saturating_mul(1 << self.0.backoff.min(16)).min(rto_max)
    }

    /// Handles a packet of the peer in SHUTDOWN-SENT: the retransmissions of SHUTDOWN are counted anew, because the peer may
    /// still have much data to send (RFC 9260 §9.2). T2 may expire earlier by this, but never later: the peer may send packets
    /// without having received the SHUTDOWN.
    fn on_heard(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        if self.0.backoff > 0 {
            self.0.backoff = 0;
            self.0.t2 = earlier(self.0.t2, Some(now + self.period(rto, rto_max)));
        }
    }

    /// Handles DATA in SHUTDOWN-SENT: SHUTDOWN is sent again at once.
    fn on_data(&mut self, now: Instant, rto: Duration, rto_max: Duration) {
        self.0.backoff = 0;
        self.start_t2(now, rto, rto_max);
    }

    /// Takes the timer that has expired, and returns the action. T2 causes at most `most` retransmissions.
    fn pop_due(&mut self, now: Instant, most: u32) -> Option<Overdue> {
        if self.0.t5.is_some_and(|at| at <= now) {
            // True if a packet of the peer has arrived since T2 last expired.
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
        // Retransmissions alternate between two paths, as those of data do (RFC 9260 §6.4.1).
        Some(Overdue::Repeat { elsewhere: self.0.backoff % 2 == 1 })
    }
}

impl Association {
    /// Begins a graceful shutdown for the application: the association ends once all queued data is acknowledged.
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

    /// Takes the next step of a shutdown, if one is in progress and all data is acknowledged.
    ///
    /// SHUTDOWN waits for the first keys. Messages that the peer's application has queued wait for them, too, and after SHUTDOWN
    /// this side could send no key message: the peer could never send these messages, and never answer.
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
                // In SHUTDOWN-ACK-SENT no ASCONF is retransmitted, so it stays unknown whether the peer has removed an address.
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

    /// Handles a packet of the peer in SHUTDOWN-SENT. DATA is answered with SHUTDOWN and a SACK at once (RFC 9260 §9.2).
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

    /// Handles SHUTDOWN, whose cumulative TSN ack acknowledges data.
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
                // Both sides have sent SHUTDOWN.
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
        if self.sender.transmission.on_shutdown(now, shutdown.cumulative_tsn, via, &mut report).is_ok() {
            self.apply_report(now, &report);
            if self.sender.transmission.has_revocable() {
                self.give_up(now);
                self.sender.advance_forward(now);
            }
        }
        self.workspace.get().report = Some(report);
        self.advance_shutdown(now);
    }

    /// Handles SHUTDOWN ACK: SHUTDOWN COMPLETE is queued, and the association is closed.
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

    /// Ends the association at once with an ABORT that has the reason `why`, if there is one (RFC 9260 §9.1). After a timeout the
    /// ABORT has no cause, because none of RFC 9260 §3.3.10 means that; it spares a peer that still exists from waiting for this
    /// side.
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

/// Chunk that is sent in a state of the shutdown until the peer answers it.
fn chunk_of(state: State) -> Control {
    if state == State::ShutdownSent { Control::Shutdown } else { Control::ShutdownAck }
}

/// The part of a reason that an ABORT carries. UTF-8 text is cut between two characters.
pub(super) fn shortened(why: &[u8]) -> &[u8] {
    let end = why.len().min(LONGEST_REASON);
    let cut = |text: &str| (0..=end).rev().find(|&at| text.is_char_boundary(at));
    let end = std::str::from_utf8(why).ok().and_then(cut).unwrap_or(end);
    &why[..end]
}
