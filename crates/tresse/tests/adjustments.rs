//! Settings that applications change while associations run, over real sockets on one host.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;
use tresse::{
    Adjustment, Association, AssociationConfig, ConnectError, Endpoint, EndpointConfig, PathAdjustment,
    PathId, Peer,
};

const PORT: u16 = 5021;

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

fn endpoint(address: &str, config: EndpointConfig) -> Endpoint {
    let address: IpAddr = address.parse().expect("an address");
    Endpoint::bind(&[address], 0, config, AssociationConfig::default()).expect("loopback addresses are free")
}

fn both() -> (Endpoint, Endpoint) {
    let listening = EndpointConfig::listening(PORT);
    (endpoint("127.0.0.1", EndpointConfig::default()), endpoint("127.0.0.2", listening))
}

async fn pair(client: &Endpoint, server: &Endpoint) -> (Association, Association) {
    let peer = Peer::new(server.local_addresses(), PORT).with_udp_port(server.udp_port());
    let both = async { tokio::join!(client.connect(peer), server.accept()) };
    let (ours, theirs) = timeout(FOREVER, both).await.expect("set-up ends");
    (ours.expect("the listener answers"), theirs.expect("the runtime lives"))
}

#[tokio::test]
async fn an_association_and_its_paths_are_adjusted() {
    let (client, server) = both();
    let (ours, theirs) = pair(&client, &server).await;
    assert_eq!((ours.remote_port(), theirs.remote_port()), (PORT, client.port()));
    let change = Adjustment::default().with(|a| a.max_burst = Some(7));
    ours.adjust(change).expect("sound");
    assert_eq!(ours.config().max_burst, 7);
    let quiet = PathAdjustment::default().with(|a| a.heartbeat_interval = Some(Duration::ZERO));
    ours.adjust_path(PathId(0), quiet).expect("a path");
    assert!(ours.adjust_path(PathId(1), quiet).is_err());
    ours.request_heartbeat(PathId(0)).expect("a path");
    let answered = async {
        while ours.path_stats()[0].heartbeats_acked == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(FOREVER, answered).await.expect("the heartbeat is answered");
}

#[tokio::test]
async fn an_endpoint_stops_listening_and_changes_what_it_gives() {
    let (client, server) = both();
    server.set_listening(false);
    let peer = || Peer::new(server.local_addresses(), PORT).with_udp_port(server.udp_port());
    let refused = timeout(FOREVER, client.connect(peer())).await.expect("an answer");
    assert!(matches!(refused, Err(ConnectError::Ended(_))), "{:?}", refused.err());
    let template = AssociationConfig::default().with(|c| c.inbound_streams = 2);
    server.set_template(template).expect("sound");
    server.set_listening(true);
    assert!(server.is_listening());
    let (ours, _theirs) = pair(&client, &server).await;
    assert_eq!(ours.streams(), (2, 10));
}
