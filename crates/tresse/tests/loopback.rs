//! Promises of the public API, over real sockets on one host.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

mod highest_first;
mod relay;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use highest_first::HighestFirst;
use relay::Relay;
use tokio::time::timeout;
use tresse::schedule::StreamSchedulerFactory;
use tresse::{
    Association, AssociationConfig, BindError, Bytes, CloseReason, ConnectError, Direction, Ended, Endpoint,
    EndpointConfig, Event, Events, PathState, Peer, Reconfiguration, ReconfigurationError,
    ReconfigurationOutcome, Reliability, ScheduleError, SendError, SendOptions, Ssn, StreamId, Streams,
};

const PORT: u16 = 5001;

/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);

/// More than a system call, or a turn of the driver, takes at once.
const SET_UPS: usize = 300;

fn host(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().expect("an address")).collect()
}

/// Timers short enough for tests that wait for them. No path rests: on a busy machine one may cost the other more than it
/// brings, and tests need both.
fn quick() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    for (name, value) in [
        ("rto_initial", "100ms"),
        ("rto_min", "50ms"),
        ("rto_max", "500ms"),
        ("path_max_retrans", "1"),
        ("heartbeat_interval", "200ms"),
        ("path_suspension", "false"),
    ] {
        config.set(name, value).expect("a switch");
    }
    config
}

fn listener(addresses: &[IpAddr]) -> Endpoint {
    let config = EndpointConfig::listening(PORT);
    Endpoint::bind(addresses, 0, config, quick()).expect("loopback addresses are free")
}

fn caller(addresses: &[IpAddr]) -> Endpoint {
    Endpoint::bind(addresses, 0, EndpointConfig::default(), quick()).expect("loopback addresses are free")
}

/// Both ends of one association: caller first.
async fn pair(caller: &Endpoint, listener: &Endpoint, udp_port: u16) -> (Association, Association) {
    let peer = Peer::new(listener.local_addresses(), PORT).with_udp_port(udp_port);
    let both = async { tokio::join!(caller.connect(peer), listener.accept()) };
    let (ours, theirs) = timeout(FOREVER, both).await.expect("set-up ends");
    (ours.expect("the listener answers"), theirs.expect("the runtime lives"))
}

/// The `number`-th message of `stream`, recognisable in every byte.
fn message(stream: u16, number: u32, len: usize) -> Bytes {
    let seed = number.wrapping_mul(31).wrapping_add(u32::from(stream));
    (0..len).map(|at| (seed.wrapping_add(at as u32) % 251) as u8).collect::<Vec<u8>>().into()
}

/// Sends `count` messages of `len` bytes on each of `streams` streams.
async fn send_all(association: &Association, streams: u16, count: u32, len: usize) {
    for number in 0..count {
        for stream in 0..streams {
            let options = SendOptions::on(StreamId(stream));
            association.send(options, message(stream, number, len)).await.expect("the association is open");
        }
    }
}

/// Receives what `send_all` sends and checks every byte and the order of every stream.
async fn receive_all(association: &Association, streams: u16, count: u32, len: usize) {
    let mut next = vec![0; usize::from(streams)];
    for _ in 0..u32::from(streams) * count {
        let received = association.recv().await.expect("open").expect("more to come");
        let number = &mut next[usize::from(received.stream.0)];
        assert_eq!(received.payload.into_bytes(), message(received.stream.0, *number, len));
        *number += 1;
    }
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order_over_both_paths() {
    let (near, far) = (host(&["127.0.0.1", "127.0.0.2"]), host(&["127.0.0.3", "127.0.0.4"]));
    let (client, server) = (caller(&near), listener(&far));
    let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
    let exchange =
        async { tokio::join!(send_all(&ours, 4, 100, 20_000), receive_all(&theirs, 4, 100, 20_000)) };
    timeout(FOREVER, exchange).await.expect("the transfer ends");

    let done = async { tokio::join!(ours.shutdown(), theirs.recv()) };
    let (shutdown, end) = timeout(FOREVER, done).await.expect("the shutdown ends");
    assert_eq!(shutdown, Ok(()));
    assert_eq!(end, Ok(None));
    let paths = ours.path_stats();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path.bytes_acked > 0), "both paths carry data: {paths:?}");
}

