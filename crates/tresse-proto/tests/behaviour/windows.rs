//! The peer's receive buffer: closed windows, probes, updates, and transfers through tiny buffers.

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, Event, Limit, Part, Reliability, SendError, SendOptions, StreamId};
use tresse_wire::{Chunk, DATA_HEADER_LEN};

use crate::common::{Flight, Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn small(receive_buffer: usize) -> AssociationConfig {
    AssociationConfig::default().with(|c| c.receive_buffer = Size(receive_buffer))
}

/// A pair whose server has a small receive buffer and does not read; the client has filled it.
fn stalled(paths: u8, messages: u32, len: usize) -> Pair {
    let mut pair = Pair::unlike(paths, &AssociationConfig::default(), &small(20_000), 1).settled();
    pair.server.reads = false;
    for number in 0..messages {
        pair.send(0, number, len);
    }
    pair
}

/// Packets with DATA sent by the client since `from`, by the time of each in ms.
fn data_since(pair: &Pair, from: usize) -> Vec<u64> {
    let data = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.has_data());
    data.map(|flight| flight.sent.as_nanos() / 1_000_000).collect()
}

/// The TSNs of all DATA chunks that the client sent.
fn data_tsns(pair: &Pair) -> Vec<u32> {
    let chunks = pair.wire.iter().filter(|flight| flight.to_server).flat_map(Flight::chunks);
    let tsn = |chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn.0),
        Chunk::IData(data) => Some(data.tsn.0),
        _ => None,
    };
    chunks.filter_map(tsn).collect()
}

#[test]
fn a_peer_that_does_not_read_stops_the_transfer_at_its_buffer() {
    let mut pair = stalled(2, 100, 1000);
    pair.run_for(Duration::from_secs(30));
    let now = pair.now;
    let stats = pair.server().stats(now).expect("open");
    assert!(stats.receive_buffer_used <= 20_000, "{} bytes held", stats.receive_buffer_used);
    assert!(stats.receive_buffer_used > 17_000, "and it was used: {}", stats.receive_buffer_used);
    let stats = pair.client().stats(now).expect("open");
    assert_eq!(stats.peer_window, 0);
    assert_eq!(stats.messages_sent, 100);
    // What limits is named.
    let half = Duration::from_secs(15);
    assert!(stats.limited_by.of(Limit::ReceiveBuffer) > half, "{:?}", stats.limited_by);
}

#[test]
fn a_closed_window_is_probed_ever_more_slowly_and_never_given_up() {
    let mut pair = stalled(1, 100, 1000);
    pair.run_for(Duration::from_secs(5));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(1800));
    assert!(
        pair.client.events.iter().all(|event| !matches!(event, Event::Closed(_) | Event::PathChanged { .. }))
    );
    let probes = data_since(&pair, before);
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The RTO doubles up to a minute (RFC 9260 §6.1 A).
    assert!(gaps.is_sorted() && gaps.last().is_some_and(|gap| (59_000..=61_000).contains(gap)), "{gaps:?}");
}

