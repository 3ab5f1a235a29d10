//! Futures that are dropped before they are ready: nothing is lost, sent twice or left behind.

#![allow(missing_docs, reason = "a test")]

use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, ByteStream, CloseReason, Connecting, Endpoint, EndpointBuilder,
    EndpointConfig, Event, Events, Messages, Peer, SendOptions, StreamId,
};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);
/// A few messages of this length fill the send buffer.
const LONG: usize = 200_000;

fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::bind(&[HERE], 0, config, AssociationConfig::default()).expect("loopback")
}

fn place(server: &Endpoint) -> Peer {
    Peer::new([HERE], 7).with_udp_port(server.udp_port())
}

/// Both ends of an association over loopback, and their endpoints.
async fn pair() -> (Endpoint, Endpoint, Association, Association) {
    let (client, server) = (endpoint(EndpointConfig::default()), endpoint(EndpointConfig::listening(7)));
    let ours = client.connect(place(&server)).await.expect("it answers");
    let theirs = server.accept().await.expect("it came");
    (client, server, ours, theirs)
}

/// Polls `future` once, and drops it. It must not be ready.
fn give_up<T>(future: impl Future<Output = T>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(future).poll(&mut cx).is_pending(), "it waits");
}

/// Fills the send buffer and returns the number of messages.
fn fill(association: &Association) -> u32 {
    let mut count = 0;
    while association.try_send(SendOptions::default(), numbered(count)).is_ok() {
        count += 1;
    }
    count
}

fn numbered(number: u32) -> Bytes {
    let mut bytes = vec![0; LONG];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

/// Receives messages until the end, and returns their numbers.
async fn numbers(association: &Association) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(message) = association.recv().await.expect("a graceful end") {
        let bytes = message.payload.into_bytes();
        all.push(u32::from_be_bytes(bytes[..4].try_into().expect("four bytes")));
    }
    all
}

#[test]
fn handles_and_their_futures_can_move_between_threads() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>(_: T) {}
    both::<Endpoint>();
    both::<EndpointBuilder>();
    both::<Association>();
    both::<Connecting>();
    both::<Messages>();
    both::<ByteStream>();
    both::<Events>();
    let _ = |endpoint: &'static Endpoint, association: &'static Association, peer: Peer| {
        send(endpoint.accept());
        send(endpoint.connect(peer));
        send(endpoint.wait_idle());
        send(association.send(SendOptions::default(), "x"));
        send(association.recv());
        send(association.low_water(StreamId(0), 0));
        send(association.shutdown());
        send(association.closed());
    };
}

#[tokio::test]
async fn a_send_that_is_given_up_queues_nothing() {
    let (_client, _server, ours, theirs) = pair().await;
    let count = fill(&ours);
    give_up(ours.send(SendOptions::default(), numbered(1000)));
    let mut waiting = VecDeque::from([(SendOptions::default(), numbered(2000))]);
    give_up(ours.send_many(&mut waiting));
    assert_eq!(waiting.len(), 1);
    let ending = async { tokio::join!(ours.shutdown(), numbers(&theirs)) };
    let (end, came) = timeout(FOREVER, ending).await.expect("it ends");
    assert_eq!((end, came), (Ok(()), (0..count).collect()));
}

#[tokio::test]
async fn receiving_and_waiting_that_is_given_up_loses_no_message() {
    let (_client, _server, ours, theirs) = pair().await;
    let (mut stream, mut events) = (theirs.messages(), ours.events());
    let mut cx = Context::from_waker(Waker::noop());
    for number in 0..50 {
        give_up(theirs.recv());
        give_up(theirs.recv_many(&mut Vec::new(), 10));
        assert!(Pin::new(&mut stream).poll_next(&mut cx).is_pending());
        give_up(theirs.closed());
        give_up(events.next());
        ours.send(SendOptions::default(), numbered(number)).await.expect("open");
        // Given up at some point of the arrival, too.
        let came = loop {
            tokio::select! {
                biased;
                () = tokio::task::yield_now() => {}
                came = theirs.recv() => break came,
            }
            match Pin::new(&mut stream).poll_next(&mut cx) {
                Poll::Ready(Some(came)) => break came.map(Some),
                Poll::Ready(None) => panic!("the end"),
                Poll::Pending => {}
            }
        };
        let bytes = came.expect("open").expect("a message").payload.into_bytes();
        assert_eq!(bytes, numbered(number));
    }
    ours.set_low_water(StreamId(0), Some(1)).expect("a stream");
    let next = timeout(FOREVER, events.next()).await.expect("an event");
    assert_eq!(next, Some(Ok(Event::LowWater { stream: StreamId(0), unsent: 0 })), "none is lost");
}

