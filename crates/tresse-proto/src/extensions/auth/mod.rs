//! Authenticated chunks (RFC 4895): the chunk types that need authentication in each direction, and the HMACs.
//!
//! Owns the key material of one association. Independent of the contents of chunks, and of the addresses of a
//! packet.

mod handshake;
mod hash;
mod keys;
mod offer;
#[cfg(test)]
mod tests;

use tresse_wire::{AUTH_HEADER_LEN, Chunk, ChunkError, ChunkKind, Guard, KindSet, Packet, PacketWriter};

pub(crate) use handshake::Handshake;
pub(crate) use keys::SharedKeys;
pub(crate) use offer::{AuthTemplate, BadRandom, OfferParams, OwnOffer, PeerOffer, RANDOM_LEN};

use crate::interface::error::KeyError;
use crate::interface::stats::Discards;

use hash::{Digest, Hash, Mac};

/// Authentication of an association: its chunk types and its keys.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    /// Offers of both sides: with a shared key before their key vectors, the association's key (RFC 4895 §6.1).
    own: OwnOffer,
    peer: Box<[u8]>,
    /// The hash that the peer wants.
    hash: Hash,
    /// Chunk types that the peer takes only when authenticated, and the AUTH chunk that they follow.
    guard: Guard,
    /// The shared keys, unless there is but the null key.
    shared: Option<Box<SharedKeys>>,
    /// The key that the peer used last.
    peer_key: u16,
    /// The hash made ready with the key that was used last; most packets use it again.
    ready: Option<Box<Ready>>,
}

#[derive(Clone, Debug)]
struct Ready {
    key: u16,
    mac: Mac,
}

/// Extent to which the packet that is being read has been authenticated.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum AuthState {
    /// No AUTH yet.
    #[default]
    Closed,
    /// A valid AUTH stands before what comes now.
    Open,
}

/// Reason for which a chunk may not be processed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It has to follow a valid AUTH, and does not.
    Unauthenticated,
    /// So does this one, and without it the rest of the packet goes too (RFC 5061 §5.2 D5).
    UnauthenticatedPacket,
    /// An AUTH that proves nothing: the rest of the packet goes (RFC 4895 §6.3).
    BadAuth,
    /// As before, since its hash was never offered; the peer is to be told.
    UnsupportedHash(u16),
    /// An AUTH that was not agreed on: the rest of the packet goes, as the two highest bits of its type say to those who do
    /// not know it (RFC 4895 §5).
    NotAgreed,
}

impl Refusal {
    /// Counts what is discarded because of it.
    pub(crate) fn count(self, discards: &mut Discards) {
        match self {
            Refusal::Unauthenticated | Refusal::UnauthenticatedPacket => discards.unauthenticated_chunk += 1,
            Refusal::BadAuth | Refusal::UnsupportedHash(_) => discards.bad_auth += 1,
            Refusal::NotAgreed => discards.unexpected_chunk += 1,
        }
    }
}

impl Auth {
    /// Between a side that offered `own` and a peer that offered `peer`.
    pub(crate) fn new(own: OwnOffer, peer: PeerOffer, shared: Option<Box<SharedKeys>>) -> Self {
        let hash = peer.hash();
        Auth {
            own,
            guard: guard(*peer.required(), SharedKeys::active_of(&shared), hash),
            peer: peer.into_vector(),
            hash,
            peer_key: 0,
            shared,
            ready: None,
        }
    }

    /// Agreement of two offers; `None` where a side made none.
    pub(crate) fn agreed(
        own: Option<OwnOffer>,
        peer: Option<PeerOffer>,
        shared: Option<Box<SharedKeys>>,
    ) -> Option<Box<Self>> {
        Some(Box::new(Auth::new(own?, peer?, shared)))
    }