/// A message of which only the first chunk has probed the window is abandoned before T3 expires (RFC 9260 §6.1 A).
#[test]
fn the_timer_and_not_the_lifetime_of_messages_sets_the_interval_of_probes() {
    for policy in [Reliability::Lifetime(ms(50)), Reliability::Priority(0)] {
        let client = AssociationConfig::default().with(|c| {
            c.send_buffer = Size(40_000);
            // The answer to a probe of the path MTU would be a round-trip sample, which ends the back-off.
            c.mtu_discovery = false;
        });
        let mut pair = Pair::unlike(1, &client, &small(20_000), 1).settled();
        pair.server.reads = false;
        let offer = |pair: &mut Pair, number: u32| {
            let (now, message) = (pair.now, content(0, number, 3000));
            // Each evicts the one before it.
            let policy = match policy {
                Reliability::Priority(_) => Reliability::Priority(100_000 - number),
                other => other,
            };
            let options = SendOptions::on(StreamId(0)).with(|o| o.reliability = policy);
            pair.client().send(now, options, message).expect("room, or it is made");
            pair.run_for(ms(50));
        };
        // What is delivered, and not read, leaves no room for another chunk.
        (0..13).for_each(|number| pair.send(1, number, 1452));
        pair.run_for(Duration::from_secs(5));
        let before = pair.wire.len();
        (0..1200).for_each(|number| offer(&mut pair, number));
        let probes = data_since(&pair, before);
        let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.is_sorted() && gaps[0] >= 300 && gaps.last() > Some(&5000), "{policy:?}: {gaps:?}");
        let harmless = |event: &Event| matches!(event, Event::Abandoned { .. } | Event::Writable);
        assert!(pair.client.events.iter().all(harmless), "the path has not failed");
        // The window opens long before T3 expires.
        let received = pair.server.received.len();
        pair.server.reads = true;
        pair.run_for(ms(100));
        (1200..1210).for_each(|number| offer(&mut pair, number));
        assert!(pair.server.received.len() >= received + 10, "{policy:?}: {}", pair.server.received.len());
    }
}

/// The window is not closed, but what waits is longer than it.
#[test]
fn a_window_too_small_for_the_next_chunk_is_probed_like_a_closed_one() {
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &small(1600), 1).settled();
    pair.server.reads = false;
    pair.send(0, 0, 832);
    pair.send(0, 1, 832);
    pair.run_for(Duration::from_secs(5));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(1800));
    assert!(
        pair.client.events.iter().all(|event| !matches!(event, Event::Closed(_) | Event::PathChanged { .. }))
    );
    assert!((20..60).contains(&data_since(&pair, before).len()), "{:?}", data_since(&pair, before));
    let reading = pair.now;
    pair.server.reads = true;
    pair.run_until(Duration::from_secs(100), |pair| pair.server.received.len() == 2);
    assert!(pair.now - reading < ms(100), "it took {:?}", pair.now - reading);
}

/// One chunk may always be under way (RFC 9260 §6.1 A), but not as many as fit its packet.
#[test]
fn a_probe_takes_no_short_messages_along_for_which_the_window_has_no_room() {
    for receive_buffer in [1600, 2000] {
        let mut pair = Pair::unlike(1, &AssociationConfig::default(), &small(receive_buffer), 1).settled();
        pair.server.reads = false;
        (0..40).for_each(|number| pair.send(0, number, 100));
        pair.run_for(Duration::from_secs(60));
        let mut sent: Vec<u32> = data_tsns(&pair);
        sent.sort_unstable();
        sent.dedup();
        // What the buffer holds, and the chunk that probes it.
        assert_eq!(
            sent.len(),
            receive_buffer / (100 + DATA_HEADER_LEN) + 1,
            "a buffer of {receive_buffer} bytes"
        );
        pair.server.reads = true;
        pair.run_until(Duration::from_secs(100), |pair| pair.server.received.len() == 40);
    }
}

