//! Streams that are added while the association runs (RFC 6525 §5.1.5, §5.1.6, §5.2.5, §5.2.6).

use std::time::Duration;

use tresse_proto::{
    AssociationConfig, Event, Reconfiguration, ReconfigurationError, ReconfigurationOutcome, SendError,
    SendOptions, StreamId,
};
use tresse_wire::ChunkKind;

use crate::common::{Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn add(pair: &mut Pair, outbound: u16, inbound: u16) {
    let now = pair.now;
    pair.client().add_streams(now, outbound, inbound).expect("free to ask");
    pair.pump();
}

fn answered(request: Reconfiguration, outcome: ReconfigurationOutcome) -> Event {
    Event::Reconfigured { request, outcome }
}

#[test]
fn added_streams_carry_data_at_once() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    assert_eq!((pair.client().streams(), pair.server().streams()), ((10, 10), (10, 10)));
    let now = pair.now;
    let on_12 = SendOptions::on(StreamId(12));
    let early = pair.client().send(now, on_12, content(12, 0, 100));
    assert_eq!(early, Err(SendError::NoSuchStream { stream: StreamId(12), count: 10 }));
    add(&mut pair, 3, 20);
    pair.run_for(ms(21));
    assert_eq!(pair.client().streams(), (13, 30), "after one round trip");
    pair.send(12, 0, 3000);
    pair.run_for(ms(100));
    assert_eq!((pair.client().streams(), pair.server().streams()), ((13, 30), (30, 13)));
    assert_eq!(pair.server.numbers_on(12), [0]);
    let now = pair.now;
    pair.server().send(now, SendOptions::on(StreamId(29)), content(29, 0, 100)).expect("room");
    pair.run_for(ms(100));
    assert_eq!(pair.client.numbers_on(29), [0]);
    let performed = ReconfigurationOutcome::Performed;
    for event in [
        Event::StreamsAdded { outbound_streams: 13, inbound_streams: 30 },
        answered(Reconfiguration::AddOutbound(3), performed),
        answered(Reconfiguration::AddInbound(20), performed),
    ] {
        assert!(pair.client.events.contains(&event), "{event:?}");
    }
    let told = Event::StreamsAdded { outbound_streams: 30, inbound_streams: 13 };
    assert!(pair.server.events.contains(&told));
}

#[test]
fn losses_add_nothing_twice() {
    for losses in 1..6 {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        pair.lose(ChunkKind::RECONFIG, losses);
        add(&mut pair, 3, 20);
        pair.run_for(Duration::from_secs(60));
        let streams = (pair.client().streams(), pair.server().streams());
        assert_eq!(streams, ((13, 30), (30, 13)), "{losses} lost");
    }
}

#[test]
fn the_limits_hold_for_both_sides() {
    let narrow = AssociationConfig::default().with(|c| c.inbound_streams = 12);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &narrow, 1).settled();
    // The server takes two more, and sends on as many as the client likes.
    add(&mut pair, 3, 0);
    pair.run_for(ms(100));
    let denied = answered(Reconfiguration::AddOutbound(3), ReconfigurationOutcome::Denied);
    assert!(pair.client.events.contains(&denied));
    add(&mut pair, 2, 65_525);
    pair.run_for(ms(100));
    assert_eq!((pair.client().streams(), pair.server().streams()), ((12, 65_535), (65_535, 12)));
    let now = pair.now;
    let refused = pair.client().add_streams(now, 65_524, 1).expect_err("too many");
    assert_eq!(
        refused.to_string(),
        "65524 outbound and 1 inbound streams were to be added: at most 65523 and 0 are possible, and at least one"
    );
    assert!(matches!(pair.client().add_streams(now, 0, 0), Err(ReconfigurationError::Added { .. })));
    assert!(matches!(pair.server().add_streams(now, 0, 1), Err(ReconfigurationError::Added { .. })));
}

#[test]
fn a_peer_may_refuse_more_streams_and_still_ask_for_some() {
    let deny = AssociationConfig::default().with(|c| c.accept_added_streams = false);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &deny, 1).settled();
    add(&mut pair, 1, 1);
    pair.run_for(ms(100));
    assert_eq!(pair.client().streams(), (10, 10));
    for request in [Reconfiguration::AddOutbound(1), Reconfiguration::AddInbound(1)] {
        assert!(pair.client.events.contains(&answered(request, ReconfigurationOutcome::Denied)));
    }
    let now = pair.now;
    pair.server().add_streams(now, 5, 6).expect("free to ask");
    pair.run_for(ms(200));
    assert_eq!((pair.client().streams(), pair.server().streams()), ((16, 15), (15, 16)));
}

#[test]
fn both_sides_may_add_streams_at_the_same_time() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    pair.client().add_streams(now, 1, 0).expect("free to ask");
    pair.server().add_streams(now, 2, 0).expect("free to ask");
    pair.run_for(ms(200));
    assert_eq!((pair.client().streams(), pair.server().streams()), ((11, 12), (12, 11)));
}

#[test]
fn values_of_streams_to_come_apply_when_they_come() {
    let config = AssociationConfig::default().with(|c| {
        c.stream_scheduler = "priority".to_owned();
        c.stream_scheduler_config = "3=5,11=7".to_owned();
    });
    let mut pair = Pair::established(1, &config);
    pair.client().set_stream_value(StreamId(4), 9).expect("a priority");
    assert_eq!(pair.client().stream_value(StreamId(11)), None);
    add(&mut pair, 3, 0);
    pair.run_for(ms(100));
    let values = [3, 4, 11, 12].map(|stream| pair.client().stream_value(StreamId(stream)));
    assert_eq!(values, [Some(5), Some(9), Some(7), Some(0)]);
    pair.client().set_stream_value(StreamId(12), 2).expect("a priority");
    // The new streams take their turn like the others: stream 12 before 3, 4 and 11.
    let before = pair.server.received.len();
    let now = pair.now;
    for stream in [11, 4, 3, 12, 12, 3] {
        let options = SendOptions::on(StreamId(stream));
        pair.client().send(now, options, content(stream, 0, 1000)).expect("room");
    }
    pair.run_for(Duration::from_secs(1));
    let order: Vec<u16> = pair.server.received[before..].iter().map(|message| message.stream.0).collect();
    assert_eq!(order, [12, 12, 3, 3, 11, 4]);
}
