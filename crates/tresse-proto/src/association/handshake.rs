//! Effects of a handshake on an association: on one that was created before the end of its set-up, whose user data leaves
//! behind COOKIE ECHO (RFC 9260 §5.1); and on one whose peer restarts (§5.2.4).

use std::net::IpAddr;

use rand_chacha::ChaCha12Rng;
use tresse_policy::{Instant, PathId, Registry, ScheduleError};
use tresse_wire::PacketWriter;

use super::control::{Control, Reason};
use super::output::Carried;
use super::scheduling::Turn;
use super::setup::EarlyMessage;
use super::{Association, Beginnings, Peer, State, Workspace, packet_overhead};
use crate::extensions::auth::{Auth, Authentication};
use crate::interface::event::{CloseReason, Event, Payload};
use crate::receiver::Receiver;

impl Association {
    /// Takes the messages that were accepted before the peer's word on streams was known; what is for a stream that it
    /// did not agree to is given up. One that was `refused` for lack of room makes the application wait for some.
    pub(super) fn take_early(&mut self, messages: &[EarlyMessage], refused: bool) {
        for EarlyMessage { at, options, data } in messages {
            if self.send(*at, *options, data.clone()).is_err() {
                self.sender.outbound.buffer.note_homeless();
                self.tell(Event::Abandoned {
                    stream: options.stream,
                    ppid: options.ppid,
                    context: options.context,
                    bytes: data.len(),
                    sent: false,
                    payload: Payload::Whole(data.clone()),
                });
            }
        }
        if refused {
            self.sender.outbound.buffer.note_refused();
        }
    }

    /// Appends what fits behind COOKIE ECHO in a packet over `path`; answers whether there was anything. No fragments of
    /// IP for that: the cookie alone may need some.
    pub(super) fn write_behind_cookie(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        self.give_up(now);
        writer.limit_to(self.sender.paths.get(path).packet_size());
        self.sender.begin(now);
        let load = self.load_of(now, Turn::of(path));
        load.is_some_and(|load| self.write_data(now, path, load, writer) != Carried::Nothing)
    }

    /// COOKIE ECHO was lost, and with it the data behind it on `from`: it is retransmitted over `to`. For the window this is
    /// a timeout; T1 counts errors and backs the RTO off.
    pub(super) fn on_cookie_lost(&mut self, now: Instant, from: PathId, to: PathId) {
        if self.sender.transmission.outstanding.flight_on(from) == 0 {
            return;
        }
        self.sender.transmission.on_timeout(from, to);
        self.sender.paths.on_lost_in_setup(from, now);
        self.give_up(now);
    }

    /// The set-up has ended: the peer has the data behind its cookie, and a SACK for it is in flight.
    pub(super) fn on_set_up(&mut self, now: Instant) {
        for path in
            self.sender.path_ids().filter(|&path| self.sender.transmission.outstanding.flight_on(path) > 0)
        {
            self.sender.paths.restart_t3(path, now);
        }
        self.stir();
    }

    /// The association that follows this one, whose peer has restarted and whose COOKIE ECHO came `between`
    /// these addresses, the own one first. It starts afresh, windows and counters included, but for what
    /// is the application's own: messages that wait to be read, its choice of scheduler and stream map, and
    /// its wish to end the association. Unsent messages were meant for the peer that is gone.
    ///
    /// # Errors
    /// As [`Association::new`].
    pub(crate) fn restart(
        mut self,
        now: Instant,
        from: Beginnings,
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
            next.tell(Event::Writable);
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

    /// The peer, which set up at the same time, has chosen its tag anew since (RFC 9260 §5.2.4 B), and the
    /// random number of `auth` with it (RFC 4895 §6.1). Nothing was heard of it under the old one.
    pub(crate) fn on_collision(&mut self, peer: &Peer, auth: Option<Box<Auth>>, via: PathId) {
        self.identity.peer_tag = peer.tag;
        self.auth = Authentication::new(auth);
        match self.protection.agree_again(peer.key_parameter.as_deref(), &self.sender.config) {
            Ok(None) => {}
            Ok(Some(agreed)) => {
                // Whoever heard only now of what was agreed before would act on it, with the wrong role and the wrong keys.
                let events = &mut self.workspace.get().events;
                events.retain(|event| !matches!(event, Event::ProtectionAgreed(_)));
                self.tell(Event::ProtectionAgreed(Box::new(agreed)));
            }
            Err(fault) => self.fault(fault),
        }
        self.sender.paths.overhead = packet_overhead(&self.auth, &self.protection);
        let delayed_ack = self.sender.config.delayed_ack_with(self.capabilities);
        self.reception.begin_again(Receiver::new(peer.initial_tsn, &self.sender.config, delayed_ack));
        self.serials.peer = peer.initial_tsn.0;
        self.control.push(via, Control::CookieAck);
        self.stir();
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
        self.stir();
    }

    /// INIT came in SHUTDOWN-ACK-SENT: the peer has ended the association and wants another, but this side
    /// has not heard so (RFC 9260 §9.2).
    pub(crate) fn on_init_while_shutting_down(&mut self, via: Option<PathId>) {
        self.control.push(via.unwrap_or_else(|| self.sender.paths.best_for_control()), Control::ShutdownAck);
        self.stir();
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