#[tokio::test]
async fn an_accept_that_is_given_up_loses_no_association() {
    let server = endpoint(EndpointConfig::listening(7));
    let clients = [endpoint(EndpointConfig::default()), endpoint(EndpointConfig::default())];
    give_up(server.accept());
    let mut waiting = Box::pin(server.accept());
    give_up(waiting.as_mut());
    let mut ours = Vec::new();
    for client in &clients {
        ours.push(client.connect(place(&server)).await.expect("it answers"));
    }
    // This one had its notification.
    drop(waiting);
    for _ in &clients {
        timeout(FOREVER, server.accept()).await.expect("one waits").expect("the runtime lives");
    }
}

#[tokio::test]
async fn a_connect_that_is_given_up_leaves_nothing() {
    let (client, server) = (endpoint(EndpointConfig::default()), endpoint(EndpointConfig::listening(7)));
    give_up(client.connect(place(&server)));
    timeout(FOREVER, client.wait_idle()).await.expect("it is cancelled");
    let ours = timeout(FOREVER, client.connect(place(&server))).await.expect("an answer");
    ours.expect("the same peer is free again").abort("done");
}

#[tokio::test]
async fn a_shutdown_that_is_given_up_goes_on() {
    let (client, server, ours, theirs) = pair().await;
    ours.send(SendOptions::default(), numbered(3)).await.expect("open");
    give_up(ours.shutdown());
    assert!(ours.try_send(SendOptions::default(), "late").is_err());
    assert_eq!(timeout(FOREVER, numbers(&theirs)).await.expect("it ends"), [3]);
    assert_eq!(timeout(FOREVER, ours.closed()).await, Ok(CloseReason::Graceful));
    assert_eq!(timeout(FOREVER, ours.shutdown()).await, Ok(Ok(())), "a later call has the same result");
    drop((ours, theirs));
    timeout(FOREVER, async { tokio::join!(client.wait_idle(), server.wait_idle()) }).await.expect("both");
}

#[tokio::test]
async fn a_sink_sends_once_what_it_accepted() {
    let (_client, _server, ours, theirs) = pair().await;
    let mut cx = Context::from_waker(Waker::noop());
    let mut sink = ours.messages();
    let mut count = 0;
    while Sink::<(SendOptions, Bytes)>::poll_ready(Pin::new(&mut sink), &mut cx).is_ready() {
        let item = (SendOptions::default(), numbered(count));
        Pin::new(&mut sink).start_send(item).expect("open");
        count += 1;
    }
    assert!(Sink::<(SendOptions, Bytes)>::poll_flush(Pin::new(&mut sink), &mut cx).is_pending());
    assert!(Sink::<(SendOptions, Bytes)>::poll_close(Pin::new(&mut sink), &mut cx).is_pending());
    let closing =
        std::future::poll_fn(|cx| Sink::<(SendOptions, Bytes)>::poll_close(Pin::new(&mut sink), cx));
    let ending = async { tokio::join!(closing, numbers(&theirs)) };
    let (end, came) = timeout(FOREVER, ending).await.expect("it ends");
    assert_eq!((end, came), (Ok(()), (0..count).collect()));
}

#[tokio::test]
async fn bytes_are_written_and_read_once_although_calls_are_given_up() {
    let (_client, _server, ours, theirs) = pair().await;
    let mut cx = Context::from_waker(Waker::noop());
    let (mut writer, mut reader) = (ours.byte_stream(StreamId(1)), theirs.byte_stream(StreamId(1)));
    let mut buffer = [0; 10];
    assert!(Pin::new(&mut reader).poll_read(&mut cx, &mut ReadBuf::new(&mut buffer)).is_pending());
    let mut written = Vec::new();
    for round in 0..200_u32 {
        let bytes = vec![round as u8; 10_000 + round as usize];
        // A write that waits has taken nothing.
        while let Poll::Ready(taken) = Pin::new(&mut writer).poll_write(&mut cx, &bytes) {
            written.extend_from_slice(&bytes[..taken.expect("open")]);
        }
        let mut some = vec![0; 30_000];
        let count = timeout(FOREVER, reader.read(&mut some)).await.expect("some").expect("open");
        assert_eq!(some[..count], written[..count]);
        written.drain(..count);
        assert!(Pin::new(&mut reader).poll_read(&mut cx, &mut ReadBuf::new(&mut [])).is_ready());
    }
    assert!(Pin::new(&mut writer).poll_shutdown(&mut cx).is_pending());
    let mut rest = Vec::new();
    timeout(FOREVER, reader.read_to_end(&mut rest)).await.expect("it ends").expect("gracefully");
    assert_eq!(rest, written);
}
