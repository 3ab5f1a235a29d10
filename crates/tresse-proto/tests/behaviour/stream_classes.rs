//! Classes of streams: latency-critical ones before others, background ones behind them.

use std::time::Duration;

use tresse_proto::config::{StreamClass, StreamClasses};
use tresse_proto::{AssociationConfig, ScheduleError, StreamId};

use crate::common::Pair;

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
