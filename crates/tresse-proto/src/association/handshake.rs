//! Effects of a handshake on an association whose peer sets up once more, or has restarted (RFC 9260 §5.2.4).

use std::net::IpAddr;

use rand_chacha::ChaCha12Rng;
use tresse_policy::{Instant, PathId, Registry, ScheduleError};

use super::control::{Control, Reason};
use super::{Association, Negotiated, Peer, State, Workspace, packet_overhead};
use crate::extensions::auth::{Auth, Authentication, RANDOM_LEN};
use crate::interface::event::{CloseReason, Event};
use crate::receiver::Receiver;

impl Association {
    /// The association that follows this one, whose peer has restarted and whose COOKIE ECHO came `between`
    /// these addresses, the own one first. It starts afresh, windows and counters included, but for what
    /// is the application's own: messages that wait to be read, its choice of scheduler and stream map, and
    /// its request to end the association. Unsent messages were meant for the peer that is gone.
    ///
    /// # Errors
    /// As [`Association::new`].
    pub(crate) fn restart(
        mut self,
        now: Instant,
        from: Negotiated,
        between: (IpAddr, IpAddr),
        workspace: Workspace,
        registry: &Registry,
        rng: &mut ChaCha12Rng,
    ) -> Result<Box<Self>, ScheduleError> {
        let mut next = Association::new(now, from, workspace, registry, rng)?;
        let (outbound_streams, inbound_streams) = next.streams();
        let undelivered = self.sender.outbound.buffer.info().used;
        // In place of `Established`.
        let events = &mut next.workspace.get().events;
        events.pop_front();
        events.push_front(Event::Restarted { outbound_streams, inbound_streams, undelivered });
        if self.sender.outbound.buffer.release(undelivered) {
            next.emit(Event::Writable);
        }
        next.sender.outbound.keep_choices(self.sender.outbound, registry);
        next.sender.refresh_usable();
        next.reception.inbound.keep_ready(self.reception.inbound);
        if next.reception.inbound.has_ready() {
            next.readable.on_ready();
        }
        next.kept_tag = next.identity.local_tag == self.identity.local_tag;
        if let Some(via) = next.sender.paths.between(between.0, between.1) {
            next.on_cookie_again(via);
        }
        if matches!(self.state, State::ShutdownPending | State::ShutdownSent) {
            next.shut_down(now);
        }
        Ok(next)
    }

    /// Returns whether data of the peer has come, or an acknowledgement. If it has another tag then, it has begun anew
    /// since, and knows nothing of either: numbers of before would be wrong for it.
    pub(crate) fn has_heard_peer(&self) -> bool {
        self.reception.has_begun() || self.counters.sacks_received > 0
    }

    /// Returns whether this peer agrees to as many streams and to the same extensions as the association has; `random` is
    /// the number that this side's parameters were drawn from.
    pub(crate) fn has_terms_of(&self, peer: &Peer, random: [u8; RANDOM_LEN], authenticated: bool) -> bool {
        let config = &self.sender.config;
        let (_, capabilities) = config.agreed_with(peer, random, authenticated);
        (config.streams_with(peer), capabilities) == (self.streams(), self.capabilities)
    }

    /// The peer, which set up at the same time, has chosen its tag anew since (RFC 9260 §5.2.4 B), and the
    /// random number of `auth` with it (RFC 4895 §6.1). Nothing was heard of it under the old one. The terms are
    /// the same ([`Self::has_terms_of`]); its window need not be.
    pub(crate) fn on_collision(&mut self, peer: &Peer, auth: Option<Box<Auth>>, via: PathId) {
        self.identity.peer_tag = peer.tag;
        self.auth = Authentication::new(auth);
        match self.protection.agree_again(peer.key_parameter.as_deref(), &self.sender.config) {
            Ok(None) => {}
            Ok(Some(agreed)) => {
                // Whoever heard only now of what was agreed before would act on it, with the wrong role and the wrong keys.
                let events = &mut self.workspace.get().events;
                events.retain(|event| !matches!(event, Event::ProtectionAgreed(_)));
                self.emit(Event::ProtectionAgreed(Box::new(agreed)));
            }
            Err(fault) => self.fault(fault),
        }
        self.sender.paths.overhead = packet_overhead(&self.auth, &self.protection);
        let delayed_ack = self.sender.config.delayed_ack_with(self.capabilities);
        self.reception.begin_again(Receiver::new(peer.initial_tsn, &self.sender.config, delayed_ack));
        self.renegotiation.begin_again(peer.initial_tsn.0);
        self.sender.transmission.begin_again(peer.a_rwnd);
        self.control.push(via, Control::CookieAck);
        self.request_output();
    }

    /// A COOKIE ECHO of this very association came again (RFC 9260 §5.2.4 D): its COOKIE ACK was lost. In
    /// SHUTDOWN-ACK-SENT neither that nor a restart (A) keeps the association from ending.
    pub(crate) fn on_cookie_again(&mut self, via: PathId) {
        if self.state == State::ShutdownAckSent {
            self.control.push(via, Control::Error(Reason::CookieWhileShuttingDown));
            self.control.push(via, Control::ShutdownAck);
        } else {
            self.control.push(via, Control::CookieAck);
        }
        self.request_output();
    }

    /// INIT came in SHUTDOWN-ACK-SENT: the peer has ended the association and wants another, but this side
    /// has not heard so (RFC 9260 §9.2).
    pub(crate) fn on_init_while_shutting_down(&mut self, via: Option<PathId>) {
        self.control.push(via.unwrap_or_else(|| self.sender.paths.best_for_control()), Control::ShutdownAck);
        self.request_output();
    }

    /// An ICMP message said that the peer's host takes no SCTP: it ends as by an ABORT (RFC 9260 §10, ICMP8).
    pub(crate) fn on_no_receiver(&mut self) {
        if self.protection.is_required() {
            return;
        }
        self.control.clear();
        self.close(CloseReason::no_receiver());
    }
}
