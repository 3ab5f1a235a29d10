//! Certificates of authorities instead of pinned keys.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("sound");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("sound")
}

fn member(of: &CertifiedIssuer<'_, KeyPair>, name: &str) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("sound");
    let certificate = params.signed_by(&key, of).expect("sound").pem();
    let identity = Identity::from_pem(key.serialize_pem().as_bytes()).expect("a key");
    identity.with_certificates(certificate.as_bytes()).expect("its certificate")
}

fn one(name: &str) -> Names {
    Names::OneOf(vec![name.to_owned()])
}

#[test]
fn members_of_an_authority_agree_by_name() {
    let ca = authority();
    let [client, server] = ["client.example", "server.example"].map(|name| member(&ca, name));
    let security =
        |own: &Identity, names: &Names| Security::certified(own, ca.pem().as_bytes(), names).expect("sound");
    let mut pair = Pair::new([security(&client, &one("server.example")), security(&server, &Names::Any)]);
    pair.run();
    pair.assert_agreed(3);
    let peer = pair.client.manager.peer().expect("proved");
    assert_eq!(peer.fingerprint, server.fingerprint());
    assert!(peer.certificate.is_some());
    pair.advance(Duration::from_secs(3_600));
    pair.assert_agreed(4);
}

#[test]
fn members_of_another_name_or_authority_are_strangers() {
    let [ca, other] = [authority(), authority()];
    let [client, server, far] =
        [(&ca, "client.example"), (&ca, "server.example"), (&other, "server.example")]
            .map(|(ca, name)| member(ca, name));
    let security =
        |own: &Identity, names: &Names| Security::certified(own, ca.pem().as_bytes(), names).expect("sound");
    let cases = [
        (
            "wrong name of the server",
            security(&client, &one("elsewhere.example")),
            security(&server, &Names::Any),
        ),
        (
            "wrong name of the client",
            security(&client, &Names::Any),
            security(&server, &one("elsewhere.example")),
        ),
        ("wrong authority", security(&client, &one("server.example")), security(&far, &Names::Any)),
        ("client of another one", security(&far, &Names::Any), security(&server, &Names::Any)),
    ];
    for (what, client, server) in cases {
        let mut pair = Pair::new([client, server]);
        pair.advance(Duration::from_secs(60));
        let mut faults = [&pair.client, &pair.server].map(|end| end.manager.fault().cloned());
        faults.sort_by_key(|fault| *fault == Some(SecurityFault::Refused));
        assert_eq!(faults, [Some(SecurityFault::Stranger), Some(SecurityFault::Refused)], "{what}");
        assert!(pair.client.aborted && pair.server.aborted, "{what}");
    }
}

#[test]
fn an_identity_without_a_fitting_certificate_is_refused_at_once() {
    let ca = authority();
    let bare = identity();
    let error = Security::certified(&bare, ca.pem().as_bytes(), &Names::Any).expect_err("no certificate");
    assert_eq!(error, super::super::IdentityError::NotCertified);
    let member = member(&ca, "server.example");
    assert!(Security::certified(&member, b"nothing", &Names::Any).is_err());
    assert!(Security::certified(&member, ca.pem().as_bytes(), &Names::OneOf(Vec::new())).is_err());
    assert!(Security::certified(&member, ca.pem().as_bytes(), &one("not a name")).is_err());
    assert!(bare.with_certificates(ca.pem().as_bytes()).is_err(), "the certificate of another key");
}

#[test]
fn a_side_with_keys_and_one_with_certificates_do_not_agree() {
    let ca = authority();
    let server = member(&ca, "server.example");
    let [client, _] = friends();
    let mut pair =
        Pair::new([client, Security::certified(&server, ca.pem().as_bytes(), &Names::Any).expect("sound")]);
    pair.advance(Duration::from_secs(60));
    assert!(pair.client.aborted && pair.server.aborted);
    assert!(pair.client.sending.is_none() && pair.server.sending.is_none());
}
