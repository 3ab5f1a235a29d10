//! INIT at the endpoint: the answer is an INIT ACK with a state cookie, and the endpoint keeps no state (RFC 9260 §5.1, §5.2.1,
//! §5.2.2). `admit` processes the cookie when the peer returns it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tresse_policy::Instant;
use tresse_wire::{Cause, Chunk, CommonHeader, Init, Packet, Param, Params, Tsn};

use super::admit::rotate_to;
use super::cookie::{Cookie, TieTags};
use super::slots::{Occupant, Slot};
use super::{Endpoint, reply_header, stray};
use crate::association::{HandshakeParams, InitFault, Peer, Settings, State, append, reach};
use crate::collections::InlineVec;
use crate::config::AssociationConfig;
use crate::extensions::auth::RANDOM_LEN;
use crate::extensions::protection::NegotiationFault;
use crate::interface::datagram::Datagram;

/// This side's content of an INIT ACK, and the destination of the packet.
struct OwnHalf {
    settings: Arc<Settings>,
    /// Tag, initial TSN and random number of an INIT that this side has sent; `None` draws new ones.
    named: Option<(u32, Tsn, [u8; RANDOM_LEN])>,
    addresses: InlineVec<IpAddr>,
    ties: TieTags,
    to: IpAddr,
}

/// Relation of an INIT to the existing association or set-up with its peer.
enum Relation {
    /// The INIT collides with this side's own INIT, or comes from a peer that may have restarted. An INIT ACK answers it.
    Answerable(OwnHalf),
    /// The association is shutting down and has repeated its SHUTDOWN ACK (RFC 9260 §9.2).
    Ending,
    /// The INIT has addresses that the association does not have (RFC 9260 §5.2.1, §5.2.2).
    NewAddresses(Vec<IpAddr>),
    /// The INIT came from another UDP port than the packets of the association (0: without UDP). It may be from another host
    /// behind the same address (draft-ietf-tsvwg-udp-encaps-cons).
    NewPort { current: u16, new: u16 },
}

impl Endpoint {
    /// Processes an INIT with tag 0 that is alone in its packet.
    pub(super) fn on_init(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        packet: &Packet<'_>,
        init: &Init<'_>,
    ) {
        if init.initiate_tag == 0 {
            self.discards.bad_init += 1;
            return;
        }
        let to_peer = CommonHeader { verification_tag: init.initiate_tag, ..reply_header(packet) };
        let scope = reach(&self.template, [datagram.remote]);
        let read = Peer::read(init, scope, usize::from(self.template.max_paths));
        let (peer, aside) = match read.and_then(|read| self.check_peer(&read.0).map(|()| read)) {
            Ok(read) => read,
            Err(fault) => {
                self.discards.bad_init += 1;
                return self.refuse(datagram, to_peer, fault.cause());
            }
        };
        let owner = self.owner_of(datagram.remote, packet.header.source_port, &peer.addresses);
        let relation = match owner {
            Some(slot) => self.relation(slot, datagram, &peer),
            None if !self.config.listen || self.is_full() => {
                self.discards.refused += 1;
                return self.refuse(datagram, to_peer, Cause::OutOfResource);
            }
            None => Relation::Answerable(self.for_new_peer(datagram)),
        };
        match relation {
            Relation::Answerable(own) => {
                let between = (datagram.local, own.to);
                let answer = self.init_ack(now, datagram, to_peer, peer, &aside, own);
                self.answer_to(between, datagram.encapsulation_port, answer);
            }
            Relation::Ending => {}
            Relation::NewAddresses(addresses) => {
                self.discards.refused += 1;
                let listed = listed(&addresses);
                self.refuse(datagram, to_peer, Cause::RestartWithNewAddresses(&listed));
            }
            Relation::NewPort { current, new } => {
                self.discards.refused += 1;
                let cause = Cause::RestartWithNewEncapsulationPort { current, new };
                self.refuse(datagram, to_peer, cause);
            }
        }
    }

