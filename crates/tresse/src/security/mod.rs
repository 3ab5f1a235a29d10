//! Encryption and authentication: identities, trusted peers, and the agreement on keys by TLS 1.3.
//!
//! The core encrypts packets (DTLS chunks). This module agrees on the keys, by messages of the same association, with a
//! peer that proves its identity. Cryptography is that of `rustls` with `ring`, or with AWS-LC (feature `aws-lc-rs`).

mod fingerprint;
mod identity;
mod identity_error;
mod key_log;
mod keyring;
mod layer;
mod manager;
mod records;
mod secret;
mod tls;
mod trust;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;

pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::Identity;
pub use identity_error::IdentityError;
pub use key_log::{KeyLogError, LoggedKey, Opener};
pub(crate) use keyring::{KeyEvent, Keyring};
pub use manager::{Action, KeyManager};
pub use tls::PeerIdentity;
pub use trust::{Names, Peers};

use key_log::KeyLog;
use tls::{RoleCredentials, Settings};
use trust::{Trust, Verifier};

/// Identity of this side, the peers that it trusts, and the interval between agreements on keys.
pub struct Security {
    tls: Settings,
    /// True if public keys are shown instead of certificates.
    raw: bool,
    rekeying: Rekeying,
    key_log: Option<KeyLog>,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("raw", &self.raw)
            .field("rekeying", &self.rekeying)
            .finish_non_exhaustive()
    }
}

impl Security {
    /// Both sides have keys of their own, and each knows the fingerprints of the other side.
    ///
    /// # Errors
    /// None that is known: the TLS library checks the settings.
    pub fn pinned(identity: &Identity, peers: &Peers) -> Result<Self, IdentityError> {
        Security::raw(identity, peers.clone(), identity, peers.clone())
    }

    /// Both sides have one secret that nobody else has. The call takes some tenths of a second and 64 MiB of memory, so
    /// that guessing is expensive.
    ///
    /// # Errors
    /// A secret of less than 16 bytes.
    pub fn shared_secret(secret: &[u8]) -> Result<Self, IdentityError> {
        let secret::Shared { client, server } = secret::Shared::new(secret)?;
        let peers = |identity: &Identity| Peers::new([identity.fingerprint()]);
        Security::raw(&client, peers(&server), &server, peers(&client))
    }

    /// Both sides have certificates of authorities that the other side trusts, given in PEM. `names` selects the
    /// accepted peers, whichever side opened the association.
    ///
    /// # Errors
    /// An identity without certificate, no authority, or a name that no certificate can have.
    pub fn certified(identity: &Identity, authorities: &[u8], names: &Names) -> Result<Self, IdentityError> {
        let own = identity.certified().ok_or(IdentityError::NotCertified)?;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authorities) {
            let authority = authority.map_err(|_| IdentityError::NoAuthority)?;
            roots.add(authority).map_err(|_| IdentityError::NoAuthority)?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(tls::provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build();
        let clients = clients.map_err(|_| IdentityError::NoAuthority)?;
        let names = match names {
            Names::Any => Vec::new(),
            Names::OneOf(names) => {
                if names.is_empty() {
                    return Err(IdentityError::NoName { name: String::new() });
                }
                let name = |name: &String| {
                    ServerName::try_from(name.clone())
                        .map_err(|_| IdentityError::NoName { name: name.clone() })
                };
                names.iter().map(name).collect::<Result<_, _>>()?
            }
        };
        let trust = Trust::Authorities { roots, clients, names };
        let verifier = Arc::new(Verifier { trust, algorithms: provider.signature_verification_algorithms });
        let side = || RoleCredentials { own: Arc::clone(&own), verifier: Arc::clone(&verifier), raw: false };
        Security::with_sides(side(), side(), false)
    }

    /// Returns the same with other intervals of new keys.
    #[must_use]
    pub fn with_rekeying(self, rekeying: Rekeying) -> Self {
        Security { rekeying, ..self }
    }

    /// Returns the same with a log of all record keys: for analysis of captures of one's own traffic. The keys allow to
    /// read and change all data that they protect.
    #[must_use]
    pub fn with_key_log(self, log: impl Fn(&LoggedKey) + Send + Sync + 'static) -> Self {
        Security { key_log: Some(KeyLog(Arc::new(log))), ..self }
    }

    fn raw(
        client: &Identity,
        servers: Peers,
        server: &Identity,
        clients: Peers,
    ) -> Result<Self, IdentityError> {
        let side = |identity: &Identity, peers: Peers| {
            let algorithms = tls::provider().signature_verification_algorithms;
            let verifier = Arc::new(Verifier { trust: Trust::Pinned(peers), algorithms });
            RoleCredentials { own: identity.raw(), verifier, raw: true }
        };
        Security::with_sides(side(client, servers), side(server, clients), true)
    }

    fn with_sides(
        client: RoleCredentials,
        server: RoleCredentials,
        raw: bool,
    ) -> Result<Self, IdentityError> {
        let tls = Settings::new(client, server).map_err(|_| IdentityError::UnknownKind)?;
        Ok(Security { tls, raw, rekeying: Rekeying::default(), key_log: None })
    }
}

/// Intervals of agreements on keys, and the time that they may take.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rekeying {
    /// Time between two agreements.
    pub interval: Duration,
    /// Time for which the old keys are kept, for packets in flight: no agreement follows sooner.
    pub drain: Duration,
    /// The same if a limit of the keys is near.
    pub shortest_drain: Duration,
    /// Time that the first agreement may take.
    pub patience: Duration,
    /// Time that later agreements may take, beside data and over paths that fail.
    pub patience_rekeying: Duration,
}

impl Default for Rekeying {
    /// The recommendations of draft-porfiri-tsvwg-sctp-dtls-handshake-02, sections 3.4 and 6.2: an hour, and 120 s of
    /// drain, at least 10 s if the next limit is near.
    fn default() -> Self {
        Rekeying {
            interval: Duration::from_secs(3_600),
            drain: Duration::from_secs(120),
            shortest_drain: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            patience_rekeying: Duration::from_secs(300),
        }
    }
}

impl Rekeying {
    /// Returns the same with changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Security reason for which an association ended, or never began.
///
/// The text has no information on the peer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityFault {
    /// The peer showed a key, or a certificate, that is not trusted here.
    #[error("the peer is not one of those that are trusted here")]
    Stranger,
    /// The peer does not trust this side.
    #[error("the peer does not trust this side's key")]
    Refused,
    /// The peer's identity has changed, or is not trusted any more.
    #[error("the peer's identity changed, or is not trusted any more")]
    IdentityChanged,
    /// The agreement on keys did not complete in time.
    #[error("the peer did not agree on keys in time")]
    NoAnswer,
    /// The peer violated the rules of the agreement, or its messages were changed on the way.
    #[error("the agreement on keys failed: {0}")]
    Broken(String),
}

impl SecurityFault {
    fn broken(why: &str) -> Self {
        SecurityFault::Broken(why.to_owned())
    }
}

#[cfg(test)]
mod tests;
