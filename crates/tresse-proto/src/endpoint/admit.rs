//! COOKIE ECHO at the endpoint: the cookie creates or restarts an association, or belongs to an existing one (RFC 9260 §5.1.5,
//! §5.2.4). This module uses the contents of a cookie; `cookie` authenticates it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse_policy::{Instant, ScheduleError};
use tresse_wire::{Cause, Causes, Chunk, ChunkKind, Chunks, CommonHeader, ErrorChunk, Packet};

use super::cookie::{Cookie, Opened, TieTags};
use super::slots::{Failed, Occupant, Slot};
use super::{Endpoint, reply_header, stray};
use crate::association::{
    Association, Identity, Negotiated, Origin, PathSeed, Protected, Settings, State, Workspace,
};
use crate::collections::InlineVec;
use crate::config::AssociationConfig;
use crate::context::Context;
use crate::extensions::auth::{Auth, Refusal, SharedKeys};
use crate::interface::datagram::Datagram;
use crate::interface::event::{CloseReason, Event};
use crate::paths::pairs;

/// Facts about the existing association that a cookie refers to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct ExistingAssociation {
    local_tag: u32,
    /// `None` in COOKIE-WAIT.
    peer_tag: Option<u32>,
    ties: Option<TieTags>,
}

/// Action on a cookie whose association exists already (RFC 9260 §5.2.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Action {
    /// A: the peer has restarted.
    Restart,
    /// B: both sides set up the association at once. The cookie has the peer's present tag.
    Collide,
    /// D: the COOKIE ACK was lost, or crossed the COOKIE ECHO on its way.
    Acknowledge,
    /// C, a cookie that arrives late, and all cases that the table does not list.
    Discard,
}

impl Action {
    fn of(cookie: &Cookie, known: &ExistingAssociation) -> Self {
        match (cookie.local_tag == known.local_tag, known.peer_tag == Some(cookie.peer.tag)) {
            (true, true) => Action::Acknowledge,
            (true, false) => Action::Collide,
            (false, false) if known.ties == Some(cookie.ties) => Action::Restart,
            (false, _) => Action::Discard,
        }
    }
}

impl Endpoint {
    /// Processes a COOKIE ECHO that is the first chunk of its packet, apart from AUTH.
    pub(super) fn on_cookie_echo(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        packet: &Packet<'_>,
        cookie: &[u8],
    ) {
        let opened = self.open_cookie(now, packet, cookie);
        let Some(Opened { mut cookie, stale_by }) =
            opened.filter(|opened| opened.cookie.names(datagram.remote))
        else {
            self.discards.bad_cookie += 1;
            return;
        };
        let owner = self.demux.by_tag(cookie.local_tag);
        let owner =
            owner.or_else(|| self.owner_of(cookie.remote, cookie.remote_port, &cookie.peer.addresses));
        let met = owner.and_then(|slot| Some((slot, Action::of(&cookie, &self.known(slot)?))));
        if let Some((slot, _)) = met
            && let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && Protected::of(association).is_some_and(|protected| protected.is_required())
        {
            // A cookie in the clear neither restarts the association nor is acknowledged: otherwise any host could end the
            // association.
            self.discards.unprotected += 1;
            return;
        }
        if let Some((slot, action)) = met
            && let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Err(refusal) = screen_again(action, &cookie, association, packet)
        {
            return refusal.count(&mut self.discards);
        }
        match (met, stale_by) {
            (Some((slot, Action::Acknowledge)), _) => {
                self.on_cookie_again(now, slot, datagram, packet, cookie)
            }
            // The cookie was in time once. If the peer learned that it is stale, it would set up anew and send delivered data
            // again.
            (None, _) if self.spent.contains(cookie.local_tag, cookie.peer.tag, cookie.remote_port) => {
                // The peer may still wait for COOKIE ACK: the application aborted the set-up of this side for which the cookie
                // was made.
                self.refuse_spent(datagram, packet, cookie.peer.tag);
            }
            (Some((_, Action::Collide)), _)
                if self.spent.contains_peer(cookie.peer.tag, cookie.remote_port) =>
            {
                self.discards.late_cookie += 1;
            }
            (_, Some(by)) => match self.screen_cookie(owner, packet, &mut cookie) {
                Ok(_) => self.on_stale_cookie(datagram, packet, &cookie, by),
                Err(refusal) => refusal.count(&mut self.discards),
            },
            (Some((slot, Action::Collide)), None) => self.on_collision(now, slot, datagram, packet, cookie),
            (Some((slot, Action::Restart)), None) => self.on_restart(now, slot, datagram, cookie),
            (Some((_, Action::Discard)), None) => self.discards.late_cookie += 1,
            (None, None) if owner.is_some() => self.discards.late_cookie += 1,
            (None, None) if !self.config.listen || self.is_full() => {
                self.discards.refused += 1;
                // Otherwise a peer whose INIT was answered would repeat its cookie for minutes (RFC 9260 §5.1).
                self.end_attempt(datagram, packet, cookie.peer.tag, Cause::OutOfResource);
            }
            // The settings have changed since the INIT ACK, or the INIT ACK was for an association or set-up that is over. The
            // peer needs a new INIT ACK to learn the present settings.
            (None, None) if cookie.announced != self.template.announced() => {
                self.on_stale_cookie(datagram, packet, &cookie, Duration::ZERO);
            }
            (None, None) => self.admit(now, None, datagram, packet, cookie),
        }
    }

