//! Trusted peers: pinned keys, or authorities whose certificates count. Independent of addresses.

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

/// The fingerprints of the trusted peers. Clones share them: a change applies to every set-up and every new agreement
/// on keys from then on, so a removed peer loses its associations within an hour.
#[derive(Clone, Default)]
pub struct Peers(Arc<RwLock<BTreeSet<Fingerprint>>>);

impl Peers {
    /// Makes a set of trusted peers; no others are trusted.
    pub fn new(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Self {
        Peers(Arc::new(RwLock::new(fingerprints.into_iter().collect())))
    }

    /// Replaces the trusted peers by these.
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
    /// Any peer with a certificate of the authorities.
    Any,
    /// Only peers with one of these names: DNS names or IP addresses.
    OneOf(Vec<String>),
}

/// Verifier of peers for rustls, for both roles of TLS.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) trust: Trust,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// Rule by which a peer is trusted.
#[derive(Debug)]
pub(super) enum Trust {
    /// The raw public key of the peer is pinned (RFC 7250).
    Pinned(Peers),
    /// The peer has a certificate of an authority.
    Authorities {
        roots: Arc<RootCertStore>,
        /// Verifier of peers that are the client of TLS.
        clients: Arc<dyn ClientCertVerifier>,
        /// Accepted names; empty for any.
        names: Vec<ServerName<'static>>,
    },
}

impl Verifier {
    fn is_raw(&self) -> bool {
        matches!(self.trust, Trust::Pinned(_))
    }

    /// Accepts a pinned key, or a certificate with an accepted name.
    fn check_peer(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let known = match &self.trust {
            Trust::Pinned(peers) => peers.contains(Fingerprint::of_public_key(shown)),
            Trust::Authorities { names, .. } => {
                let certificate = ParsedCertificate::try_from(shown)?;
                names.is_empty() || names.iter().any(|name| verify_server_name(&certificate, name).is_ok())
            }
        };
        // On the wire this is the alert access_denied, for every reason.
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

/// TLS 1.2 is not compiled in, but rustls requires this function.
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
        // This side does not disclose to strangers which authorities it trusts.
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
