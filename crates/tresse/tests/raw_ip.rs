//! SCTP straight over IP, between loopback addresses. Whoever may not open raw sockets sees one line that says
//! so, and the refusal is checked instead.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, BindError, CloseReason, ConnectError, Ended, Endpoint, EndpointConfig,
    Peer, SendOptions, StreamId,
};

const PORT: u16 = 5001;

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

/// Four loopback addresses that no other process uses: raw sockets of one address share its packets.
fn address(position: u32) -> IpAddr {
    let number = std::process::id() << 2 | position;
    let [_, high, middle, low] = number.to_be_bytes();
    IpAddr::from([127, 64 | (high & 63), middle, low])
}

fn settings() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    for (name, value) in [("rto_initial", "100ms"), ("rto_min", "50ms"), ("max_init_retransmits", "1")] {
        config.set(name, value).expect("a switch");
    }
    config
}

fn bind(local: &[IpAddr], port: u16, listen: bool) -> Result<Endpoint, BindError> {
    Endpoint::bind_raw(
        local,
        EndpointConfig::default().with(|c| {
            c.port = port;
            c.listen = listen;
        }),
        settings(),
    )
}

/// A listening endpoint; `None` for those who may not have one, after checking how they are told.
fn listener(local: &[IpAddr], port: u16) -> Option<Endpoint> {
    match bind(local, port, true) {
        Ok(endpoint) => Some(endpoint),
        Err(error @ BindError::RawNotPermitted) => {
            assert_eq!(
                error.to_string(),
                "raw IP needs the right to open raw sockets (root or CAP_NET_RAW); SCTP in UDP needs no privilege"
            );
            let _ = writeln!(std::io::stderr(), "raw IP: skipped, the right to open raw sockets is missing");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn caller(local: &[IpAddr]) -> Endpoint {
    bind(local, 0, false).expect("who may listen may call")
}

async fn pair(caller: &Endpoint, listener: &Endpoint) -> (Association, Association) {
    let peer = Peer::new(listener.local_addresses(), listener.port());
    let both = async { tokio::join!(caller.connect(peer), listener.accept()) };
    let (ours, theirs) = timeout(FOREVER, both).await.expect("set-up ends");
    (ours.expect("the listener answers"), theirs.expect("the runtime lives"))
}

fn content(number: u32) -> Vec<u8> {
    (0..number * 300).map(|at| (at.wrapping_mul(31) ^ number) as u8).collect()
}

/// Sends messages of growing lengths from `ours` and checks what comes to `theirs`.
async fn exchange(ours: &Association, theirs: &Association) {
    let sending = async {
        for number in 1..=MESSAGES {
            ours.send(SendOptions::on(StreamId(3)), content(number)).await.expect("open");
        }
    };
    let receiving = async {
        for number in 1..=MESSAGES {
            let message = theirs.recv().await.expect("open").expect("more to come");
            assert_eq!(message.payload.into_bytes(), content(number), "message {number}");
        }
    };
    timeout(FOREVER, async { tokio::join!(sending, receiving) }).await.expect("the transfer ends");
}

async fn shut_down(ours: &Association, theirs: &Association) {
    let done = async { tokio::join!(ours.shutdown(), theirs.recv()) };
    let (shutdown, end) = timeout(FOREVER, done).await.expect("the shutdown ends");
    assert_eq!((shutdown, end), (Ok(()), Ok(None)));
}

#[tokio::test]
async fn messages_travel_straight_over_ip_on_both_paths() {
    let Some(server) = listener(&[address(0), address(1)], PORT) else { return };
    let client = caller(&[address(2), address(3)]);
    assert_eq!((server.udp_port(), client.udp_port()), (0, 0));
    let (ours, theirs) = pair(&client, &server).await;
    exchange(&ours, &theirs).await;
    exchange(&theirs, &ours).await;
    shut_down(&ours, &theirs).await;
    let paths = ours.path_stats();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path.bytes_acked > 0), "both paths carry data: {paths:?}");
}

#[tokio::test]
async fn ipv6_works_as_ipv4_does() {
    let here = [IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    let port = 1024 + (std::process::id() % 30_000) as u16;
    let Some(server) = listener(&here, port) else { return };
    let client = caller(&here);
    let (ours, theirs) = pair(&client, &server).await;
    exchange(&ours, &theirs).await;
    shut_down(&ours, &theirs).await;
}

#[tokio::test]
async fn endpoints_of_one_address_leave_each_others_packets_alone() {
    let here = [address(0)];
    let Some(one) = listener(&here, PORT + 1) else { return };
    let two = listener(&here, PORT + 2).expect("one was possible");
    let client = caller(&here);
    let (ours, theirs) = pair(&client, &one).await;
    exchange(&ours, &theirs).await;
    shut_down(&ours, &theirs).await;
    let strays = [&one, &two, &client].map(|endpoint| endpoint.discards().out_of_the_blue);
    assert_eq!(strays, [0; 3], "nobody answered for others");

    let nobody = client.connect(Peer::new(here, PORT + 3));
    let refusal = timeout(FOREVER, nobody).await.expect("set-up ends").err();
    assert_eq!(refusal, Some(ConnectError::Ended(Ended(CloseReason::SetupTimeout))));
}

#[tokio::test]
async fn a_port_that_another_endpoint_has_is_refused_while_that_one_lives() {
    let Some(first) = listener(&[address(0)], PORT + 4) else { return };
    let error = bind(&[address(1), address(0)], PORT + 4, true).expect_err("taken");
    assert_eq!(
        error.to_string(),
        format!("cannot use SCTP port {} on {}: another endpoint over raw IP has it", PORT + 4, address(0))
    );
    drop(first);
    let again = async {
        // The driver of the first endpoint lets go of the port when it next runs.
        while bind(&[address(1), address(0)], PORT + 4, true).is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(FOREVER, again).await.expect("free again");
}

/// Longer than some packets, and than the windows in the beginning.
const MESSAGES: u32 = 100;
