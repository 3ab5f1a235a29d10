//! Private keys: generating, writing and reading them. Independent of the trusted peers.

use std::fmt;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use zeroize::Zeroizing;

use super::fingerprint::Fingerprint;
use super::identity_error::IdentityError;
use super::tls::provider;

/// Identity of this side: a private key, and, if authorities are trusted, a chain of certificates for it.
///
/// Clones share the key. Its debug form shows the fingerprint and nothing secret.
#[derive(Clone)]
pub struct Identity {
    key: Arc<dyn SigningKey>,
    certificates: Vec<CertificateDer<'static>>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Reads a private key in PEM: Ed25519, ECDSA (P-256, P-384) or RSA; PKCS#8, SEC1 or PKCS#1. Certificates in the
    /// text are ignored.
    ///
    /// # Errors
    /// There is no key, or it is of another kind.
    pub fn from_pem(text: &[u8]) -> Result<Self, IdentityError> {
        let key = PrivateKeyDer::from_pem_slice(text).map_err(|_| IdentityError::NoKey)?;
        Identity::from_der(key)
    }

    /// Returns the same key with a chain of certificates in PEM, its own certificate first.
    ///
    /// # Errors
    /// There is no certificate, it cannot be read, or the first one is not for this key.
    pub fn with_certificates(self, text: &[u8]) -> Result<Self, IdentityError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
        let certificates =
            chain.ok().filter(|chain| !chain.is_empty()).ok_or(IdentityError::NoCertificate)?;
        let whole = CertifiedKey::new(certificates.clone(), Arc::clone(&self.key));
        whole.keys_match().map_err(|_| IdentityError::OtherCertificate)?;
        Ok(Identity { certificates, ..self })
    }

    /// Generates an Ed25519 key in PEM (PKCS#8, RFC 8410), for a file that only its owner may read.
    ///
    /// # Errors
    /// The operating system provides no random numbers.
    pub fn generate_pem() -> Result<Zeroizing<String>, IdentityError> {
        let mut seed = Zeroizing::new([0; ED25519_SEED]);
        SystemRandom::new().fill(&mut *seed).map_err(|_| IdentityError::NoRandomness)?;
        let text = Zeroizing::new(base64(&*pkcs8_of_seed(&seed)));
        Ok(Zeroizing::new(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", *text)))
    }

    /// Returns the fingerprint of the public key, by which peers identify this side.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the Ed25519 key of a seed (RFC 8032 §5.1.5).
    pub(super) fn of_seed(seed: &[u8; ED25519_SEED]) -> Result<Self, IdentityError> {
        let der = PrivatePkcs8KeyDer::from(pkcs8_of_seed(seed).to_vec());
        Identity::from_der(der.into())
    }

    fn from_der(der: PrivateKeyDer<'static>) -> Result<Self, IdentityError> {
        let provider: CryptoProvider = provider();
        let key = provider.key_provider.load_private_key(der).map_err(|_| IdentityError::UnknownKind)?;
        let spki = key.public_key().ok_or(IdentityError::UnknownKind)?;
        let fingerprint = Fingerprint::of_public_key(&spki);
        Ok(Identity { key, certificates: Vec::new(), fingerprint })
    }

    /// Returns the key with its public key in place of certificates (RFC 7250).
    pub(super) fn raw(&self) -> Arc<CertifiedKey> {
        let spki = self.key.public_key().map(|spki| spki.to_vec()).unwrap_or_default();
        Arc::new(CertifiedKey::new(vec![spki.into()], Arc::clone(&self.key)))
    }

    /// Returns the key with its certificates; `None` if there are none.
    pub(super) fn certified(&self) -> Option<Arc<CertifiedKey>> {
        let chain = Some(self.certificates.clone()).filter(|chain| !chain.is_empty())?;
        Some(Arc::new(CertifiedKey::new(chain, Arc::clone(&self.key))))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// Returns a seed as a private key in PKCS#8 (RFC 8410 §7); all such keys have the same beginning.
fn pkcs8_of_seed(seed: &[u8; ED25519_SEED]) -> Zeroizing<[u8; 48]> {
    let mut der = Zeroizing::new([0; 48]);
    der[..16].copy_from_slice(&ED25519_PKCS8);
    der[16..].copy_from_slice(seed);
    der
}

/// Returns base64 on one line (RFC 4648 §4), of bytes whose number is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3).map(|group| u32::from_be_bytes([0, group[0], group[1], group[2]]));
    let digits = groups.flat_map(|group| [18, 12, 6, 0].map(|shift| DIGITS[(group >> shift & 63) as usize]));
    digits.map(char::from).collect()
}

pub(super) const ED25519_SEED: usize = 32;
/// PrivateKeyInfo, version 0, id-Ed25519, an octet string in an octet string of 32 bytes.
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_key_of_a_seed_is_that_of_the_standard() {
        // RFC 8032 §7.1, test 1.
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
                .collect()
        };
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let public =
            hex("302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let identity = Identity::of_seed(seed.as_slice().try_into().expect("32 bytes")).expect("a key");
        assert_eq!(identity.fingerprint(), Fingerprint::of_public_key(&public));
    }

    #[test]
    fn a_generated_key_is_read_again_and_comes_once() {
        let (one, two) =
            (Identity::generate_pem().expect("random"), Identity::generate_pem().expect("random"));
        let [one, two] = [one, two].map(|text| Identity::from_pem(text.as_bytes()).expect("a key"));
        assert_ne!(one.fingerprint(), two.fingerprint());
        assert_eq!(format!("{one:?}"), format!("Identity({})", one.fingerprint()));
    }

    #[test]
    fn text_without_a_key_is_refused() {
        for text in ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(Identity::from_pem(text.as_bytes()).is_err(), "{text}");
        }
        let cut = Identity::generate_pem().expect("random").replace("END", "FIN");
        assert_eq!(Identity::from_pem(cut.as_bytes()).err(), Some(IdentityError::NoKey));
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}
