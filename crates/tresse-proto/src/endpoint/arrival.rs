//! Dispatch of a received packet: to the association with its tag, to a set-up, or to the rules for packets out of the blue.

use std::time::Duration;

use tresse_policy::Instant;
use tresse_wire::{Abort, Cause, Causes, ChecksumRule, Chunk, CommonHeader, Heartbeat, Packet};

use super::slots::{Occupant, Slot};
use super::{Endpoint, admit, ephemeral_port, reply_header, stray};
use crate::association::{InitFault, Origin, Protected, SetupStep, State};
use crate::context::Context;
use crate::extensions::asconf::Source;
use crate::extensions::auth::AuthState;
use crate::interface::datagram::Datagram;
use crate::interface::event::CloseReason;
use crate::paths::is_usable;

impl Endpoint {
    /// Processes a packet with the tag of the association in `slot`, which may keep the payload.
    pub(super) fn on_own_packet(&mut self, now: Instant, slot: Slot, datagram: &mut Datagram) {
        if !self.is_admitted(now, slot, datagram) {
            return self.settle(slot);
        }
        let Ok(packet) = Packet::parse(&datagram.payload, ChecksumRule::Trust) else { return };
        match self.slots.get_mut(slot) {
            Some(Occupant::Open(association)) if association.state() != State::Closed => {
                let identity = association.identity();
                match association.sender().paths.between(datagram.local, datagram.remote) {
                    Some(path) if identity.remote_port == packet.header.source_port => {
                        if let Some(cookie) = admit::cookie_in(&packet) {
                            self.on_cookie_echo(now, datagram, &packet, cookie);
                        } else {
                            let mut cx = Context { now, rng: &mut self.rng };
                            let path = association.path_of(now, path, (datagram.local, datagram.remote));
                            let from = Origin::of(datagram, path);
                            self.workspace.lend_to(&mut association.workspace);
                            association.handle_packet(&mut cx, from, &mut datagram.payload);
                        }
                    }
                    None if identity.remote_port == packet.header.source_port => {
                        let mut cx = Context { now, rng: &mut self.rng };
                        let Datagram { local, remote, encapsulation_port, .. } = *datagram;
                        let source = Source { local, remote, encapsulation_port };
                        let known = association.on_unknown_source(&mut cx, source, &packet);
                        self.discards.out_of_the_blue += u64::from(!known);
                    }
                    _ => self.discards.out_of_the_blue += 1,
                }
            }
            Some(Occupant::Setup(setup)) if setup.remote_port() == packet.header.source_port => {
                self.on_setup_packet(now, slot, datagram, &packet);
            }
            _ => self.discards.out_of_the_blue += 1,
        }
        self.settle(slot);
    }

    /// Returns whether a packet with the tag of the association in `slot` is to be processed. A DTLS chunk is replaced by its
    /// plaintext.
    fn is_admitted(&mut self, now: Instant, slot: Slot, datagram: &mut Datagram) -> bool {
        let Some(Occupant::Open(association)) = self.slots.get_mut(slot) else { return true };
        if Protected::of(association).is_none() || association.state() == State::Closed {
            return true;
        }
        let Ok(packet) = Packet::parse(&datagram.payload, ChecksumRule::Trust) else { return true };
        if packet.header.source_port != association.identity().remote_port {
            return true;
        }
        let path = association.sender().paths.between(datagram.local, datagram.remote);
        let memory = &mut self.opened;
        Protected::of(association)
            .is_none_or(|protected| protected.admit(now, path, &mut datagram.payload, memory))
    }

