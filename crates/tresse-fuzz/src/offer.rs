//! Target for the negotiation of encryption: DTLS Key Management parameters with any content, in an INIT to an endpoint
//! with any settings. The outcome must be that of draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1, which is computed here
//! independently, or an ABORT with a suitable cause.

use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::protection::{Agreed, METHOD_PRE_SHARED, METHOD_TLS13, Role};
use tresse_proto::{AssociationConfig, SendOptions, StreamId};
use tresse_wire::{CauseCode, ChecksumRule, Chunk, CookieEcho, KeyRoles, Packet, Param, Params};

use crate::scene::Scene;
use crate::source::Source;

/// The offer of one side.
struct Offer {
    tie_breaker: u32,
    client: bool,
    server: bool,
    methods: Vec<u8>,
}

/// Outcome of two offers.
#[derive(Debug)]
enum Outcome {
    Protected(Role, u8),
    /// ABORT with one of these causes if encryption is required, otherwise an association in the clear.
    Apart(Vec<CauseCode>),
}

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let settings = source.byte();
    let config = AssociationConfig::default().with(|c| {
        c.encryption = [Encryption::Require, Encryption::Offer, Encryption::Off][usize::from(settings % 3)];
        c.key_role = [KeyRole::Any, KeyRole::Client, KeyRole::Server][usize::from(settings / 3 % 3)];
        c.key_management = [KeyManagement::Tls13, KeyManagement::PreShared][usize::from(settings / 9 % 2)];
    });
    let (encryption, role, management) = (config.encryption, config.key_role, config.key_management);
    let mut scene = Scene::new(config);
    let raw = source.rest();
    let mut params: Vec<Param<'_>> = Params::Wire(raw).iter().flatten().collect();
    params.retain(|param| matches!(param, Param::DtlsKeyManagement { .. }));
    scene.send_init(&params);
    assert!(scene.association().is_none(), "an INIT made an association");
    // A list that is too long is ignored; of several valid parameters the first counts.
    let theirs = params.iter().find_map(|param| match param {
        Param::DtlsKeyManagement { methods, .. } if methods.len() <= 256 => Some(*param),
        _ => None,
    });
    let outcome = match (encryption, theirs.map(|param| offer(&param))) {
        (Encryption::Off, _) => Outcome::Apart(Vec::new()),
        (_, None) => Outcome::Apart(vec![CauseCode::MISSING_DTLS_CHUNK]),
        (_, Some(theirs)) => agree(&own(&scene.sent, role, management), &theirs),
    };
    let cookie = scene.cookie().to_vec();
    if cookie.is_empty() {
        return refused(&scene, encryption, &outcome);
    }
    scene.hear(&[Chunk::CookieEcho(CookieEcho { cookie: &cookie })]);
    let now = scene.now;
    let protected = {
        let mut association = scene.association().expect("a cookie as it was given makes one");
        // The message waits for keys, or is sent at once.
        let _ = association.send(now, SendOptions::on(StreamId(1)), vec![0; 100].into());
        association.protection_stats().is_some()
    };
    scene.settle();
    match (&outcome, &scene.agreed) {
        (Outcome::Protected(role, method), Some(agreed)) => {
            assert_eq!((agreed.role, agreed.method), (*role, *method), "{agreed:?}");
            is_as_it_came(agreed, theirs);
            assert!(protected && !sends_data(&scene), "data in the clear before there are keys");
        }
        (Outcome::Apart(_), None) => assert!(!protected && encryption != Encryption::Require),
        other => panic!("{other:?}"),
    }
}

fn offer(param: &Param<'_>) -> Offer {
    match *param {
        Param::DtlsKeyManagement { tie_breaker, flags, methods } => Offer {
            tie_breaker,
            client: flags & KeyRoles::CLIENT != 0,
            server: flags & KeyRoles::SERVER != 0,
            methods: methods.to_vec(),
        },
        _ => panic!("another parameter"),
    }
}

