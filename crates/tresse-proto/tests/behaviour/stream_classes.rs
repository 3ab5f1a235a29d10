//! Classes of streams: latency-critical ones before others, background ones behind them.

use std::time::Duration;

use tresse_proto::config::{StreamClass, StreamClasses};
use tresse_proto::{AssociationConfig, ScheduleError, SendOptions, StreamId};
use tresse_wire::{Chunk, StreamId as Stream};

use crate::common::{Pair, content, unlike_paths};

fn classes(text: &str) -> AssociationConfig {
    let mut config = AssociationConfig::preset("adaptive").expect("a preset");
    config.set("stream_classes", text).expect("classes");
    config
}

#[test]
fn classes_are_set_read_and_cut_to_the_negotiated_streams() {
    let mut pair = Pair::new(2, &classes("1=latency,12=background"));
    pair.connect();
    assert_eq!(pair.client().stream_class(StreamId(1)), None, "not before the set-up");
    let early = pair.client().set_stream_class(StreamId(1), StreamClass::Bulk);
    assert_eq!(early, Err(ScheduleError::NoSuchStream(StreamId(1))));
    pair.run_for(Duration::from_secs(1));
    let mut client = pair.client();
    assert_eq!(client.stream_class(StreamId(0)), Some(StreamClass::Bulk));
    assert_eq!(client.stream_class(StreamId(1)), Some(StreamClass::Latency));
    assert_eq!(client.stream_class(StreamId(12)), None, "ten streams were negotiated");
    assert_eq!(client.set_stream_class(StreamId(0), StreamClass::Background), Ok(()));
    assert_eq!(client.stream_class(StreamId(0)), Some(StreamClass::Background));
}

#[test]
fn an_urgent_message_overtakes_what_was_queued_before() {
    let mut pair = Pair::established(2, &classes("1=latency,2=background"));
    for number in 0..300 {
        pair.send(2, number, 1000);
        pair.send(0, number, 1000);
    }
    pair.send(1, 0, 50);
    pair.run_for(Duration::from_secs(10));
    let order: Vec<u16> = pair.server.received.iter().map(|message| message.stream.0).collect();
    assert_eq!(order.len(), 601, "nothing is lost");
    let place = order.iter().position(|&stream| stream == 1).expect("it came");
    assert!(place < 30, "only what was under way came before: {place}");
    let last_bulk = order.iter().rposition(|&stream| stream == 0).expect("it came");
    let background = order[..last_bulk].iter().filter(|&&stream| stream == 2).count();
    assert!(background < 30, "background waited for bulk: {background}");
}

#[test]
fn what_is_no_class_is_refused_with_the_known_ones() {
    let mut config = AssociationConfig::default();
    let refused = config.set("stream_classes", "0=fast").expect_err("no class").to_string();
    assert_eq!(
        refused,
        "setting \"stream_classes\": \"0=fast\" is not streams, each named once, with their classes (latency, bulk, \
         background), as in 0=latency,3=background"
    );
    assert_eq!(config.stream_classes, StreamClasses::default());
}

/// An association over two paths, the second of them longer, with stream 1 latency-critical and any stream map.
fn latency_critical() -> Pair {
    let config = AssociationConfig::default().with(|c| {
        c.set("stream_classes", "1=latency").expect("classes");
        c.mtu_discovery = false;
    });
    let mut pair = Pair::new(2, &config);
    pair.network = unlike_paths([10, 15], None);
    let mut pair = pair.settled();
    pair.run_for(Duration::from_secs(1));
    pair
}

/// Chunks of a stream that the client sent on each of two paths since `from` packets were sent.
fn sent_on(pair: &Pair, from: usize, stream: u16) -> [usize; 2] {
    let is_of = |chunk: &Chunk<'_>| matches!(chunk, Chunk::Data(data) if data.stream == Stream(stream));
    [0, 1].map(|path| {
        let flights = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.path() == path);
        flights.map(|flight| flight.chunks().iter().filter(|chunk| is_of(chunk)).count()).sum()
    })
}

#[test]
fn a_short_message_of_a_latency_critical_stream_leaves_on_every_path() {
    let mut pair = latency_critical();
    for number in 0..20 {
        let from = pair.wire.len();
        pair.send(1, number, 500);
        assert_eq!(sent_on(&pair, from, 1), [1, 1], "message {number}");
        pair.run_for(Duration::from_millis(40));
    }
    assert_eq!(pair.server.numbers_on(1), (0..20).collect::<Vec<_>>(), "the application sees each once");
    let from = pair.wire.len();
    pair.send(0, 0, 500);
    pair.run_for(Duration::from_millis(5));
    assert_eq!(sent_on(&pair, from, 0).iter().sum::<usize>(), 1, "bulk data is not duplicated");
}

#[test]
fn a_long_message_of_a_latency_critical_stream_and_a_backlog_are_not_duplicated() {
    let mut pair = latency_critical();
    let chunks = [0, 1].map(|stream| {
        let from = pair.wire.len();
        pair.send(stream, 0, 5000);
        pair.run_for(Duration::from_millis(200));
        sent_on(&pair, from, stream).iter().sum::<usize>()
    });
    assert!(chunks[0] > 1 && chunks[0] == chunks[1], "{chunks:?}");
    let (from, now) = (pair.wire.len(), pair.now);
    for number in 1..=200 {
        let message = content(1, number, 1000);
        pair.client().send(now, SendOptions::on(StreamId(1)), message).expect("room in the send buffer");
    }
    pair.pump();
    let unsent = pair.client().unsent_on(StreamId(1));
    let sent: usize = sent_on(&pair, from, 1).iter().sum();
    assert!(sent > 5 && unsent == (200 - sent) * 1000, "{sent} chunks, {unsent} bytes unsent");
}

#[test]
fn a_message_of_a_latency_critical_stream_that_is_lost_on_one_path_comes_over_another() {
    let mut pair = latency_critical();
    for lossy in [0, 1] {
        pair.network = unlike_paths([10, 15], Some(lossy));
        let before = pair.server.received.len();
        pair.send(1, lossy.into(), 500);
        pair.run_for(Duration::from_millis(16));
        assert_eq!(pair.server.received.len(), before + 1, "path {lossy} loses everything");
        pair.network = unlike_paths([10, 15], None);
        pair.run_for(Duration::from_secs(2));
    }
}

/// A SACK chooses the path of the next packet before anybody has looked for the next duplicate on it.
#[test]
fn a_report_that_leaves_beside_latency_critical_messages_brings_no_duplicate_of_bulk_data() {
    let mut pair = latency_critical();
    pair.network = Box::new(|_| None);
    let now = pair.now;
    pair.server()
        .send(now, SendOptions::on(StreamId(0)), content(0, 0, 500))
        .expect("room in the send buffer");
    pair.pump();
    let to_client = pair.wire.last().expect("it left").bytes.clone();
    pair.send(1, 0, 500);
    pair.client()
        .send(now, SendOptions::on(StreamId(0)), content(0, 0, 500))
        .expect("room in the send buffer");
    let mut bulk = Vec::new();
    let transmit = pair.client.endpoint.poll_transmit(now, 1, &mut bulk).expect("bulk data leaves");
    let other = u8::from(transmit.local == crate::common::address(1, 0));
    let from = pair.wire.len();
    pair.inject(false, other, to_client);
    let reports = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.path() == other);
    assert!(reports.clone().any(|flight| !flight.has_data()), "{:?}", pair.log.last());
    assert_eq!(sent_on(&pair, from, 0), [0, 0]);
}
