//! The schedulers with interleaving (RFC 8260 §3): what they do with messages of many fragments.

use std::time::Duration;

use tresse_proto::{AssociationConfig, StreamId};

use crate::common::{Pair, content};
use crate::packets::{Chunks, finish, observed_with, queue};

const NAMES: [&str; 6] =
    ["first_come", "round_robin", "round_robin_packet", "priority", "fair_bandwidth", "weighted_fair"];

fn config(scheduler: &str, of_scheduler: &str, interleaving: bool) -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.stream_scheduler = scheduler.to_owned();
        c.stream_scheduler_config = of_scheduler.to_owned();
        c.interleaving = interleaving;
    })
}

/// The packets of `count` messages of `len` bytes on each of `streams`.
fn packets(config: &AssociationConfig, streams: &[u16], count: u32, len: usize) -> Vec<Chunks> {
    let (mut pair, seen) = observed_with(1, config);
    queue(&mut pair, streams, count, len);
    finish(&mut pair, streams, count);
    seen.take()
}

fn streams_of(packets: &[Chunks]) -> Vec<u16> {
    packets.iter().flatten().map(|&(stream, _)| stream).collect()
}

#[test]
fn every_scheduler_delivers_everything_in_order_interleaved() {
    for name in NAMES {
        for len in [100, 1_400, 20_000] {
            let (mut pair, _) = observed_with(2, &config(name, "", true));
            queue(&mut pair, &[0, 3, 9], 15, len);
            finish(&mut pair, &[0, 3, 9], 15);
        }
    }
}

#[test]
fn round_robin_alternates_fragment_by_fragment() {
    let order = streams_of(&packets(&config("round_robin", "", true), &[0, 1, 2], 2, 30_000));
    let turns = order.chunks(3).filter(|turn| *turn == [0, 1, 2]).count();
    // Ends of messages are shorter and share packets with what follows.
    assert!(turns * 3 >= order.len() - 12, "{order:?}");
    let whole = streams_of(&packets(&config("round_robin", "", false), &[0, 1, 2], 2, 30_000));
    assert!(whole[..20].iter().all(|&stream| stream == 0), "{whole:?}");
}

#[test]
fn first_come_never_begins_a_message_before_the_end_of_the_last() {
    let order = streams_of(&packets(&config("first_come", "", true), &[0, 1, 2], 2, 10_000));
    let mut runs = order.clone();
    runs.dedup();
    assert_eq!(runs, [0, 1, 2, 0, 1, 2], "{order:?}");
}

#[test]
fn round_robin_packet_changes_the_stream_with_every_packet() {
    let packets = packets(&config("round_robin_packet", "", true), &[0, 1, 2], 2, 30_000);
    assert!(packets.iter().all(|packet| packet.iter().all(|(stream, _)| *stream == packet[0].0)));
    let first: Vec<u16> = packets.iter().map(|packet| packet[0].0).collect();
    assert!(first[..30].chunks(3).all(|turn| turn == [0, 1, 2]), "{first:?}");
}

#[test]
fn shares_hold_within_messages_however_long() {
    let heavy = |scheduler: &str, weights: &str, interleaving| {
        let order = streams_of(&packets(&config(scheduler, weights, interleaving), &[0, 1], 1, 200_000));
        order[..80].iter().filter(|&&stream| stream == 0).count()
    };
    assert!((59..=61).contains(&heavy("weighted_fair", "0=3", true)));
    assert!((39..=41).contains(&heavy("fair_bandwidth", "", true)));
    assert_eq!(heavy("weighted_fair", "0=3", false), 80, "a message once begun goes on");
}

/// How long a message of 100 bytes takes that is queued while a megabyte of lower priority is under way.
fn urgent_delay(interleaving: bool) -> (Duration, Duration) {
    let config = config("priority", "1=5", interleaving)
        .with(|c| c.receive_buffer = tresse_proto::config::Size(2 << 20));
    let mut pair = Pair::established(1, &config);
    pair.send(1, 0, 1_000_000);
    pair.run_for(Duration::from_millis(100));
    let queued = pair.now;
    pair.send(0, 0, 100);
    let arrived = |pair: &mut Pair, stream: u16| {
        pair.run_until(Duration::from_secs(60), |pair| {
            pair.server.received.iter().any(|message| message.stream == StreamId(stream))
        });
        pair.now.since(queued)
    };
    let urgent = arrived(&mut pair, 0);
    let long = arrived(&mut pair, 1);
    let whole = pair.server.received.iter().find(|message| message.stream == StreamId(1));
    assert_eq!(whole.map(|message| message.payload.clone().into_bytes()), Some(content(1, 0, 1_000_000)));
    (urgent, long)
}

#[test]
fn an_urgent_message_overtakes_a_megabyte_with_interleaving_and_not_without() {
    let (urgent, long) = urgent_delay(true);
    // One way takes 10 ms; the window may be closed for a round trip.
    assert!(urgent <= Duration::from_millis(30), "{urgent:?}");
    assert!(long >= 4 * urgent, "{long:?}");
    let (urgent, long) = urgent_delay(false);
    assert!(urgent >= long, "{urgent:?} behind {long:?}");
}
