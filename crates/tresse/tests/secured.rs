//! Encrypted associations over loopback: with peers that are known, with strangers, and with new keys under load.

#![allow(missing_docs, reason = "a test")]

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::timeout;
use tresse::security::{Identity, Peers, Rekeying, Security, SecurityFault};
use tresse::{
    Association, AssociationConfig, AssociationId, AssociationStats, ConnectError, Endpoint, EndpointConfig,
    PathStats, Peer, Registry, SendOptions, StreamId, Tap, Tapped,
};

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

fn here() -> Vec<IpAddr> {
    vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])]
}

fn identity() -> Identity {
    Identity::from_pem(Identity::generate_pem().expect("random numbers").as_bytes()).expect("a key")
}

fn pinned(own: &Identity, peer: &Identity) -> Security {
    Security::pinned(own, &Peers::new([peer.fingerprint()])).expect("sound")
}

fn config() -> AssociationConfig {
    AssociationConfig::preset("cmt").expect("a preset")
}

fn listening() -> EndpointConfig {
    EndpointConfig::listening(7)
}

fn server(security: Security) -> Endpoint {
    let security = Arc::new(security);
    Endpoint::bind_secured(&here(), 0, listening(), config(), Registry::default(), &security)
        .expect("a free port")
}

fn client(security: Security) -> Endpoint {
    let builder = Endpoint::builder().local_addresses(here()).association_config(config());
    builder.security(Arc::new(security)).bind().expect("a free port")
}

fn place(server: &Endpoint) -> Peer {
    Peer::new(here(), 7).with_udp_port(server.udp_port())
}

async fn connected(client: &Endpoint, server: &Endpoint) -> (Association, Association) {
    let both = async { tokio::join!(client.connect(place(server)), server.accept()) };
    let (called, accepted) = timeout(FOREVER, both).await.expect("an answer");
    (called.expect("known to each other"), accepted.expect("the endpoint is open"))
}

/// Sends numbered messages until told to stop, and returns how many.
async fn pour(association: Association, mut stop: tokio::sync::oneshot::Receiver<()>) -> u32 {
    let mut count = 0_u32;
    while stop.try_recv().is_err() {
        let mut message = vec![0xa5; 20_000];
        message[..4].copy_from_slice(&count.to_be_bytes());
        association.send(SendOptions::on(StreamId(1)), message).await.expect("an open association");
        count += 1;
    }
    association.shutdown().await.expect("all delivered");
    count
}

#[tokio::test]
async fn peers_that_know_each_other_talk_over_both_paths_and_everything_is_sealed() {
    let [caller, called] = [identity(), identity()];
    let (client, server) = (client(pinned(&caller, &called)), server(pinned(&called, &caller)));
    let (here, there) = connected(&client, &server).await;
    assert_eq!(here.peer_identity().expect("proved").fingerprint, called.fingerprint());
    assert_eq!(there.peer_identity().expect("proved").fingerprint, caller.fingerprint());
    assert_eq!((here.key_generation(), there.key_generation()), (1, 1));
    let sending = async {
        for _ in 0..400 {
            here.send(SendOptions::on(StreamId(2)), vec![7; 10_000]).await.expect("open");
        }
        here.shutdown().await.expect("all delivered");
    };
    let receiving = async {
        let mut count = 0;
        while let Some(message) = there.recv().await.expect("a good end") {
            assert_eq!(message.payload.into_bytes(), vec![7; 10_000]);
            count += 1;
        }
        count
    };
    let ((), count) = timeout(FOREVER, async { tokio::join!(sending, receiving) }).await.expect("an end");
    assert_eq!(count, 400);
    assert!(there.path_stats().len() == 2);
    let stats = there.protection_stats().expect("encrypted");
    assert!(stats.required && stats.epochs[0].1.opened > 400, "{stats:?}");
}

/// Chunk types of each packet that leaves an endpoint.
#[derive(Clone, Default)]
struct Departures(Arc<Mutex<Vec<Vec<u8>>>>);

impl Tap for Departures {
    fn on_sent(&mut self, _: Duration, packet: &Tapped<'_>) {
        let (mut kinds, mut rest) = (Vec::new(), &packet.packet[12..]);
        while let [kind, _, high, low, ..] = *rest {
            kinds.push(kind);
            let len = usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4);
            rest = rest.get(len.max(4)..).unwrap_or_default();
        }
        self.0.lock().expect("no holder panics").push(kinds);
    }

    fn on_received(&mut self, _: Duration, _: &Tapped<'_>) {}

    fn on_state(&mut self, _: Duration, _: AssociationId, _: &AssociationStats, _: &[PathStats]) {}
}