#[tokio::test]
async fn both_sides_can_send_and_several_associations_share_an_endpoint() {
    let server = listener(&host(&["127.0.0.2"]));
    let mut ends = Vec::new();
    for _ in 0..3 {
        // Two ends have at most one association: the callers are endpoints of their own.
        let client = caller(&host(&["127.0.0.1"]));
        let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
        ends.push((client, ours, theirs));
    }
    for (_, ours, theirs) in &ends {
        let exchange = async {
            tokio::join!(
                send_all(ours, 2, 20, 3000),
                receive_all(theirs, 2, 20, 3000),
                send_all(theirs, 1, 20, 700),
                receive_all(ours, 1, 20, 700),
            )
        };
        timeout(FOREVER, exchange).await.expect("the exchange ends");
    }
}

#[tokio::test]
async fn a_full_send_buffer_refuses_or_waits_until_the_peer_reads() {
    let (client, server) = (caller(&host(&["127.0.0.1"])), listener(&host(&["127.0.0.2"])));
    let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
    let (len, options) = (50_000, SendOptions::on(StreamId(0)));
    let mut sent = 0;
    // Buffers are bounded: this ends whether or not the driver runs in between.
    let full = loop {
        match ours.try_send(options, message(0, sent, len)) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, SendError::Full { free } if free < len), "{full}");
    let queue = ours.send_queue();
    assert!(queue.used <= queue.limit, "{queue:?}");

    let more = 100;
    let exchange = async {
        let sending = async {
            for number in sent..sent + more {
                ours.send(options, message(0, number, len)).await.expect("open");
            }
        };
        tokio::join!(sending, receive_all(&theirs, 1, sent + more, len))
    };
    timeout(FOREVER, exchange).await.expect("room comes back");
}

#[tokio::test]
async fn messages_that_can_never_be_sent_are_refused_at_once() {
    let (client, server) = (caller(&host(&["127.0.0.1"])), listener(&host(&["127.0.0.2"])));
    let (ours, _theirs) = pair(&client, &server, server.udp_port()).await;
    let (streams, _) = ours.streams();
    let beyond = SendOptions::on(StreamId(streams));
    assert!(matches!(ours.send(beyond, "x").await, Err(SendError::NoSuchStream { .. })));
    assert_eq!(ours.send(SendOptions::default(), "").await, Err(SendError::Empty));
    let endless = vec![0; ours.send_queue().limit + 1];
    assert!(matches!(ours.send(SendOptions::default(), endless).await, Err(SendError::TooLong { .. })));
}

#[tokio::test]
async fn an_application_brings_its_own_stream_scheduler() {
    let here = host(&["127.0.0.1"]);
    let (listener, caller) = (listener(&here), caller(&here));
    let factory: StreamSchedulerFactory = Arc::new(|_| Ok(Box::new(HighestFirst::default())));
    caller.register_stream_scheduler("highest_first", factory.clone()).expect("a new name");
    let again = caller.register_stream_scheduler("highest_first", factory);
    assert_eq!(again, Err(ScheduleError::NameTaken("highest_first".to_owned())));
    assert!(caller.stream_schedulers().contains(&"highest_first".to_owned()));
    caller.set_stream_scheduler("highest_first", "").expect("registered");
    let (ours, theirs) = pair(&caller, &listener, listener.udp_port()).await;
    // Nothing leaves between two of these: no await gives the driver its turn.
    for stream in [1, 4, 2, 4] {
        ours.try_send(SendOptions::on(StreamId(stream)), message(stream, 0, 100)).expect("room");
    }
    for expected in [4, 4, 2, 1] {
        assert_eq!(theirs.recv().await.expect("open").expect("more to come").stream, StreamId(expected));
    }
    caller.set_stream_scheduler("first_come", "").expect("built in");
    let in_use = Err(ScheduleError::InUse("highest_first".to_owned()));
    assert_eq!(caller.remove_stream_scheduler("highest_first"), in_use, "by an association");
    ours.set_stream_scheduler("first_come", "").expect("built in");
    assert_eq!(caller.remove_stream_scheduler("highest_first"), Ok(()));
}

