//! The record layer of these tests: AES-128-GCM by the crate `aes-gcm`, keys from a secret that both ends have.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tresse_proto::PreSharedKeys;
use tresse_proto::protection::{
    Agreed, Epoch, KeyDirection, KeyPart, RecordFault, RecordKeys, RecordLayer, Suite,
};

/// AES-128-GCM with a key.
pub struct Records {
    aead: Aes128Gcm,
    mask: Aes128,
}

impl Records {
    pub fn new(key: [u8; 16], number_key: [u8; 16]) -> Self {
        Records { aead: Aes128Gcm::new(&key.into()), mask: Aes128::new(&number_key.into()) }
    }
}

impl RecordLayer for Records {
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

/// The keys of a direction and an epoch, the same at both ends.
pub fn make_keys(agreed: &Agreed, direction: KeyDirection, epoch: Epoch) -> RecordKeys {
    let part = |part| -> [u8; 16] {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"known to both ends").expect("a key of any length");
        mac.update(&epoch.0.to_be_bytes());
        mac.update(&agreed.exporter_context(direction, part));
        mac.finalize().into_bytes()[..16].try_into().expect("16 bytes")
    };
    let iv = part(KeyPart::Iv)[..12].try_into().expect("12 bytes");
    let layer = Box::new(Records::new(part(KeyPart::Key), part(KeyPart::NumberKey)));
    RecordKeys { suite: Suite::Aes128Gcm, iv, layer }
}

/// What makes the keys of these tests.
pub type Sealer = fn(&Agreed, KeyDirection, Epoch) -> RecordKeys;

/// Key management for keys that both ends have.
pub type Keys = PreSharedKeys<Sealer>;

pub fn new_keys() -> Keys {
    PreSharedKeys::new(make_keys)
}
