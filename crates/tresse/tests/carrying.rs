//! Ways to give and take many messages.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use tresse::{Association, AssociationConfig, Endpoint, EndpointConfig, Peer, SendOptions, StreamId};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// No time at all, except on a machine that stands still.
const FOREVER: Duration = Duration::from_secs(300);

/// Both ends of an association over loopback, and their endpoints.
async fn pair() -> (Endpoint, Endpoint, Association, Association) {
    let config = AssociationConfig::preset("cmt").expect("a preset");
    let listening = EndpointConfig { port: 7, listen: true, ..EndpointConfig::default() };
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
