//! Memory of an endpoint while nothing happens: its sockets, its association, and what it has carried before.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr};

use tresse::{Association, AssociationConfig, Endpoint, EndpointConfig, Peer, SendOptions, StreamId};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 7;

/// Resident bytes of this process, which has this test alone.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes * 1024
}

/// An association of an endpoint of its own, after 100 messages, with that of its peer.
async fn used(server: &Endpoint) -> (Endpoint, Association, Association) {
    let template = AssociationConfig::preset("cmt").expect("it exists");
    let endpoint = Endpoint::bind(&[HERE], 0, EndpointConfig::default(), template).expect("free");
    let peer = Peer::new([HERE], PORT).with_udp_port(server.udp_port());
    let near = endpoint.connect(peer).await.expect("it listens");
    let far = server.accept().await.expect("it runs");
    for _ in 0..100 {
        near.send(SendOptions::on(StreamId(0)), vec![7; 1436]).await.expect("it is open");
        far.recv().await.expect("it is open").expect("a message");
    }
    (endpoint, near, far)
}

#[tokio::test]
async fn a_used_endpoint_at_rest_takes_32_kib_with_its_sockets_and_an_association_little_more() {
    let config = EndpointConfig::listening(PORT);
    let template = AssociationConfig::preset("cmt").expect("it exists");
    let server = Endpoint::bind(&[HERE], 0, config, template).expect("free");
    let mut all = Vec::new();
    for _ in 0..20 {
        // What a thread has once.
        all.push(used(&server).await);
    }
    let before = resident();
    for _ in 0..COUNT {
        all.push(used(&server).await);
    }
    let each = resident().saturating_sub(before) / COUNT;
    assert!(
        each <= MOST,
        "{each} bytes for an endpoint with its association, and the association of its peer"
    );
    drop(all);
}

/// Endpoints that are looked at.
const COUNT: usize = 300;
/// 32 KiB for an endpoint and the association that it has, and as much as 4 KiB for the other one.
const MOST: usize = 36 * 1024;
