//! Protection of packets by DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04): types that a key manager and an
//! association exchange.
//!
//! The core numbers records, forms nonces, keeps replay windows and limits, and decides which packets it accepts in the clear. It
//! has no cipher: the key manager provides a [`RecordLayer`], which encrypts and decrypts with one key.

use std::fmt;

use tresse_wire::Ppid;

/// The payload protocol identifier of messages with TLS records (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §4.1).
pub const KEY_MANAGEMENT: Ppid = Ppid(4242);

/// The payload protocol identifier of the key management's own messages (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §9.4).
pub const KEY_CONTROL: Ppid = Ppid(4243);

/// Key management method: both ends have the keys already (draft-ietf-tsvwg-sctp-dtls-chunk-04 §9.1).
pub const METHOD_PRE_SHARED: u8 = 0;

/// Key management method: TLS 1.3 in user messages (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §9.1).
pub const METHOD_TLS13: u8 = 192;

/// Label under which keys are exported from TLS (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §5.3).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER_TLS_FOR_DTLS_IN_SCTP";

/// The number of a set of keys. A record contains its two lowest bits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the first keys of an association (RFC 9147 §6.1).
    pub const FIRST: Epoch = Epoch(3);

    /// Returns the next epoch.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0.saturating_add(1))
    }
}

/// A cipher suite of TLS 1.3 that protects records (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.1.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256, which every implementation has.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl Suite {
    /// All suites, the preferred one first.
    pub const ALL: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

    /// Returns its number in TLS (RFC 8446 §B.4).
    pub fn id(self) -> u16 {
        match self {
            Suite::Aes128Gcm => 0x1301,
            Suite::Aes256Gcm => 0x1302,
            Suite::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// Returns the suite with this number in TLS; `None` for any other number.
    pub fn of_id(id: u16) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.id() == id)
    }

    /// Returns the length in bytes of its key, and of the key that encrypts record numbers.
    pub fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm => 16,
            Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 32,
        }
    }
}

/// Role of an end in the key management, independent of which end initiated the association.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Role {
    /// The client begins the exchange of keys.
    Client,
    /// The server answers.
    Server,
}

impl Role {
    /// Returns the role of the other end.
    #[must_use]
    pub fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

/// Direction of packets, by the roles of the key management.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum KeyDirection {
    /// From the client to the server.
    ClientToServer,
    /// From the server to the client.
    ServerToClient,
}

/// Part of one direction's keys that is exported.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum KeyPart {
    /// The key of the AEAD; [`Suite::key_len`] bytes.
    Key,
    /// The key that encrypts record numbers; [`Suite::key_len`] bytes.
    NumberKey,
    /// Value that is combined with a record number to form a nonce; 12 bytes.
    Iv,
}

/// Agreement of both ends in INIT and INIT ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// This end's role in the key management.
    pub role: Role,
    /// The key management method: the first in the server's list that the client supports too.
    pub method: u8,
    /// The DTLS Key Management parameter that this end sent, with its header and without padding.
    pub own_parameter: Box<[u8]>,
    /// The parameter of the peer as it was received, with its header and without padding.
    pub peer_parameter: Box<[u8]>,
}

impl Agreed {
    /// Returns the direction in which this end sends.
    pub fn sends(&self) -> KeyDirection {
        match self.role {
            Role::Client => KeyDirection::ClientToServer,
            Role::Server => KeyDirection::ServerToClient,
        }
    }

    /// Returns the direction in which this end receives.
    pub fn receives(&self) -> KeyDirection {
        match self.role {
            Role::Client => KeyDirection::ServerToClient,
            Role::Server => KeyDirection::ClientToServer,
        }
    }

    /// Returns the exporter context for one part of the primary keys of `direction`, the same at both ends
    /// (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §5.3). It contains both parameters: if one is changed on its way, the ends
    /// derive different keys.
    pub fn exporter_context(&self, direction: KeyDirection, part: KeyPart) -> Vec<u8> {
        const PRIMARY: u8 = 0;
        let direction = match direction {
            KeyDirection::ClientToServer => 0,
            KeyDirection::ServerToClient => 1,
        };
        let part = match part {
            KeyPart::Key => 0,
            KeyPart::NumberKey => 1,
            KeyPart::Iv => 2,
        };
        let (client, server) = match self.role {
            Role::Client => (&self.own_parameter, &self.peer_parameter),
            Role::Server => (&self.peer_parameter, &self.own_parameter),
        };
        [&[direction, PRIMARY, part][..], client, server].concat()
    }
}

/// Failure to encrypt or decrypt a record. It has no details, which could help an attacker.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the record was refused")]
pub struct RecordFault;

/// A cipher with the keys of one direction: an AEAD, and the mask that encrypts record numbers (RFC 9147 §4.2.3).
///
/// The core forms nonces and headers, and never uses a nonce twice.
pub trait RecordLayer: Send {
    /// Encrypts `text` in place, and writes the tag over it and `header` to `tag`.
    ///
    /// # Errors
    /// The cipher fails. The association then ends.
    fn seal(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &mut [u8; 16],
    ) -> Result<(), RecordFault>;

