//! Record layer of DTLS chunks: AEAD and the mask over record numbers, by ring, or by AWS-LC with the feature
//! `aws-lc-rs`. Independent of nonces, epochs and replay windows.

#[cfg(feature = "aws-lc-rs")]
use aws_lc_rs as library;
#[cfg(not(feature = "aws-lc-rs"))]
use ring as library;

use library::aead::quic::{self, HeaderProtectionKey};
use library::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use tresse_proto::protection::{RecordFault, RecordKeys, RecordLayer, Suite};

/// Keys of one direction.
pub(super) struct Layer {
    key: LessSafeKey,
    mask: HeaderProtectionKey,
}

/// Returns the keys of one direction for the core; `None` if their length is not that of the suite, or the suite is unknown here.
pub(super) fn record_keys(suite: Suite, key: &[u8], sn_key: &[u8], iv: &[u8]) -> Option<RecordKeys> {
    let (aead, mask) = match suite {
        Suite::Aes128Gcm => (&aead::AES_128_GCM, &quic::AES_128),
        Suite::Aes256Gcm => (&aead::AES_256_GCM, &quic::AES_256),
        Suite::ChaCha20Poly1305 => (&aead::CHACHA20_POLY1305, &quic::CHACHA20),
        _ => return None,
    };
    let key = LessSafeKey::new(UnboundKey::new(aead, key).ok()?);
    let mask = HeaderProtectionKey::new(mask, sn_key).ok()?;
    Some(RecordKeys { suite, iv: iv.try_into().ok()?, layer: Box::new(Layer { key, mask }) })
}

impl RecordLayer for Layer {
    fn seal(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &mut [u8; 16],
    ) -> Result<(), RecordFault> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let made = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), text);
        tag.copy_from_slice(made.map_err(|_| RecordFault)?.as_ref());
        Ok(())
    }

    fn open(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), RecordFault> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        #[cfg(feature = "aws-lc-rs")]
        let opened = self.key.open_in_place_separate_tag(nonce, Aad::from(header), tag, text);
        #[cfg(not(feature = "aws-lc-rs"))]
        let opened =
            self.key.open_in_place_separate_tag(nonce, Aad::from(header), aead::Tag::from(*tag), text, 0..);
        opened.map(|_| ()).map_err(|_| RecordFault)
    }

    fn mask(&mut self, sample: &[u8; 16]) -> [u8; 2] {
        // This fails only for samples of other lengths.
        let [first, second, ..] = self.mask.new_mask(sample).unwrap_or_default();
        [first, second]
    }
}