    /// Returns the cookie, if this endpoint signed it and it fits its packet (RFC 9260 §5.1.5).
    fn open_cookie(&self, now: Instant, packet: &Packet<'_>, cookie: &[u8]) -> Option<Opened> {
        let opened = self.keys.open(now, self.config.cookie_lifetime, cookie)?;
        let cookie = &opened.cookie;
        let fits = cookie.local_port == packet.header.destination_port
            && cookie.remote_port == packet.header.source_port
            && cookie.local_tag == packet.header.verification_tag;
        fits.then_some(opened)
    }

    /// Returns facts about the association or set-up in `slot`; `None` if it has ended.
    fn known(&self, slot: Slot) -> Option<ExistingAssociation> {
        match self.slots.get(slot)? {
            Occupant::Setup(setup) => Some(ExistingAssociation {
                local_tag: setup.local_tag(),
                peer_tag: setup.peer_tag(),
                ties: None,
            }),
            Occupant::Open(association) if association.state() != State::Closed => {
                let Identity { local_tag, peer_tag, .. } = association.identity();
                let ties = self.keys.tie_tags(local_tag, peer_tag);
                Some(ExistingAssociation { local_tag, peer_tag: Some(peer_tag), ties: Some(ties) })
            }
            Occupant::Open(_) | Occupant::Failed(_) => None,
        }
    }

    /// Processes a cookie whose tags are both those of the association.
    fn on_cookie_again(
        &mut self,
        now: Instant,
        slot: Slot,
        datagram: &Datagram,
        packet: &Packet<'_>,
        cookie: Cookie,
    ) {
        let Some(Occupant::Open(association)) = self.slots.get_mut(slot) else {
            return self.admit(now, Some(slot), datagram, packet, cookie);
        };
        match association.sender().paths.between(datagram.local, datagram.remote) {
            Some(via) => {
                association.on_cookie_again(via);
                self.hand_over(now, slot, datagram);
                self.settle(slot);
            }
            None => self.discards.bad_cookie += 1,
        }
    }

    /// Processes a cookie whose own tag is that of the association, and whose peer's tag is another one or was not known yet.
    fn on_collision(
        &mut self,
        now: Instant,
        slot: Slot,
        datagram: &Datagram,
        packet: &Packet<'_>,
        mut cookie: Cookie,
    ) {
        let Some(Occupant::Open(association)) = self.slots.get_mut(slot) else {
            return self.admit(now, Some(slot), datagram, packet, cookie);
        };
        let (own, made) = (cookie.local_tag, cookie.created);
        if self.spent.is_superseded(own, made, cookie.peer.tag, cookie.remote_port) {
            self.discards.late_cookie += 1;
            return;
        }
        // The application knows the streams and extensions: only a restart can replace them.
        if association.has_heard_peer() || !keeps_terms(&cookie, association) {
            return self.on_restart(now, slot, datagram, cookie);
        }
        match association.sender().paths.between(datagram.local, datagram.remote) {
            Some(via) => {
                let keys = association.auth.shared_keys();
                let auth = authentication(&mut cookie, &association.sender().config, keys);
                association.on_collision(&cookie.peer, auth, via);
                self.spent.note_crossed(own, made);
                self.hand_over(now, slot, datagram);
                self.settle(slot);
            }
            None => self.discards.bad_cookie += 1,
        }
    }

