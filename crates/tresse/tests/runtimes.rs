//! Endpoints and their runtimes: threads outside a runtime, a runtime that ends, a clock that is paused.

#![allow(missing_docs, reason = "a test")]

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, AssociationId, AssociationStats, CloseReason, Endpoint, EndpointConfig,
    PathStats, Peer, SendError, SendOptions, StreamId, Tap, Tapped,
};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::bind(&[HERE], 0, config, AssociationConfig::default()).expect("loopback")
}

/// Both ends of an association over loopback, and their endpoints.
async fn pair() -> (Endpoint, Endpoint, Association, Association) {
    let (client, server) = (endpoint(EndpointConfig::default()), endpoint(EndpointConfig::listening(7)));
    let peer = Peer::new([HERE], 7).with_udp_port(server.udp_port());
    let ours = client.connect(peer).await.expect("it answers");
    let theirs = server.accept().await.expect("it came");
    (client, server, ours, theirs)
}

#[test]
fn an_end_keeps_its_reason_when_the_runtime_ends_and_others_end_with_it() {
    let runtime = Runtime::new().expect("the system has threads");
    let (first, second) = runtime.block_on(async {
        let (first, second) = (pair().await, pair().await);
        first.2.shutdown().await.expect("all delivered");
        (first, second)
    });
    drop(runtime);
    assert_eq!(first.2.close_reason(), Some(CloseReason::Graceful));
    assert_eq!(second.2.close_reason(), Some(CloseReason::DriverEnded));
    let refused = SendError::NotOpen { state: "CLOSED" };
    let item = (SendOptions::default(), Bytes::from("to nobody"));
    assert_eq!(second.2.try_send(item.0, item.1.clone()), Err(refused.clone()));
    assert_eq!(second.2.try_send_many(&mut [item].into()), Err(refused));
}

#[test]
fn an_address_is_bound_by_a_thread_outside_the_runtime() {
    let runtime = Runtime::new().expect("the system has threads");
    let server = runtime.block_on(async { endpoint(EndpointConfig::listening(7)) });
    let other = IpAddr::from([127, 0, 0, 2]);
    server.add_local_address(other).expect("loopback");
    // It works although the runtime of the caller ends.
    let short = Runtime::new().expect("the system has threads");
    let third = IpAddr::from([127, 0, 0, 3]);
    short.block_on(async { server.add_local_address(third) }).expect("loopback");
    drop(short);
    for address in [other, third] {
        let connecting = async {
            let client = endpoint(EndpointConfig::default());
            client.connect(Peer::new([address], 7).with_udp_port(server.udp_port())).await.map(drop)
        };
        let connected = runtime.block_on(async { timeout(FOREVER, connecting).await });
        connected.expect("an answer").expect("from the new address");
    }
}

#[test]
fn what_a_sink_accepted_is_sent_although_the_sink_is_dropped_outside_the_runtime() {
    let runtime = Runtime::new().expect("the system has threads");
    let (_client, _server, ours, theirs) = runtime.block_on(pair());
    let mut sink = ours.messages();
    let mut count = 0;
    runtime.block_on(async {
        let item = || (SendOptions::on(StreamId(1)), Bytes::from(vec![7; 60_000]));
        // The last one waits for room.
        while let Some(fed) = sink.feed(item()).now_or_never() {
            fed.expect("open");
            count += 1;
        }
    });
    drop((sink, ours));
    let reading = async {
        let mut came = 0;
        while theirs.recv().await.expect("a graceful end").is_some() {
            came += 1;
        }
        came
    };
    let came = runtime.block_on(async { timeout(FOREVER, reading).await }).expect("it ends");
    assert_eq!(came, count);
}

#[tokio::test(start_paused = true)]
async fn timers_follow_the_clock_of_the_runtime() {
    let (_client, _server, ours, theirs) = pair().await;
    let before = ours.path_stats()[0].heartbeats_acked;
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }
    let heartbeats = ours.path_stats()[0].heartbeats_acked - before;
    assert!(heartbeats >= 3, "{heartbeats} in five minutes of the paused clock");
    ours.send(SendOptions::default(), "awake").await.expect("open");
    let message = theirs.recv().await.expect("open").expect("a message");
    assert_eq!(message.payload.into_bytes(), "awake");
}

/// A tap that fails.
struct Failing;

impl Tap for Failing {
    fn on_sent(&mut self, _: Duration, _: &Tapped<'_>) {
        panic!("a fault of the tap, as the test wants it");
    }
    fn on_received(&mut self, _: Duration, _: &Tapped<'_>) {}
    fn on_state(&mut self, _: Duration, _: AssociationId, _: &AssociationStats, _: &[PathStats]) {}
}

#[tokio::test]
async fn a_tap_that_panics_ends_the_driver_and_nobody_waits_for_it() {
    let (client, _server, ours, _theirs) = pair().await;
    client.watch(Box::new(Failing));
    ours.send(SendOptions::default(), "x").await.expect("open");
    let end = timeout(FOREVER, ours.closed()).await.expect("it ends");
    assert_eq!(end, CloseReason::DriverEnded);
    assert!(timeout(FOREVER, client.accept()).await.expect("an answer").is_none());
    timeout(FOREVER, client.wait_idle()).await.expect("an answer");
}
