//! The passive side of the handshake: INIT is answered without keeping anything, a valid state cookie
//! becomes an association (RFC 9260 §5.1, §5.2).

use std::net::IpAddr;
use std::time::Duration;

use tresse_wire::{Cause, CauseCode, Causes, Chunk, CommonHeader, ErrorChunk, Init, Packet, Param};

use super::cookie::{Cookie, Opened};
use super::demux::Slot;
use super::slots::Occupant;
use super::{Endpoint, reply_header, stray};
use crate::association::{
    Association, Beginnings, Capabilities, Identity, Origin, PathSeed, Peer, own_init, own_params,
};
use crate::cx::Cx;
use crate::datagram::Datagram;
use crate::event::{CloseReason, Event};
use crate::paths::pairs;
use crate::time::Instant;

impl Endpoint {
    /// INIT with tag 0, alone in its packet.
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
        let Some(peer) = Peer::read(init, usize::from(self.template.max_paths)) else {
            self.discards.bad_init += 1;
            let abort = stray::abort(to_peer, false, Cause::InvalidParameter, self.seal());
            self.answer(datagram, abort);
            return;
        };
        let existing = self.demux.by_peer(datagram.remote, packet.header.source_port);
        if existing.is_none() && (!self.config.listen || self.is_full()) {
            self.discards.refused += 1;
            let abort = stray::abort(to_peer, false, Cause::OutOfResource, self.seal());
            self.answer(datagram, abort);
            return;
        }
        let cookie = self.cookie_for(now, datagram, packet, peer, existing);
        let answer = self.init_ack(now, to_peer, &cookie, init);
        self.answer(datagram, answer);
    }

    /// What the state cookie of the answer says; with the tags of an association that exists already, so
    /// that a restart can be told from a collision (RFC 9260 §5.2.1, §5.2.2).
    fn cookie_for(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        packet: &Packet<'_>,
        peer: Peer,
        existing: Option<Slot>,
    ) -> Cookie {
        let own = match existing.and_then(|slot| self.slots.get(slot)) {
            // A collision: both sides sent INIT. The answer repeats this side's own parameters.
            Some(Occupant::Setup(setup)) => Some((setup.local_tag(), setup.initial_tsn())),
            _ => None,
        };
        let tie_tags = match existing.and_then(|slot| self.slots.get(slot)) {
            Some(Occupant::Open(association)) => {
                (association.identity().local_tag, association.identity().peer_tag)
            }
            _ => (0, 0),
        };
        let (local_tag, local_initial_tsn) = own.unwrap_or_else(|| (self.fresh_tag(), self.fresh_tsn()));
        Cookie {
            created: now,
            local_port: packet.header.destination_port,
            remote_port: packet.header.source_port,
            local_tag,
            local_initial_tsn,
            peer,
            local: datagram.local,
            remote: datagram.remote,
            encapsulation_port: datagram.encapsulation_port,
            local_tie_tag: tie_tags.0,
            peer_tie_tag: tie_tags.1,
        }
    }

    fn init_ack(&mut self, now: Instant, header: CommonHeader, cookie: &Cookie, init: &Init<'_>) -> Vec<u8> {
        self.keys.rotate(now, &mut self.rng);
        let sealed = self.keys.seal(cookie);
        let addresses = self.addresses_with(cookie.local);
        let extensions = Capabilities::offered(&self.template).kinds();
        let mut params = own_params(&addresses, &extensions);
        params.push(Param::StateCookie(&sealed));
        for param in init.params.iter().flatten() {
            if let Param::Unrecognised(unrecognised) = param {
                let action = unrecognised.kind.unrecognised_action();
                if action.report {
                    params.push(Param::UnrecognisedParameter(unrecognised.whole));
                }
                if action.stop {
                    break;
                }
            }
        }
        // RFC 9260 §5.1.1: no more streams than the peer's INIT allows.
        let streams = self.template.outbound_streams.min(cookie.peer.inbound_streams);
        let init_ack = own_init(&self.template, cookie.local_tag, cookie.local_initial_tsn, streams, &params);
        stray::single(header, &Chunk::InitAck(init_ack), self.seal())
    }

    /// The listening addresses, `first` among them.
    fn addresses_with(&self, first: IpAddr) -> Vec<IpAddr> {
        let mut addresses = self.local_addresses.clone();
        if !addresses.contains(&first) {
            addresses.insert(0, first);
        }
        addresses
    }

    /// COOKIE ECHO, first in its packet.
    pub(super) fn on_cookie_echo(&mut self, now: Instant, datagram: &Datagram, packet: &Packet<'_>) {
        let Some(Ok(Chunk::CookieEcho(echo))) = packet.chunks().next() else {
            self.discards.bad_cookie += 1;
            return;
        };
        let Some(opened) = self.keys.open(now, self.config.cookie_lifetime, echo.cookie) else {
            self.discards.bad_cookie += 1;
            return;
        };
        let cookie = &opened.cookie;
        let fits = cookie.local_port == packet.header.destination_port
            && cookie.remote_port == packet.header.source_port
            && cookie.local_tag == packet.header.verification_tag;
        if !fits {
            self.discards.bad_cookie += 1;
            return;
        }
        let own = self.demux.by_tag(cookie.local_tag);
        let occupant = own.and_then(|slot| self.slots.get_mut(slot));
        match (own, occupant) {
            (Some(slot), Some(Occupant::Open(association))) => {
                // Case D of RFC 9260 §5.2.4: the COOKIE ACK was lost. Taken whatever its age.
                let same = association.identity().peer_tag == cookie.peer.tag;
                match association.path_of(datagram.local, datagram.remote) {
                    Some(via) if same => {
                        association.on_cookie_again(via);
                        self.hand_over(now, slot, datagram, packet);
                    }
                    _ => self.discards.bad_cookie += 1,
                }
            }
            (_, occupant) => {
                let setting_up = own.filter(|_| matches!(occupant, Some(Occupant::Setup(_))));
                self.on_new_cookie(now, setting_up, datagram, packet, opened);
            }
        }
    }

    /// A cookie that belongs to no association yet; perhaps to one that this side is setting up.
    fn on_new_cookie(
        &mut self,
        now: Instant,
        setting_up: Option<Slot>,
        datagram: &Datagram,
        packet: &Packet<'_>,
        opened: Opened,
    ) {
        let Opened { cookie, stale_by } = opened;
        if let Some(by) = stale_by {
            self.on_stale_cookie(datagram, packet, &cookie, by);
        } else if setting_up.is_some() {
            // Case B: the peer answered this side's INIT with one of its own.
            self.accept(now, setting_up, datagram, packet, cookie);
        } else if self.demux.by_peer(datagram.remote, cookie.remote_port).is_some() {
            self.discards.unexpected_chunk += 1;
        } else if !self.config.listen || self.is_full() {
            self.discards.refused += 1;
        } else {
            self.accept(now, None, datagram, packet, cookie);
        }
    }

    fn on_stale_cookie(&mut self, datagram: &Datagram, packet: &Packet<'_>, cookie: &Cookie, by: Duration) {
        self.discards.stale_cookie += 1;
        let header = CommonHeader { verification_tag: cookie.peer.tag, ..reply_header(packet) };
        let micros = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        let causes = [Cause::StaleCookie { micros }];
        let error = Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) });
        self.answer(datagram, stray::single(header, &error, self.seal()));
    }

    /// Builds the association that a valid cookie describes.
    fn accept(
        &mut self,
        now: Instant,
        slot: Option<Slot>,
        datagram: &Datagram,
        packet: &Packet<'_>,
        cookie: Cookie,
    ) {
        let config = match slot.and_then(|slot| self.slots.get(slot)) {
            Some(Occupant::Setup(setup)) => setup.config().clone(),
            _ => self.template.clone(),
        };
        let beginnings = Beginnings {
            identity: Identity {
                local_port: cookie.local_port,
                remote_port: cookie.remote_port,
                local_tag: cookie.local_tag,
                peer_tag: cookie.peer.tag,
            },
            paths: self.path_seeds(&cookie, &config, datagram.encapsulation_port),
            config,
            initial_tsn: cookie.local_initial_tsn,
            peer: cookie.peer,
            checksum_offload: self.config.checksum_offload,
        };
        let slot = match slot {
            Some(slot) => slot,
            None => self.slots.insert(Occupant::Failed(self.template.clone())),
        };
        self.open(now, slot, beginnings);
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(via) = association.path_of(datagram.local, datagram.remote)
        {
            association.acknowledge_cookie(via);
        }
        self.hand_over(now, slot, datagram, packet);
        self.settle(slot);
    }

    /// Gives an association the packet that its COOKIE ECHO came in: DATA may follow it.
    pub(super) fn hand_over(&mut self, now: Instant, slot: Slot, datagram: &Datagram, packet: &Packet<'_>) {
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(path) = association.path_of(datagram.local, datagram.remote)
        {
            let mut cx = Cx { now, rng: &mut self.rng };
            let from = Origin { path, encapsulation_port: datagram.encapsulation_port };
            association.handle_packet(&mut cx, from, packet, &datagram.payload);
        }
    }

    /// Puts an association into its slot, in place of what was there.
    pub(super) fn open(&mut self, now: Instant, slot: Slot, beginnings: Beginnings) {
        self.forget_addresses(slot);
        match Association::new(now, beginnings, &self.registry, &mut self.rng) {
            Ok(association) => {
                let tag = association.identity().local_tag;
                let peers: Vec<_> = association.peer_addresses().collect();
                self.demux.insert(slot, tag, peers.into_iter());
                self.slots.replace(slot, Occupant::Open(Box::new(association)));
            }
            // The names were checked when the settings were taken; a scheduler removed since then.
            Err(_) => {
                self.slots.replace(slot, Occupant::Failed(self.template.clone()));
                self.events.push_back((self.slots.id(slot), Event::Closed(CloseReason::Aborted)));
            }
        }
    }

    /// The set-up timed the round trip over the path that its last packet took.
    pub(super) fn note_setup_rtt(&mut self, slot: Slot, datagram: &Datagram, rtt: Duration) {
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(path) = association.path_of(datagram.local, datagram.remote)
        {
            association.on_setup_rtt(path, rtt);
        }
    }

    /// The paths of an association that a peer set up. The INIT showed one pair of addresses to work; the
    /// other addresses of both sides pair up in their order from there, and heartbeats will tell.
    fn path_seeds(
        &self,
        cookie: &Cookie,
        config: &crate::config::AssociationConfig,
        encapsulation_port: Option<u16>,
    ) -> Vec<PathSeed> {
        let mut local = self.addresses_with(cookie.local);
        let mut remote = cookie.peer.addresses.clone();
        if !remote.contains(&cookie.remote) {
            remote.insert(0, cookie.remote);
        }
        rotate_to(&mut local, cookie.local);
        rotate_to(&mut remote, cookie.remote);
        pairs(config.path_pairs, &local, &remote, usize::from(config.max_paths))
            .into_iter()
            .map(|(local, remote)| PathSeed {
                local,
                remote,
                encapsulation_port,
                // The cookie went to this address and came back (RFC 9260 §5.4).
                confirmed: remote == cookie.remote,
            })
            .collect()
    }
}

fn rotate_to(addresses: &mut [IpAddr], first: IpAddr) {
    let position = addresses.iter().position(|&address| address == first).unwrap_or(0);
    addresses.rotate_left(position);
}

/// Whether COOKIE ECHO is the packet's first chunk.
pub(super) fn carries_cookie(packet: &Packet<'_>) -> bool {
    matches!(packet.chunks().next(), Some(Ok(Chunk::CookieEcho(_))))
}

/// Whether an ERROR says that the cookie was too old.
pub(super) fn says_stale_cookie(error: &ErrorChunk<'_>) -> bool {
    error.causes.iter().flatten().any(|cause| cause.code() == CauseCode::STALE_COOKIE)
}