#[tokio::test]
async fn a_key_message_leaves_with_the_acknowledgement_of_the_one_before() {
    // SACK and NR-SACK.
    let reports = |kind: u8| kind == 3 || kind == 16;
    let [caller, called] = [identity(), identity()];
    // A machine that pauses sends nothing again.
    let patient = config().with(|c| {
        let minute = Duration::from_secs(60);
        (c.rto_initial, c.rto_min, c.rto_max) = (minute, minute, minute);
    });
    let bind = |security, endpoint| {
        let builder = Endpoint::builder().local_addresses([IpAddr::from([127, 0, 0, 1])]);
        let builder = builder.association_config(patient.clone()).endpoint_config(endpoint);
        builder.security(Arc::new(security)).bind().expect("a free port")
    };
    let client = bind(pinned(&caller, &called), EndpointConfig::default());
    let server = bind(pinned(&called, &caller), listening());
    let departures = [Departures::default(), Departures::default()];
    client.watch(Box::new(departures[0].clone()));
    server.watch(Box::new(departures[1].clone()));
    let place = Peer::new(vec![IpAddr::from([127, 0, 0, 1])], 7).with_udp_port(server.udp_port());
    let both = async { tokio::join!(client.connect(place), server.accept()) };
    let (called, accepted) = timeout(FOREVER, both).await.expect("an answer");
    called.expect("known to each other");
    accepted.expect("the endpoint is open");
    for departures in departures {
        let packets = departures.0.lock().expect("no holder panics");
        assert!(packets.iter().any(|kinds| reports(kinds[0]) && kinds.len() > 1), "{packets:?}");
        assert!(!packets.iter().any(|kinds| reports(kinds[0]) && kinds.len() == 1), "{packets:?}");
    }
}

#[tokio::test]
async fn keys_change_under_load_and_nothing_is_lost() {
    let rekeying =
        Rekeying::default().with(|r| (r.drain, r.shortest_drain) = (Duration::ZERO, Duration::ZERO));
    let [caller, called] = [identity(), identity()];
    let client = client(pinned(&caller, &called).with_rekeying(rekeying.clone()));
    let server = server(pinned(&called, &caller).with_rekeying(rekeying));
    let (here, there) = connected(&client, &server).await;
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let sending = tokio::spawn(pour(here.clone(), stopped));
    let (mut next, mut stop) = (0_u32, Some(stop));
    let receiving = async {
        while let Some(message) = there.recv().await.expect("a good end") {
            let bytes = message.payload.into_bytes();
            assert_eq!((bytes.len(), &bytes[..4]), (20_000, next.to_be_bytes().as_slice()));
            next += 1;
            // Each side asks in turn; a wish while keys are being changed is none.
            match next % 100 {
                0 => here.renew_keys(),
                50 => there.renew_keys(),
                _ => {}
            }
            if here.key_generation() > 5
                && let Some(stop) = stop.take()
            {
                let _ = stop.send(());
            }
        }
    };
    timeout(FOREVER, receiving).await.expect("new keys, again and again");
    assert_eq!(sending.await.expect("no panic"), next);
    assert!(there.key_generation() > 5);
}

#[tokio::test]
async fn a_stranger_is_told_no_more_than_that_and_is_never_accepted() {
    let [known, called, stranger] = [identity(), identity(), identity()];
    let server = server(pinned(&called, &known));
    let strange = client(pinned(&stranger, &called));
    let refused = timeout(FOREVER, strange.connect(place(&server))).await.expect("an answer");
    assert_eq!(refused.err(), Some(ConnectError::NotAuthenticated(SecurityFault::Refused)));

    // A server that is not the one that was meant.
    let mistaken = client(pinned(&known, &stranger));
    let refused = timeout(FOREVER, mistaken.connect(place(&server))).await.expect("an answer");
    assert_eq!(refused.err(), Some(ConnectError::NotAuthenticated(SecurityFault::Stranger)));

    // The first to be accepted is the one that is known.
    let client = client(pinned(&known, &called));
    let (here, there) = connected(&client, &server).await;
    assert_eq!(there.peer_identity().expect("proved").fingerprint, known.fingerprint());
    drop((here, there));
    timeout(FOREVER, server.wait_idle()).await.expect("nothing is left of strangers");
    assert_eq!(server.strangers(), 1);
}

#[tokio::test]
async fn sealed_and_clear_endpoints_do_not_meet() {
    let [caller, called] = [identity(), identity()];
    let sealed = server(pinned(&called, &caller));
    let clear = Endpoint::bind(&here(), 0, EndpointConfig::default(), config()).expect("a free port");
    let refused = timeout(FOREVER, clear.connect(place(&sealed))).await.expect("an answer");
    assert!(matches!(refused, Err(ConnectError::Ended(_))));

    let clear = Endpoint::bind(&here(), 0, listening(), config()).expect("a free port");
    let sealed = client(pinned(&caller, &called));
    let refused = timeout(FOREVER, sealed.connect(place(&clear))).await.expect("an answer");
    assert!(matches!(refused, Err(ConnectError::Ended(_))));
}