    /// Processes a cookie of a peer that has lost the association and sets it up anew.
    fn on_restart(&mut self, now: Instant, slot: Slot, datagram: &Datagram, mut cookie: Cookie) {
        let Some(Occupant::Open(old)) = self.slots.get_mut(slot) else { return };
        let Some(via) = old.sender().paths.between(datagram.local, datagram.remote) else {
            self.discards.bad_cookie += 1;
            return;
        };
        if old.state() == State::ShutdownAckSent {
            old.on_cookie_again(via);
            return self.settle(slot);
        }
        // The paths that remain keep their positions, by which the application identifies them.
        let seeds = old.sender().path_seeds().filter(|seed| cookie.names(seed.remote));
        let paths: InlineVec<PathSeed> =
            seeds.map(|seed| PathSeed { confirmed: seed.remote == cookie.remote, ..seed }).collect();
        if !paths.iter().any(|seed| seed.remote == datagram.remote) {
            self.discards.bad_cookie += 1;
            return;
        }
        let settings = Arc::clone(&old.sender().config);
        let auth = authentication(&mut cookie, &settings, old.auth.shared_keys());
        let crossed =
            (old.identity().local_tag == cookie.local_tag).then_some((cookie.local_tag, cookie.created));
        let beginnings = self.beginnings(cookie, settings, paths, auth);
        self.forget_addresses(slot);
        if let Some(Occupant::Open(old)) = self.slots.take(slot) {
            let between = (datagram.local, datagram.remote);
            let workspace = std::mem::take(&mut self.workspace);
            let restarted = old.restart(now, beginnings, between, workspace, &self.registry, &mut self.rng);
            #[cfg(feature = "invariants")]
            let restarted =
                restarted.map(|association| crate::association::numbered_from(association, self.first_mids));
            // If creation fails, no association ends later and removes this entry.
            if let (Some((own, made)), Ok(_)) = (crossed, &restarted) {
                self.spent.note_crossed(own, made);
            }
            self.occupy(slot, restarted);
        }
        self.hand_over(now, slot, datagram);
        self.settle(slot);
    }

    /// Checks that the packet with the cookie is authenticated as required. Returns the keys that follow from the cookie and from
    /// the shared keys of the set-up in `slot`, or of this endpoint.
    ///
    /// # Errors
    /// The reason why the packet must not be processed.
    fn screen_cookie(
        &mut self,
        slot: Option<Slot>,
        packet: &Packet<'_>,
        cookie: &mut Cookie,
    ) -> Result<Option<Box<Auth>>, Refusal> {
        let mut auth = match slot.and_then(|slot| self.slots.get_mut(slot)) {
            Some(Occupant::Setup(setup)) => {
                let keys = setup.auth().shared_keys();
                authentication(cookie, setup.settings(), keys)
            }
            _ => authentication(cookie, &self.template, self.shared_keys.clone()),
        };
        auth.as_mut().map_or(Ok(()), |auth| auth.screen_cookie(packet)).map(|()| auth)
    }

    /// Reports to the peer, whose tag is `peer_tag`, that the association of this packet has ended here.
    pub(super) fn refuse_spent(&mut self, datagram: &Datagram, packet: &Packet<'_>, peer_tag: u32) {
        self.discards.late_cookie += 1;
        self.end_attempt(datagram, packet, peer_tag, Cause::UserAbort(b"that association has ended"));
    }