    /// Decrypts `text` in place, if `tag` is valid for it and `header`. Otherwise the bytes left in `text` must reveal nothing.
    ///
    /// # Errors
    /// The tag is wrong.
    fn open(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), RecordFault>;

    /// Returns the first two bytes of the mask for `sample`, 16 bytes of ciphertext. With AES, the mask is the sample encrypted
    /// in ECB mode; with ChaCha20, it is the block whose counter and nonce are the sample (as in RFC 9001 §5.4.3, §5.4.4).
    fn mask(&mut self, sample: &[u8; 16]) -> [u8; 2];
}

/// The keys of one epoch in one direction.
pub struct RecordKeys {
    /// The suite, which sets the limits.
    pub suite: Suite,
    /// Value that is combined with a record number to form a nonce.
    pub iv: [u8; 12],
    /// The cipher with its keys.
    pub layer: Box<dyn RecordLayer>,
}

impl fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordKeys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Reason for which a command about protection was refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectionError {
    /// The association is being set up, or has ended.
    #[error("the association is not open: {state}")]
    NotOpen {
        /// The state of the association (RFC 9260 §4).
        state: &'static str,
    },
    /// The two ends did not agree on protection.
    #[error("protection was not agreed on with this peer")]
    NotAgreed,
    /// The epoch is not the next one, or the keys of the epoch before the present one are still in use for late
    /// packets.
    #[error("keys of epoch {} cannot be installed now: {reason}", epoch.0)]
    WrongEpoch {
        /// The epoch that was named.
        epoch: Epoch,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// There are no keys of this epoch.
    #[error("there are no keys of epoch {}", epoch.0)]
    NoSuchKeys {
        /// The epoch that was named.
        epoch: Epoch,
    },
    /// Protection can be required only with keys of both directions.
    #[error("protection can be required once keys for both directions are installed")]
    KeysMissing,
    /// The key message is empty, longer than 65,535 bytes, or does not have an identifier of the key management.
    #[error("a key message has 1 to 65535 bytes and the identifier 4242 or 4243")]
    BadMessage,
}

/// Counters of the records of one epoch.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct EpochStats {
    /// Records encrypted with the sending keys of the epoch.
    pub sealed: u64,
    /// Records decrypted, each once.
    pub opened: u64,
    /// Records that the keys of the epoch did not decrypt.
    pub failed: u64,
    /// Records that were decrypted before, or are older than the replay window.
    pub replayed: u64,
    /// Records that were decrypted only by a record number far behind the highest one: by more than half of the range of the 16
    /// bits in the header.
    pub far_behind: u64,
}

/// Counters of the protection of an association.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProtectionStats {
    /// True if only packets with a DTLS chunk are accepted.
    pub required: bool,
    /// Counters of each epoch whose keys are installed. [`Discards`](crate::Discards) counts all other discarded
    /// packets.
    pub epochs: Vec<(Epoch, EpochStats)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(role: Role) -> Agreed {
        let (own, peer): (&[u8], &[u8]) = match role {
            Role::Client => (b"client's", b"server's"),
            Role::Server => (b"server's", b"client's"),
        };
        Agreed { role, method: METHOD_TLS13, own_parameter: own.into(), peer_parameter: peer.into() }
    }

    #[test]
    fn both_ends_export_by_the_same_contexts() {
        let (client, server) = (agreed(Role::Client), agreed(Role::Server));
        let mut seen = Vec::new();
        for direction in [KeyDirection::ClientToServer, KeyDirection::ServerToClient] {
            for part in [KeyPart::Key, KeyPart::NumberKey, KeyPart::Iv] {
                let context = client.exporter_context(direction, part);
                assert_eq!(context, server.exporter_context(direction, part));
                assert!(!seen.contains(&context), "each export has a context of its own");
                seen.push(context);
            }
        }
        assert_eq!(seen[0], b"\0\0\0client'sserver's");
        assert_eq!(seen[5], b"\x01\0\x02client'sserver's");
    }

    #[test]
    fn what_one_end_sends_the_other_receives() {
        let (client, server) = (agreed(Role::Client), agreed(Role::Server));
        assert_eq!((client.sends(), client.receives()), (server.receives(), server.sends()));
        assert_ne!(client.sends(), client.receives());
        assert_eq!(Role::Client.other(), Role::Server);
    }

    #[test]
    fn suites_have_their_numbers_and_lengths() {
        for (suite, id, len) in [
            (Suite::Aes128Gcm, 0x1301, 16),
            (Suite::Aes256Gcm, 0x1302, 32),
            (Suite::ChaCha20Poly1305, 0x1303, 32),
        ] {
            assert_eq!((suite.id(), suite.key_len(), Suite::of_id(id)), (id, len, Some(suite)));
        }
        assert_eq!(Suite::of_id(0x1304), None, "CCM has limits that a fast path meets at once");
    }
}
