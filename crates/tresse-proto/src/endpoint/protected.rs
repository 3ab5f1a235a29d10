//! Commands of the key manager of one association, and the state of a protected association that outlasts it.
//!
//! The order at each end (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §6): receiving keys before the peer has its sending keys,
//! then sending keys, then protection is required. Messages of the key exchange use
//! [`send_key_message`](AssociationHandle::send_key_message) and [`Event::KeyMessage`](crate::Event::KeyMessage).

use std::collections::VecDeque;

use bytes::Bytes;
use tresse_policy::Instant;
use tresse_wire::Ppid;

use super::Endpoint;
use super::handle::AssociationHandle;
use super::slots::Occupant;
use crate::association::Protected;
use crate::interface::protection::{Epoch, ProtectionError, ProtectionStats, RecordKeys};

/// Most associations whose last packets are kept.
const MOST_FAREWELLS: usize = 1024;

/// Last packets of protected associations that have ended: to a peer that has not heard of the end, and takes nothing in the
/// clear, each is sent once.
#[derive(Debug, Default)]
pub(super) struct Farewells(VecDeque<Farewell>);

#[derive(Debug)]
struct Farewell {
    /// The own tag, and the peer's port.
    tag: u32,
    port: u16,
    packets: Vec<Vec<u8>>,
}

impl Farewells {
    pub(super) fn keep(&mut self, tag: u32, port: u16, packets: Vec<Vec<u8>>) {
        if packets.is_empty() {
            return;
        }
        if self.0.len() >= MOST_FAREWELLS {
            self.0.pop_front();
        }
        self.0.push_back(Farewell { tag, port, packets });
    }

    /// The next one of the association that had this tag and a peer at this port.
    pub(super) fn next(&mut self, tag: u32, port: u16) -> Option<Vec<u8>> {
        let final_packet =
            self.0.iter_mut().find(|final_packet| final_packet.tag == tag && final_packet.port == port)?;
        // In the order of their numbers, although any would do.
        (!final_packet.packets.is_empty()).then(|| final_packet.packets.remove(0))
    }
}

impl AssociationHandle<'_> {
    /// Sends a message of the key management, before everything that the application has queued.
    ///
    /// # Errors
    /// Protection was not agreed on, the association is not open, or a message that is none.
    pub fn send_key_message(
        &mut self,
        _now: Instant,
        ppid: Ppid,
        message: Bytes,
    ) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.send(ppid, message))
    }

    /// Installs sending keys: from now on every packet leaves in a DTLS chunk of this epoch. Receiving keys of the epoch
    /// before are forgotten `key_drain` after the peer has begun to send with the new ones, which
    /// [`Event::KeysDrained`](crate::Event::KeysDrained) tells.
    ///
    /// # Errors
    /// An epoch other than the first or the next, or one without receiving keys.
    pub fn install_send_keys(
        &mut self,
        now: Instant,
        epoch: Epoch,
        keys: RecordKeys,
    ) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.install_send(now, epoch, keys))
    }

    /// Installs receiving keys, beside those in use.
    ///
    /// # Errors
    /// An epoch other than the first or the next; while the keys before those in use still drain; or once SHUTDOWN or SHUTDOWN
    /// ACK has been sent, when no message could tell the peer of them.
    pub fn install_receive_keys(&mut self, epoch: Epoch, keys: RecordKeys) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.install_receive(epoch, keys))
    }

    /// Forgets receiving keys: those that drain, before their time, or those of an exchange that was not completed.
    ///
    /// # Errors
    /// There are none of this epoch, or they are in use.
    pub fn destroy_receive_keys(&mut self, epoch: Epoch) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.destroy_receive(epoch))
    }

    /// Takes nothing but DTLS chunks from now on, for good, and lets the application's messages leave. Where user data has
    /// come in the clear that the peer cannot have sent, the association ends instead.
    ///
    /// # Errors
    /// Keys of a direction are missing.
    pub fn require_protection(&mut self) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.require())
    }

    /// Counters of the protection so far; `None` where it was not agreed on.
    pub fn protection_stats(&mut self) -> Option<ProtectionStats> {
        Protected::of(self.open_mut()?).map(Protected::stats)
    }

    fn protected<T>(
        &mut self,
        act: impl FnOnce(Protected<'_>) -> Result<T, ProtectionError>,
    ) -> Result<T, ProtectionError> {
        let state = self.state_name();
        let association = self.open_mut().ok_or(ProtectionError::NotOpen { state })?;
        let done = Protected::of(association).ok_or(ProtectionError::NotAgreed).and_then(act);
        self.settle();
        done
    }
}

impl Endpoint {
    /// Prepares the last packets of an association that has just said the last word.
    pub(super) fn prepare_final_packets(&mut self, slot: super::demux::Slot) {
        let checksum = !self.config.checksum_offload;
        let Some(Occupant::Open(association)) = self.slots.get_mut(slot) else { return };
        let identity = association.identity();
        if let Some(protected) = Protected::of(association) {
            self.final_packets.keep(
                identity.local_tag,
                identity.remote_port,
                protected.final_packets(checksum),
            );
        }
    }
}
