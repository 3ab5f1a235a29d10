//! DTLS Key Management parameters of both sides, and the negotiated role and method
//! (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1).

use tresse_wire::{KeyRoles, Param};

use crate::config::{AssociationConfig, Encryption, KeyManagement, KeyRole};
use crate::interface::protection::{Agreed, METHOD_PRE_SHARED, METHOD_TLS13, Role};

/// Longest accepted parameter of a peer, in bytes: a list of all methods fits.
const LONGEST_PARAMETER: usize = 4 + 5 + 256;

/// Reason for which a negotiation fails.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NegotiationFault {
    /// No method is in both lists.
    NoCommonMethod,
    /// Both sides can be client only, or server only, or one side can be neither.
    Roles,
    /// Both sides can be either, and drew the same tie-breaker.
    TieBreaker,
}

/// Returns this side's parameter, encoded; `None` if it is not offered. The tie-breaker is derived from `random`, so that a
/// repeated INIT, and the INIT ACK to a peer that sets up at the same time, contain the same parameter.
pub(crate) fn own_parameter(config: &AssociationConfig, random: &[u8]) -> Option<Box<[u8]>> {
    if config.encryption == Encryption::Off {
        return None;
    }
    let flags = match config.key_role {
        KeyRole::Any => KeyRoles::CLIENT | KeyRoles::SERVER,
        KeyRole::Client => KeyRoles::CLIENT,
        KeyRole::Server => KeyRoles::SERVER,
    };
    let methods = match config.key_management {
        KeyManagement::Tls13 => &[METHOD_TLS13],
        KeyManagement::PreShared => &[METHOD_PRE_SHARED],
    };
    let tie_breaker = random.first_chunk().map_or(0, |drawn| u32::from_be_bytes(*drawn));
    Param::DtlsKeyManagement { tie_breaker, flags, methods }.to_bytes().ok()
}

/// Returns the peer's parameter as received, if `param` is one and is not too long.
pub(crate) fn peer_parameter(param: &Param<'_>) -> Option<Box<[u8]>> {
    match param {
        Param::DtlsKeyManagement { .. } if param.wire_len() <= LONGEST_PARAMETER => param.to_bytes().ok(),
        _ => None,
    }
}

/// Fields of a parameter.
struct OfferFields<'a> {
    tie_breaker: u32,
    client: bool,
    server: bool,
    methods: &'a [u8],
}

impl<'a> OfferFields<'a> {
    /// Reads an encoded parameter; a malformed one offers nothing.
    fn read(raw: &'a [u8]) -> Self {
        let (tie_breaker, flags, methods) = match raw {
            [_, _, _, _, t0, t1, t2, t3, flags, methods @ ..] => {
                (u32::from_be_bytes([*t0, *t1, *t2, *t3]), *flags, methods)
            }
            _ => (0, 0, &[][..]),
        };
        let (client, server) = (flags & KeyRoles::CLIENT != 0, flags & KeyRoles::SERVER != 0);
        OfferFields { tie_breaker, client, server, methods }
    }
}

/// Negotiates from the parameters of both sides, for the side with the parameter `own`.
///
/// # Errors
/// The reason of failure; it is the same for both sides.
pub(crate) fn agree(own: &[u8], peer: &[u8]) -> Result<Agreed, NegotiationFault> {
    let (mine, theirs) = (OfferFields::read(own), OfferFields::read(peer));
    let role = match (mine.client && theirs.server, mine.server && theirs.client) {
        (true, false) => Role::Client,
        (false, true) => Role::Server,
        (false, false) => return Err(NegotiationFault::Roles),
        (true, true) if mine.tie_breaker > theirs.tie_breaker => Role::Server,
        (true, true) if mine.tie_breaker < theirs.tie_breaker => Role::Client,
        (true, true) => return Err(NegotiationFault::TieBreaker),
    };
    let (client, server) = match role {
        Role::Client => (mine, theirs),
        Role::Server => (theirs, mine),
    };
    let method = server.methods.iter().copied().find(|method| client.methods.contains(method));
    let method = method.ok_or(NegotiationFault::NoCommonMethod)?;
    Ok(Agreed { role, method, own_parameter: own.into(), peer_parameter: peer.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(tie_breaker: u32, flags: u8, methods: &[u8]) -> Box<[u8]> {
        Param::DtlsKeyManagement { tie_breaker, flags, methods }.to_bytes().expect("short")
    }

    const C: u8 = KeyRoles::CLIENT;
    const S: u8 = KeyRoles::SERVER;

    #[test]
    fn each_pair_of_roles_comes_to_one_that_both_see() {
        for (mine, theirs, role) in [
            (C, S, Ok(Role::Client)),
            (S, C, Ok(Role::Server)),
            (C, C | S, Ok(Role::Client)),
            (S, C | S, Ok(Role::Server)),
            (C | S, C, Ok(Role::Server)),
            (C | S, S, Ok(Role::Client)),
            (C | S, C | S, Ok(Role::Server)),
            (C, C, Err(NegotiationFault::Roles)),
            (S, S, Err(NegotiationFault::Roles)),
            (0, C | S, Err(NegotiationFault::Roles)),
            (C | S, 0, Err(NegotiationFault::Roles)),
        ] {
            let (own, peer) = (raw(9, mine, &[192]), raw(5, theirs, &[192]));
            let here = agree(&own, &peer).map(|agreed| agreed.role);
            let there = agree(&peer, &own).map(|agreed| agreed.role.other());
            assert_eq!((here, there), (role, role), "{mine} and {theirs}");
        }
        let same = agree(&raw(7, C | S, &[192]), &raw(7, C | S, &[192]));
        assert_eq!(same.map(|agreed| agreed.role), Err(NegotiationFault::TieBreaker));
        let single = agree(&raw(7, C, &[192]), &raw(7, S, &[192]));
        assert!(single.is_ok(), "ties matter only where both could be either");
    }

    #[test]
    fn the_server_prefers() {
        let (client, server) = (raw(1, C, &[7, 192, 0]), raw(2, S, &[5, 0, 192]));
        assert_eq!(agree(&client, &server).map(|agreed| agreed.method), Ok(0));
        assert_eq!(agree(&server, &client).map(|agreed| agreed.method), Ok(0));
        let other = raw(2, S, &[1]);
        assert_eq!(agree(&client, &other), Err(NegotiationFault::NoCommonMethod));
        assert_eq!(agree(&client, &[0, 1, 2]), Err(NegotiationFault::Roles));
    }

    #[test]
    fn what_is_kept_of_a_peer_is_what_came() {
        let param = Param::DtlsKeyManagement { tie_breaker: 1, flags: 0xFF, methods: &[3; 256] };
        let raw = peer_parameter(&param).expect("every method");
        assert_eq!((raw.len(), raw[8]), (265, 0xFF), "bits without a meaning, too");
        let longer = Param::DtlsKeyManagement { tie_breaker: 1, flags: 0, methods: &[3; 257] };
        assert_eq!(peer_parameter(&longer), None);
        assert_eq!(peer_parameter(&Param::EcnCapable), None);
    }

    #[test]
    fn what_is_offered_follows_from_the_settings() {
        let mut config = AssociationConfig::default();
        assert_eq!(own_parameter(&config, &[9; 32]), None);
        config.encryption = Encryption::Require;
        config.key_role = KeyRole::Server;
        let raw = own_parameter(&config, &[9; 32]);
        assert_eq!(raw.as_deref(), Some(&[0x80, 6, 0, 10, 9, 9, 9, 9, 2, 192][..]));
    }
}