    /// Checks that an association with this peer can be as secure as the settings require. Equal tie-breakers are no fault here:
    /// the answer draws its own random number.
    fn check_peer(&self, peer: &Peer) -> Result<(), InitFault> {
        self.template.check_peer(peer)?;
        match self.template.protection([0; RANDOM_LEN], peer) {
            Ok(_) | Err(InitFault::Disagreed(NegotiationFault::TieBreaker)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the association or set-up whose peer has this port and any of the addresses, `source` first. An address that a
    /// peer listed but that is not confirmed does not count: it must not lock out the host that owns it (RFC 5062 §2).
    pub(super) fn owner_of(&self, source: IpAddr, port: u16, listed: &[IpAddr]) -> Option<Slot> {
        std::iter::once(&source).chain(listed).find_map(|&address| {
            let slot = self.demux.by_peer(address, port)?;
            let owned = match self.slots.get(slot)? {
                Occupant::Open(association) => {
                    association.sender().has_confirmed(address) && !self.is_over(slot)
                }
                Occupant::Setup(_) => true,
                Occupant::Failed(_) => false,
            };
            owned.then_some(slot)
        })
    }

    /// Returns whether an association has ended. Its slot may still be needed for its last packets.
    pub(super) fn is_over(&self, slot: Slot) -> bool {
        match self.slots.get(slot) {
            Some(Occupant::Open(association)) => association.state() == State::Closed,
            Some(Occupant::Setup(_)) => false,
            Some(Occupant::Failed(_)) | None => true,
        }
    }

    /// Returns this side's content of an answer to a peer with which there is no association.
    fn for_new_peer(&self, datagram: &Datagram) -> OwnHalf {
        OwnHalf {
            settings: self.template.clone(),
            named: None,
            addresses: self.answering_addresses(&self.template, datagram.local, datagram.remote),
            ties: TieTags::default(),
            to: datagram.remote,
        }
    }

    fn relation(&mut self, slot: Slot, datagram: &Datagram, peer: &Peer) -> Relation {
        let listed = || std::iter::once(datagram.remote).chain(peer.addresses.iter().copied());
        let own = match self.slots.get_mut(slot) {
            Some(Occupant::Setup(setup)) => {
                let new: Vec<IpAddr> = listed().filter(|&address| !setup.may_have(address)).collect();
                if !new.is_empty() {
                    return Relation::NewAddresses(new);
                }
                setup.on_peer_init(peer.tag);
                // The answer repeats the values of this side's own INIT, and goes to an address that the application wanted to
                // connect to.
                OwnHalf {
                    settings: setup.settings().clone(),
                    named: Some((setup.local_tag(), setup.initial_tsn(), setup.auth().random())),
                    addresses: setup.shown_addresses(datagram.local),
                    ties: TieTags::default(),
                    to: listed().find(|&to| setup.was_asked_for(to)).unwrap_or(datagram.remote),
                }
            }
            Some(Occupant::Open(association)) => {
                let via = association.sender().paths.between(datagram.local, datagram.remote);
                if association.state() == State::ShutdownAckSent {
                    association.on_init_while_shutting_down(via);
                    self.settle(slot);
                    return Relation::Ending;
                }
                let new = association.sender().newcomers(listed());
                if !new.is_empty() {
                    return Relation::NewAddresses(new);
                }
                let current =
                    via.and_then(|via| association.sender().paths.get(via).encapsulation_port()).unwrap_or(0);
                let port = datagram.encapsulation_port.unwrap_or(0);
                let identity = association.identity();
                // The INIT that began the association, retransmitted on another path or behind a NAT, may arrive late. It has the
                // tag of the peer, and so would the ABORT that refuses it: the peer would end the association.
                if current != port && peer.tag != identity.peer_tag {
                    return Relation::NewPort { current, new: port };
                }
                OwnHalf {
                    settings: association.sender().config.clone(),
                    named: None,
                    addresses: association.sender().paths.local_addresses().collect(),
                    ties: self.keys.tie_tags(identity.local_tag, identity.peer_tag),
                    to: datagram.remote,
                }
            }
            Some(Occupant::Failed(_)) | None => self.for_new_peer(datagram),
        };
        Relation::Answerable(own)
    }

    fn refuse(&mut self, datagram: &Datagram, to_peer: CommonHeader, cause: Cause<'_>) {
        let abort = stray::abort(to_peer, false, cause, self.seal());
        self.answer(datagram, abort);
    }

    fn init_ack(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        header: CommonHeader,
        mut peer: Peer,
        aside: &HandshakeParams<'_>,
        own: OwnHalf,
    ) -> Vec<u8> {
        // RFC 9260 §5.1.1: no more streams than the peer's INIT allows.
        let streams = own.settings.outbound_streams.min(peer.inbound_streams);
        let (local_tag, local_initial_tsn, auth_random) =
            own.named.unwrap_or_else(|| (self.fresh_tag(), self.fresh_tsn(), self.fresh_random()));
        let keys = peer.key_parameter.as_ref().and_then(|_| own.settings.key_parameter(auth_random));
        match own.settings.protection(auth_random, &peer) {
            // Never both AUTH and DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2).
            Ok(Some(_)) => peer.auth = None,
            Ok(None) => {}
            // Both sides drew the same tie-breaker (§5.1).
            Err(fault) => {
                self.discards.bad_init += 1;
                return stray::abort(header, false, fault.cause(), self.seal());
            }
        }
        // The AUTH parameters are of use only to a peer that has sent its own.
        let random = peer.auth.as_ref().map(|_| &auth_random);
        let mut addresses = own.addresses;
        addresses.retain(|&address| address == datagram.local || aside.understands(address));
        let mut local = addresses.clone();
        rotate_to(&mut local, datagram.local);
        let cookie = Cookie {
            created: now,
            extension: Duration::from_millis(u64::from(aside.cookie_extension.unwrap_or_default()))
                .min(self.config.cookie_extension),
            local_port: header.source_port,
            remote_port: header.destination_port,
            local_tag,
            local_initial_tsn,
            peer,
            announced: own.settings.announced(),
            local,
            remote: own.to,
            encapsulation_port: datagram.encapsulation_port,
            auth_random,
            ties: own.ties,
        };
        self.keys.rotate(now, &mut self.rng);
        if addresses[..] == [datagram.local] {
            // The peer takes this address from the packet. If the address were listed, it would only break associations behind a
            // NAT.
            addresses = InlineVec::default();
        }
        let mut params = own.settings.params(&addresses, random, keys.as_deref());
        // All that the cookie contains of the peer is bounded: the cookie has a few kilobytes at most.
        Param::append_cookie(&mut params, |out| self.keys.seal(&cookie, out)).unwrap_or_default();
        for unknown in aside.reported() {
            append(&mut params, Param::UnrecognisedParameter(unknown));
        }
        let init_ack = own.settings.init(local_tag, local_initial_tsn, streams, &params);
        stray::single(header, &Chunk::InitAck(init_ack), self.seal())
    }

    /// Returns the own addresses that a peer at `remote` learns from the answer to its packet: `local`, the destination of that
    /// packet, and the listed ones. The association uses no others. Here `local` is always among them; a set-up from this side
    /// (`Setup::shown_addresses`) shows only addresses of its own list.
    fn answering_addresses(
        &self,
        config: &AssociationConfig,
        local: IpAddr,
        remote: IpAddr,
    ) -> InlineVec<IpAddr> {
        if !config.list_addresses {
            return InlineVec::of(local);
        }
        let scope = reach(config, [remote]);
        let told = |address: &IpAddr| *address == local || scope.covers(*address);
        let mut addresses: InlineVec<IpAddr> = self.local_addresses.iter().copied().filter(told).collect();
        if !addresses.contains(&local) {
            addresses.push_front(local);
        }
        addresses
    }
}

/// Returns address parameters, one after another.
fn listed(addresses: &[IpAddr]) -> Vec<u8> {
    let params: Vec<Param<'_>> = addresses.iter().copied().map(Param::Address).collect();
    let mut bytes = Vec::new();
    // The addresses are from one INIT, so they fit.
    Params::Values(&params).write(&mut bytes).unwrap_or_default();
    bytes
}
