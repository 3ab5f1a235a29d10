//! Effects of another handshake on an existing association: duplicate cookies, collisions and restarts of the peer
//! (RFC 9260 §5.2.4).

use std::net::IpAddr;

use bytes::Bytes;
use rand_chacha::ChaCha12Rng;
use tresse_policy::{Instant, PathId, Registry, ScheduleError};

use super::control::{Control, Reason};
use super::{Association, Negotiated, Peer, State, Workspace, packet_overhead};
use crate::extensions::auth::{Auth, Authentication, RANDOM_LEN};
use crate::interface::event::{CloseReason, Event};
use crate::receiver::Receiver;

impl Association {
    /// Creates the association that replaces this one after a restart of the peer, whose COOKIE ECHO came `between` these
    /// addresses, the local one first. All state starts anew, windows and counters included, except that of the application:
    /// messages that wait to be read, its choice of stream scheduler and stream map, and its request for a shutdown. Unsent
    /// messages are dropped, because they were for the peer before its restart.
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
        // `Restarted` replaces `Established`.
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

    /// Returns whether DATA or a SACK of the peer has arrived. If it has, and the peer now has another tag, the peer has
    /// restarted since and lost its state: the old TSNs would be wrong.
    pub(crate) fn has_heard_peer(&self) -> bool {
        self.reception.has_begun() || self.counters.sacks_received > 0
    }

    /// Returns whether the negotiation with this peer gives the association's numbers of streams and its extensions. `random`
    /// is the number from which this side derived its parameters.
    pub(crate) fn has_terms_of(&self, peer: &Peer, random: [u8; RANDOM_LEN], authenticated: bool) -> bool {
        let config = &self.sender.config;
        let (_, capabilities) = config.agreed_with(peer, random, authenticated);
        (config.streams_with(peer), capabilities) == (self.streams(), self.capabilities)
    }

    /// Handles an initialization collision: the peer has chosen another tag (RFC 9260 §5.2.4 B), and with it another random
    /// number, in `auth` (RFC 4895 §6.1). Neither DATA nor a SACK has arrived from it before. The peer has the same terms
    /// ([`Self::has_terms_of`]), but perhaps another receiver window.
    pub(crate) fn on_collision(&mut self, peer: &Peer, auth: Option<Box<Auth>>, via: PathId) {
        self.identity.peer_tag = peer.tag;
        self.auth = Authentication::new(auth);
        match self.protection.agree_again(peer.key_parameter.as_deref(), &self.sender.config) {
            Ok(None) => {}
            Ok(Some(agreed)) => {
                // The key management must not get an event about the old agreement any more: it would act with the wrong role and
                // keys.
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

    /// Handles a duplicate COOKIE ECHO of this association (RFC 9260 §5.2.4 D): the COOKIE ACK was lost. In SHUTDOWN-ACK-SENT
    /// neither a duplicate nor a restart of the peer (A) stops the shutdown.
    pub(crate) fn on_cookie_again(&mut self, via: PathId) {
        if self.state == State::ShutdownAckSent {
            self.control.push(via, Control::Error(Reason::CookieWhileShuttingDown));
            self.control.push(via, Control::ShutdownAck);
        } else {
            self.control.push(via, Control::CookieAck);
        }
        self.request_output();
    }

    /// Reports chunks of unknown types that arrived during the set-up.
    pub(crate) fn report_unrecognised(&mut self, chunks: Vec<Bytes>) {
        let path = self.sender.paths.best_for_control();
        for chunk in chunks {
            self.control.report(path, || Reason::UnrecognisedChunk(chunk));
            self.request_output();
        }
    }

    /// Handles INIT in SHUTDOWN-ACK-SENT: SHUTDOWN ACK is sent again (RFC 9260 §9.2). The peer has closed and sets up again, but
    /// its SHUTDOWN COMPLETE has not arrived.
    pub(crate) fn on_init_while_shutting_down(&mut self, via: Option<PathId>) {
        self.control.push(via.unwrap_or_else(|| self.sender.paths.best_for_control()), Control::ShutdownAck);
        self.request_output();
    }

    /// Handles an ICMP message that the peer's host does not support SCTP: the association ends as by an ABORT (RFC 9260 §10,
    /// ICMP8).
    pub(crate) fn on_no_receiver(&mut self) {
        if self.protection.is_required() {
            return;
        }
        self.control.clear();
        self.close(CloseReason::no_receiver());
    }
}