    /// Sends an ABORT with the peer's own tag, which ends the peer's attempt.
    fn end_attempt(&mut self, datagram: &Datagram, packet: &Packet<'_>, peer_tag: u32, cause: Cause<'_>) {
        let header = CommonHeader { verification_tag: peer_tag, ..reply_header(packet) };
        self.answer(datagram, stray::abort(header, false, cause, self.seal()));
    }

    fn on_stale_cookie(&mut self, datagram: &Datagram, packet: &Packet<'_>, cookie: &Cookie, by: Duration) {
        self.discards.stale_cookie += 1;
        let header = CommonHeader { verification_tag: cookie.peer.tag, ..reply_header(packet) };
        let micros = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        let causes = [Cause::StaleCookie { micros }];
        let error = Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) });
        self.answer(datagram, stray::single(header, &error, self.seal()));
    }

    /// Creates the association that a valid cookie describes; in `slot`, if this side was setting it up there.
    fn admit(
        &mut self,
        now: Instant,
        slot: Option<Slot>,
        datagram: &Datagram,
        packet: &Packet<'_>,
        mut cookie: Cookie,
    ) {
        let auth = match self.screen_cookie(slot, packet, &mut cookie) {
            Ok(auth) => auth,
            Err(refusal) => return refusal.count(&mut self.discards),
        };
        if let Some(slot) = slot
            && let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot)
        {
            let answered = setup.peer_tag() == Some(cookie.peer.tag);
            let continues = |ahead: &&mut Association| {
                answered || ahead.has_terms_of(&cookie.peer, cookie.auth_random, auth.is_some())
            };
            if let Some(association) = setup.ahead().filter(continues) {
                return match association.sender().paths.between(datagram.local, datagram.remote) {
                    Some(_) => self.admit_ahead(now, slot, datagram, &cookie, auth),
                    None => self.discards.bad_cookie += 1,
                };
            }
            // The association was created for an INIT ACK with another tag and other streams or extensions.
            setup.drop_ahead();
            self.spent.note_crossed(cookie.local_tag, cookie.created);
        }
        let config = match slot.and_then(|slot| self.slots.get(slot)) {
            Some(Occupant::Setup(setup)) => setup.settings().clone(),
            _ => self.template.clone(),
        };
        let paths = path_seeds(&cookie, &config, datagram.encapsulation_port);
        let beginnings = self.beginnings(cookie, config, paths, auth);
        let slot = match slot {
            Some(slot) => slot,
            None => self.slots.reserve(),
        };
        self.open(now, slot, beginnings);
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(via) = association.sender().paths.between(datagram.local, datagram.remote)
        {
            association.on_cookie_again(via);
        }
        self.hand_over(now, slot, datagram);
        self.settle(slot);
    }

    /// Completes a set-up, whose association was created ahead, by the cookie of a peer that set up at the same time. Its tag, or
    /// its streams and extensions, are those of its INIT ACK. The association continues: the peer, or its life before a restart, may have
    /// received the data behind this side's own cookie.
    fn admit_ahead(
        &mut self,
        now: Instant,
        slot: Slot,
        datagram: &Datagram,
        cookie: &Cookie,
        auth: Option<Box<Auth>>,
    ) {
        let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return };
        let Some(mut association) = setup.take_ahead(now) else { return };
        if let Some(via) = association.sender().paths.between(datagram.local, datagram.remote) {
            association.on_collision(&cookie.peer, auth, via);
        }
        self.spent.note_crossed(cookie.local_tag, cookie.created);
        self.replace_setup(slot, association);
        self.hand_over(now, slot, datagram);
        self.settle(slot);
    }

    fn beginnings(
        &self,
        cookie: Cookie,
        config: Arc<Settings>,
        paths: InlineVec<PathSeed>,
        auth: Option<Box<Auth>>,
    ) -> Negotiated {
        Negotiated {
            identity: Identity {
                local_port: cookie.local_port,
                remote_port: cookie.remote_port,
                local_tag: cookie.local_tag,
                peer_tag: cookie.peer.tag,
            },
            config,
            initial_tsn: cookie.local_initial_tsn,
            peer: cookie.peer,
            paths,
            checksum_offload: self.config.checksum_offload,
            random: cookie.auth_random,
            auth,
        }
    }

    /// Passes the packet of a COOKIE ECHO or COOKIE ACK to the association: DATA may follow in it.
    pub(super) fn hand_over(&mut self, now: Instant, slot: Slot, datagram: &Datagram) {
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(path) = association.sender().paths.between(datagram.local, datagram.remote)
        {
            let mut cx = Context { now, rng: &mut self.rng };
            let from = Origin::of(datagram, path);
            self.workspace.lend_to(&mut association.workspace);
            // The cookie has been processed. If the packet has no other chunk, the association gets an empty payload: cloning and
            // reading the packet again would take 1.4 % of the instructions of a set-up.
            let alone = is_single(&datagram.payload);
            let mut payload = if alone { Bytes::new() } else { datagram.payload.clone() };
            association.handle_packet(&mut cx, from, &mut payload);
        }
    }

    /// Creates an association in a slot, in place of its occupant.
    pub(super) fn open(&mut self, now: Instant, slot: Slot, beginnings: Negotiated) {
        let early = match self.slots.get_mut(slot) {
            Some(Occupant::Setup(setup)) => setup.take_early(),
            _ => None,
        };
        let workspace = std::mem::take(&mut self.workspace);
        let association = Association::new(now, beginnings, workspace, &self.registry, &mut self.rng);
        #[cfg(feature = "invariants")]
        let association =
            association.map(|association| crate::association::numbered_from(association, self.first_mids));
        let mut association = association;
        if let (Some(early), Ok(association)) = (early, &mut association) {
            early.hand_over(association);
            early.on_set_up(now, association);
        }
        self.forget_others(slot, association.as_deref().ok());
        self.occupy(slot, association);
    }

    /// Creates the association of a set-up for which messages wait, once the peer has answered.
    pub(super) fn open_ahead(&mut self, now: Instant, slot: Slot) {
        let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) else { return };
        let Some(beginnings) = setup.beginnings_ahead() else { return };
        // Its events stay with it until it takes the place of its set-up.
        let workspace = Workspace::default();
        // On failure, as when a scheduler was removed meanwhile, the end of the set-up reports it.
        if let Ok(association) = Association::new(now, beginnings, workspace, &self.registry, &mut self.rng) {
            #[cfg(feature = "invariants")]
            let association = crate::association::numbered_from(association, self.first_mids);
            setup.prepare(association);
        }
    }

    /// Replaces a set-up by its association that was created ahead.
    pub(super) fn replace_setup(&mut self, slot: Slot, association: Box<Association>) {
        self.forget_others(slot, Some(&association));
        self.occupy(slot, Ok(association));
    }

    /// Removes the keys of the set-up in a slot from the demultiplexer, except those of the association `next` that replaces it.
    fn forget_others(&mut self, slot: Slot, next: Option<&Association>) {
        let Some(Occupant::Setup(setup)) = self.slots.get(slot) else { return };
        match next {
            Some(next) if next.identity().local_tag == setup.local_tag() => {
                let gone = |peer: &(IpAddr, u16)| {
                    !next.sender().destinations(next.identity().remote_port).any(|kept| kept == *peer)
                };
                for (address, port) in setup.peer_addresses().filter(gone) {
                    self.demux.forget(slot, address, port);
                }
            }
            _ => self.forget_addresses(slot),
        }
    }

    /// Puts an association into its slot and into the demultiplexer.
    fn occupy(&mut self, slot: Slot, association: Result<Box<Association>, ScheduleError>) {
        match association {
            Ok(mut association) => {
                if let Some(Occupant::Setup(setup)) = self.slots.get_mut(slot) {
                    association.report_unrecognised(setup.take_unrecognised());
                }
                let tag = association.identity().local_tag;
                self.demux.insert(
                    slot,
                    tag,
                    association.sender().destinations(association.identity().remote_port),
                );
                self.slots.replace(slot, Occupant::Open(association));
            }
            // The names were checked with the settings; a scheduler was removed since then.
            Err(_) => {
                self.slots.replace(slot, Occupant::Failed(Failed::new(&self.template)));
                self.events.push(self.slots.id(slot), Event::Closed(CloseReason::Aborted));
            }
        }
    }

    /// Passes on the round-trip time that the set-up measured, to the path of the packet that completed it.
    pub(super) fn note_setup_rtt(&mut self, slot: Slot, datagram: &Datagram, rtt: Duration) {
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && let Some(path) = association.sender().paths.between(datagram.local, datagram.remote)
        {
            association.change_paths(|paths| paths.on_rtt(path, rtt));
        }
    }
}

