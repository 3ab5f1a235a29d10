//! Addresses that come and go while an association runs, over real sockets on one host.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use tokio::time::timeout;
use tresse::{
    AddressChange, AddressError, AddressOutcome, Association, AssociationConfig, BindError, Endpoint,
    EndpointConfig, Event, Events, PathState, Peer, SendOptions, StreamId,
};

const PORT: u16 = 5001;

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

fn address(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 5, last])
}

fn config() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    for (name, value) in [("rto_initial", "100ms"), ("rto_min", "50ms"), ("rto_max", "500ms")] {
        config.set(name, value).expect("a switch");
    }
    config
}

/// Waits for what came of a request about an own address.
async fn answer(events: &mut Events) -> (IpAddr, AddressChange, AddressOutcome) {
    let answered = async {
        loop {
            match events.next().await {
                Some(Ok(Event::OwnAddress { address, change, outcome })) => {
                    return (address, change, outcome);
                }
                Some(_) => {}
                None => panic!("the association has ended"),
            }
        }
    };
    timeout(FOREVER, answered).await.expect("the peer answers")
}

async fn send(association: &Association, count: u32) {
    for number in 0..count {
        let bytes = number.to_be_bytes().repeat(500);
        association.send(SendOptions::on(StreamId(0)), bytes).await.expect("the association is open");
    }
}

async fn receive(association: &Association, count: u32) {
    for number in 0..count {
        let message = association.recv().await.expect("open").expect("more to come");
        assert_eq!(message.payload.into_bytes(), number.to_be_bytes().repeat(500));
    }
}

#[tokio::test]
async fn an_association_moves_to_an_address_that_is_bound_later() {
    let listening = EndpointConfig::listening(PORT);
    let server = Endpoint::bind(&[address(2)], 0, listening, config()).expect("loopback is free");
    let client =
        Endpoint::bind(&[address(1)], 0, EndpointConfig::default(), config()).expect("loopback is free");
    let peer = Peer::new(server.local_addresses(), PORT).with_udp_port(server.udp_port());
    let both = async { tokio::join!(client.connect(peer), server.accept()) };
    let (ours, theirs) = timeout(FOREVER, both).await.expect("set-up ends");
    let (ours, theirs) = (ours.expect("the listener answers"), theirs.expect("the runtime lives"));
    let mut events = ours.events();

    let unbound = ours.add_address(address(3)).expect_err("nobody has bound it");
    assert!(matches!(unbound, AddressError::NotBound { .. }));
    assert_eq!(
        unbound.to_string(),
        "127.0.5.3 is no address of the endpoint, which has 127.0.5.1: bind it first"
    );
    client.add_local_address(address(3)).expect("loopback is free");
    assert!(matches!(client.add_local_address(address(3)), Err(BindError::Twice { .. })));
    assert_eq!(client.local_addresses(), [address(1), address(3)]);

    ours.add_address(address(3)).expect("it is bound now");
    assert_eq!(answer(&mut events).await, (address(3), AddressChange::Add, AddressOutcome::Done));
    ours.set_peer_primary(address(3)).expect("an address of it");
    assert_eq!(answer(&mut events).await, (address(3), AddressChange::Prefer, AddressOutcome::Done));
    ours.remove_address(address(1)).expect("there is another");
    assert_eq!(answer(&mut events).await, (address(1), AddressChange::Remove, AddressOutcome::Done));

    // Nothing leaves from there any more, and the port is free again.
    client.remove_local_address(address(1));
    assert_eq!(client.local_addresses(), [address(3)]);
    let freed = async {
        while UdpSocket::bind((address(1), client.udp_port())).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(FOREVER, freed).await.expect("its sockets are closed");

    let exchange = async { tokio::join!(send(&ours, 200), receive(&theirs, 200)) };
    timeout(FOREVER, exchange).await.expect("the transfer ends");
    let paths = ours.path_stats();
    let working: Vec<_> = paths.iter().filter(|path| path.state == PathState::Active).collect();
    assert_eq!(working.len(), 1, "{paths:?}");
    assert_eq!((working[0].local, working[0].remote), (address(3), address(2)));
    assert!(working[0].bytes_sent >= 400_000);
    let done = async { tokio::join!(ours.shutdown(), theirs.recv()) };
    let (shutdown, end) = timeout(FOREVER, done).await.expect("the shutdown ends");
    assert_eq!((shutdown, end), (Ok(()), Ok(None)));
}
