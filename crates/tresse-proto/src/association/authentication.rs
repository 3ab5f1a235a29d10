//! The corridor's part in authentication (RFC 4895): which chunks of a packet come through, and the keys.

use tresse_policy::PathId;
use tresse_wire::{Chunk, ChunkError, ChunkKind, Packet, PacketWriter};

use super::control::{Control, Reason};
use super::{Association, State};
use crate::extensions::auth::{Gate, Refusal, SharedKeys};
use crate::interface::error::KeyError;
use crate::interface::event::Event;

/// What becomes of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// It is processed.
    Pass,
    /// It is left out.
    Skip,
    /// So is everything that follows it.
    Stop,
}

impl Association {
    /// Whether a chunk may be processed; `covered` starts with it and ends with its packet. Counts what may not.
    #[inline]
    pub(super) fn screen(
        &mut self,
        gate: &mut Gate,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
        via: PathId,
    ) -> Passage {
        let kind = ChunkKind(covered.first().copied().unwrap_or_default());
        // Settings are at hand; what was agreed on by them is not, and hardly ever matters.
        let concerned = self.config.screens(kind);
        debug_assert!(concerned || self.auth.as_ref().is_none_or(|auth| !auth.requires(kind)));
        if concerned { self.screen_closely(gate, chunk, covered, via) } else { Passage::Pass }
    }

    #[inline(never)]
    fn screen_closely(
        &mut self,
        gate: &mut Gate,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
        via: PathId,
    ) -> Passage {
        let Some(auth) = self.auth.as_deref_mut() else {
            if let Ok(Chunk::Auth(_)) = chunk {
                // As the two highest bits of its type say to those who do not know it (RFC 4895 §5).
                self.counters.discards.unexpected_chunk += 1;
                return Passage::Stop;
            }
            return Passage::Pass;
        };
        let before = auth.peer_key();
        match auth.screen(gate, chunk, covered) {
            Ok(()) => {
                let number = auth.peer_key();
                if number != before {
                    self.tell(Event::PeerKeyChanged { number });
                }
                Passage::Pass
            }
            Err(refusal) => self.refuse(refusal, via),
        }
    }

    #[cold]
    fn refuse(&mut self, refusal: Refusal, via: PathId) -> Passage {
        refusal.count(&mut self.counters.discards);
        match refusal {
            Refusal::Unauthenticated => Passage::Skip,
            Refusal::UnauthenticatedPacket | Refusal::BadAuth => Passage::Stop,
            Refusal::UnsupportedHash(id) => {
                self.control.push(via, Control::Error(Reason::UnsupportedHmac(id)));
                Passage::Stop
            }
        }
    }

    /// Whether a packet with a state cookie may be processed.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn screen_cookie(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        self.auth.as_deref_mut().map_or(Ok(()), |auth| auth.screen_cookie(packet))
    }

    /// Puts the HMAC into a packet that has a place for one.
    #[inline]
    pub(super) fn authenticate(&mut self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = self.auth.as_deref_mut()
            && let Some(covered) = writer.authenticated()
        {
            let hmac = auth.sign(covered);
            writer.fill_hmac(hmac.bytes());
        }
    }

    /// Bytes that authentication takes from every packet with user data.
    #[inline]
    pub(super) fn auth_overhead(&self) -> usize {
        self.auth.as_ref().map_or(0, |auth| auth.overhead())
    }

    /// The shared keys as they are now, for an association that takes this one's place.
    pub(crate) fn shared_keys(&self) -> Option<Box<SharedKeys>> {
        self.auth.as_ref().and_then(|auth| auth.shared_keys())
    }

    /// Changes the shared keys of this association.
    ///
    /// # Errors
    /// Authentication was not agreed, or what `change` refuses.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        if self.state == State::Closed {
            return Err(KeyError::Closed);
        }
        let auth = self.auth.as_deref_mut().ok_or(KeyError::NotAgreed)?;
        auth.change_keys(change)
    }
}
