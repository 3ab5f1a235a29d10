//! Authenticated chunks (RFC 4895): the chunk types that need authentication in each direction, and the HMACs.
//!
//! This module owns the key material of one association. It is independent of the contents of chunks and of the addresses of
//! packets.

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

/// Authentication of an association: the chunk types, and the keys.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    /// Offers of both sides. The association key consists of a shared key and of their key vectors (RFC 4895 §6.1).
    own: OwnOffer,
    peer: Box<[u8]>,
    /// The hash that the peer requested.
    hash: Hash,
    /// Chunk types that the peer accepts only authenticated, and the header of the AUTH chunk before them.
    guard: Guard,
    /// The shared keys; `None` if the null key is the only one.
    shared: Option<Box<SharedKeys>>,
    /// The shared key that the peer used last.
    peer_key: u16,
    /// The keyed hash that was used last; most packets use it again.
    ready: Option<Box<Ready>>,
}

#[derive(Clone, Debug)]
struct Ready {
    key: u16,
    mac: Mac,
}

/// Authentication of the packet that is being read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum AuthState {
    /// No AUTH chunk has been read.
    #[default]
    Closed,
    /// A valid AUTH chunk precedes the next chunk.
    Open,
}

/// Reason for which a chunk must not be processed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The chunk must follow a valid AUTH chunk, and does not.
    Unauthenticated,
    /// The same; the rest of the packet is discarded, too (RFC 5061 §5.2 D5).
    UnauthenticatedPacket,
    /// An invalid AUTH chunk: the rest of the packet is discarded (RFC 4895 §6.3).
    BadAuth,
    /// The same, because this side never offered its hash. An ERROR reports that to the peer.
    UnsupportedHash(u16),
    /// An AUTH chunk although authentication was not negotiated. The rest of the packet is discarded, as the two highest bits of
    /// its type require of receivers that do not know it (RFC 4895 §5).
    NotAgreed,
}

impl Refusal {
    /// Counts the discarded chunk or packet.
    pub(crate) fn count(self, discards: &mut Discards) {
        match self {
            Refusal::Unauthenticated | Refusal::UnauthenticatedPacket => discards.unauthenticated_chunk += 1,
            Refusal::BadAuth | Refusal::UnsupportedHash(_) => discards.bad_auth += 1,
            Refusal::NotAgreed => discards.unexpected_chunk += 1,
        }
    }
}

impl Auth {
    /// Creates the authentication between a side that offered `own` and a peer that offered `peer`.
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

    /// Returns the authentication that follows from two offers; `None` if a side made no offer.
    pub(crate) fn agreed(
        own: Option<OwnOffer>,
        peer: Option<PeerOffer>,
        shared: Option<Box<SharedKeys>>,
    ) -> Option<Box<Self>> {
        Some(Box::new(Auth::new(own?, peer?, shared)))
    }