#[tokio::test]
async fn a_stream_is_given_more_when_it_runs_low() {
    const MARK: usize = 20_000;
    let here = host(&["127.0.0.1"]);
    let (listener, caller) = (listener(&here), caller(&here));
    let (ours, theirs) = pair(&caller, &listener, listener.udp_port()).await;
    ours.set_stream_scheduler("weighted_fair", "0=1,1=3").expect("built in");
    let feed = |stream: u16| {
        let ours = ours.clone();
        async move {
            for number in 0..200 {
                ours.low_water(StreamId(stream), MARK).await.expect("open");
                let waiting = ours.unsent_on(StreamId(stream));
                assert!(waiting <= MARK, "{waiting} bytes of stream {stream} wait");
                ours.send(SendOptions::on(StreamId(stream)), message(stream, number, 5_000))
                    .await
                    .expect("open");
            }
        }
    };
    let listen = async {
        for _ in 0..400 {
            theirs.recv().await.expect("open").expect("more to come");
        }
    };
    timeout(FOREVER, async { tokio::join!(feed(0), feed(1), listen) }).await.expect("in time");
    let absent = ours.low_water(StreamId(60_000), 0).await;
    assert!(matches!(absent, Err(SendError::NoSuchStream { .. })), "{absent:?}");
    ours.abort("that was all");
    timeout(FOREVER, ours.closed()).await.expect("at once");
    assert_eq!(ours.low_water(StreamId(0), 0).await, Err(SendError::NotOpen { state: "CLOSED" }));
}

#[tokio::test]
async fn streams_begin_anew_and_more_are_added() {
    let here = host(&["127.0.0.1"]);
    let (listener, caller) = (listener(&here), caller(&here));
    let (ours, theirs) = pair(&caller, &listener, listener.udp_port()).await;
    let mut events = ours.events();
    send_all(&ours, 2, 3, 100).await;
    ours.reset_streams(StreamId(1), Direction::Outbound).expect("free to ask");
    let again = ours.reset_streams(Streams::All, Direction::Both);
    assert_eq!(again, Err(ReconfigurationError::Busy));
    ours.send(SendOptions::on(StreamId(1)), "new").await.expect("room");
    receive_all(&theirs, 2, 3, 100).await;
    let renewed = theirs.recv().await.expect("open").expect("more to come");
    assert_eq!((renewed.ssn, renewed.payload.into_bytes()), (Ssn(0), Bytes::from("new")));
    let performed = |request| Event::Reconfigured { request, outcome: ReconfigurationOutcome::Performed };
    until_told(&mut events, &performed(Reconfiguration::ResetOutbound(StreamId(1).into()))).await;

    ours.add_streams(5, 0).expect("free to ask");
    until_told(&mut events, &performed(Reconfiguration::AddOutbound(5))).await;
    assert_eq!((ours.streams(), theirs.streams()), ((15, 10), (10, 15)));
    ours.send(SendOptions::on(StreamId(14)), "on a new stream").await.expect("room");
    assert_eq!(theirs.recv().await.expect("open").expect("more to come").stream, StreamId(14));

    ours.reset_association().expect("free to ask");
    until_told(&mut events, &performed(Reconfiguration::ResetAssociation)).await;
    assert!(matches!(ours.reset_association(), Err(ReconfigurationError::TooSoon { .. })));
}

/// Waits for an event among others.
async fn until_told(events: &mut Events, wanted: &Event) {
    let told = async { while events.next().await != Some(Ok(wanted.clone())) {} };
    timeout(FOREVER, told).await.unwrap_or_else(|_| panic!("never told: {wanted:?}"));
}

