//! Reasons for which keys, certificates, names and secrets are refused.

/// Reason for which there is no identity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// There is no private key in the text.
    #[error("there is no private key in PEM, as `tresse keygen` writes it")]
    NoKey,
    /// The key is of a kind that cannot be used.
    #[error("the private key is none of Ed25519, ECDSA (P-256, P-384) and RSA")]
    UnknownKind,
    /// There is no certificate in the text, or one that cannot be read.
    #[error("there is no chain of certificates in PEM")]
    NoCertificate,
    /// The first certificate is for another key.
    #[error("the first certificate is not for the private key")]
    OtherCertificate,
    /// Certificates are required, but the identity has none.
    #[error("authorities are trusted, and the own identity has no certificate of one")]
    NotCertified,
    /// The text has no certificate of an authority.
    #[error("there is no certificate of an authority in PEM")]
    NoAuthority,
    /// No certificate can have this name.
    #[error("\"{name}\" is not a DNS name or an IP address")]
    NoName {
        /// The name.
        name: String,
    },
    /// The secret is so short that it can be guessed.
    #[error("the secret is too short: at least {least} bytes, such as of `openssl rand -hex 16`", least = SHORTEST_SECRET)]
    ShortSecret,
    /// The operating system provides no random numbers.
    #[error("no random numbers from the operating system")]
    NoRandomness,
}

/// Shortest secret in bytes. Sixteen hexadecimal digits are 64 bits, so guessing takes up to 2^64 runs of Argon2id, half a second each.
pub(super) const SHORTEST_SECRET: usize = 16;
