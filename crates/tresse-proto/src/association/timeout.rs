//! Which timer fired, and which room hears it; and what else happens without a packet of the peer.

use std::net::IpAddr;

use tresse_policy::congestion::Sizes;
use tresse_policy::{Instant, PathId};
use tresse_wire::heartbeat_info_tlv;

use super::Extension;
use super::control::Control;
use super::{Association, State, protected};
use crate::config::LossDetection;
use crate::context::Context;
use crate::coverage::Mechanism;
use crate::interface::event::CloseReason;
use crate::paths::{self, Failure, Look, PathTimer};
use crate::transmission::{doubt_cut, doubt_timeout, evacuate};

impl Association {
    /// Lets everything happen that is due.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        while self.state != State::Closed {
            let Some(timer) = self.paths.pop_due(cx.now) else { break };
            match timer {
                PathTimer::Look(path, Look::Tail) => {
                    // T3 waits for the answer to it (RFC 8985 §7.3).
                    if self.transmission.probe_tail(path) {
                        self.distrust_marks(path);
                        self.counters.coverage.note(Mechanism::TailProbed);
                        self.paths.restart_t3(path, cx.now);
                    }
                }
                PathTimer::Look(path, Look::Silence) => on_silence(self, cx, path),
                PathTimer::Look(path, Look::Overtaken) => self.find_overdue(cx.now, path),
                PathTimer::T3(path) => self.on_t3(cx, path),
                PathTimer::Heartbeat(path) => self.send_heartbeat(cx, path),
                PathTimer::HeartbeatExpired(path) => {
                    // As T3, which a suspected path with nothing in flight has not.
                    if self.config.loss_detection == LossDetection::Rack
                        && let Some(sharing) = self.sharing.changed()
                    {
                        sharing.capacities().on_timeout(path);
                    }
                    let failure = self.paths.on_heartbeat_expired(path);
                    self.on_failure(cx.now, failure);
                }
                PathTimer::MtuProbe(path) => self.send_mtu_probe(cx, path),
            }
        }
        self.reinjection_due = None;
        self.spread_path_changes(cx.now);
        self.reception.on_time(cx.now, |path| self.paths.may_report(path, cx.now));
        self.give_up(cx.now);
        self.on_reconfig_timer(cx.now);
        self.on_asconf_timer(cx.now);
        protected::on_time(self, cx.now);
        self.advance_reconfig(cx.now);
        self.on_shutdown_timers(cx.now);
        self.stir();
    }

    /// If no data has ever got through on `path`, the network may be one that swallows what may be marked; QUIC finds such
    /// paths in the same way (RFC 9000 §13.4.2).
    fn distrust_marks(&mut self, path: PathId) {
        if self.capabilities.has(Extension::Ecn) && !self.paths.get(path).has_delivered() {
            self.marks.distrust(path);
        }
    }

    /// What was overtaken on `path` is overdue: lost, if nothing was heard of it.
    fn find_overdue(&mut self, now: Instant, path: PathId) {
        let before = self.transmission.flight_on(path);
        let exit_point = self.transmission.highest_on(path);
        let (lost, _, again) = self.transmission.look_again(now, path);
        self.paths.look_again(path, again);
        if lost {
            self.counters.coverage.note(Mechanism::Overdue);
            let flight = self.transmission.flight_on(path);
            let repairs = self.paths.window(path).repairs();
            let window = Sizes::from(self.paths.window(path));
            self.paths.on_late_loss(now, path, before - flight, flight, exit_point);
            paths::note_cut(&mut self.paths, path, window);
            let recovers = self.paths.window(path).repairs() != repairs;
            if recovers {
                doubt_cut(&mut self.transmission, path);
            }
            self.redirect_missing(path, recovers);
            self.settle_t3(path);
        }
    }

    /// T3-rtx of `path` expired (RFC 9260 §6.3.3).
    fn on_t3(&mut self, cx: &mut Context<'_>, path: PathId) {
        self.distrust_marks(path);
        let failure = self.paths.on_t3(path, cx.now);
        if let Some(sharing) = self.sharing.changed() {
            sharing.capacities().on_timeout(path);
        }
        let target = self.resend_path(self.config.timeout_retransmit_path, path);
        doubt_timeout(&mut self.transmission, cx.now, path);
        self.transmission.on_timeout(path, target);
        self.transmission.hand_over(path, target);
        self.on_failure(cx.now, failure);
    }

    pub(super) fn send_heartbeat(&mut self, cx: &mut Context<'_>, path: PathId) {
        let info = self.paths.heartbeat(path, cx.now, cx.rng);
        let mut body = Vec::new();
        heartbeat_info_tlv(&info, &mut body);
        self.control.push(path, Control::Heartbeat(body));
    }

    /// A heartbeat in a packet of the size that is to be tried (RFC 8899 §6.2).
    fn send_mtu_probe(&mut self, cx: &mut Context<'_>, path: PathId) {
        let (info, len) = self.paths.mtu_probe(path, cx.now, cx.rng);
        let mut body = Vec::new();
        heartbeat_info_tlv(&info, &mut body);
        self.control.push(path, Control::MtuProbe { body, len });
    }

    /// A router between these addresses forwards no larger IP packets.
    pub(crate) fn on_packet_too_big(&mut self, now: Instant, (local, remote): (IpAddr, IpAddr), size: usize) {
        if let Some(path) = self.paths.find(local, remote) {
            self.paths.on_packet_too_big(path, now, size);
            self.stir();
        }
    }

    pub(super) fn on_failure(&mut self, now: Instant, failure: Failure) {
        if failure.primary_changed {
            self.refresh_usable();
        }
        if failure.association_lost {
            // That a path turned inactive is told before the end that it brings.
            self.spread_path_changes(now);
            self.give_up_peer(CloseReason::PathsLost);
        }
    }
}

/// Not even the probe of what was sent on `path` was answered. Where others speak, what is in flight goes elsewhere at once, the
/// first first, and T3 goes on to ask the path for it; else the probe may have been lost.
fn on_silence(association: &mut Association, cx: &mut Context<'_>, path: PathId) {
    let target = association.resend_path(association.config.timeout_retransmit_path, path);
    let alternate = if target == path { association.paths.alternate(path) } else { target };
    let probes_window = association.transmission.is_probing_window();
    if !probes_window && alternate != path && paths::suspect(&mut association.paths, path) {
        association.counters.coverage.note(Mechanism::PathSuspected);
        evacuate(&mut association.transmission, path, alternate);
        association.transmission.hand_over(path, alternate);
        association.refresh_usable();
        association.send_heartbeat(cx, path);
    } else {
        association.transmission.probe_tail(path);
    }
}