    /// Restarts the set-up after the peer reported the cookie as stale.
    fn renew_setup(&mut self, now: Instant, slot: Slot) -> SetupStep {
        let (tag, tsn) = (self.fresh_tag(), self.fresh_tsn());
        let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return SetupStep::Waiting };
        self.demux.change_tag(slot, setup.local_tag(), tag);
        setup.on_stale_cookie(now, tag, tsn)
    }

    /// Returns whether the peer refuses a set-up because it has an association with another host that uses this address and port,
    /// and the port may be changed.
    fn port_is_taken(&self, causes: &Causes<'_>) -> bool {
        self.port_is_free
            && !self.config.listen
            && causes.iter().flatten().any(|cause| {
                matches!(
                    cause,
                    Cause::RestartWithNewEncapsulationPort { .. } | Cause::RestartWithNewAddresses(_)
                )
            })
    }

    /// Restarts a set-up with another port, which becomes the port of the endpoint. Returns false if other associations use the
    /// old port, or the port was changed too often.
    fn change_port(&mut self, slot: Slot) -> bool {
        if self.slots.len() > 1 {
            return false;
        }
        let (port, tag, tsn) = (ephemeral_port(&mut self.rng), self.fresh_tag(), self.fresh_tsn());
        let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return false };
        let old = setup.local_tag();
        if !setup.on_port_taken(port, tag, tsn) {
            return false;
        }
        self.demux.change_tag(slot, old, tag);
        self.config.port = port;
        true
    }

    /// Processes a packet for an association that this side is setting up.
    fn on_setup_packet(&mut self, now: Instant, slot: Slot, datagram: &Datagram, packet: &Packet<'_>) {
        // Both sides set up at once: the keys follow from the INIT in the cookie, not from the INIT ACK to this side's INIT.
        if let Some(cookie) = admit::cookie_in(packet) {
            return self.on_cookie_echo(now, datagram, packet, cookie);
        }
        let (mut gate, mut chunks, mut unrecognised) = (AuthState::default(), packet.chunks(), Vec::new());
        loop {
            let covered = chunks.remaining();
            let Some(chunk) = chunks.next() else { break };
            let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return };
            if let Err(refusal) = setup.auth().screen(&mut gate, &chunk, covered) {
                return refusal.count(&mut self.discards);
            }
            let Ok(chunk) = chunk else { continue };
            let step = match chunk {
                Chunk::Auth(_) => SetupStep::Waiting,
                // Both sides set up at once. The peer's attempt created an association that has ended here, and the peer has not
                // received the end. If the set-up continued, data that the peer retransmits would be delivered again.
                Chunk::InitAck(init)
                    if self.spent.contains_peer(init.initiate_tag, packet.header.source_port) =>
                {
                    return self.refuse_spent(datagram, packet, init.initiate_tag);
                }
                Chunk::InitAck(init) => {
                    for tag in setup.superseded(init.initiate_tag) {
                        self.spent.note_superseded(tag, packet.header.source_port);
                    }
                    let step = setup.on_init_ack(&init, (datagram.local, datagram.remote));
                    self.open_ahead(now, slot);
                    step
                }
                Chunk::CookieAck => setup.on_cookie_ack(now),
                Chunk::Abort(abort) if !abort.tag_reflected => {
                    if self.port_is_taken(&abort.causes) && self.change_port(slot) {
                        return;
                    }
                    return self.fail_setup(slot, CloseReason::aborted_by_peer(&abort.causes));
                }
                Chunk::Error(error) if stray::says_stale_cookie(&error) && setup.awaits_cookie_ack() => {
                    self.renew_setup(now, slot)
                }
                // The peer still shuts down an earlier association. SHUTDOWN COMPLETE tells it that this one is over, and the
                // set-up continues (RFC 9260 §8.5.1 E).
                Chunk::ShutdownAck => return self.on_stray(datagram, packet),
                Chunk::Heartbeat(heartbeat) => {
                    let tag = setup.peer_tag();
                    self.answer_early(tag, heartbeat, datagram, packet);
                    SetupStep::Waiting
                }
                Chunk::Unrecognised(chunk) => {
                    self.discards.unrecognised_chunk += 1;
                    let action = chunk.kind.unrecognised_action();
                    unrecognised.extend(action.report.then_some(chunk.whole));
                    if action.stop {
                        break;
                    }
                    SetupStep::Waiting
                }
                _ => {
                    self.discards.unexpected_chunk += 1;
                    SetupStep::Waiting
                }
            };
            match step {
                SetupStep::Waiting => {}
                SetupStep::GivenUp => return self.fail_setup(slot, CloseReason::SetupTimeout),
                SetupStep::Done(rtt) => {
                    let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return };
                    let Some(beginnings) = setup.finish() else { return };
                    self.open(now, slot, beginnings);
                    return self.on_opened(now, slot, datagram, rtt);
                }
                SetupStep::Ready(association, rtt) => {
                    self.replace_setup(slot, association);
                    return self.on_opened(now, slot, datagram, rtt);
                }
                SetupStep::Refused { fault, peer_tag } => {
                    self.refuse_answer(datagram, packet, &fault, peer_tag);
                    return self.fail_setup(slot, fault.close_reason());
                }
            }
        }
        let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return };
        unrecognised.into_iter().for_each(|chunk| setup.note_unrecognised(chunk));
    }

    /// Answers an unusable INIT ACK with ABORT. `peer_tag` is its initiate tag, which may be 0.
    fn refuse_answer(&mut self, datagram: &Datagram, packet: &Packet<'_>, fault: &InitFault, peer_tag: u32) {
        let header = reply_header(packet);
        let abort = match peer_tag {
            // RFC 9260 §8.5.1: the peer's tag is not known, so the tag of its packet is reflected.
            0 => stray::abort(header, true, fault.cause(), self.seal()),
            verification_tag => {
                let header = CommonHeader { verification_tag, ..header };
                stray::abort(header, false, fault.cause(), self.seal())
            }
        };
        self.answer(datagram, abort);
    }

    /// Completes a set-up by COOKIE ACK; `rtt` is the round-trip time of COOKIE ECHO.
    fn on_opened(&mut self, now: Instant, slot: Slot, datagram: &Datagram, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.note_setup_rtt(slot, datagram, rtt);
        }
        // The chunks behind COOKIE ACK in its packet are for the association.
        self.hand_over(now, slot, datagram);
    }

    /// Answers a HEARTBEAT during the set-up, once the peer's tag is known (RFC 9260 §8.3).
    fn answer_early(
        &mut self,
        peer_tag: Option<u32>,
        heartbeat: Heartbeat<'_>,
        datagram: &Datagram,
        packet: &Packet<'_>,
    ) {
        let Some(verification_tag) = peer_tag else {
            self.discards.unexpected_chunk += 1;
            return;
        };
        let header = CommonHeader { verification_tag, ..reply_header(packet) };
        let answer = stray::single(header, &Chunk::HeartbeatAck(heartbeat), self.seal());
        self.answer(datagram, answer);
    }

    /// Drops a packet with a wrong checksum. The association with its tag, ports and addresses reports it. If these are damaged
    /// as well, the packet is not reported.
    pub(super) fn on_damaged(&mut self, datagram: &Datagram) {
        self.discards.bad_checksum += 1;
        let Ok(packet) = Packet::parse(&datagram.payload, ChecksumRule::Trust) else { return };
        let CommonHeader { source_port, destination_port, verification_tag } = packet.header;
        let Some(slot) = self.demux.by_tag(verification_tag).filter(|_| destination_port == self.config.port)
        else {
            return;
        };
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && association.identity().remote_port == source_port
            && let Some(path) = association.sender().paths.between(datagram.local, datagram.remote)
        {
            association.on_damaged_packet(path, packet.bytes());
        }
        self.settle(slot);
    }

    /// Processes a packet whose tag no association has.
    pub(super) fn on_unknown_tag(&mut self, now: Instant, datagram: &Datagram, packet: &Packet<'_>) {
        if !is_between_hosts(datagram) {
            self.discards.out_of_the_blue += 1;
            return;
        }
        if let Some(cookie) = admit::cookie_in(packet) {
            return self.on_cookie_echo(now, datagram, packet, cookie);
        }
        let mut chunks = packet.chunks();
        match chunks.next() {
            Some(Ok(Chunk::Init(init)))
                if packet.header.verification_tag == 0 && chunks.remaining().is_empty() =>
            {
                self.on_init(now, datagram, packet, &init);
            }
            Some(Ok(Chunk::Init(_))) => self.discards.bad_init += 1,
            // A peer that accepts only DTLS chunks accepts an answer only in a DTLS chunk.
            Some(Ok(Chunk::Dtls(_))) => {
                let CommonHeader { source_port, verification_tag, .. } = packet.header;
                match self.final_packets.next(verification_tag, source_port) {
                    Some(final_packet) => self.answer(datagram, final_packet),
                    None => self.discards.out_of_the_blue += 1,
                }
            }
            Some(Ok(first)) => {
                let tag_reflected = matches!(
                    first,
                    Chunk::Abort(Abort { tag_reflected: true, .. })
                        | Chunk::ShutdownComplete { tag_reflected: true }
                );
                if tag_reflected && self.on_reflected_tag(datagram, packet, &first) {
                    return;
                }
                let known = self.demux.by_peer(datagram.remote, packet.header.source_port);
                match known.filter(|&slot| !self.is_over(slot)).and_then(|slot| self.slots.get(slot)) {
                    // The peer still shuts down an earlier association, whatever the state of the present one (RFC 9260 §8.5.1
                    // E).
                    Some(Occupant::Setup(_)) if matches!(first, Chunk::ShutdownAck) => {
                        self.on_stray(datagram, packet);
                    }
                    // A wrong tag from a known peer: forged, or from an earlier association (RFC 9260 §8.5: silently discard).
                    Some(Occupant::Open(_) | Occupant::Setup(_)) => self.discards.wrong_tag += 1,
                    _ => self.on_stray(datagram, packet),
                }
            }
            _ => self.discards.malformed_packet += 1,
        }
    }

    /// Processes an ABORT or SHUTDOWN COMPLETE with the peer's own tag reflected (RFC 9260 §8.5.1): the peer has no association.
    /// Returns whether it was for an association or set-up of this endpoint.
    fn on_reflected_tag(&mut self, datagram: &Datagram, packet: &Packet<'_>, chunk: &Chunk<'_>) -> bool {
        let Some(slot) = self.demux.by_peer(datagram.remote, packet.header.source_port) else { return false };
        let tag = packet.header.verification_tag;
        match self.slots.get_mut(slot) {
            Some(Occupant::Open(association)) if association.identity().peer_tag == tag => {
                association.on_reflected(chunk);
            }
            // SHUTDOWN COMPLETE is valid in SHUTDOWN-ACK-SENT only.
            Some(Occupant::Setup(setup)) if setup.peer_tag() == Some(tag) => {
                if !matches!(chunk, Chunk::Abort(_)) {
                    self.discards.unexpected_chunk += 1;
                    return true;
                }
                self.fail_setup(slot, CloseReason::unknown_to_peer());
            }
            _ => return false,
        }
        self.settle(slot);
        true
    }

    pub(super) fn on_stray(&mut self, datagram: &Datagram, packet: &Packet<'_>) {
        self.discards.out_of_the_blue += 1;
        if is_between_hosts(datagram)
            && let Some(packet) = stray::answer(packet, self.seal())
        {
            self.answer(datagram, packet);
        }
    }
}

/// Returns whether both addresses are unicast addresses. Other packets are never answered, not even an INIT (RFC 9260 §8.4). A
/// driver that does not know the destination of a packet may give an unspecified address.
fn is_between_hosts(datagram: &Datagram) -> bool {
    is_usable(datagram.remote) && (is_usable(datagram.local) || datagram.local.is_unspecified())
}
