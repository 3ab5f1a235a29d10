//! Choices of an application before its association is set up, and for those to come.

use std::sync::Arc;
use std::time::Duration;

use tresse_proto::config::StreamMap;
use tresse_proto::schedule::{Backlog, Queued, StreamSchedulerFactory, Taken};
use tresse_proto::{
    AssociationConfig, NoSuchPath, PathId, PathView, ScheduleError, SendOptions, StreamId, StreamScheduler,
};

use crate::common::{Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The streams of the messages that the server receives when five wait at the client at once.
fn order(pair: &mut Pair) -> Vec<u16> {
    let now = pair.now;
    for stream in [3, 2, 2, 1, 3] {
        pair.client().send(now, SendOptions::on(StreamId(stream)), content(stream, 0, 1000)).expect("room");
    }
    pair.run_for(ms(500));
    pair.server.received.iter().map(|message| message.stream.0).collect()
}

#[test]
fn a_scheduler_chosen_during_set_up_is_there_from_the_start() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    assert_eq!(pair.client().state_name(), "COOKIE-WAIT");
    assert_eq!(pair.client().set_stream_scheduler("priority", "1=1,2=5,3=9"), Ok(()));
    assert!(matches!(pair.client().set_stream_scheduler("no_such", ""), Err(ScheduleError::Unknown { .. })));
    assert!(matches!(
        pair.client().set_stream_scheduler("priority", "one"),
        Err(ScheduleError::BadConfig { .. })
    ));
    pair.run_for(ms(200));
    assert_eq!(pair.client().config().stream_scheduler, "priority");
    assert_eq!(order(&mut pair), [1, 2, 2, 3, 3]);
}

#[test]
fn a_configuration_for_more_streams_than_were_negotiated_applies_to_those_there_are() {
    let ours = AssociationConfig::default().with(|c| {
        c.outbound_streams = 8;
        c.stream_scheduler = "priority".to_owned();
        c.stream_scheduler_config = "0=9,1=5,7=1".to_owned();
    });
    let theirs = ours.clone().with(|c| c.inbound_streams = 4);
    let mut pair = Pair::unlike(1, &ours, &theirs, 1).settled();
    assert_eq!(pair.client().streams().0, 4);
    let values = [0, 1, 3, 4, 7].map(|stream| pair.client().stream_value(StreamId(stream)));
    assert_eq!(values, [Some(9), Some(5), Some(0), None, None]);
    assert_eq!(order(&mut pair), [3, 2, 3, 2, 1]);
}

#[test]
fn a_map_chosen_during_set_up_is_there_from_the_start() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.connect();
    assert_eq!(pair.client().set_stream_map(StreamMap::Fixed(vec![1, 1, 1, 1])), Ok(()));
    pair.run_for(Duration::from_secs(5));
    let before = pair.wire.len();
    order(&mut pair);
    let data = pair.sent_since(before).iter().filter(|flight| flight.to_server && flight.has_data());
    assert!(data.map(|flight| flight.path()).all(|path| path == 1));
}

#[test]
fn there_is_no_path_to_prefer_before_the_set_up() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.connect();
    assert_eq!(pair.client().set_primary(PathId(0)), Err(NoSuchPath { path: PathId(0), count: 0 }));
    pair.run_for(ms(200));
    assert_eq!(pair.client().set_primary(PathId(1)), Ok(()));
    assert!(pair.path(1).primary);
}

#[test]
fn nothing_can_be_chosen_when_the_set_up_has_failed() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    let now = pair.now;
    pair.client().abort(now, "second thoughts");
    assert_eq!(pair.client().set_stream_scheduler("priority", ""), Err(ScheduleError::NotOpen));
    assert_eq!(pair.client().set_stream_map(StreamMap::Any), Err(ScheduleError::NotOpen));
}

#[test]
fn an_endpoint_chooses_the_scheduler_of_associations_to_come() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let refused = pair.server.endpoint.set_stream_scheduler("weighted_fair", "0=0");
    assert!(matches!(refused, Err(ScheduleError::BadConfig { .. })));
    assert_eq!(pair.server.endpoint.template().stream_scheduler, "first_come", "the old choice stays");
    pair.server.endpoint.set_stream_scheduler("weighted_fair", "0=7").expect("built in");
    pair.connect();
    pair.run_for(ms(200));
    assert_eq!(pair.server().stream_value(StreamId(0)), Some(7));
    assert_eq!(pair.client().stream_value(StreamId(0)), None, "the client chooses for itself");
}

#[test]
fn the_name_that_an_endpoint_has_chosen_stays() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    let endpoint = &mut pair.server.endpoint;
    let factory: StreamSchedulerFactory = Arc::new(|_| Err("it is never built".to_owned()));
    endpoint.schedulers().register_stream_scheduler("unused", factory).expect("a new name");
    assert_eq!(endpoint.schedulers().remove_stream_scheduler("unused"), Ok(()));
    let idle: StreamSchedulerFactory = Arc::new(|_| Ok(Box::new(Idle)));
    endpoint.schedulers().register_stream_scheduler("idle", idle).expect("a new name");
    endpoint.set_stream_scheduler("idle", "").expect("registered");
    let refused = endpoint.schedulers().remove_stream_scheduler("idle");
    assert_eq!(refused, Err(ScheduleError::InUse("idle".to_owned())));
    endpoint.set_stream_scheduler("first_come", "").expect("built in");
    assert_eq!(endpoint.schedulers().remove_stream_scheduler("idle"), Ok(()));
}

/// Never names a stream.
struct Idle;

impl StreamScheduler for Idle {
    fn on_queued(&mut self, _queued: Queued) {}
    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        None
    }
    fn on_taken(&mut self, _taken: Taken) {}
    fn is_empty(&self) -> bool {
        true
    }
}