    /// Guard of packets to the peer.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        Some(&self.guard).filter(|guard| !guard.kinds().is_empty())
    }

    /// The HMAC over `covered`, which is what a writer with this side's guard says.
    pub(crate) fn sign(&mut self, covered: &[u8]) -> Digest {
        let mac = self.kept_mac(SharedKeys::active_of(&self.shared), self.hash);
        digest(mac, covered)
    }

    /// The same without keeping anything for the next.
    pub(crate) fn sign_once(&self, covered: &[u8]) -> Digest {
        let mac = self.mac(SharedKeys::active_of(&self.shared), self.hash);
        digest(mac, covered)
    }

    /// Bytes that AUTH takes in every packet with user data.
    pub(crate) fn overhead(&self) -> usize {
        self.guard.overhead()
    }

    /// Returns whether this side takes chunks of this kind only when authenticated.
    fn requires(&self, kind: ChunkKind) -> bool {
        self.own.required().contains(kind)
    }

    /// Returns whether a chunk may be processed; `covered` starts with it and ends with its packet.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn screen(
        &mut self,
        gate: &mut AuthState,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
    ) -> Result<(), Refusal> {
        let kind = match chunk {
            Ok(Chunk::Auth(auth)) if *gate == AuthState::Closed => {
                self.verify(auth, covered)?;
                *gate = AuthState::Open;
                return Ok(());
            }
            // There is one in a packet, and it can be read (RFC 4895 §5.1).
            Ok(Chunk::Auth(_)) => return Err(Refusal::BadAuth),
            Err(error) if error.kind == ChunkKind::AUTH => return Err(Refusal::BadAuth),
            Ok(chunk) => chunk.kind(),
            Err(error) => error.kind,
        };
        if *gate == AuthState::Open || !self.requires(kind) {
            return Ok(());
        }
        Err(match kind {
            ChunkKind::ASCONF | ChunkKind::ASCONF_ACK => Refusal::UnauthenticatedPacket,
            _ => Refusal::Unauthenticated,
        })
    }

    /// Returns whether a packet that brings a state cookie may be processed: the cookie is its first chunk, or the
    /// second after AUTH (RFC 4895 §6.3).
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn screen_cookie(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        let (mut gate, mut chunks) = (AuthState::default(), packet.chunks());
        loop {
            let covered = chunks.remaining();
            let Some(chunk) = chunks.next() else { return Ok(()) };
            self.screen(&mut gate, &chunk, covered)?;
            if matches!(chunk, Ok(Chunk::CookieEcho(_))) {
                return Ok(());
            }
        }
    }

    /// The shared keys, to be changed; they exist from then on.
    pub(crate) fn change_keys<T>(&mut self, change: impl FnOnce(&mut SharedKeys) -> T) -> T {
        let outcome = change(self.shared.get_or_insert_default());
        self.ready = None;
        self.guard = guard(self.guard.kinds(), SharedKeys::active_of(&self.shared), self.hash);
        outcome
    }

    /// The shared keys as they are now, for an association that follows this one.
    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.shared.clone()
    }

    /// The shared key that the peer used last; 0 before the first.
    pub(crate) fn peer_key(&self) -> u16 {
        self.peer_key
    }

    /// Checks an AUTH chunk with which `covered` starts.
    fn verify(&mut self, auth: &tresse_wire::Auth<'_>, covered: &[u8]) -> Result<(), Refusal> {
        let hash = Hash::of_id(auth.hmac_id).ok_or(Refusal::UnsupportedHash(auth.hmac_id))?;
        if auth.hmac.len() != hash.len() {
            return Err(Refusal::BadAuth);
        }
        let mut mac = self.kept_mac(auth.key_id, hash).ok_or(Refusal::BadAuth)?;
        let (head, rest) = covered.split_at_checked(AUTH_HEADER_LEN).ok_or(Refusal::BadAuth)?;
        mac.update(head);
        mac.update(&[0; Hash::LONGEST][..hash.len()]);
        mac.update(rest.get(hash.len()..).unwrap_or_default());
        if !mac.is(auth.hmac) {
            return Err(Refusal::BadAuth);
        }
        self.peer_key = auth.key_id;
        Ok(())
    }

    /// A hash that has taken in the association's key under shared key `key`; `None` without such a key.
    fn mac(&self, key: u16, hash: Hash) -> Option<Mac> {
        let secret = SharedKeys::secret_of(&self.shared, key)?;
        Some(Mac::new(hash, &self.own.key(&self.peer, secret)))
    }

    /// The same, ready from the last time if that was with this key.
    fn kept_mac(&mut self, key: u16, hash: Hash) -> Option<Mac> {
        if let Some(ready) = &self.ready
            && ready.key == key
            && ready.mac.hash() == hash
        {
            return Some(ready.mac.clone());
        }
        let mac = self.mac(key, hash)?;
        self.ready = Some(Box::new(Ready { key, mac: mac.clone() }));
        Some(mac)
    }
}

