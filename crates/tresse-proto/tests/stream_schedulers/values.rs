//! Values of streams: set and read at any time, kept over changes of scheduler.

use std::time::Duration;

use tresse_proto::{AssociationConfig, ScheduleError, StreamId};

use crate::common::Pair;
use crate::packets::{finish, observed, queue};

#[test]
fn values_are_read_back_and_survive_a_change_of_scheduler() {
    let (mut pair, _) = observed(1, "priority", "1=7,9=3,12=4");
    let mut client = pair.client();
    assert_eq!(client.stream_value(StreamId(0)), Some(0), "the default");
    assert_eq!(client.stream_value(StreamId(1)), Some(7));
    assert_eq!(client.stream_value(StreamId(12)), None, "ten streams were negotiated");
    assert_eq!(client.set_stream_value(StreamId(2), 5), Ok(()));
    assert_eq!(client.set_stream_value(StreamId(3), 0), Ok(()));
    assert_eq!(client.stream_value(StreamId(2)), Some(5));

    client.set_stream_scheduler("round_robin", "").expect("built in");
    assert_eq!(client.stream_value(StreamId(2)), None, "streams have no values there");
    let refused = client.set_stream_value(StreamId(2), 6).expect_err("none to set either");
    let expected =
        "scheduler \"round_robin\" refused 6 for stream 2: streams have no values with this scheduler";
    assert_eq!(refused.to_string(), expected);

    client.set_stream_scheduler("weighted_fair", "2=9,4=2").expect("built in");
    assert_eq!(client.stream_value(StreamId(2)), Some(5), "what was set goes before a configuration");
    assert_eq!(client.stream_value(StreamId(3)), Some(1), "0 is no weight: the default");
    assert_eq!(client.stream_value(StreamId(4)), Some(2));
    client.set_stream_scheduler("priority", "").expect("built in");
    assert_eq!([2, 3].map(|stream| client.stream_value(StreamId(stream))), [Some(5), Some(0)]);
}

#[test]
fn the_names_of_linux_take_one_value_for_each_stream() {
    for (name, values) in [("prio", [3, 1]), ("wfq", [3, 1])] {
        let (mut pair, _) = observed(1, name, "3,1");
        let known = [0, 1].map(|stream| pair.client().stream_value(StreamId(stream)));
        assert_eq!(known, values.map(Some), "{name}");
    }
    let many: Vec<String> = (1..=20).map(|value: u16| value.to_string()).collect();
    let (mut pair, _) = observed(1, "prio", &many.join(","));
    assert_eq!(pair.client().stream_value(StreamId(9)), Some(10));
    assert_eq!(
        pair.client().stream_value(StreamId(10)),
        None,
        "ten streams were negotiated: the rest is cut off"
    );
    pair.client().set_stream_scheduler("fcfs", "").expect("built in");
    assert!(pair.client().set_stream_scheduler("fcfs", "1").is_err(), "it has no values");
}

#[test]
fn values_that_cannot_be_are_refused_with_a_reason() {
    let (mut pair, _) = observed(1, "weighted_fair", "");
    let mut client = pair.client();
    let refused = client.set_stream_value(StreamId(1), 0).expect_err("no weight");
    assert_eq!(
        refused.to_string(),
        "scheduler \"weighted_fair\" refused 0 for stream 1: a weight is at least 1"
    );
    assert_eq!(client.stream_value(StreamId(1)), Some(1));
    let absent = client.set_stream_value(StreamId(10), 1);
    assert_eq!(absent, Err(ScheduleError::NoSuchStream(StreamId(10))));
    for config in ["1=0", "1=2,1=3", "x", "1=65536"] {
        let refused = client.set_stream_scheduler("weighted_fair", config).expect_err(config);
        assert!(matches!(refused, ScheduleError::BadConfig { .. }), "{refused}");
    }
    assert!(client.set_stream_scheduler("fair_bandwidth", "1=2").is_err());
}

#[test]
fn before_the_set_up_no_stream_has_a_value() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.connect();
    assert_eq!(pair.client().stream_value(StreamId(0)), None);
    let absent = pair.client().set_stream_value(StreamId(0), 1);
    assert_eq!(absent, Err(ScheduleError::NoSuchStream(StreamId(0))));
}

#[test]
fn a_value_set_while_data_waits_takes_effect_at_once() {
    let (mut pair, seen) = observed(1, "priority", "0=1,1=2,2=3");
    queue(&mut pair, &[0, 1, 2], 100, 700);
    pair.run_until(Duration::from_secs(10), |_| seen.borrow().len() > 10);
    let before = seen.borrow().len();
    pair.client().set_stream_value(StreamId(2), 0).expect("a priority");
    finish(&mut pair, &[0, 1, 2], 100);
    let order: Vec<u16> = seen.borrow()[before..].iter().flatten().map(|&(stream, _)| stream).collect();
    assert!(order[..100].iter().all(|&stream| stream == 2), "{order:?}");
    assert!(order[100..].is_sorted());
}
