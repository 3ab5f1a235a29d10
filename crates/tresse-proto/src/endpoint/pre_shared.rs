//! Key management for keys that both ends have already (method 0 of draft-ietf-tsvwg-sctp-dtls-chunk-04 §9.1). Both ends install
//! keys in the order of draft-porfiri-tsvwg-sctp-dtls-handshake-02 §6 and with its messages, but without TLS.
//!
//! The function `make` derives the keys from a secret and from negotiated values that differ for each association. This is for
//! simulations, tests, and hosts whose keys come from another protocol.

use bytes::Bytes;
use tresse_policy::Instant;

use super::handle::AssociationHandle;
use crate::interface::event::Event;
use crate::interface::protection::{
    Agreed, Epoch, KEY_CONTROL, KeyDirection, METHOD_PRE_SHARED, ProtectionError, RecordKeys, Role,
};

/// "Read Key Installed": the sender of the message can decrypt with the keys of the next epoch.
const READ_KEY_INSTALLED: &[u8] = &[1];

/// "Rekey Request": the server asks the client for new keys.
const REKEY_REQUEST: &[u8] = &[2];

/// Key management of one association by keys that both ends have already.
pub struct PreSharedKeys<F> {
    make: F,
    agreed: Option<Agreed>,
    /// The epoch of the present sending keys.
    sends: Option<Epoch>,
    /// The epoch of a change of keys in progress.
    next: Option<Epoch>,
    /// The receiving keys of the epoch before still decrypt late packets.
    drains: bool,
    /// The keys are to be changed as soon as the old receiving keys are forgotten.
    rekey_wanted: bool,
    /// The client has begun a change of keys. The server follows once its old receiving keys are forgotten: an end never has keys
    /// of three epochs.
    client_began: bool,
    /// The server has sent a Rekey Request, and the client has not begun the change yet.
    rekey_requested: bool,
}

impl<F> std::fmt::Debug for PreSharedKeys<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreSharedKeys").field("sends", &self.sends).finish_non_exhaustive()
    }
}

impl<F: FnMut(&Agreed, KeyDirection, Epoch) -> RecordKeys> PreSharedKeys<F> {
    /// Creates the key management of an association. `make` returns the keys of a direction and an epoch, the same ones at both
    /// ends.
    pub fn new(make: F) -> Self {
        PreSharedKeys {
            make,
            agreed: None,
            sends: None,
            next: None,
            drains: false,
            rekey_wanted: false,
            client_began: false,
            rekey_requested: false,
        }
    }

    /// Returns the epoch of the sending keys; `None` before the first ones.
    pub fn epoch(&self) -> Option<Epoch> {
        self.sends
    }

    /// Reacts to an event of the association; to be called with each one.
    ///
    /// # Errors
    /// The association has ended, or the peer violates the order of the messages.
    pub fn on_event(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
        event: &Event,
    ) -> Result<(), ProtectionError> {
        match event {
            Event::ProtectionAgreed(agreed) if agreed.method == METHOD_PRE_SHARED => {
                (self.agreed, self.sends, self.next) = (Some((**agreed).clone()), None, None);
                (self.drains, self.rekey_wanted, self.client_began, self.rekey_requested) =
                    (false, false, false, false);
                match agreed.role {
                    Role::Client => self.begin(now, association, Epoch::FIRST),
                    Role::Server => Ok(()),
                }
            }
            Event::KeyMessage { ppid: KEY_CONTROL, data, protected } if data == READ_KEY_INSTALLED => {
                self.on_read_key_installed(now, association, *protected)
            }
            Event::KeyMessage { ppid: KEY_CONTROL, data, .. } if data == REKEY_REQUEST => {
                self.rekey(now, association)
            }
            Event::KeysNearLimit { .. } => self.rekey(now, association),
            Event::KeysDrained { .. } => {
                self.drains = false;
                if std::mem::take(&mut self.client_began) {
                    self.follow(now, association)
                } else if std::mem::take(&mut self.rekey_wanted) {
                    self.rekey(now, association)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// Changes the keys if this end is the client, or asks the client to. If old receiving keys still drain, this is done
    /// afterwards.
    ///
    /// # Errors
    /// The association has ended.
    pub fn rekey(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
    ) -> Result<(), ProtectionError> {
        let (Some(agreed), Some(epoch)) = (&self.agreed, self.sends) else { return Ok(()) };
        if self.next.is_some() || self.client_began || self.rekey_requested {
            return Ok(());
        }
        if self.drains {
            self.rekey_wanted = true;
            return Ok(());
        }
        match agreed.role {
            Role::Client => self.begin(now, association, epoch.next()),
            Role::Server => {
                self.rekey_requested = true;
                association.send_key_message(now, KEY_CONTROL, Bytes::from_static(REKEY_REQUEST))
            }
        }
    }

    /// Begins a change of keys, at the client.
    fn begin(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
        epoch: Epoch,
    ) -> Result<(), ProtectionError> {
        self.install_receive(association, epoch)?;
        self.next = Some(epoch);
        association.send_key_message(now, KEY_CONTROL, Bytes::from_static(READ_KEY_INSTALLED))
    }

    fn on_read_key_installed(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
        protected: bool,
    ) -> Result<(), ProtectionError> {
        let Some(agreed) = &self.agreed else { return Ok(()) };
        match agreed.role {
            // In the clear the message could be forged.
            Role::Client => match self.next.take_if(|_| protected) {
                Some(epoch) => self.install_send(now, association, epoch),
                None => Ok(()),
            },
            Role::Server if self.drains => {
                self.client_began = true;
                Ok(())
            }
            Role::Server => self.follow(now, association),
        }
    }

    /// Follows a change of keys, at the server: the client can decrypt with the keys of the next epoch.
    fn follow(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
    ) -> Result<(), ProtectionError> {
        let epoch = self.sends.map_or(Epoch::FIRST, Epoch::next);
        // The change fulfils all pending requests for new keys.
        (self.rekey_wanted, self.rekey_requested) = (false, false);
        self.install_receive(association, epoch)?;
        self.install_send(now, association, epoch)?;
        association.send_key_message(now, KEY_CONTROL, Bytes::from_static(READ_KEY_INSTALLED))
    }

    fn install_receive(
        &mut self,
        association: &mut AssociationHandle<'_>,
        epoch: Epoch,
    ) -> Result<(), ProtectionError> {
        let Some(agreed) = &self.agreed else { return Ok(()) };
        let keys = (self.make)(agreed, agreed.receives(), epoch);
        association.install_receive_keys(epoch, keys)
    }

    fn install_send(
        &mut self,
        now: Instant,
        association: &mut AssociationHandle<'_>,
        epoch: Epoch,
    ) -> Result<(), ProtectionError> {
        let Some(agreed) = &self.agreed else { return Ok(()) };
        let keys = (self.make)(agreed, agreed.sends(), epoch);
        association.install_send_keys(now, epoch, keys)?;
        self.drains = self.sends.is_some();
        self.sends = Some(epoch);
        if epoch == Epoch::FIRST { association.require_protection() } else { Ok(()) }
    }
}
