//! The named choices of protection by DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04).

use super::switch::choices;

choices! {
    /// Encryption and authentication of all packets of an association.
    pub enum Encryption {
        /// Everything is in the clear.
        Off = "off",
        /// With a peer that supports it, all packets are protected, as with `require`; otherwise all are in the
        /// clear. An attacker that can change INIT can cause that: this is safe from passive attackers only.
        Offer = "offer",
        /// No association without it.
        Require = "require",
    }
}

choices! {
    /// Way in which both ends get their keys.
    pub enum KeyManagement {
        /// TLS 1.3 in user messages (method 192), by the driver of the association.
        Tls13 = "tls13",
        /// Keys that both ends have already (method 0).
        PreShared = "pre_shared",
    }
}

choices! {
    /// Role in the key management that an end accepts.
    pub enum KeyRole {
        /// Either role: the end with the larger tie breaker is the server.
        Any = "any",
        /// Only the client, which begins the handshake.
        Client = "client",
        /// Only the server.
        Server = "server",
    }
}
