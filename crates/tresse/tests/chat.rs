//! The people of examples/chat on one host: every message is heard, whatever is sent beside it.

#![allow(missing_docs, reason = "a test")]

#[path = "../../../examples/chat/alice.rs"]
mod alice;
#[path = "../../../examples/chat/bob.rs"]
mod bob;
#[path = "../../../examples/chat/talk.rs"]
mod talk;

use std::net::IpAddr;
use std::time::Duration;

use tresse::{Endpoint, EndpointConfig, Peer};

#[tokio::test]
async fn bob_hears_every_message_beside_the_photo() {
    let here: [IpAddr; 1] = ["127.0.0.1".parse().expect("an address")];
    let settings = || talk::settings().expect("good settings");
    let listening = EndpointConfig::listening(7);
    let server = Endpoint::bind(&here, 0, listening, settings()).expect("free ports");
    let peer = Peer::new(here, 7).with_udp_port(server.udp_port());
    let listening = tokio::spawn(async move {
        let mut heard = Vec::new();
        for _ in 0..2 {
            let association = server.accept().await.expect("Alice calls");
            heard.push(bob::listen(&association).await);
        }
        heard
    });

    let client = Endpoint::bind(&here, 0, EndpointConfig::default(), settings()).expect("free ports");
    for (scheduler, config) in [("first_come", ""), ("priority", "0=1,1=2")] {
        client.set_stream_scheduler(scheduler, config).expect("they are built in");
        let association = client.connect(peer.clone()).await.expect("Bob answers");
        let moment = Duration::from_millis(5);
        let heard = alice::talk(&association, moment, 20, moment).await.expect("a talk");
        assert!(heard.median() <= heard.worst() && heard.mean() <= heard.worst(), "{heard:?}");
        association.abort("the talk is over");
    }
    let listened = listening.await.expect("Bob listened");
    assert!(
        listened.iter().all(|listened| listened.messages == 20 && listened.photo_bytes > 0),
        "{listened:?}"
    );
}

#[test]
fn latencies_are_summed_up() {
    let ms = Duration::from_millis;
    let latencies = alice::Latencies::new(vec![ms(30), ms(10), ms(80)]);
    assert_eq!((latencies.mean(), latencies.median(), latencies.worst()), (ms(40), ms(30), ms(80)));
    assert_eq!(talk::read(&talk::message("hello")).map(|(_, text)| text), Some("hello".to_owned()));
    assert_eq!(talk::read(b"short"), None);
}
