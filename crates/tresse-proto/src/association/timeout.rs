//! Expired timers and their dispatch to the modules; heartbeats, and failures of paths.

use tresse_policy::{Instant, PathId};
use tresse_wire::heartbeat_info_tlv;

use super::Extension;
use super::control::Control;
use super::{Association, State};
use crate::config::LossDetection;
use crate::context::Context;
use crate::coverage::Mechanism;
use crate::interface::event::CloseReason;
use crate::paths::{Failure, LossCheck, PathTimer};

impl Association {
    /// Processes all timers that have expired.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        while self.state != State::Closed {
            let Some(timer) = self.sender.paths.pop_due(cx.now) else { break };
            match timer {
                PathTimer::Look(path, LossCheck::Tail) => {
                    // T3 restarts to wait for the acknowledgement of the probe (RFC 8985 §7.3).
                    if self.sender.transmission.probe_tail(cx.now, path) {
                        self.stop_marking(path);
                        self.sender.coverage.note(Mechanism::TailProbed);
                        self.sender.paths.restart_t3(path, cx.now);
                    }
                }
                PathTimer::Look(path, LossCheck::Silence) => {
                    if self.sender.on_silence(cx.now, path, &mut self.workspace.get().views.candidates) {
                        self.send_heartbeat(cx, path);
                    }
                }
                PathTimer::Look(path, LossCheck::Overtaken) => {
                    let views = &mut self.workspace.get().views.candidates;
                    self.sender.find_overdue(cx.now, path, views);
                }
                // RFC 9260 §6.3.3.
                PathTimer::T3(path) => {
                    self.stop_marking(path);
                    let failure = self.sender.paths.on_t3(path, cx.now);
                    self.sharing.on_timeout(path);
                    self.sender.on_timeout(cx.now, path, &mut self.workspace.get().views.candidates);
                    self.on_failure(cx.now, failure);
                    if !self.sender.paths.usable(path) {
                        self.on_unanswered(cx.now, path);
                    }
                }
                PathTimer::Heartbeat(path) => self.send_heartbeat(cx, path),
                PathTimer::HeartbeatExpired(path) => {
                    // As for T3, which does not run on a suspected path with nothing in flight.
                    if self.sender.config.loss_detection == LossDetection::Rack {
                        self.sharing.on_timeout(path);
                    }
                    let failure = self.sender.paths.on_heartbeat_expired(path);
                    self.on_failure(cx.now, failure);
                    self.on_unanswered(cx.now, path);
                }
                // The probe is a HEARTBEAT, padded to the size to be tried (RFC 8899 §6.2).
                PathTimer::MtuProbe(path) => {
                    let (info, len) = self.sender.paths.mtu_probe(path, cx.now, cx.rng);
                    let mut body = Vec::new();
                    heartbeat_info_tlv(&info, &mut body);
                    self.control.push(path, Control::MtuProbe { body, len });
                }
            }
        }
        self.reinjection.on_asked();
        self.spread_path_changes(cx.now);
        self.reception.on_time(cx.now, |path| self.sender.paths.may_report(path, cx.now));
        self.give_up(cx.now);
        self.on_reconfig_timer(cx.now);
        self.on_asconf_timer(cx.now);
        if let Some(drained) = self.protection.on_time(cx.now) {
            self.emit(drained);
        }
        self.advance_reconfig(cx.now);
        self.on_shutdown_timers(cx.now);
        self.request_output();
    }

    /// Stops sending ECN-capable packets on `path` if no data has ever been acknowledged there: the network may drop such
    /// packets. QUIC detects such paths in the same way (RFC 9000 §13.4.2).
    fn stop_marking(&mut self, path: PathId) {
        if self.capabilities.has(Extension::Ecn) && !self.sender.paths.get(path).has_delivered() {
            self.marks.stop_marking(path);
        }
    }

    pub(super) fn send_heartbeat(&mut self, cx: &mut Context<'_>, path: PathId) {
        let info = self.sender.paths.heartbeat(path, cx.now, cx.rng);
        let mut body = Vec::new();
        heartbeat_info_tlv(&info, &mut body);
        self.control.push(path, Control::Heartbeat(body));
    }

    pub(super) fn on_failure(&mut self, now: Instant, failure: Failure) {
        if failure.primary_changed {
            self.sender.refresh_usable();
        }
        if failure.association_lost {
            // The application gets the event of the inactive path before the end of the association.
            self.spread_path_changes(now);
            self.abort(None, CloseReason::PathsLost);
        }
    }
}
