//! Whatever the network does, every message comes out exactly once, in order, unaltered: checked at every event.

use crate::common::{checked, two_paths};

/// Settings under which the transport works quite differently.
const VARIANTS: &[&[(&str, &str)]] = &[
    &[],
    &[("preset", "cmt")],
    &[("preset", "rfc9260")],
    &[("transport.stream_map", "fixed:0,1")],
    &[("traffic.ordered", "false")],
    &[("traffic.message_size", "100B")],
    &[("traffic.message_size", "10000B")],
    &[("transport.receive_buffer", "8KiB")],
    &[("transport.receive_buffer", "8KiB"), ("traffic.read", "after_sack")],
    &[("path.1.delay", "100ms"), ("path.1.rate", "1Mbit/s")],
    &[("traffic.streams", "7"), ("traffic.refill", "by_queue")],
    &[("transport.nr_sack", "off"), ("transport.buffer_split", "none")],
];

const SEEDS: [&str; 4] = ["1", "2", "3", "4"];

#[test]
fn everything_arrives_over_lossy_paths() {
    let lossy = [
        ("path.0.loss", "3%"),
        ("path.1.loss", "10%"),
        ("path.1.queue", "10 packets"),
        ("traffic.stop", "20s"),
        ("measure", "200s"),
    ];
    for (variant, seed) in VARIANTS.iter().flat_map(|variant| SEEDS.map(|seed| (variant, seed))) {
        let scenario = two_paths(&[&lossy[..], &[("seed", seed)], variant].concat());
        let outcome = checked(&scenario);
        let run = &outcome.run;
        assert!(run.messages_accepted > 20, "seed {seed}, {variant:?}: {run:?}");
        assert_eq!(run.messages_delivered, run.messages_accepted, "seed {seed}, {variant:?}");
        assert_eq!(outcome.association.ended.as_deref(), Some("shut down"), "seed {seed}, {variant:?}");
    }
}

#[test]
fn without_any_network_nothing_arrives_and_the_run_says_so() {
    let dead = [("path.0.loss", "100%"), ("path.1.loss", "100%"), ("measure", "600s")];
    let outcome = checked(&two_paths(&dead));
    assert_eq!(outcome.throughput_mbps, 0.0);
    assert_eq!(outcome.association.ended.as_deref(), Some("set-up stayed unanswered"));
    assert!(outcome.streams.iter().all(|stream| stream.delay_ms.is_none()));
}

#[test]
fn a_sack_that_leaves_before_the_application_reads_announces_less() {
    // Room for five messages, and for four while one is unread; a window that grew by less than a quarter is not reported.
    let short = [
        ("transport.receive_buffer", "8000B"),
        ("transport.buffer_split", "none"),
        ("transport.experiment.peer_window_test", "packet"),
        ("transport.sack_frequency", "1"),
        ("measure", "10s"),
    ];
    let read = |read: &'static str| checked(&two_paths(&[&short[..], &[("traffic.read", read)]].concat()));
    let (before, after) = (read("before_sack"), read("after_sack"));
    assert!(before.throughput_mbps > 1.1 * after.throughput_mbps, "{before:#?}\n{after:#?}");
    assert!(after.run.messages_delivered > 100, "{after:#?}");
}

#[test]
fn reading_after_the_sack_delays_no_message() {
    let long = [("transport.receive_buffer", "4MiB"), ("measure", "5s")];
    let read = |read: &'static str| checked(&two_paths(&[&long[..], &[("traffic.read", read)]].concat()));
    let (before, after) = (read("before_sack"), read("after_sack"));
    assert_eq!(before.run.messages_delivered, after.run.messages_delivered);
    let delays =
        |outcome: &tresse_sim::Outcome| outcome.streams.iter().map(|one| one.delay_ms).collect::<Vec<_>>();
    assert_eq!(format!("{:?}", delays(&before)), format!("{:?}", delays(&after)));
}
