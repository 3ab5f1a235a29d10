//! Keys and ciphers of simulated hosts whose associations are protected: AES-128-GCM in software, keys from the seed.
//!
//! Both hosts derive the same keys from the result of their negotiation, which differs between associations. So a run
//! can be repeated bit by bit, and no key is used twice with the same record numbers. Nothing here is secret.

use std::collections::BTreeMap;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use sha2::{Digest, Sha256};
use tresse_proto::PreSharedKeys;
use tresse_proto::config::{Encryption, KeyManagement};
use tresse_proto::protection::{
    Agreed, Epoch, KeyDirection, KeyPart, ProtectionError, RecordFault, RecordKeys, RecordLayer, Suite,
};
use tresse_proto::{AssociationConfig, AssociationId, Endpoint, Event, Instant};

type Make = Box<dyn FnMut(&Agreed, KeyDirection, Epoch) -> RecordKeys + Send>;

/// The key management of a simulated host, for all its associations.
pub struct SimulatedKeys {
    secret: [u8; 32],
    associations: BTreeMap<AssociationId, PreSharedKeys<Make>>,
}

impl std::fmt::Debug for SimulatedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedKeys").finish_non_exhaustive()
    }
}

impl SimulatedKeys {
    /// Derives keys from `secret`, which the host's peer has, too.
    pub fn new(secret: [u8; 32]) -> Self {
        SimulatedKeys { secret, associations: BTreeMap::new() }
    }

    /// Carries out the steps of the key management that follow from an event of an association.
    ///
    /// # Errors
    /// The association refuses a step, for instance because it has ended meanwhile and needs no keys.
    pub fn on_event(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: AssociationId,
        event: &Event,
    ) -> Result<(), ProtectionError> {
        if matches!(event, Event::Closed(_)) {
            self.associations.remove(&id);
            return Ok(());
        }
        if !matches!(event, Event::ProtectionAgreed(_)) && !self.associations.contains_key(&id) {
            return Ok(());
        }
        let Some(mut association) = endpoint.association(id) else { return Ok(()) };
        let secret = self.secret;
        let make = move |agreed: &Agreed, direction, epoch| keys_of(&secret, agreed, direction, epoch);
        let keys = self.associations.entry(id).or_insert_with(|| PreSharedKeys::new(Box::new(make)));
        keys.on_event(now, &mut association, event)
    }

    /// Changes to new keys, if the association has keys.
    ///
    /// # Errors
    /// The association refuses the change.
    pub fn rekey(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: AssociationId,
    ) -> Result<(), ProtectionError> {
        let Some(keys) = self.associations.get_mut(&id) else { return Ok(()) };
        endpoint.association(id).map_or(Ok(()), |mut association| keys.rekey(now, &mut association))
    }
}

/// Returns the settings with the keys of simulated hosts, if they require protection.
pub fn with_simulated_keys(config: &AssociationConfig) -> AssociationConfig {
    let key_management = match config.encryption {
        Encryption::Off => config.key_management,
        _ => KeyManagement::PreShared,
    };
    config.clone().with(|c| c.key_management = key_management)
}

fn keys_of(secret: &[u8; 32], agreed: &Agreed, direction: KeyDirection, epoch: Epoch) -> RecordKeys {
    let part = |part| -> [u8; 32] {
        let hash = Sha256::new().chain_update(secret).chain_update(epoch.0.to_be_bytes());
        hash.chain_update(agreed.exporter_context(direction, part)).finalize().into()
    };
    let layer = AesGcm {
        aead: Aes128Gcm::new(&first(part(KeyPart::Key)).into()),
        mask: Aes128::new(&first(part(KeyPart::NumberKey)).into()),
    };
    RecordKeys { suite: Suite::Aes128Gcm, iv: first(part(KeyPart::Iv)), layer: Box::new(layer) }
}

fn first<const N: usize>(bytes: [u8; 32]) -> [u8; N] {
    std::array::from_fn(|at| bytes[at])
}

/// AES-128-GCM.
struct AesGcm {
    aead: Aes128Gcm,
    mask: Aes128,
}

impl RecordLayer for AesGcm {
    fn seal(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &mut [u8; 16],
    ) -> Result<(), RecordFault> {
        let sealed = self.aead.encrypt_inout_detached(&(*nonce).into(), header, text.into());
        *tag = sealed.map_err(|_| RecordFault)?.into();
        Ok(())
    }

    fn open(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), RecordFault> {
        let opened = self.aead.decrypt_inout_detached(&(*nonce).into(), header, text.into(), &(*tag).into());
        opened.map_err(|_| RecordFault)
    }

    fn mask(&mut self, sample: &[u8; 16]) -> [u8; 2] {
        let mut block: Array<u8, _> = (*sample).into();
        self.mask.encrypt_block(&mut block);
        [block[0], block[1]]
    }
}