#[tokio::test]
async fn an_abort_tells_the_peer_why() {
    let (client, server) = (caller(&host(&["127.0.0.1"])), listener(&host(&["127.0.0.2"])));
    let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
    ours.abort("enough of this");
    let end = timeout(FOREVER, theirs.recv()).await.expect("the abort arrives");
    let Err(Ended(CloseReason::AbortedByPeer { cause, .. })) = end else { panic!("{end:?}") };
    assert!(cause.contains("enough of this"), "{cause}");
    assert_eq!(ours.closed().await, CloseReason::Aborted);
    assert!(matches!(ours.send(SendOptions::default(), "late").await, Err(SendError::NotOpen { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_in_mid_transfer_comes_before_any_other_end() {
    let server = listener(&host(&["127.0.0.2"]));
    for _ in 0..10 {
        let client = caller(&host(&["127.0.0.1"]));
        let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
        let sending = tokio::spawn({
            let ours = ours.clone();
            async move { while ours.send(SendOptions::default(), message(0, 0, 60_000)).await.is_ok() {} }
        });
        for _ in 0..100 {
            timeout(FOREVER, theirs.recv()).await.expect("data flows").expect("open");
        }
        theirs.abort("enough of this");
        drop(theirs);
        let end = timeout(FOREVER, ours.closed()).await.expect("the abort arrives");
        let CloseReason::AbortedByPeer { cause, .. } = end else { panic!("{end:?}") };
        assert!(cause.contains("enough of this"), "{cause}");
        sending.await.expect("the sender is refused and ends");
    }
}

#[tokio::test]
async fn a_dropped_association_delivers_what_was_sent() {
    let (client, server) = (caller(&host(&["127.0.0.1"])), listener(&host(&["127.0.0.2"])));
    let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
    send_all(&ours, 1, 5, 9000).await;
    drop(ours);
    let rest = async {
        receive_all(&theirs, 1, 5, 9000).await;
        assert_eq!(theirs.recv().await, Ok(None));
        client.wait_idle().await;
    };
    timeout(FOREVER, rest).await.expect("the association winds down");
}

#[tokio::test]
async fn nobody_at_home_is_a_set_up_timeout() {
    let mut config = quick();
    config.set("max_init_retransmits", "2").expect("a switch");
    let client = Endpoint::bind(&host(&["127.0.0.1"]), 0, EndpointConfig::default(), config).expect("free");
    let silent = std::net::UdpSocket::bind("127.0.0.2:0").expect("free");
    let port = silent.local_addr().expect("bound").port();
    let peer = Peer::new(host(&["127.0.0.2"]), PORT).with_udp_port(port);
    let outcome = timeout(FOREVER, client.connect(peer)).await.expect("set-up is given up");
    assert_eq!(outcome.err(), Some(ConnectError::Ended(Ended(CloseReason::SetupTimeout))));
    timeout(FOREVER, client.wait_idle()).await.expect("nothing is left of it");
}

#[tokio::test]
async fn addresses_that_cannot_work_are_refused_by_name() {
    let client = caller(&host(&["127.0.0.1"]));
    let refused = client.connect(Peer::new(host(&["::1"]), PORT)).await.expect_err("wrong family");
    assert_eq!(refused.to_string(), "no local address can reach ::1: give a local IPv6 address");
    let no_port = Peer::new(host(&["127.0.0.2"]), PORT).with_udp_port(0);
    assert_eq!(client.connect(no_port).await.err(), Some(ConnectError::UdpPortZero));

    let bind = |addresses: &[&str], port| {
        Endpoint::bind(&host(addresses), port, EndpointConfig::default(), quick()).expect_err("refused")
    };
    assert!(matches!(bind(&[], 0), BindError::NoAddress));
    assert!(matches!(bind(&["127.0.0.1", "127.0.0.1"], 0), BindError::Twice { .. }));
    assert!(matches!(bind(&["0.0.0.0"], 0), BindError::NotOneAddress { .. }));
    let taken = client.udp_port();
    assert_eq!(
        bind(&["127.0.0.2", "127.0.0.1"], taken).to_string(),
        format!("cannot bind 127.0.0.1 to UDP port {taken}: the port is in use")
    );
    assert_eq!(
        bind(&["192.0.2.1"], 0).to_string(),
        "cannot bind 192.0.2.1 to UDP port 0: this host does not have the address"
    );
}

#[tokio::test]
async fn a_path_that_dies_in_mid_transfer_loses_nothing() {
    let (near, far) = (host(&["127.0.0.1", "127.0.0.2"]), host(&["127.0.0.3", "127.0.0.4"]));
    let (client, server) = (caller(&near), listener(&far));
    let relay = Relay::start(&near, &far, server.udp_port()).await;
    let (ours, theirs) = pair(&client, &server, relay.port()).await;
    let mut events = ours.events();

    let (count, len) = (400, 20_000);
    relay.cut_after(1, 200_000);
    let exchange = async {
        tokio::join!(send_all(&ours, 2, count, len), receive_all(&theirs, 2, count, len), relay.limited(1));
    };
    timeout(FOREVER, exchange).await.expect("the transfer goes on over the other path");

    timeout(FOREVER, path_turns(&mut events, 1, PathState::Inactive)).await.expect("the application is told");

    // The path comes back, heartbeats find it.
    relay.mend(1);
    timeout(FOREVER, path_turns(&mut events, 1, PathState::Active)).await.expect("the application is told");
    timeout(FOREVER, ours.shutdown()).await.expect("it ends").expect("gracefully");
}

/// Waits until the path at `position` changes to `wanted`. On a busy machine others may waver meanwhile.
async fn path_turns(events: &mut Events, position: usize, wanted: PathState) {
    loop {
        let event = events.next().await.expect("the association is open").expect("none is missed");
        if let Event::PathChanged { path, state } = event
            && (path.index(), state) == (position, wanted)
        {
            return;
        }
    }
}

#[tokio::test]
async fn when_all_paths_die_the_association_says_so() {
    let (near, far) = (host(&["127.0.0.1"]), host(&["127.0.0.3"]));
    let mut config = quick();
    config.set("association_max_retrans", "2").expect("a switch");
    let client = Endpoint::bind(&near, 0, EndpointConfig::default(), config).expect("free");
    let server = listener(&far);
    let relay = Relay::start(&near, &far, server.udp_port()).await;
    let (ours, _theirs) = pair(&client, &server, relay.port()).await;
    relay.cut_after(0, 0);
    ours.send(SendOptions::default(), "into the void").await.expect("still open");
    let end = timeout(FOREVER, ours.closed()).await.expect("it is given up");
    assert_eq!(end, CloseReason::PathsLost);
}

#[tokio::test]
async fn a_message_that_was_given_up_is_told_of_and_passed_over() {
    let (near, far) = (host(&["127.0.0.1"]), host(&["127.0.0.3"]));
    let (client, server) = (caller(&near), listener(&far));
    let relay = Relay::start(&near, &far, server.udp_port()).await;
    let (ours, theirs) = pair(&client, &server, relay.port()).await;
    let mut events = ours.events();
    relay.starve_after(0, 0);
    let once = SendOptions::default().with(|o| {
        o.reliability = Reliability::Retransmissions(0);
        o.context = 7;
    });
    ours.send(once, vec![0; 1000]).await.expect("open");
    let told = async {
        loop {
            if let Event::Abandoned { context, sent, .. } =
                events.next().await.expect("open").expect("none is missed")
            {
                return (context, sent);
            }
        }
    };
    assert_eq!(timeout(FOREVER, told).await.expect("told"), (7, true));
    relay.mend(0);
    ours.send(SendOptions::default(), "next").await.expect("open");
    let next = timeout(FOREVER, theirs.recv()).await.expect("it comes").expect("open").expect("more to come");
    assert_eq!(next.payload.into_bytes(), "next");
    assert_eq!(ours.abandoned_on(StreamId(0)).retransmissions.sent, 1);
    assert_eq!(ours.stats().abandoned, ours.abandoned_on(StreamId(0)));
}

/// To a peer, the address and the SCTP port are the endpoint.
#[tokio::test]
async fn endpoints_that_name_no_port_of_their_own_are_told_apart() {
    let callers: Vec<Endpoint> = (0..SET_UPS).map(|_| caller(&host(&["127.0.0.1"]))).collect();
    let mut ports: Vec<u16> = callers.iter().map(Endpoint::port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), SET_UPS);
}

/// All of them are set up before the first is taken.
#[tokio::test]
async fn any_number_of_set_ups_waits_to_be_accepted() {
    let server = listener(&host(&["127.0.0.2"]));
    let callers: Vec<Endpoint> = (0..SET_UPS).map(|_| caller(&host(&["127.0.0.1"]))).collect();
    let mut ours = Vec::new();
    for caller in &callers {
        let peer = Peer::new(server.local_addresses(), PORT).with_udp_port(server.udp_port());
        let association = timeout(FOREVER, caller.connect(peer)).await.expect("set-up ends");
        ours.push(association.expect("the listener answers"));
    }
    for association in &ours {
        association.send(SendOptions::default(), "well").await.expect("open");
    }
    let mut theirs = Vec::new();
    for _ in 0..SET_UPS {
        let association =
            timeout(FOREVER, server.accept()).await.expect("one waits").expect("the runtime lives");
        let message = timeout(FOREVER, association.recv()).await.expect("it comes");
        assert_eq!(message.expect("open").expect("a message").payload.into_bytes(), "well");
        theirs.push(association);
    }
    assert!(ours.iter().all(|association| association.close_reason().is_none()));
}

#[tokio::test]
async fn a_closed_endpoint_lets_nobody_in() {
    let (client, server) = (caller(&host(&["127.0.0.1"])), listener(&host(&["127.0.0.2"])));
    let (ours, theirs) = pair(&client, &server, server.udp_port()).await;
    let peer = Peer::new(server.local_addresses(), PORT).with_udp_port(server.udp_port());
    drop(server);
    let second = timeout(FOREVER, client.connect(peer)).await.expect("decided");
    match second {
        Err(_) => {}
        Ok(second) => {
            let end = timeout(FOREVER, second.closed()).await.expect("it is told");
            assert!(matches!(end, CloseReason::AbortedByPeer { .. }), "{end:?}");
        }
    }
    // What was accepted lives on.
    let exchange = async { tokio::join!(send_all(&ours, 1, 3, 500), receive_all(&theirs, 1, 3, 500)) };
    timeout(FOREVER, exchange).await.expect("the exchange ends");
}

#[test]
fn an_endpoint_whose_runtime_is_gone_refuses_instead_of_waiting() {
    let runtime = || tokio::runtime::Runtime::new().expect("the system has threads");
    let (first, second) = (runtime(), runtime());
    let (listener, caller, (ours, _theirs)) = first.block_on(async {
        let (listener, caller) = (listener(&host(&["127.0.0.1"])), caller(&host(&["127.0.0.1"])));
        let ends = pair(&caller, &listener, listener.udp_port()).await;
        (listener, caller, ends)
    });
    let peer = Peer::new(listener.local_addresses(), PORT + 1).with_udp_port(listener.udp_port());
    drop(first);
    second.block_on(async {
        let gone = ConnectError::Ended(Ended(CloseReason::DriverEnded));
        let connecting = timeout(FOREVER, caller.connect(peer)).await.expect("an answer");
        assert_eq!(connecting.err(), Some(gone));
        let filling = async { while ours.send(SendOptions::default(), vec![0; 60_000]).await.is_ok() {} };
        timeout(FOREVER, filling).await.expect("a full buffer is no reason to wait for nobody");
        assert!(timeout(FOREVER, listener.accept()).await.expect("an answer").is_none());
    });
}
