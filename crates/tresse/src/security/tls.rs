//! TLS 1.3 for the agreement on keys: its settings, and one connection in memory. Independent of epochs and of the
//! order of steps.

use std::fmt;
use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::CryptoProvider;
#[cfg(not(feature = "aws-lc-rs"))]
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ParsedCertificate};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CipherSuite, ClientConfig, ClientConnection, Connection, Error, ServerConfig,
    ServerConnection,
};
use zeroize::Zeroizing;

use super::fingerprint::Fingerprint;
use super::trust::Verifier;
use tresse_proto::protection::{Role, Suite};

/// Returns the cryptography for TLS: the suites are those of the record layer, cheapest first.
pub(super) fn provider() -> CryptoProvider {
    #[cfg(feature = "aws-lc-rs")]
    let all = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc-rs"))]
    let all = ring::default_provider();
    let known = all.cipher_suites.iter().filter(|suite| suite_of(suite.suite()).is_some()).copied();
    let mut cipher_suites: Vec<_> = known.collect();
    cipher_suites.sort_by_key(|suite| suite_of(suite.suite()).map(|suite| suite.id()));
    CryptoProvider { cipher_suites, ..all }
}

fn suite_of(suite: CipherSuite) -> Option<Suite> {
    Suite::of_id(suite.into())
}

/// Settings of the TLS connections of an endpoint, in either role.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

/// Certificate, or key, and trust of one role.
pub(super) struct RoleCredentials {
    pub(super) own: Arc<CertifiedKey>,
    pub(super) verifier: Arc<Verifier>,
    /// True if public keys are used instead of certificates.
    pub(super) raw: bool,
}

impl Settings {
    pub(super) fn new(client: RoleCredentials, server: RoleCredentials) -> Result<Self, Error> {
        let provider = Arc::new(provider());
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13])?;
        let builder = builder.dangerous().with_custom_certificate_verifier(client.verifier);
        let mut as_client = match client.raw {
            true => builder
                .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(client.own))),
            false => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(client.own))),
        };
        as_client.resumption = Resumption::disabled();
        as_client.enable_sni = false;
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
        let builder = builder.with_client_cert_verifier(server.verifier);
        let mut as_server = match server.raw {
            true => builder.with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(server.own))),
            false => builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(server.own))),
        };
        // No tickets, so that each agreement is a full exchange.
        as_server.send_tls13_tickets = 0;
        as_server.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Settings { client: Arc::new(as_client), server: Arc::new(as_server) })
    }
}

/// Identity that a peer has proved.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerIdentity {
    /// The fingerprint of its public key.
    pub fingerprint: Fingerprint,
    /// Its certificate in DER, if authorities are trusted.
    pub certificate: Option<Vec<u8>>,
}

impl fmt::Debug for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerIdentity({})", self.fingerprint)
    }
}

/// One TLS connection, from its first flight to its end.
pub(super) struct Session {
    tls: Connection,
    raw: bool,
    /// Bytes received so far.
    fed: usize,
}

/// Reason for which a TLS connection failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    /// This side does not trust the peer.
    Stranger,
    /// The peer does not trust this side.
    Refused,
    /// The peer violated TLS, or sent too much.
    Broken(String),
}

impl Session {
    pub(super) fn begin(settings: &Settings, role: Role, raw: bool) -> Result<Self, Failed> {
        let tls = match role {
            Role::Client => {
                let name = ServerName::IpAddress(std::net::IpAddr::from([0, 0, 0, 0]).into());
                ClientConnection::new(Arc::clone(&settings.client), name).map(Connection::from)
            }
            Role::Server => ServerConnection::new(Arc::clone(&settings.server)).map(Connection::from),
        };
        Ok(Session { tls: tls.map_err(Failed::from)?, raw, fed: 0 })
    }

    /// Takes whole records. The records to send in return, with an alert if there is one, are in [`Session::take_output`].
    pub(super) fn feed(&mut self, mut records: &[u8]) -> Result<(), Failed> {
        self.fed += records.len();
        if self.fed > MOST_BYTES {
            return Err(Failed::Broken("the handshake is too long".to_owned()));
        }
        while !records.is_empty() {
            match self.tls.read_tls(&mut records) {
                // No bytes are accepted after the end.
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(Failed::Broken(error.to_string())),
            }
            let state = self.tls.process_new_packets()?;
            if state.plaintext_bytes_to_read() > 0 {
                return Err(Failed::Broken("application data inside TLS".to_owned()));
            }
        }
        Ok(())
    }

    /// Takes the records to send, whole ones.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            // Writing to memory does not fail.
            if self.tls.write_tls(&mut records).is_err() {
                break;
            }
        }
        records
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// Returns whether the connection has received nothing yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.fed == 0
    }

    /// Returns whether the peer has ended the connection.
    pub(super) fn is_over(&mut self) -> bool {
        self.tls.process_new_packets().is_ok_and(|state| state.peer_has_closed())
    }

    /// Ends the connection in this direction.
    pub(super) fn close(&mut self) {
        self.tls.send_close_notify();
    }

    /// Returns the identity that the peer has proved.
    pub(super) fn peer(&self) -> Result<PeerIdentity, Failed> {
        let shown = self.tls.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
        let shown = shown.ok_or_else(|| Failed::Broken("the peer showed no key".to_owned()))?;
        if self.raw {
            return Ok(PeerIdentity { fingerprint: Fingerprint::of_public_key(shown), certificate: None });
        }
        let spki = ParsedCertificate::try_from(shown)?.subject_public_key_info();
        let certificate = Some(shown.to_vec());
        Ok(PeerIdentity { fingerprint: Fingerprint::of_public_key(&spki), certificate })
    }

    pub(super) fn suite(&self) -> Result<Suite, Failed> {
        let agreed = self.tls.negotiated_cipher_suite().and_then(|suite| suite_of(suite.suite()));
        agreed.ok_or_else(|| Failed::Broken("no suite of the record layer was agreed".to_owned()))
    }

    /// Returns the group of the key exchange, once it is negotiated.
    #[cfg(test)]
    pub(super) fn key_exchange(&self) -> Option<rustls::NamedGroup> {
        self.tls.negotiated_key_exchange_group().map(|group| group.name())
    }

    /// Returns key material of `length` bytes for a label and a context (RFC 8446 §7.5).
    pub(super) fn export(
        &self,
        length: usize,
        label: &[u8],
        context: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Failed> {
        let space = Zeroizing::new(vec![0; length]);
        Ok(self.tls.export_keying_material(space, label, Some(context))?)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::NoCertificatesPresented | Error::InvalidCertificate(_) => Failed::Stranger,
            Error::AlertReceived(
                AlertDescription::AccessDenied
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::DecryptError
                | AlertDescription::UnknownCA
                | AlertDescription::UnsupportedCertificate,
            ) => Failed::Refused,
            other => Failed::Broken(other.to_string()),
        }
    }
}

/// Most bytes that a peer may send for one agreement: chains of certificates have some kilobytes.
const MOST_BYTES: usize = 128 * 1024;
