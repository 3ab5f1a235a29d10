//! Whom to talk to: the keys that are pinned, or the authorities whose certificates count. Knows no addresses.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use super::fingerprint::Fingerprint;

/// The fingerprints of the peers that are trusted. Clones share them: a change holds for every set-up and every new
/// agreement on keys from then on, so a peer that was removed loses its associations within an hour.
#[derive(Clone, Default)]
pub struct Peers(Arc<RwLock<BTreeSet<Fingerprint>>>);

impl Peers {
    /// Trusts these and nobody else.
    pub fn new(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Self {
        Peers(Arc::new(RwLock::new(fingerprints.into_iter().collect())))
    }

    /// Trusts these and nobody else from now on.
    pub fn replace(&self, fingerprints: impl IntoIterator<Item = Fingerprint>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = fingerprints.into_iter().collect();
    }

    /// Returns whether a peer is trusted.
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&fingerprint)
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().unwrap_or_else(PoisonError::into_inner).iter()).finish()
    }
}

/// Names of peers in their certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Names {
    /// Whoever has a certificate of the authorities, whatever it is called.
    Any,
    /// Only who is called one of these: DNS names or IP addresses.
    OneOf(Vec<String>),
}

/// Answers of rustls's questions about a peer, whichever side of TLS it is.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) trust: Trust,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// Rule by which a peer is one of ours.
#[derive(Debug)]
pub(super) enum Trust {
    /// Its raw public key (RFC 7250).
    Pinned(Peers),
    /// A certificate of an authority.
    Authorities {
        roots: Arc<RootCertStore>,
        /// For peers that are the client of TLS.
        clients: Arc<dyn ClientCertVerifier>,
        /// Empty: any.
        names: Vec<ServerName<'static>>,
    },
}

impl Verifier {
    fn is_raw(&self) -> bool {
        matches!(self.trust, Trust::Pinned(_))
    }

    /// Accepts a pinned key, or a certificate of a name that is wanted.
    fn check_peer(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let known = match &self.trust {
            Trust::Pinned(peers) => peers.contains(Fingerprint::of_public_key(shown)),
            Trust::Authorities { names, .. } => {
                let certificate = ParsedCertificate::try_from(shown)?;
                names.is_empty() || names.iter().any(|name| verify_server_name(&certificate, name).is_ok())
            }
        };
        // On the wire this is access_denied, whatever the reason.
        if known { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !self.is_raw() {
            return verify_tls13_signature(message, shown, signature, &self.algorithms);
        }
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

/// TLS 1.2 is not compiled in; rustls asks for an answer all the same.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken".to_owned()))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Trust::Authorities { roots, .. } = &self.trust {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        self.check_peer(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.is_raw()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Strangers need not know whom this side trusts.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Trust::Authorities { clients, .. } = &self.trust {
            clients.verify_client_cert(end_entity, intermediates, now)?;
        }
        self.check_peer(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.is_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_peers_holds_for_all_clones() {
        let (one, two) = (Fingerprint::of_public_key(b"1"), Fingerprint::of_public_key(b"2"));
        let peers = Peers::new([one]);
        let clone = peers.clone();
        peers.replace([two]);
        assert!(!clone.contains(one) && clone.contains(two));
    }
}
