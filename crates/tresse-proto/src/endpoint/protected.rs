//! Commands of the key manager of one association, and the last packets of protected associations, which outlive them.
//!
//! The order at each end is that of draft-porfiri-tsvwg-sctp-dtls-handshake-02 §6: install receiving keys before the peer has its
//! sending keys; then install sending keys; then require protection. Messages of the key exchange use
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

/// Maximum number of associations whose last packets are kept.
const MOST_FAREWELLS: usize = 1024;

/// Last packets of protected associations that have ended. A peer that has not received the end accepts nothing in the clear;
/// these packets answer it, each is sent once.
#[derive(Debug, Default)]
pub(super) struct Farewells(VecDeque<Farewell>);

#[derive(Debug)]
struct Farewell {
    /// This side's tag; `port` is the peer's.
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

    /// Returns the next packet of the association with this tag and this port of the peer.
    pub(super) fn next(&mut self, tag: u32, port: u16) -> Option<Vec<u8>> {
        let final_packet =
            self.0.iter_mut().find(|final_packet| final_packet.tag == tag && final_packet.port == port)?;
        // In the order of their record numbers, although any order would do.
        (!final_packet.packets.is_empty()).then(|| final_packet.packets.remove(0))
    }
}

impl AssociationHandle<'_> {
    /// Sends a message of the key management, before all queued messages of the application.
    ///
    /// # Errors
    /// Protection was not negotiated, the association is not open, or the message is not valid.
    pub fn send_key_message(
        &mut self,
        _now: Instant,
        ppid: Ppid,
        message: Bytes,
    ) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.send(ppid, message))
    }

    /// Installs sending keys. From now on every packet is sent in a DTLS chunk of this epoch. The receiving keys of the epoch
    /// before are removed `key_drain` after the peer has begun to send with the new ones;
    /// [`Event::KeysDrained`](crate::Event::KeysDrained) reports that.
    ///
    /// # Errors
    /// The epoch is neither the first nor the next one, or it has no receiving keys.
    pub fn install_send_keys(
        &mut self,
        now: Instant,
        epoch: Epoch,
        keys: RecordKeys,
    ) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.install_send(now, epoch, keys))
    }

    /// Installs receiving keys, in addition to those in use.
    ///
    /// # Errors
    /// The epoch is neither the first nor the next one; or older receiving keys still drain; or SHUTDOWN or SHUTDOWN ACK has been
    /// sent, after which no message can inform the peer of the keys.
    pub fn install_receive_keys(&mut self, epoch: Epoch, keys: RecordKeys) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.install_receive(epoch, keys))
    }

    /// Removes receiving keys: draining ones before their time, or those of an exchange that was not completed.
    ///
    /// # Errors
    /// The epoch has no receiving keys, or they are in use.
    pub fn destroy_receive_keys(&mut self, epoch: Epoch) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.destroy_receive(epoch))
    }

    /// Accepts only DTLS chunks from now on, irreversibly, and lets the application's messages be sent. If user data has arrived
    /// in the clear that the peer cannot have sent, the association ends instead.
    ///
    /// # Errors
    /// Sending or receiving keys are missing.
    pub fn require_protection(&mut self) -> Result<(), ProtectionError> {
        self.protected(|protected| protected.require())
    }

    /// Returns counters of the protection; `None` if it was not negotiated.
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
    /// Prepares the last packets of an association that has sent its SHUTDOWN COMPLETE.
    pub(super) fn prepare_final_packets(&mut self, slot: super::slots::Slot) {
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
