//! Messages that an application gives before the set-up has ended, over real sockets on one host.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

mod relay;

use std::net::IpAddr;
use std::time::Duration;

use relay::Relay;
use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, CloseReason, ConnectError, Ended, Endpoint, EndpointConfig, Event, Peer,
    SendError, SendOptions, StreamId,
};

const PORT: u16 = 5001;
/// The type of INIT ACK (RFC 9260 §3.3.3).
const INIT_ACK: u8 = 2;

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

/// Does not give up, however slow the machine is.
fn settings() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    let changes = [
        ("rto_initial", "100ms"),
        ("rto_min", "50ms"),
        ("rto_max", "500ms"),
        ("max_init_retransmits", "10000"),
    ];
    for (name, value) in changes {
        config.set(name, value).expect("a switch");
    }
    config
}

fn host(address: &str) -> Vec<IpAddr> {
    vec![address.parse().expect("an address")]
}

fn listener(settings: AssociationConfig) -> Endpoint {
    let config = EndpointConfig::listening(PORT);
    Endpoint::bind(&host("127.0.0.2"), 0, config, settings).expect("loopback addresses are free")
}

fn caller(settings: AssociationConfig) -> Endpoint {
    let config = EndpointConfig::default();
    Endpoint::bind(&host("127.0.0.1"), 0, config, settings).expect("loopback addresses are free")
}

fn peer(udp_port: u16) -> Peer {
    Peer::new(host("127.0.0.2"), PORT).with_udp_port(udp_port)
}

async fn next(association: &Association) -> Vec<u8> {
    let message = timeout(FOREVER, association.recv()).await.expect("it arrives");
    message.expect("open").expect("not the end").payload.into_bytes().to_vec()
}

/// Nothing but INIT ACK comes back: what arrives nevertheless came with COOKIE ECHO.
#[tokio::test]
async fn what_is_sent_before_the_set_up_ends_arrives_with_its_third_packet() {
    let (client, server) = (caller(settings()), listener(settings()));
    let relay = Relay::start(&host("127.0.0.1"), &host("127.0.0.2"), server.udp_port()).await;
    relay.gag(&[INIT_ACK]);
    let connecting = client.begin(peer(relay.port())).expect("addresses that work");
    connecting.try_send(SendOptions::on(StreamId(1)), "early").expect("room");

    let theirs = timeout(FOREVER, server.accept()).await.expect("a set-up").expect("the runtime lives");
    assert_eq!(next(&theirs).await, b"early");

    relay.gag(&[]);
    let ours = timeout(FOREVER, connecting.established()).await.expect("an end").expect("an association");
    ours.send(SendOptions::on(StreamId(1)), "late").await.expect("open");
    assert_eq!(next(&theirs).await, b"late", "and the first one came once");
}

/// Much more than a packet takes along, and than the send buffer holds.
#[tokio::test]
async fn what_does_not_fit_into_the_third_packet_follows_in_order() {
    const COUNT: u8 = 50;
    let mut small = settings();
    small.set("send_buffer", "16KiB").expect("a switch");
    let (client, server) = (caller(small), listener(settings()));
    let connecting = client.begin(peer(server.udp_port())).expect("addresses that work");
    let sending = async {
        for number in 0..COUNT {
            connecting
                .send(SendOptions::default(), vec![number; 3_000])
                .await
                .expect("room, sooner or later");
        }
    };
    let receiving = async {
        let theirs = server.accept().await.expect("the runtime lives");
        for number in 0..COUNT {
            assert_eq!(next(&theirs).await, vec![number; 3_000]);
        }
        theirs
    };
    let (_theirs, ()) = timeout(FOREVER, async { tokio::join!(receiving, sending) }).await.expect("an end");
    timeout(FOREVER, connecting.established()).await.expect("an end").expect("an association");
}

#[tokio::test]
async fn without_the_setting_messages_wait_for_the_end_of_the_set_up() {
    let mut late = settings();
    late.set("data_with_cookie", "false").expect("a switch");
    let (client, server) = (caller(late), listener(settings()));
    let connecting = client.begin(peer(server.udp_port())).expect("addresses that work");
    let refused = connecting.try_send(SendOptions::default(), "early");
    assert!(matches!(refused, Err(SendError::NotOpen { .. })), "{refused:?}");
    let sent = timeout(FOREVER, connecting.send(SendOptions::default(), "late")).await.expect("an end");
    sent.expect("it is open by now");
    let theirs = timeout(FOREVER, server.accept()).await.expect("a set-up").expect("the runtime lives");
    assert_eq!(next(&theirs).await, b"late");
}

#[tokio::test]
async fn a_message_for_a_stream_that_the_peer_does_not_have_is_told_of() {
    let mut few = settings();
    few.set("inbound_streams", "2").expect("a switch");
    let (client, server) = (caller(settings()), listener(few));
    let connecting = client.begin(peer(server.udp_port())).expect("addresses that work");
    let mut events = connecting.events();
    connecting.try_send(SendOptions::on(StreamId(5)), "for nobody").expect("taken on trust");
    let ours = timeout(FOREVER, connecting.established()).await.expect("an end").expect("an association");
    let told = timeout(FOREVER, events.next()).await.expect("a word");
    let expected =
        matches!(told, Some(Ok(Event::Abandoned { stream: StreamId(5), bytes: 10, sent: false, .. })));
    assert!(expected, "{told:?}");
    assert_eq!(ours.streams().0, 2);
}

/// The peer accepts nobody.
#[tokio::test]
async fn a_set_up_that_fails_says_so_to_who_waits_to_send() {
    let mut small = settings();
    small.set("send_buffer", "4KiB").expect("a switch");
    let (client, server) = (caller(small), caller(settings()));
    let nobody = Peer::new(host("127.0.0.1"), server.port()).with_udp_port(server.udp_port());
    let connecting = client.begin(nobody).expect("addresses that work");
    connecting.try_send(SendOptions::default(), vec![0; 4_000]).expect("room");
    let full = connecting.try_send(SendOptions::default(), vec![0; 4_000]);
    assert!(matches!(full, Err(SendError::Full { .. })), "{full:?}");
    let waited = timeout(FOREVER, connecting.send(SendOptions::default(), vec![0; 4_000])).await;
    assert!(matches!(waited, Ok(Err(SendError::NotOpen { .. }))), "{waited:?}");
    let failed = timeout(FOREVER, connecting.established()).await.expect("an end");
    let expected = matches!(failed, Err(ConnectError::Ended(Ended(CloseReason::AbortedByPeer { .. }))));
    assert!(expected, "{:?}", failed.err());
}