#[test]
fn reading_opens_the_window_and_the_transfer_goes_on_at_once() {
    // Messages of a full chunk leave no room beside a probe in a window of one packet.
    for (paths, len) in [(1, 1000), (1, 1452), (2, 1000), (2, 1452), (2, 5000)] {
        for wait in [3, 30, 300] {
            let mut pair = stalled(paths, 100, len);
            pair.run_for(Duration::from_secs(wait));
            let (before, reading) = (pair.wire.len(), pair.now);
            pair.server.reads = true;
            // A window update leaves by itself (RFC 9260 §6.2), and what probed the window goes again.
            pair.run_for(ms(1));
            assert!(!pair.sent_since(before)[0].to_server);
            pair.run_for(ms(10));
            let again = pair.sent_since(before).iter().find(|flight| flight.has_data());
            assert_eq!(again.map(|flight| flight.sent - reading), Some(ms(10)));
            pair.run_until(Duration::from_secs(100), |pair| pair.server.received.len() == 100);
            let took = pair.now - reading;
            assert!(took < ms(1500), "{paths} paths, {len} bytes, {wait} s: it took {took:?}");
            assert_eq!(pair.server.numbers_on(0), (0..100).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_lost_window_update_delays_but_does_not_stall() {
    let mut pair = stalled(1, 100, 1000);
    pair.run_for(Duration::from_secs(3));
    let mut lost = 0;
    pair.network = Box::new(move |flight| {
        let update = !flight.to_server && lost < 3;
        lost += u32::from(update);
        (!update).then_some(ms(10))
    });
    pair.server.reads = true;
    pair.run_until(Duration::from_secs(300), |pair| pair.server.received.len() == 100);
}

#[test]
fn a_slow_reader_gets_everything() {
    let mut pair = stalled(2, 200, 1000);
    let mut read = 0;
    while read < 200 {
        pair.run_for(ms(50));
        let now = pair.now;
        for _ in 0..2 {
            if let Some(message) = pair.server().recv(now) {
                pair.server.received.push(message);
                read += 1;
            }
        }
        pair.pump();
        assert!(pair.now.as_secs_f64() < 120.0, "{read} messages only");
    }
    assert_eq!(pair.server.numbers_on(0), (0..200).collect::<Vec<_>>());
}

#[test]
fn windows_are_updated_when_a_quarter_of_the_buffer_has_become_free() {
    let mut pair = stalled(1, 20, 1000);
    pair.run_for(Duration::from_secs(2));
    let before = pair.wire.len();
    let mut updates = Vec::new();
    for read in 1..=15 {
        let now = pair.now;
        assert!(pair.server().recv(now).is_some());
        pair.pump();
        if pair.sent_since(before).iter().filter(|flight| !flight.to_server).count() > updates.len() {
            updates.push(read);
        }
    }
    assert!(updates.len() >= 3 && updates[0] >= 3, "{updates:?}");
    assert!(updates[1..].windows(2).all(|pair| pair[1] - pair[0] >= 4), "5,000 bytes at least: {updates:?}");
}

#[test]
fn a_tiny_receive_buffer_takes_messages_whose_chunks_it_holds() {
    for buffer in [1500, 3000, 5000] {
        let mut pair = Pair::unlike(2, &AssociationConfig::default(), &small(buffer), 1).settled();
        for number in 0..20 {
            pair.send(0, number, buffer - 8 * DATA_HEADER_LEN);
        }
        pair.run_until(Duration::from_secs(120), |pair| pair.server.received.len() == 20);
        assert_eq!(pair.server.numbers_on(0), (0..20).collect::<Vec<_>>());
        assert!(pair.server.received.iter().all(|message| message.part == Part::Whole));
    }
}

#[test]
fn the_send_buffer_holds_what_is_not_yet_acknowledged() {
    let config = AssociationConfig::default().with(|c| c.send_buffer = Size(10_000));
    let mut pair = Pair::established(1, &config);
    for number in 0..10 {
        pair.send(3, number, 1000);
    }
    let now = pair.now;
    let full = pair.client().send(now, SendOptions::on(StreamId(3)), content(3, 10, 1000));
    assert_eq!(full, Err(SendError::Full { free: 0 }));
    let queue = pair.client().send_queue();
    assert_eq!((queue.limit, queue.used), (10_000, 10_000));
    let chunks = pair.client().stats(now).expect("open").flight / (1000 + DATA_HEADER_LEN);
    let unsent = 10_000 - chunks * 1000;
    assert_eq!((queue.unsent, pair.client().unsent_on(StreamId(3))), (unsent, unsent));
    assert_eq!(pair.client().unsent_on(StreamId(4)), 0);
    pair.run_until(Duration::from_secs(5), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [Event::Writable]);
    pair.run_for(ms(500));
    let queue = pair.client().send_queue();
    assert_eq!((queue.used, queue.unsent), (0, 0));
    assert_eq!(pair.client.events, [Event::Writable], "told once");
}