/// Checks that an association may process a packet with a cookie: by the association's keys, or, for a peer that began anew, by
/// the keys that follow from the cookie (RFC 4895 §6.3).
///
/// # Errors
/// The reason why the packet must not be processed.
fn screen_again(
    action: Action,
    cookie: &Cookie,
    association: &mut Association,
    packet: &Packet<'_>,
) -> Result<(), Refusal> {
    if !matches!(action, Action::Restart | Action::Collide) {
        return association.auth.screen_cookie(packet);
    }
    let keys = association.auth.shared_keys();
    let auth = authentication(&mut cookie.clone(), &association.sender().config, keys);
    auth.map_or(Ok(()), |mut auth| auth.screen_cookie(packet))
}

/// Returns whether the association would have the same numbers of streams and the same extensions if it were created from the cookie.
fn keeps_terms(cookie: &Cookie, association: &Association) -> bool {
    let keys = association.auth.shared_keys();
    let auth = authentication(&mut cookie.clone(), &association.sender().config, keys);
    association.has_terms_of(&cookie.peer, cookie.auth_random, auth.is_some())
}

/// Returns the authentication that follows from a cookie and this side's shared keys, if both sides support it. Takes the peer's
/// offer out of the cookie.
fn authentication(
    cookie: &mut Cookie,
    settings: &Settings,
    keys: Option<Box<SharedKeys>>,
) -> Option<Box<Auth>> {
    let offer = settings.auth_offer(cookie.auth_random);
    Auth::agreed(offer, cookie.peer.auth.take(), keys)
}

