//! Ways to give and take messages: many at once, as a stream and a sink, as bytes; and events.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tresse::{
    Association, AssociationConfig, Endpoint, EndpointConfig, Event, Peer, SendOptions, StreamId,
    TryRecvError,
};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// No time at all, except on a machine that stands still.
const FOREVER: Duration = Duration::from_secs(300);

/// Both ends of an association over loopback, and their endpoints.
async fn pair() -> (Endpoint, Endpoint, Association, Association) {
    let config = AssociationConfig::preset("cmt").expect("a preset");
    let listening = EndpointConfig::listening(7);
    let server = Endpoint::bind(&[HERE], 0, listening, config.clone()).expect("loopback");
    let client = Endpoint::bind(&[HERE], 0, EndpointConfig::default(), config).expect("loopback");
    let ours =
        client.connect(Peer::new([HERE], 7).with_udp_port(server.udp_port())).await.expect("it answers");
    let theirs = server.accept().await.expect("it came");
    (client, server, ours, theirs)
}

fn message(number: u32) -> Bytes {
    let len = 4 + (number % 3000) as usize;
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(len, number as u8);
    bytes.into()
}

#[tokio::test]
async fn many_messages_arrive_as_they_were_given() {
    let (_client, _server, ours, theirs) = pair().await;
    const COUNT: u32 = 5000;
    let sending = async {
        let options = SendOptions::on(StreamId(2));
        let mut waiting: VecDeque<_> = (0..COUNT).map(|number| (options, message(number))).collect();
        // More than the send buffer takes at once: some is taken now, and the rest is waited for.
        let at_once = ours.try_send_many(&mut waiting).expect("room for some");
        assert!(at_once > 0 && waiting.len() == COUNT as usize - at_once);
        ours.send_many(&mut waiting).await.expect("open");
        assert!(waiting.is_empty());
        ours.shutdown().await.expect("everything is delivered");
    };
    let receiving = async {
        let mut came = Vec::new();
        assert_eq!(theirs.recv_many(&mut came, 0).await, Ok(0));
        loop {
            let before = came.len();
            let count = theirs.recv_many(&mut came, 100).await.expect("a graceful end");
            assert_eq!(came.len() - before, count);
            assert!(count <= 100);
            if count == 0 {
                break came;
            }
        }
    };
    let ((), came) =
        timeout(FOREVER, async { tokio::join!(sending, receiving) }).await.expect("it comes to an end");
    let came: Vec<Bytes> = came.into_iter().map(|message| message.payload.into_bytes()).collect();
    assert_eq!(came, (0..COUNT).map(message).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_message_that_cannot_be_queued_stays_at_the_front() {
    let (_client, _server, ours, _theirs) = pair().await;
    let good = (SendOptions::on(StreamId(0)), Bytes::from_static(b"good"));
    let bad = (SendOptions::on(StreamId(u16::MAX)), Bytes::from_static(b"bad"));
    let mut waiting = VecDeque::from([good.clone(), bad.clone(), good.clone()]);
    assert!(ours.send_many(&mut waiting).await.is_err());
    assert_eq!(waiting, [bad, good]);
}

#[tokio::test]
async fn messages_pass_through_a_sink_and_a_stream() {
    let (_client, _server, ours, theirs) = pair().await;
    const COUNT: u32 = 3000;
    let sending = async {
        let mut sink = ours.messages();
        for number in 0..COUNT {
            sink.feed((SendOptions::on(StreamId(1)), message(number))).await.expect("open");
        }
        SinkExt::<(SendOptions, Bytes)>::close(&mut sink).await.expect("everything is delivered");
    };
    let receiving = theirs.messages().map(|message| message.expect("a graceful end").payload.into_bytes());
    let both = async { tokio::join!(sending, receiving.collect::<Vec<_>>()) };
    let ((), came) = timeout(FOREVER, both).await.expect("it comes to an end");
    assert_eq!(came, (0..COUNT).map(message).collect::<Vec<_>>());
    assert!(theirs.messages().next().await.is_none());
}

#[tokio::test]
async fn what_a_write_or_a_sink_has_taken_arrives_although_the_rest_is_given_up() {
    const PIECE: [u8; 16 * 1024] = [7; 16 * 1024];
    for as_bytes in [true, false] {
        let (_client, _server, ours, theirs) = pair().await;
        let mut taken = 0;
        // Nobody reads, so that at some time it takes nothing more.
        if as_bytes {
            let mut stream = ours.byte_stream(StreamId(3));
            poll_fn(|cx| {
                while let Poll::Ready(count) = Pin::new(&mut stream).poll_write(cx, &PIECE) {
                    taken += count.expect("open");
                }
                Poll::Ready(())
            })
            .await;
        } else {
            let mut sink = ours.messages();
            poll_fn(|cx| {
                while let Poll::Ready(ready) =
                    Sink::<(SendOptions, Bytes)>::poll_ready(Pin::new(&mut sink), cx)
                {
                    ready.expect("open");
                    let piece = (SendOptions::on(StreamId(3)), Bytes::from_static(&PIECE));
                    Pin::new(&mut sink).start_send(piece).expect("open");
                    taken += PIECE.len();
                }
                Poll::Ready(())
            })
            .await;
        }
        drop(ours);
        let mut all = Vec::new();
        let reading = theirs.byte_stream(StreamId(3)).read_to_end(&mut all).await;
        reading.expect("a clean end");
        assert_eq!(all.len(), taken, "as bytes: {as_bytes}");
    }
}

#[tokio::test]
async fn bytes_pass_through_a_stream_of_an_association() {
    let (_client, _server, ours, theirs) = pair().await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let sending = async {
        let mut stream = ours.byte_stream(StreamId(3));
        stream.write_all(&bytes).await.expect("open");
        stream.flush().await.expect("open");
        let mut echo = [0; 5];
        stream.read_exact(&mut echo).await.expect("an answer");
        stream.shutdown().await.expect("everything is delivered");
        echo
    };
    let receiving = async {
        let mut stream = theirs.byte_stream(StreamId(3));
        let mut came = vec![0; bytes.len()];
        stream.read_exact(&mut came).await.expect("all of them");
        stream.write_all(b"thank").await.expect("open");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("a graceful end");
        assert!(rest.is_empty());
        came
    };
    let both = async { tokio::join!(sending, receiving) };
    let (echo, came) = timeout(FOREVER, both).await.expect("it comes to an end");
    assert_eq!(&echo, b"thank");
    assert!(came == bytes);
}

#[tokio::test]
async fn a_byte_stream_refuses_messages_of_other_streams() {
    let (_client, _server, ours, theirs) = pair().await;
    ours.send(SendOptions::on(StreamId(4)), "elsewhere").await.expect("open");
    let mut stream = theirs.byte_stream(StreamId(3));
    let error = timeout(FOREVER, stream.read_u8()).await.expect("an answer").expect_err("not its stream");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("stream 4"), "{error}");
}

#[tokio::test]
async fn bytes_pass_through_a_send_buffer_that_is_smaller_than_a_message() {
    let (_client, server, _, _) = pair().await;
    let mut config = AssociationConfig::default();
    config.set("send_buffer", "4KiB").expect("a size");
    let client = Endpoint::bind(&[HERE], 0, EndpointConfig::default(), config).expect("loopback");
    let ours =
        client.connect(Peer::new([HERE], 7).with_udp_port(server.udp_port())).await.expect("it answers");
    let theirs = server.accept().await.expect("it came");
    let bytes: Vec<u8> = (0..50_000_u32).map(|at| (at % 251) as u8).collect();
    let writing = async {
        let mut stream = ours.byte_stream(StreamId(3));
        stream.write_all(&bytes).await.expect("open");
        stream.shutdown().await.expect("everything is delivered");
    };
    let mut came = Vec::new();
    let mut reader = theirs.byte_stream(StreamId(3));
    let both = async { tokio::join!(writing, reader.read_to_end(&mut came)) };
    let ((), count) = timeout(FOREVER, both).await.expect("it ends");
    assert_eq!(count.expect("gracefully"), bytes.len());
    assert_eq!(came, bytes);
}

#[tokio::test]
async fn errors_of_a_byte_stream_tell_ends_apart() {
    let (_client, _server, ours, theirs) = pair().await;
    let (mut aborted, mut own) = (ours.byte_stream(StreamId(0)), theirs.byte_stream(StreamId(0)));
    let beyond =
        ours.byte_stream(StreamId(u16::MAX)).write_all(b"x").await.expect_err("there is no such stream");
    assert_eq!(beyond.kind(), ErrorKind::InvalidInput);
    theirs.abort("enough of this");
    timeout(FOREVER, ours.closed()).await.expect("the abort arrives");
    let read = aborted.read(&mut [0; 10]).await.expect_err("aborted");
    let written = aborted.write_all(b"x").await.expect_err("aborted");
    for error in [read, written] {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(error.to_string().contains("enough of this"), "{error}");
    }
    assert_eq!(own.write_all(b"x").await.expect_err("aborted").kind(), ErrorKind::ConnectionAborted);
    let (_client, _server, ours, theirs) = pair().await;
    tokio::join!(ours.shutdown(), theirs.closed()).0.expect("nothing is missing");
    let late = ours.byte_stream(StreamId(0)).write_all(b"x").await.expect_err("it was shut down");
    assert_eq!(late.kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn what_is_not_there_says_whether_it_may_come() {
    let (_client, _server, ours, theirs) = pair().await;
    assert_eq!(theirs.try_recv(), Err(TryRecvError::Empty));
    let (gone, _) =
        timeout(FOREVER, async { tokio::join!(ours.shutdown(), theirs.closed()) }).await.expect("an end");
    gone.expect("graceful");
    assert_eq!(theirs.try_recv(), Err(TryRecvError::Finished));
    let (_client, _server, ours, theirs) = pair().await;
    ours.abort("no more");
    theirs.closed().await;
    assert!(matches!(theirs.try_recv(), Err(TryRecvError::Ended(_))));
}

#[tokio::test]
async fn a_slow_listener_is_told_how_many_events_it_missed() {
    let (_client, _server, ours, _theirs) = pair().await;
    let mut events = ours.events();
    for _ in 0..100 {
        ours.set_low_water(StreamId(1), Some(0)).expect("a stream");
    }
    // The driver hands them out behind what it does for this.
    let first = timeout(FOREVER, events.next()).await.expect("an event").expect("open");
    let missed = first.expect_err("64 are kept").0;
    let mut kept = 0;
    while missed + kept < 100 {
        let event = timeout(FOREVER, events.next()).await.expect("an event").expect("open").expect("kept");
        kept += u64::from(matches!(event, Event::LowWater { .. }));
    }
    assert_eq!((missed, kept), (36, 64));
}

#[tokio::test]
async fn an_endpoint_is_built_from_names() {
    let server =
        Endpoint::builder().local("127.0.0.1").expect("an address").listen(7).bind().expect("loopback");
    let client = Endpoint::builder().local_addresses([HERE]).port(4000).bind().expect("loopback");
    assert_eq!((client.port(), client.local_addresses()), (4000, vec![HERE]));
    let peer = Peer::new([HERE], 7).with_udp_port(server.udp_port());
    let association = timeout(FOREVER, client.connect(peer)).await.expect("an answer").expect("it is let in");
    assert!(format!("{client:?} {association:?}").contains("127.0.0.1"));
    assert!(Endpoint::builder().local("no such name").is_err());
}
