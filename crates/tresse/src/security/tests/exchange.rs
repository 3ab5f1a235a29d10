//! The key exchange of TLS: that of AWS-LC also resists quantum computers.

use rustls::NamedGroup;
use tresse_proto::protection::Role;

use super::super::tls::Session;
use super::friends;

/// Returns the key exchange at both ends of a handshake between sides that trust each other.
fn agreed() -> [Option<NamedGroup>; 2] {
    let [client, server] = friends();
    let begin = |security: &super::Security, role| Session::begin(&security.tls, role, security.raw);
    let mut ends = [
        begin(&client, Role::Client).unwrap_or_else(|_| panic!("a client")),
        begin(&server, Role::Server).unwrap_or_else(|_| panic!("a server")),
    ];
    for turn in 0..4 {
        let records = ends[turn % 2].take_output();
        ends[(turn + 1) % 2].feed(&records).expect("friends");
    }
    assert!(ends.iter().all(Session::is_complete));
    ends.map(|end| end.key_exchange())
}

#[cfg(feature = "aws-lc-rs")]
#[test]
fn keys_are_exchanged_by_ml_kem_and_x25519_together() {
    assert_eq!(agreed(), [Some(NamedGroup::X25519MLKEM768); 2]);
}

#[cfg(not(feature = "aws-lc-rs"))]
#[test]
fn keys_are_exchanged_by_x25519() {
    assert_eq!(agreed(), [Some(NamedGroup::X25519); 2]);
}
