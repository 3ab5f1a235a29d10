//! Endpoints with several drivers: what associations and applications see is what they see with one.

#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

mod highest_first;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use highest_first::HighestFirst;
use tokio::time::timeout;
use tresse::schedule::StreamSchedulerFactory;
use tresse::{
    Association, AssociationConfig, BindError, Endpoint, Peer, ScheduleError, SendOptions, StreamId,
};

const PORT: u16 = 5001;
/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);
const DRIVERS: usize = 4;
const CLIENTS: usize = 64;

fn host(numbers: [u8; 2]) -> [IpAddr; 2] {
    numbers.map(|number| IpAddr::from([127, 0, 30, number]))
}

fn server(addresses: [IpAddr; 2]) -> Endpoint {
    let builder = Endpoint::builder().local_addresses(addresses).listen(PORT).drivers(DRIVERS);
    let server = builder.bind().expect("loopback addresses are free");
    assert_eq!(server.drivers(), DRIVERS);
    server
}

fn client(addresses: [IpAddr; 2]) -> Endpoint {
    Endpoint::builder().local_addresses(addresses).bind().expect("loopback addresses are free")
}

/// Takes associations and gives back what comes on them; answers them.
async fn echo(server: &Endpoint, count: usize) -> Vec<Association> {
    let mut all = Vec::new();
    for _ in 0..count {
        let association = server.accept().await.expect("the server runs");
        all.push(association.clone());
        tokio::spawn(async move {
            while let Ok(Some(message)) = association.recv().await {
                let payload = message.payload.into_bytes();
                if association.send(SendOptions::on(message.stream), payload).await.is_err() {
                    return;
                }
            }
        });
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn associations_over_two_paths_are_spread_over_all_drivers() {
    let (near, far) = (host([1, 2]), host([3, 4]));
    let server = server(far);
    let peer = Peer::new(far, PORT).with_udp_port(server.udp_port());
    let clients = async {
        let mut open = Vec::new();
        for number in 0..CLIENTS {
            let client = client(near);
            let association = client.connect(peer.clone()).await.expect("the server listens");
            for at in 0..20_u8 {
                let message = vec![at; 1000 + number];
                association.send(SendOptions::on(StreamId(0)), message).await.expect("it is open");
            }
            open.push((client, association));
        }
        for (number, (_, association)) in open.iter().enumerate() {
            for at in 0..20_u8 {
                let echoed = association.recv().await.expect("it is open").expect("all come back");
                assert_eq!(echoed.payload.into_bytes(), vec![at; 1000 + number]);
            }
            assert_eq!(association.path_stats().len(), 2);
        }
        open
    };
    let both = async { tokio::join!(clients, echo(&server, CLIENTS)) };
    let (clients, accepted) = timeout(FOREVER, both).await.expect("all are served");

    let ids: BTreeSet<_> = accepted.iter().map(Association::id).collect();
    assert_eq!(ids.len(), CLIENTS, "an identifier is that of one association");
    // The number of the driver is in front of the slash; the first has none.
    let driver = |id: String| id.split_once('/').map_or(0, |(driver, _)| driver.parse().expect("a number"));
    let drivers: BTreeSet<usize> = ids.iter().map(|id| driver(id.to_string())).collect();
    assert_eq!(drivers, (0..DRIVERS).collect(), "each has some of {CLIENTS} with ports of their own");
    assert_eq!(server.discards().total(), 0, "no packet came to a driver that did not know it");

    for (_, association) in clients {
        association.shutdown().await.expect("the server is there");
    }
    drop(accepted);
    timeout(FOREVER, server.wait_idle()).await.expect("all have ended");
}

#[tokio::test]
async fn an_endpoint_with_several_drivers_calls_too_and_meets_a_caller() {
    let (near, far) = (host([5, 6]), host([7, 8]));
    let (one, other) = (server(near), server(far));
    let peer = |addresses, endpoint: &Endpoint| Peer::new(addresses, PORT).with_udp_port(endpoint.udp_port());
    // Both call at once: the two ends have the same ports, so there is one association (RFC 9260 §5.2.1).
    let calls = async { tokio::join!(one.connect(peer(far, &other)), other.connect(peer(near, &one))) };
    let (here, there) = timeout(FOREVER, calls).await.expect("they meet");
    let (here, there) = (here.expect("it is answered"), there.expect("it is answered"));
    here.send(SendOptions::on(StreamId(1)), "across").await.expect("it is open");
    let arrived = timeout(FOREVER, there.recv()).await.expect("it comes").expect("open").expect("a message");
    assert_eq!(arrived.payload.into_bytes(), "across");
}

#[tokio::test]
async fn the_port_is_free_again_once_all_drivers_have_finished() {
    let far = host([9, 10]);
    let server = server(far);
    let port = server.udp_port();
    let peer = Peer::new(far, PORT).with_udp_port(port);
    let client = client(host([11, 12]));
    let association = client.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it runs");
    drop(server);
    // The association lives on, and so do the sockets of all drivers: they are chosen by number.
    association.send(SendOptions::on(StreamId(0)), "still there").await.expect("it is open");
    let arrived = timeout(FOREVER, accepted.recv()).await.expect("it comes").expect("open");
    assert_eq!(arrived.expect("a message").payload.into_bytes(), "still there");
    drop((association, accepted));
    let free = async {
        while far.iter().any(|&address| std::net::UdpSocket::bind((address, port)).is_err()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(FOREVER, free).await.expect("the last association has ended, and every driver with it");
}

#[tokio::test]
async fn an_address_that_joins_is_heard_by_all_drivers() {
    let ([first, later], near) = (host([17, 18]), host([19, 20]));
    let builder = Endpoint::builder().local_addresses([first]).listen(PORT).drivers(DRIVERS);
    let server = builder.bind().expect("free");
    server.add_local_address(later).expect("free too");
    assert!(server.add_local_address(later).is_err(), "it has that already");
    assert_eq!(server.local_addresses(), [first, later]);
    let peer = Peer::new([later], PORT).with_udp_port(server.udp_port());
    let mut held = Vec::new();
    for _ in 0..4 * DRIVERS {
        let client = client(near);
        let association = timeout(FOREVER, client.connect(peer.clone())).await.expect("an answer");
        held.push((client, association.expect("it listens on both")));
    }
}

#[tokio::test]
async fn a_policy_is_there_for_all_drivers_and_removed_from_all_or_none() {
    let (near, far) = (host([13, 14]), host([15, 16]));
    let server = server(far);
    let factory: StreamSchedulerFactory = Arc::new(|_| Ok(Box::new(HighestFirst::default())));
    server.register_stream_scheduler("mine", Arc::clone(&factory)).expect("a new name");
    assert!(server.register_stream_scheduler("mine", factory).is_err(), "taken");
    let mut template = AssociationConfig::default();
    template.set("stream_scheduler", "mine").expect("a setting");
    server.set_template(template).expect("all know the name");
    let peer = Peer::new(far, PORT).with_udp_port(server.udp_port());
    let client = client(near);
    let association = client.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it runs");
    server.set_template(AssociationConfig::default()).expect("the old one");
    // One driver uses it, whichever that is, so no driver loses it.
    let in_use = ScheduleError::InUse("mine".to_owned());
    assert_eq!(server.remove_stream_scheduler("mine"), Err(in_use));
    server.set_stream_scheduler("mine", "").expect("all still have it");
    server.set_stream_scheduler("round_robin", "").expect("built in");
    association.shutdown().await.expect("the server answers");
    drop(accepted);
    timeout(FOREVER, server.wait_idle()).await.expect("it has ended");
    assert_eq!(server.remove_stream_scheduler("mine"), Ok(()));
    assert!(server.set_stream_scheduler("mine", "").is_err(), "no driver knows it");
}

#[tokio::test]
async fn more_drivers_than_are_of_use_are_refused() {
    let refused = Endpoint::builder().local_addresses(host([1, 2])).drivers(usize::MAX).bind();
    assert!(
        matches!(refused, Err(BindError::TooManyDrivers { drivers: usize::MAX, most: 1024 })),
        "{refused:?}"
    );
}
