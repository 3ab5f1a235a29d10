//! Paths of streams, and changes of map and scheduler under queued data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tresse_policy::schedule::{StreamScheduler, StreamSchedulerFactory};

use super::*;

fn fixed(table: &[u16]) -> AssociationConfig {
    AssociationConfig { stream_map: StreamMap::Fixed(table.to_vec()), ..config() }
}

#[test]
fn with_any_map_every_path_serves_all_streams_in_one_order() {
    let mut bench = Bench::new(2, &config());
    bench.push_over(&[4, 1, 4, 0]);
    assert!(bench.out.has_data_for(PathId(0)) && bench.out.has_data_for(PathId(1)));
    let streams: Vec<u16> =
        [1, 0, 0, 1].map(|path| bench.take(path).expect("a message waits").stream.0).into();
    assert_eq!(streams, [4, 1, 4, 0], "first come, first served");
    assert!(!bench.out.has_data_for(PathId(0)));
}

#[test]
fn with_a_fixed_map_each_path_draws_from_its_own_streams() {
    let mut bench = Bench::new(2, &fixed(&[0, 1]));
    bench.push_over(&[0, 1, 2, 3, 0]);
    assert_eq!(bench.drain(1), [1, 3]);
    assert!(!bench.out.has_data_for(PathId(1)) && bench.out.has_data_for(PathId(0)));
    assert_eq!(bench.drain(0), [0, 2, 0]);
}

#[test]
fn positions_beyond_the_paths_start_over() {
    let mut bench = Bench::new(2, &fixed(&[0, 1, 2, 3]));
    bench.push_over(&[0, 1, 2, 3]);
    assert_eq!((bench.drain(0), bench.drain(1)), (vec![0, 2], vec![1, 3]));
    let mut bench = Bench::new(1, &fixed(&[7]));
    bench.push_over(&[0, 1]);
    assert_eq!(bench.drain(0), [0, 1]);
}

#[test]
fn streams_of_an_unusable_path_leave_on_the_others_until_it_returns() {
    let mut bench = Bench::new(3, &fixed(&[0, 1, 2]));
    bench.out.set_usable(PathId(1), false);
    bench.push_over(&[0, 1, 2, 1, 1]);
    assert_eq!(bench.take(2).map(|piece| piece.stream.0), Some(1));
    let streams = [0, 0].map(|path| bench.take(path).map(|piece| piece.stream.0));
    assert_eq!(streams, [Some(0), Some(1)]);
    bench.out.set_usable(PathId(1), true);
    assert_eq!(bench.drain(0), []);
    assert_eq!((bench.drain(1), bench.drain(2)), (vec![1], vec![2]));
    // If no path is usable, the one that is tried nevertheless carries everything.
    for path in 0..3 {
        bench.out.set_usable(PathId(path), false);
    }
    bench.push_over(&[0, 1, 2]);
    assert_eq!(bench.drain(2).len(), 3);
    bench.out.set_usable(PathId(9), true);
}

#[test]
fn a_message_that_was_begun_goes_on_before_anything_else() {
    let mut bench = Bench::new(2, &fixed(&[0, 1]));
    bench.push(0, 0, 2 * FULL).expect("room");
    bench.push(1, 0, 10).expect("room");
    assert_eq!(bench.take(0).map(|piece| shape(&piece)), Some((true, false, FULL, 0)));
    // Without interleaving its fragments have consecutive TSNs (RFC 9260 §6.9).
    assert!(bench.take(1).is_none() && !bench.out.has_data_for(PathId(1)));
    // If its path fails, another one carries the rest.
    bench.out.set_usable(PathId(0), false);
    assert!(bench.out.has_data_for(PathId(1)));
    assert_eq!(bench.take(1).map(|piece| shape(&piece)), Some((false, true, FULL, 0)));
    assert_eq!(bench.take(1).map(|piece| piece.stream.0), Some(1));
}

#[test]
fn another_scheduler_takes_over_what_is_queued() {
    let mut bench = Bench::new(1, &config());
    bench.push_over(&[1, 1, 1, 2, 2, 3]);
    bench.set_scheduler("round_robin").expect("built in");
    assert_eq!(bench.drain(0), [1, 2, 3, 1, 2, 1]);
    bench.push_over(&[3, 1, 2]);
    bench.set_scheduler("first_come").expect("built in");
    assert_eq!(bench.drain(0).len(), 3);
    assert!(bench.out.is_empty());
}

