//! A driver that polls its sockets while bulk data arrives: none of them wakes it meanwhile, and each does again afterwards.

#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::fs::{read_dir, read_link, read_to_string};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tresse::{Association, Endpoint, Peer, SendOptions, StreamId};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5001;
/// Long enough for any machine: it only ends tests that hang.
const FOREVER: Duration = Duration::from_secs(300);
/// Full packets in a millisecond, and the user data of one.
const PACKETS: u64 = 5;
const PAYLOAD: usize = 1400;
/// Requests, and the time between them.
const REQUESTS: u64 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// Descriptors of this process for UDP sockets on that port.
fn descriptors(udp_port: u16) -> Vec<u32> {
    let local = format!("0100007F:{udp_port:04X}");
    let table = read_to_string("/proc/self/net/udp").expect("Linux has it");
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let inodes: Vec<_> = fields
        .filter(|words| words.get(1) == Some(&local.as_str()))
        .map(|words| format!("socket:[{}]", words[9]))
        .collect();
    let entries = read_dir("/proc/self/fd").expect("Linux has it").flatten();
    let own = entries.filter(|entry| {
        read_link(entry.path()).is_ok_and(|to| inodes.iter().any(|inode| to.to_str() == Some(inode)))
    });
    own.map(|entry| entry.file_name().to_str().expect("digits").parse().expect("a number")).collect()
}

/// Returns whether an epoll instance of this process watches one of them.
fn is_watched(descriptors: &[u32]) -> bool {
    let entries = read_dir("/proc/self/fdinfo").expect("Linux has it").flatten();
    let texts = entries.filter_map(|entry| read_to_string(entry.path()).ok());
    let watched: Vec<u32> = texts
        .flat_map(|text| {
            let words = text.lines().map(|line| line.split_whitespace().take(2).map(str::to_owned).collect());
            let entries =
                words.filter(|words: &Vec<String>| words.first().is_some_and(|word| word == "tfd:"));
            entries.map(|words| words[1].parse().expect("a descriptor")).collect::<Vec<u32>>()
        })
        .collect();
    descriptors.iter().any(|descriptor| watched.contains(descriptor))
}

/// Sends bulk data at a steady rate until `is_enough`; returns the number of messages.
async fn send_steadily(association: &Association, first: u64, is_enough: impl Fn() -> bool) -> u64 {
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (begin, mut sent) = (Instant::now(), 0);
    while !is_enough() {
        ticks.tick().await;
        while sent < PACKETS * begin.elapsed().as_millis() as u64 {
            let mut message = vec![0; PAYLOAD];
            message[..8].copy_from_slice(&(first + sent).to_be_bytes());
            association.send(SendOptions::on(StreamId(0)), message).await.expect("it is open");
            sent += 1;
        }
    }
    first + sent
}

/// Receives everything, in order; answers each short message.
async fn serve(association: Association) {
    let mut next = 0_u64;
    while let Ok(Some(message)) = association.recv().await {
        let payload = message.payload.into_bytes();
        assert_eq!(payload[..8], next.to_be_bytes());
        next += 1;
        if payload.len() < PAYLOAD {
            association.send(SendOptions::on(StreamId(0)), payload).await.expect("it is open");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_are_polled_while_bulk_data_arrives_and_wake_their_driver_after_it() {
    let server = Endpoint::builder().local_addresses([HERE]).listen(PORT).bind().expect("free");
    let client = Endpoint::builder().local_addresses([HERE]).bind().expect("free");
    let peer = Peer::new([HERE], PORT).with_udp_port(server.udp_port());
    let sockets = descriptors(server.udp_port());
    assert_eq!(sockets.len(), 1, "one socket for one address");
    let near = client.connect(peer).await.expect("it listens");
    tokio::spawn(serve(server.accept().await.expect("it runs")));
    let test = async {
        let mut sent = 0;
        for _ in 0..2 {
            assert!(is_watched(&sockets), "what arrives wakes the driver");
            sent = send_steadily(&near, sent, || !is_watched(&sockets)).await;
            for _ in 0..REQUESTS {
                tokio::time::sleep(PAUSE).await;
                near.send(SendOptions::on(StreamId(0)), sent.to_be_bytes().to_vec())
                    .await
                    .expect("it is open");
                let answer = near.recv().await.expect("it is open").expect("an answer");
                assert_eq!(answer.payload.into_bytes()[..], sent.to_be_bytes());
                sent += 1;
            }
        }
        assert!(is_watched(&sockets), "requests are no bulk data");
    };
    timeout(FOREVER, test).await.expect("steady data is found to be steady");
}