#[tokio::test]
async fn encryption_without_keys_is_refused_and_not_left_out() {
    let config = config().with(|c| c.encryption = tresse::config::Encryption::Require);
    let refused = Endpoint::bind(&here(), 0, EndpointConfig::default(), config).expect_err("no keys");
    assert!(refused.to_string().contains("encryption needs keys"), "{refused}");
}

#[tokio::test]
async fn a_peer_that_is_removed_loses_its_association_with_the_next_keys() {
    let rekeying =
        Rekeying::default().with(|r| (r.drain, r.shortest_drain) = (Duration::ZERO, Duration::ZERO));
    let [caller, called] = [identity(), identity()];
    let peers = Peers::new([caller.fingerprint()]);
    let client = client(pinned(&caller, &called).with_rekeying(rekeying.clone()));
    let server = server(Security::pinned(&called, &peers).expect("sound").with_rekeying(rekeying));
    let (here, there) = connected(&client, &server).await;
    peers.replace([]);
    there.renew_keys();
    timeout(FOREVER, async { tokio::join!(here.closed(), there.closed()) }).await.expect("an end");
    assert_eq!(there.security_fault(), Some(SecurityFault::IdentityChanged));
}

#[tokio::test]
async fn two_hosts_need_one_secret_and_both_may_call_at_once() {
    let secret = || Arc::new(Security::shared_secret(b"one secret of two hosts").expect("long enough"));
    let bind = || {
        let security = secret();
        Endpoint::bind_secured(&here(), 0, listening(), config(), Registry::default(), &security)
            .expect("a port")
    };
    let (one, two) = (bind(), bind());
    let both = async { tokio::join!(one.connect(place(&two)), two.accept()) };
    let (called, accepted) = timeout(FOREVER, both).await.expect("an answer");
    assert!(
        called.expect("known").peer_identity().is_some() && accepted.expect("open").peer_identity().is_some()
    );
}

#[tokio::test]
async fn an_association_that_is_shut_down_while_keys_change_ends_well() {
    let rekeying =
        Rekeying::default().with(|r| (r.drain, r.shortest_drain) = (Duration::ZERO, Duration::ZERO));
    let [caller, called] = [identity(), identity()];
    let client = client(pinned(&caller, &called).with_rekeying(rekeying.clone()));
    let server = server(pinned(&called, &caller).with_rekeying(rekeying));
    for _ in 0..5 {
        let (here, there) = connected(&client, &server).await;
        here.send(SendOptions::on(StreamId(1)), "the last word").await.expect("open");
        here.renew_keys();
        let receiving = async {
            let last = there.recv().await.expect("a good end").expect("a message");
            assert_eq!(last.payload.into_bytes(), b"the last word".as_slice());
            assert!(there.recv().await.expect("a good end").is_none());
        };
        let both = async { tokio::join!(here.shutdown(), receiving) };
        timeout(FOREVER, both).await.expect("an end").0.expect("all delivered");
    }
}

#[tokio::test]
async fn new_settings_of_an_endpoint_leave_its_encryption_as_it_is() {
    let [caller, called] = [identity(), identity()];
    let (client, server) = (client(pinned(&caller, &called)), server(pinned(&called, &caller)));
    server.set_template(AssociationConfig::default().with(|c| c.inbound_streams = 2)).expect("sound");
    let plain = Endpoint::bind(&here(), 0, EndpointConfig::default(), config()).expect("a free port");
    let refused = timeout(FOREVER, plain.connect(place(&server))).await.expect("an answer");
    assert!(matches!(refused, Err(ConnectError::Ended(_))), "{refused:?}");
    let (ours, _theirs) = connected(&client, &server).await;
    assert_eq!(ours.key_generation(), 1);
    assert_eq!(ours.streams().0, 2);

    let mut required = config();
    required.set("encryption", "require").expect("a setting");
    let error = plain.set_template(required).expect_err("it has no keys");
    assert_eq!(
        error.to_string(),
        "setting \"encryption\": the endpoint has no keys for encryption, only off is possible"
    );
}

#[tokio::test]
async fn an_endpoint_that_listens_later_has_encrypted_associations_too() {
    let [caller, called] = [identity(), identity()];
    let builder = Endpoint::builder().local_addresses(here()).association_config(config()).port(7);
    let server = builder.security(Arc::new(pinned(&called, &caller))).bind().expect("a free port");
    let client = client(pinned(&caller, &called));
    server.set_listening(true);
    let (ours, theirs) = connected(&client, &server).await;
    assert_eq!((ours.key_generation(), theirs.key_generation()), (1, 1));
}