#[test]
fn a_scheduler_can_change_in_the_middle_of_a_message() {
    for (old, new) in [("first_come", "round_robin"), ("round_robin", "first_come")] {
        let mut bench = Bench::new(1, &AssociationConfig { stream_scheduler: old.to_owned(), ..config() });
        bench.push(2, 0, 3 * FULL).expect("room");
        bench.push(1, 0, 10).expect("room");
        bench.push(2, 1, 10).expect("room");
        // Round robin begins with stream 1.
        let first: Vec<_> =
            std::iter::from_fn(|| bench.take(0).filter(|piece| piece.stream.0 != 2)).collect();
        bench.set_scheduler(new).expect("built in");
        let pieces: Vec<_> = std::iter::from_fn(|| bench.take(0)).collect();
        let long: Vec<usize> = pieces
            .iter()
            .filter(|piece| piece.ssn().0 == 0 && piece.stream.0 == 2)
            .map(|piece| piece.payload.len())
            .collect();
        assert_eq!(long, [FULL, FULL], "{old} to {new}: the rest of it");
        assert_eq!(pieces[0].stream.0, 2, "and at once");
        assert_eq!(first.len() + pieces.len(), 4);
        assert_eq!(bench.bytes().1, 0);
    }
}

#[test]
fn a_scheduler_that_cannot_be_had_leaves_the_old_one() {
    let mut bench = Bench::new(1, &config());
    bench.push_over(&[5, 1, 5]);
    let unknown = bench.set_scheduler("alphabetic").expect_err("no such scheduler");
    assert!(unknown.to_string().contains("first_come, prio, priority, round_robin"), "{unknown}");
    let refused = bench.out.set_scheduler(&bench.registry, "first_come", "fast").expect_err("no settings");
    assert!(refused.to_string().contains("fast"), "{refused}");
    bench.push(1, 0, 10).expect("room");
    assert_eq!(bench.drain(0), [5, 1, 5, 1]);
    // A later change of map still finds the scheduler that is in use.
    bench.set_map(StreamMap::Fixed(vec![0]));
    bench.push_over(&[2]);
    assert_eq!(bench.drain(0), [2]);
}

#[test]
fn another_map_takes_over_what_is_queued_also_in_the_middle_of_a_message() {
    let mut bench = Bench::new(2, &config());
    bench.push(1, 0, 2 * FULL).expect("room");
    bench.push_over(&[0, 1]);
    assert_eq!(bench.take(0).map(|piece| shape(&piece)), Some((true, false, FULL, 0)));
    bench.set_map(StreamMap::Fixed(vec![0, 1]));
    assert!(bench.take(0).is_none(), "stream 1 is path 1's now, and its message comes first");
    assert_eq!(bench.take(1).map(|piece| shape(&piece)), Some((false, true, FULL, 0)));
    assert_eq!((bench.drain(0), bench.drain(1)), (vec![0], vec![1]));
    bench.push_over(&[1, 0]);
    bench.set_map(StreamMap::Any);
    assert_eq!(bench.drain(0).len(), 2);
}

/// A factory that builds a scheduler `times` times.
fn scarce(times: usize) -> StreamSchedulerFactory {
    let made = AtomicUsize::new(0);
    Arc::new(move |_| match made.fetch_add(1, Ordering::Relaxed) < times {
        true => Ok(Box::new(Lowest::default())),
        false => Err("no more of them".to_owned()),
    })
}

/// A scheduler that serves the lowest stream first.
#[derive(Default)]
struct Lowest(BTreeSet<StreamId>);

impl StreamScheduler for Lowest {
    fn on_queued(&mut self, queued: Queued) {
        self.0.insert(queued.stream);
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.0.first().copied()
    }

    fn on_taken(&mut self, taken: Taken) {
        if taken.stream_empty {
            self.0.remove(&taken.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[test]
fn a_path_that_joins_carries_data_though_no_scheduler_can_be_made_for_it() {
    for map in [StreamMap::Adaptive, StreamMap::Fixed(vec![0, 1, 2])] {
        let mut registry = Registry::default();
        registry.register_stream_scheduler("scarce", scarce(2)).expect("a free name");
        let config = AssociationConfig { stream_map: map, stream_scheduler: "scarce".to_owned(), ..config() };
        let out = Outbound::new(&config, &registry, DataFormat::Data, 10, 2);
        let mut bench = Bench { out, registry };
        bench.push_over(&[0, 1, 2, 3, 4]);
        bench.out.cover_paths(3);
        bench.out.set_usable(PathId(2), true);
        assert!(bench.out.has_outgrown_its_groups());
        bench.out.begin(&bench.registry);
        bench.push_over(&[0, 1, 2, 3, 4]);
        let left: usize = (0..3).rev().map(|path| bench.drain(path).len()).sum();
        assert_eq!((left, bench.bytes().1), (10, 0));
        let fault = SchedulerFault::Failed {
            reason: "stream scheduler \"scarce\" refused its configuration: no more of them".to_owned(),
        };
        assert_eq!(bench.out.failures.pop(), Some(("scarce".to_owned(), fault)));
    }
}