/// Returns the paths of an association that a peer set up. The first pair has the addresses of the INIT, which are known to work.
/// The other addresses of both sides are paired in the order of the lists from there on; heartbeats verify them.
fn path_seeds(
    cookie: &Cookie,
    config: &AssociationConfig,
    encapsulation_port: Option<u16>,
) -> InlineVec<PathSeed> {
    let mut remote: InlineVec<IpAddr> = cookie.peer.addresses.iter().copied().collect();
    if !remote.contains(&cookie.remote) {
        remote.push_front(cookie.remote);
    }
    rotate_to(&mut remote, cookie.remote);
    pairs(config.path_pairs, &cookie.local, &remote, usize::from(config.max_paths))
        .iter()
        .map(|&(local, remote)| PathSeed {
            local,
            remote,
            encapsulation_port,
            // The INIT ACK with the cookie was sent to this address and received there (RFC 9260 §5.4).
            confirmed: remote == cookie.remote,
        })
        .collect()
}

/// Rotates the list so that it begins with `first`, if the list contains it.
pub(super) fn rotate_to(addresses: &mut [IpAddr], first: IpAddr) {
    let position = addresses.iter().position(|&address| address == first).unwrap_or(0);
    addresses.rotate_left(position);
}

/// Returns whether a packet has one chunk.
fn is_single(packet: &[u8]) -> bool {
    let mut chunks = Chunks::of(packet);
    chunks.next();
    chunks.remaining().is_empty()
}

/// Returns the cookie of a packet whose first chunk, apart from AUTH, is COOKIE ECHO (RFC 4895 §6.3).
pub(super) fn cookie_in<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    let mut chunks = packet.chunks();
    let first = ChunkKind(*chunks.remaining().first()?);
    // A fast path: nearly every packet begins with another chunk.
    if first != ChunkKind::COOKIE_ECHO && first != ChunkKind::AUTH {
        return None;
    }
    let first = match chunks.next()? {
        Ok(Chunk::Auth(_)) => chunks.next()?,
        first => first,
    };
    match first {
        Ok(Chunk::CookieEcho(echo)) => Some(echo.cookie),
        _ => None,
    }
}
