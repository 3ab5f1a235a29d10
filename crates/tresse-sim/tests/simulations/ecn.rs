//! Links that mark in place of dropping: nothing is lost, nothing is sent again, and as much gets through (ECN).

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// Two paths of 10 Mbit/s and 40 ms with these queues, not coupled: alike and without any other traffic they seem to share one.
fn over(queue: &str, overrides: &[(&str, &str)]) -> Outcome {
    let text = format!(
        r#"
        settle = "5s"
        measure = "20s"
        [transport]
        congestion_control = "cubic"
        [[path]]
        rate = "10Mbit/s"
        delay = "20ms"
        {queue}
        [[path]]
        rate = "10Mbit/s"
        delay = "20ms"
        {queue}
        "#
    );
    let mut scenario = Scenario::from_toml(&text, "marking").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

const RED: &str = "discipline = \"red\"\nred = { max_probability = 0.1, ecn = true }";
const CODEL: &str = "discipline = \"codel\"\ncodel = { ecn = true }";

#[test]
fn a_link_that_marks_loses_nothing_and_carries_as_much() {
    for queue in [RED, CODEL] {
        let (mut with, mut without) = (0.0, 0.0);
        // Which packets a queue marks is drawn, and so is how both paths share them: one run says little.
        for seed in ["1", "2", "3", "4"] {
            let marked = over(queue, &[("seed", seed)]);
            let dropped = over(queue, &[("seed", seed), ("transport.ecn", "false")]);
            for path in &marked.paths {
                assert!(path.marked > 10 && path.mark_cuts > 3, "{queue}: {path:#?}");
                assert_eq!(
                    (path.chunks_resent, path.timeouts, path.dropped_queue_full),
                    (0, 0, 0),
                    "{queue}"
                );
                // What carries no data cannot be marked.
                assert!(path.loss < 0.001, "{queue}: {path:#?}");
            }
            for path in &dropped.paths {
                assert!(path.dropped_early > 10 && path.chunks_resent > 10, "{queue}: {path:#?}");
                assert_eq!((path.marked, path.mark_cuts), (0, 0));
            }
            with += marked.throughput_mbps;
            without += dropped.throughput_mbps;
        }
        assert!(with > 0.97 * without, "{queue}: {with} against {without} Mbit/s in four runs");
    }
}

/// From the start on: of a part of the run the first cut may be for a mark before it.
#[test]
fn windows_are_cut_at_most_once_for_a_mark() {
    for (queue, seed) in [(RED, "1"), (RED, "2"), (CODEL, "1"), (CODEL, "3")] {
        let whole = over(queue, &[("seed", seed), ("settle", "0s"), ("measure", "25s")]);
        for path in &whole.paths {
            assert!(path.mark_cuts > 3 && path.mark_cuts <= path.marked, "{queue}, seed {seed}: {path:#?}");
        }
    }
}

#[test]
fn a_peer_that_does_not_speak_it_is_dropped_on() {
    for side in ["sender.ecn", "receiver.ecn"] {
        let outcome = over(CODEL, &[(side, "false")]);
        for path in &outcome.paths {
            assert_eq!((path.marked, path.mark_cuts), (0, 0));
            assert!(path.dropped_early > 10, "{path:#?}");
        }
    }
}

/// What no host may mark is dropped: a long queue is bounded all the same.
#[test]
fn a_link_that_only_could_mark_changes_nothing_for_who_does_not_speak_it() {
    let without = over("discipline = \"codel\"", &[("transport.ecn", "false")]);
    let with = over(CODEL, &[("transport.ecn", "false")]);
    assert_eq!(with.run.trace_hash, without.run.trace_hash);
}