/// Returns the endpoint's offer: that of its INIT ACK; or that of its settings if it refused the INIT and drew no number.
fn own(sent: &[u8], role: KeyRole, management: KeyManagement) -> Offer {
    let method = if management == KeyManagement::Tls13 { METHOD_TLS13 } else { METHOD_PRE_SHARED };
    let offered = parameters(sent).first().map(|raw| {
        let param = Params::Wire(raw).iter().flatten().next();
        offer(&param.expect("a parameter that was read before"))
    });
    let tie_breaker = offered.as_ref().map_or(0, |offered| offered.tie_breaker);
    let (client, server) = (role != KeyRole::Server, role != KeyRole::Client);
    if let Some(offered) = offered {
        assert_eq!((offered.client, offered.server, &*offered.methods), (client, server, &[method][..]));
    }
    Offer { tie_breaker, client, server, methods: vec![method] }
}

/// Returns the DTLS Key Management parameters of an INIT ACK as bytes.
fn parameters(packet: &[u8]) -> Vec<Vec<u8>> {
    let Ok(packet) = Packet::parse(packet, ChecksumRule::Verify) else { return Vec::new() };
    let Some(Ok(Chunk::InitAck(init))) = packet.chunks().next() else { return Vec::new() };
    let params = init.params.iter().flatten();
    let about_keys = params.filter(|param| matches!(param, Param::DtlsKeyManagement { .. }));
    about_keys.filter_map(|param| param.to_bytes().ok().map(Vec::from)).collect()
}

fn agree(own: &Offer, theirs: &Offer) -> Outcome {
    let mut causes = Vec::new();
    let roles = [
        (own.client && theirs.server).then_some(Role::Client),
        (own.server && theirs.client).then_some(Role::Server),
    ];
    let role = match roles {
        [Some(role), None] | [None, Some(role)] => Some(role),
        [None, None] => {
            causes.push(CauseCode::INCOMPATIBLE_KEY_ROLES);
            None
        }
        _ if own.tie_breaker == theirs.tie_breaker => {
            causes.push(CauseCode::TIE_BREAKER_COLLISION);
            None
        }
        _ => Some(if own.tie_breaker > theirs.tie_breaker { Role::Server } else { Role::Client }),
    };
    // This side offers one method only, so the preferences of both lists cannot conflict.
    let method = own.methods.iter().copied().find(|method| theirs.methods.contains(method));
    if method.is_none() {
        causes.push(CauseCode::NO_COMMON_KEY_MANAGEMENT);
    }
    match (role, method) {
        (Some(role), Some(method)) => Outcome::Protected(role, method),
        _ => Outcome::Apart(causes),
    }
}

/// Checks that the INIT was refused for a correct reason.
fn refused(scene: &Scene, encryption: Encryption, outcome: &Outcome) {
    let packet = Packet::parse(&scene.sent, ChecksumRule::Verify).expect("an answer");
    let Some(Ok(Chunk::Abort(abort))) = packet.chunks().next() else { panic!("neither cookie nor ABORT") };
    let cause = abort.causes.iter().flatten().next().map(|cause| cause.code());
    match outcome {
        // Both sides have the role `any`. The endpoint's tie breaker is not known here: it may equal the peer's.
        Outcome::Protected(..) => assert_eq!(cause, Some(CauseCode::TIE_BREAKER_COLLISION)),
        Outcome::Apart(causes) => {
            assert_eq!(encryption, Encryption::Require, "refused with {cause:?} although it is not required");
            assert!(cause.is_some_and(|cause| causes.contains(&cause)), "{cause:?} for {causes:?}");
        }
    }
}

/// Checks that the parameter from which keys are derived equals the peer's parameter byte by byte.
fn is_as_it_came(agreed: &Agreed, theirs: Option<Param<'_>>) {
    let raw = theirs.and_then(|param| param.to_bytes().ok());
    assert_eq!(Some(&agreed.peer_parameter), raw.as_ref());
}

fn sends_data(scene: &Scene) -> bool {
    scene.all_sent.iter().any(|packet| {
        let packet = Packet::parse(packet, ChecksumRule::Verify).expect("a packet that can be read");
        packet.chunks().flatten().any(|chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_)))
    })
}
