//! Policies that keep data from every path without a reason are overruled.

use tresse_policy::maps::placement::{Demand, PathForecast, Placing, StreamHistory};

use super::*;
use crate::config::StreamClass;
use crate::outbound::adaptive::Placer;

/// Two usable paths with an adaptive map and the stream scheduler of this name.
fn adaptive(scheduler: &str) -> Bench {
    let config = AssociationConfig {
        stream_map: StreamMap::Adaptive,
        stream_scheduler: scheduler.to_owned(),
        ..config()
    };
    let mut bench = Bench::new(2, &config);
    let rtt = Duration::from_millis(20);
    let forecast = PathForecast { rtt, lately: rtt, slack: 100 * FULL, flight: 0, foothold: 0, usable: true };
    bench.out.set_prospects(Instant::ZERO, [forecast; 2].into_iter());
    bench
}

/// Returns the number of replacements until the data left.
fn replaced(bench: &mut Bench) -> usize {
    for times in 0..10 {
        if (0..2).any(|path| bench.take(path).is_some()) {
            return times;
        }
        if !bench.out.replace_silent(|_| true) {
            panic!("it waits for ever");
        }
    }
    panic!("there is no end of replacing");
}

#[test]
fn a_map_that_always_waits_is_overruled_until_something_happens() {
    for scheduler in ["round_robin", "first_come"] {
        let mut bench = adaptive(scheduler);
        bench.out.place_by(Placer(|_, _, _, _, _, _| Placing::Leave));
        for _ in 0..2 {
            bench.push_over(&[1, 2]);
            assert_eq!(replaced(&mut bench), 1);
            assert_eq!(bench.drain(1).len() + bench.drain(0).len(), 1);
            bench.push_over(&[3, 3]);
            assert_eq!(replaced(&mut bench), 0, "nothing has happened yet");
            assert_eq!(bench.drain(1).len(), 1);
            bench.out.forget_declined();
        }
        assert_eq!(bench.out.failures.count(), 0);
    }
}

#[test]
fn a_map_that_waits_for_one_of_the_paths_goes_on() {
    let mut bench = adaptive("round_robin");
    let only = |_, path: PathId, _: &_, _, _, _: &_| if path.0 == 1 { Placing::Take } else { Placing::Leave };
    bench.out.place_by(Placer(only));
    bench.push_over(&[1, 2]);
    assert!(bench.take(0).is_none());
    assert!(!bench.out.replace_silent(|_| true), "path 1 was not offered yet");
    assert_eq!(bench.drain(1).len(), 2);
    assert_eq!(bench.out.failures.count(), 0);
}

#[test]
fn whoever_keeps_data_for_nothing_is_overruled_one_after_the_other() {
    let mut bench = adaptive("round_robin");
    // The stream is moved away and no path is declined, so no policy seems to have kept it.
    let away = |_, path: PathId, _: &_, _, _, _: &_| match path.0 {
        0 => Placing::Cede(PathId(1)),
        _ => Placing::Adopt,
    };
    bench.out.place_by(Placer(away));
    bench.push_over(&[1]);
    assert!(bench.take(0).is_none());
    assert!(!bench.out.replace_silent(|path| path.0 == 0), "the map has named no path in vain");
    assert!(bench.out.overrule(|path| path.0 == 0), "but path 0 is the only one that carries");
    assert_eq!(bench.drain(0), [1]);
    assert!(!bench.out.overrule(|_| true), "nobody else is to blame");
    bench.out.forget_declined();
    assert!(bench.out.overrule(|_| true), "something has happened: the map decides again");
}

#[test]
fn a_scheduler_is_not_to_blame_where_the_map_keeps_its_streams_while_others_leave() {
    let mut bench = adaptive("round_robin");
    let registry = Registry::default();
    bench.out.set_class(&registry, StreamId(1), StreamClass::Latency).expect("it is negotiated");
    bench.push_over(&[1, 2]);
    let first = |_, _: PathId, _: &_, demand: Demand, _, _: &_| match demand.class {
        StreamClass::Latency => Placing::Leave,
        _ => Placing::Take,
    };
    bench.out.place_by(Placer(first));
    assert_eq!(bench.drain(0), [2], "the other one is kept");
    assert!(bench.out.replace_silent(|path| path.0 == 0), "path 0 is the only one that carries");
    assert_eq!(bench.out.failures.count(), 0, "the map has kept it");
    assert_eq!(bench.drain(0), [1]);
}

#[test]
fn a_stream_that_every_path_sends_to_the_other_leaves_all_the_same() {
    let mut bench = adaptive("round_robin");
    let away = |_, path: PathId, track: &StreamHistory, _, _, _: &_| match track.home == path {
        true => Placing::Cede(PathId(1 - path.0)),
        false => Placing::Leave,
    };
    bench.out.place_by(Placer(away));
    bench.push_over(&[1]);
    let tries = (0..200).take_while(|times| bench.take(times % 2).is_none()).count();
    assert!(tries < 100, "not after {tries} questions");
}
