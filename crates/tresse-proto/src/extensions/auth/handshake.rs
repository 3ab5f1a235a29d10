//! Authentication during a set-up by this side: the offer in INIT, and after INIT ACK the keys of the future association.

use tresse_wire::{Chunk, ChunkError, PacketWriter};

use super::{Auth, AuthState, OwnOffer, PeerOffer, RANDOM_LEN, Refusal, SharedKeys};
use crate::interface::error::KeyError;

/// Authentication of a set-up.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The random number in this side's AUTH parameters.
    random: [u8; RANDOM_LEN],
    /// The shared keys that the application set, if any.
    shared: Option<Box<SharedKeys>>,
    /// The negotiated authentication, once both sides have made an offer.
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

    /// Processes the offers: `own` is this side's, `peer` the one in the INIT ACK.
    pub(crate) fn on_answer(&mut self, own: Option<OwnOffer>, peer: Option<PeerOffer>) {
        self.agreed = Auth::agreed(own, peer, self.shared.clone());
    }

    /// Takes the negotiated authentication, for the association.
    pub(crate) fn take(&mut self) -> Option<Box<Auth>> {
        self.agreed.take()
    }

    /// Returns a copy of it, for an association that is created before the set-up ends.
    pub(crate) fn share(&self) -> Option<Box<Auth>> {
        self.agreed.clone()
    }

    /// Lets the writer put AUTH before the chunks that the peer accepts only authenticated.
    pub(crate) fn guarded<'b>(&self, writer: PacketWriter<'b>) -> PacketWriter<'b> {
        match self.agreed.as_ref().and_then(|auth| auth.guard()) {
            Some(guard) => writer.guarded(*guard),
            None => writer,
        }
    }

    /// Writes the HMAC into a packet with an AUTH chunk.
    pub(crate) fn authenticate(&self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = &self.agreed
            && let Some(covered) = writer.authenticated()
        {
            let hmac = auth.sign_once(covered);
            writer.fill_hmac(hmac.bytes());
        }
    }

    /// Does the same as [`Auth::screen`]; before the INIT ACK every chunk may be processed.
    ///
    /// # Errors
    /// The reason why the chunk must not be processed.
    pub(crate) fn screen(
        &mut self,
        gate: &mut AuthState,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
    ) -> Result<(), Refusal> {
        self.agreed.as_mut().map_or(Ok(()), |auth| auth.screen(gate, chunk, covered))
    }

    /// Changes the shared keys of the future association.
    ///
    /// # Errors
    /// `change` fails.
    pub(crate) fn change_keys(
        &mut self,
        change: impl Fn(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        change(self.shared.get_or_insert_default())?;
        self.agreed.as_mut().map_or(Ok(()), |auth| auth.change_keys(change))
    }
}