/// The part of authentication in an association, agreed on or not.
#[derive(Debug)]
pub(crate) struct Authentication(Option<Box<Auth>>);

impl Authentication {
    /// As it was agreed on.
    pub(crate) fn new(agreed: Option<Box<Auth>>) -> Self {
        Authentication(agreed)
    }

    /// Returns whether chunks of this kind go through [`screen`](Self::screen): AUTH, and what this side takes only when
    /// authenticated.
    pub(crate) fn screens(&self, kind: ChunkKind) -> bool {
        kind == ChunkKind::AUTH || self.0.as_ref().is_some_and(|auth| auth.requires(kind))
    }

    /// Guard of packets to the peer.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.0.as_ref().and_then(|auth| auth.guard())
    }

    /// The chunk types that the peer takes only when they are authenticated.
    pub(crate) fn kinds_for_peer(&self) -> Vec<ChunkKind> {
        self.guard().map(|guard| guard.kinds().iter().collect()).unwrap_or_default()
    }

    /// Puts the HMAC into a packet that has a place for one.
    pub(crate) fn authenticate(&mut self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = self.0.as_deref_mut()
            && let Some(covered) = writer.authenticated()
        {
            let hmac = auth.sign(covered);
            writer.fill_hmac(hmac.bytes());
        }
    }

    /// Bytes that authentication takes from every packet with user data.
    pub(crate) fn overhead(&self) -> usize {
        self.0.as_ref().map_or(0, |auth| auth.overhead())
    }

    /// Returns whether a chunk may be processed; `covered` starts with it and ends with its packet. Returns the shared
    /// key that the peer has changed to with it.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn screen(
        &mut self,
        gate: &mut AuthState,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
    ) -> Result<Option<u16>, Refusal> {
        let Some(auth) = self.0.as_deref_mut() else {
            let is_auth = matches!(chunk, Ok(Chunk::Auth(_)));
            return if is_auth { Err(Refusal::NotAgreed) } else { Ok(None) };
        };
        let before = auth.peer_key();
        auth.screen(gate, chunk, covered)?;
        Ok(Some(auth.peer_key()).filter(|&key| key != before))
    }

    /// Returns whether a packet with a state cookie may be processed.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn screen_cookie(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        self.0.as_deref_mut().map_or(Ok(()), |auth| auth.screen_cookie(packet))
    }

    /// The shared keys as they are now, for an association that follows this one.
    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.0.as_ref().and_then(|auth| auth.shared_keys())
    }

    /// Changes the shared keys.
    ///
    /// # Errors
    /// Authentication was not agreed on, or what `change` refuses.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        self.0.as_deref_mut().ok_or(KeyError::NotAgreed)?.change_keys(change)
    }
}

/// The HMAC over `covered`. The active key cannot be removed, so there always is a hash that has taken it in.
fn digest(mac: Option<Mac>, covered: &[u8]) -> Digest {
    mac.map(|mut mac| {
        mac.update(covered);
        mac.finish()
    })
    .unwrap_or_default()
}

fn guard(kinds: KindSet, key: u16, hash: Hash) -> Guard {
    Guard::new(kinds, key, hash.id(), hash.len() as u16)
}
