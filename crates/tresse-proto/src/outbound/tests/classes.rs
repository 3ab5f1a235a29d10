//! Groups of an adaptive map by the classes of streams.

use tresse_policy::maps::placement::PathForecast;

use super::*;
use crate::config::{StreamClass, StreamClasses};

const FAST: u8 = 0;
const SLOW: u8 = 1;

/// Two paths with round trips of 20 and 100 ms; the peer can hold `slack` bytes that wait for data on the slower one.
fn bench(classes: &[(u16, StreamClass)], slack: usize) -> Bench {
    let classes = classes.iter().map(|&(stream, class)| (StreamId(stream), class)).collect();
    let config = AssociationConfig {
        stream_map: StreamMap::Adaptive,
        stream_classes: StreamClasses(classes),
        stream_scheduler: "round_robin".to_owned(),
        ..config()
    };
    let mut bench = Bench::new(2, &config);
    let forecasts = [(20, 0), (100, slack)].map(|(millis, slack)| {
        let rtt = Duration::from_millis(millis);
        PathForecast { rtt, lately: rtt, slack, flight: 0, foothold: 0, usable: true }
    });
    bench.out.set_prospects(Instant::ZERO + Duration::from_secs(1), forecasts.into_iter());
    bench
}

#[test]
fn latency_critical_streams_go_first_and_background_last() {
    let mut bench = bench(&[(1, StreamClass::Background), (3, StreamClass::Latency)], 0);
    bench.push_over(&[1, 2, 3, 1, 2, 3]);
    assert_eq!(bench.drain(FAST), [3, 3, 2, 2, 1, 1]);
}

#[test]
fn a_slower_path_takes_nothing_urgent_and_background_only_when_nothing_else_may_leave_there() {
    let mut bench = bench(&[(1, StreamClass::Background), (3, StreamClass::Latency)], 100 * FULL);
    for stream in [1, 2] {
        (0..4).for_each(|number| bench.push(stream, number, FULL).expect("room"));
    }
    bench.push(3, 0, 100).expect("room");
    let streams: Vec<u16> = (0..6).filter_map(|_| bench.take(SLOW)).map(|piece| piece.stream.0).collect();
    assert_eq!(streams, [2, 2, 2, 2, 1, 1]);
    assert_eq!(bench.drain(FAST), [3], "what is left of the background stream stays behind what went before");
    assert_eq!(bench.drain(SLOW), [1, 1]);
}

#[test]
fn what_is_urgent_is_known_of_its_path_alone() {
    let mut bench = bench(&[(3, StreamClass::Latency)], 0);
    bench.push(2, 0, 3 * FULL).expect("room");
    assert!(!bench.out.has_urgent_for(PathId(FAST)));
    bench.take(FAST).expect("the beginning of a long message");
    bench.push(3, 0, 100).expect("room");
    assert!(
        !bench.out.has_urgent_for(PathId(FAST)),
        "without interleaving the message comes to its end first"
    );
    bench.take(FAST).and_then(|_| bench.take(FAST)).expect("the rest of it");
    assert!(bench.out.has_urgent_for(PathId(FAST)) && !bench.out.has_urgent_for(PathId(SLOW)));
    assert!(!bench.out.avoids_queue(PathId(FAST)));
    assert_eq!(bench.drain(FAST), [3]);
    assert!(bench.out.avoids_queue(PathId(FAST)) && !bench.out.avoids_queue(PathId(SLOW)));
    bench.out.set_prospects(Instant::ZERO + Duration::from_secs(12), std::iter::empty());
    assert!(!bench.out.avoids_queue(PathId(FAST)), "nothing was urgent for long");
}

#[test]
fn a_class_can_change_while_data_waits() {
    let mut bench = bench(&[], 0);
    bench.push_over(&[1, 2, 3, 1, 2, 3]);
    let classes = [(3, StreamClass::Latency), (1, StreamClass::Background), (2, StreamClass::Latency)];
    for (stream, class) in classes {
        bench.out.set_class(&bench.registry, StreamId(stream), class).expect("built in");
        assert_eq!(bench.out.class(StreamId(stream)), Some(class));
    }
    bench.out.set_class(&bench.registry, StreamId(2), StreamClass::Bulk).expect("built in");
    assert_eq!(bench.drain(FAST), [3, 3, 2, 2, 1, 1]);
    assert_eq!(bench.bytes().1, 0);
}

#[test]
fn a_class_waits_for_a_map_that_goes_by_it() {
    let mut bench = Bench::new(1, &config());
    bench.out.set_class(&bench.registry, StreamId(3), StreamClass::Latency).expect("a stream");
    bench.push_over(&[1, 3]);
    assert_eq!(bench.drain(FAST), [1, 3]);
    bench.push_over(&[1, 3]);
    bench.set_map(StreamMap::Adaptive);
    assert_eq!(bench.drain(FAST), [3, 1], "on a single path as well");
}

#[test]
fn streams_that_were_not_negotiated_have_no_class() {
    let mut bench = bench(&[(12, StreamClass::Latency)], 0);
    assert_eq!(bench.out.class(StreamId(12)), None, "ten streams were negotiated");
    let refused = bench.out.set_class(&bench.registry, StreamId(12), StreamClass::Bulk);
    assert_eq!(refused, Err(ScheduleError::NoSuchStream(StreamId(12))));
    assert_eq!(bench.out.class(StreamId(9)), Some(StreamClass::Bulk));
}

#[test]
fn a_stream_keeps_its_value_where_it_begins_anew() {
    let mut bench = bench(&[], 0);
    bench.set_scheduler("priority").expect("built in");
    let swap = |bench: &mut Bench, fast: u8| {
        let forecasts = [0, 1].map(|path| {
            let rtt = Duration::from_millis(if path == fast { 20 } else { 100 });
            PathForecast { rtt, lately: rtt, slack: 0, flight: 0, foothold: 0, usable: true }
        });
        bench.out.set_prospects(Instant::ZERO + Duration::from_secs(1), forecasts.into_iter());
    };
    bench.out.set_value(StreamId(1), 7).expect("a priority");
    swap(&mut bench, SLOW);
    bench.push_over(&[1, 2]);
    assert_eq!(bench.out.value(StreamId(1)), Some(7));
    assert_eq!(bench.drain(SLOW), [2, 1]);
}
