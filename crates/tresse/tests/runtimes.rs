//! Endpoints and their runtimes: a runtime that ends, and a driver that does.

#![allow(missing_docs, reason = "a test")]

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, AssociationId, AssociationStats, CloseReason, Endpoint, EndpointConfig,
    PathStats, Peer, SendError, SendOptions, Tap, Tapped,
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