    /// Returns the guard for packets to the peer; `None` if the peer requires no authentication.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        Some(&self.guard).filter(|guard| !guard.kinds().is_empty())
    }

    /// Returns the HMAC over `covered`, the part of a packet that a writer with this side's guard returns.
    pub(crate) fn sign(&mut self, covered: &[u8]) -> Digest {
        let mac = self.kept_mac(SharedKeys::active_of(&self.shared), self.hash);
        digest(mac, covered)
    }

    /// Does the same without keeping the keyed hash.
    pub(crate) fn sign_once(&self, covered: &[u8]) -> Digest {
        let mac = self.mac(SharedKeys::active_of(&self.shared), self.hash);
        digest(mac, covered)
    }

    /// Returns the bytes of AUTH in every packet with user data.
    pub(crate) fn overhead(&self) -> usize {
        self.guard.overhead()
    }

    /// Returns whether this side accepts chunks of this kind only authenticated.
    fn requires(&self, kind: ChunkKind) -> bool {
        self.own.required().contains(kind)
    }

    /// Checks that a chunk may be processed; `covered` is the packet from this chunk on.
    ///
    /// # Errors
    /// The reason why the chunk must not be processed.
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
            // A packet has at most one AUTH chunk, and it must be well-formed (RFC 4895 §5.1).
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

    /// Checks that a packet with a state cookie may be processed: the cookie is its first chunk, or the second one behind AUTH
    /// (RFC 4895 §6.3).
    ///
    /// # Errors
    /// The reason why the packet must not be processed.
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

    /// Changes the shared keys, and creates them if the null key was the only one. Returns the result of `change`.
    pub(crate) fn change_keys<T>(&mut self, change: impl FnOnce(&mut SharedKeys) -> T) -> T {
        let outcome = change(self.shared.get_or_insert_default());
        self.ready = None;
        self.guard = guard(self.guard.kinds(), SharedKeys::active_of(&self.shared), self.hash);
        outcome
    }

    /// Returns a copy of the shared keys, for an association that follows this one.
    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.shared.clone()
    }

    /// Returns the number of the shared key that the peer used last; 0 before the first.
    pub(crate) fn peer_key(&self) -> u16 {
        self.peer_key
    }

    /// Verifies an AUTH chunk; `covered` is the packet from this chunk on.
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

    /// Returns a hash keyed with the association key for shared key `key`; `None` if there is no such shared key.
    fn mac(&self, key: u16, hash: Hash) -> Option<Mac> {
        let secret = SharedKeys::secret_of(&self.shared, key)?;
        Some(Mac::new(hash, &self.own.key(&self.peer, secret)))
    }

    /// Does the same, and reuses the last keyed hash if it has this key.
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

/// Authentication in an association, whether it was negotiated or not.
#[derive(Debug)]
pub(crate) struct Authentication(Option<Box<Auth>>);

impl Authentication {
    /// Creates it from the negotiated authentication; `None` if it was not negotiated.
    pub(crate) fn new(agreed: Option<Box<Auth>>) -> Self {
        Authentication(agreed)
    }

    /// Returns whether chunks of this kind must pass [`screen`](Self::screen): AUTH, and those that this side accepts only
    /// authenticated.
    pub(crate) fn screens(&self, kind: ChunkKind) -> bool {
        kind == ChunkKind::AUTH || self.0.as_ref().is_some_and(|auth| auth.requires(kind))
    }

    /// Returns the guard for packets to the peer.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.0.as_ref().and_then(|auth| auth.guard())
    }

    /// Returns the chunk types that the peer accepts only authenticated.
    pub(crate) fn kinds_for_peer(&self) -> Vec<ChunkKind> {
        self.guard().map(|guard| guard.kinds().iter().collect()).unwrap_or_default()
    }

    /// Writes the HMAC into a packet with an AUTH chunk.
    pub(crate) fn authenticate(&mut self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = self.0.as_deref_mut()
            && let Some(covered) = writer.authenticated()
        {
            let hmac = auth.sign(covered);
            writer.fill_hmac(hmac.bytes());
        }
    }

    /// Returns the bytes of authentication in every packet with user data.
    pub(crate) fn overhead(&self) -> usize {
        self.0.as_ref().map_or(0, |auth| auth.overhead())
    }

    /// Returns the bytes of the AUTH chunk before a chunk of `kind`; 0 if that is not authenticated.
    pub(crate) fn overhead_of(&self, kind: ChunkKind) -> usize {
        self.guard().map_or(0, |guard| guard.overhead_of(kind))
    }

    /// Checks that a chunk may be processed; `covered` is the packet from this chunk on. Returns the shared key that the peer
    /// uses from this chunk on, if it has changed.
    ///
    /// # Errors
    /// The reason why the chunk must not be processed.
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

    /// Checks that a packet with a state cookie may be processed.
    ///
    /// # Errors
    /// The reason why the packet must not be processed.
    pub(crate) fn screen_cookie(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        self.0.as_deref_mut().map_or(Ok(()), |auth| auth.screen_cookie(packet))
    }

    /// Returns a copy of the shared keys, for an association that follows this one.
    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.0.as_ref().and_then(|auth| auth.shared_keys())
    }

    /// Changes the shared keys.
    ///
    /// # Errors
    /// Authentication was not negotiated, or `change` fails.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        self.0.as_deref_mut().ok_or(KeyError::NotAgreed)?.change_keys(change)
    }
}

/// Returns the HMAC over `covered`. The active key cannot be removed, so `mac` is always there.
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
