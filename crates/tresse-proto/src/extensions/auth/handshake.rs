//! Authentication during a set-up by this side: the offer in INIT, and after INIT ACK the keys of the future
//! association.

use tresse_wire::{Chunk, ChunkError, PacketWriter};

use super::{Auth, AuthState, OwnOffer, PeerOffer, RANDOM_LEN, Refusal, SharedKeys};
use crate::interface::error::KeyError;

/// Part of it that a set-up keeps.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The random number of this side's parameters.
    random: [u8; RANDOM_LEN],
    /// The shared keys that the application set, if any.
    shared: Option<Box<SharedKeys>>,
    /// There is one when both sides have made an offer.
    agreed: Option<Box<Auth>>,
}

impl Handshake {
    pub(crate) fn new(random: [u8; RANDOM_LEN], shared: Option<Box<SharedKeys>>) -> Self {
        Handshake { random, shared, agreed: None }
    }

    pub(crate) fn random(&self) -> [u8; RANDOM_LEN] {
        self.random
    }

    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.shared.clone()
    }

    /// INIT ACK came with this answer to this side's offer.
    pub(crate) fn on_answer(&mut self, own: Option<OwnOffer>, peer: Option<PeerOffer>) {
        self.agreed = Auth::agreed(own, peer, self.shared.clone());
    }

    /// Takes the authentication that the association goes on with.
    pub(crate) fn take(&mut self) -> Option<Box<Auth>> {
        self.agreed.take()
    }

    /// The same for an association that begins before the set-up ends.
    pub(crate) fn share(&self) -> Option<Box<Auth>> {
        self.agreed.clone()
    }

    /// The writer, to put AUTH before what the peer wants authenticated.
    pub(crate) fn guarded<'b>(&self, writer: PacketWriter<'b>) -> PacketWriter<'b> {
        match self.agreed.as_ref().and_then(|auth| auth.guard()) {
            Some(guard) => writer.guarded(*guard),
            None => writer,
        }
    }

    /// Puts the HMAC into a packet that has a place for one.
    pub(crate) fn authenticate(&self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = &self.agreed
            && let Some(covered) = writer.authenticated()
        {
            let hmac = auth.sign_once(covered);
            writer.fill_hmac(hmac.bytes());
        }
    }

    /// As [`Auth::screen`]; before an answer everything may be processed.
    ///
    /// # Errors
    /// Why a chunk may not be.
    pub(crate) fn screen(
        &mut self,
        gate: &mut AuthState,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
    ) -> Result<(), Refusal> {
        self.agreed.as_mut().map_or(Ok(()), |auth| auth.screen(gate, chunk, covered))
    }

    /// Changes the shared keys of the association to be.
    ///
    /// # Errors
    /// What `change` refuses.
    pub(crate) fn change_keys(
        &mut self,
        change: impl Fn(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        change(self.shared.get_or_insert_default())?;
        self.agreed.as_mut().map_or(Ok(()), |auth| auth.change_keys(change))
    }
}
