//! Whatever the network does, every message comes out exactly once, in order, unaltered: checked at every event.

use tresse_sim::{RunOptions, Scenario, run};

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

/// Memory has a bound whatever a scenario asks for: messages of a byte in a large buffer, and sporadic ones that come up
/// faster than the path carries them.
#[test]
fn a_run_with_more_messages_than_it_may_hold_ends() {
    let refusal = |overrides: &[(&str, &str)]| {
        let text =
            "measure = \"300s\"\n[[path]]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[traffic]\nstreams = 9\n";
        let sporadic = (0..9).map(|stream| {
            format!("[[traffic.sporadic]]\nstream = {stream}\ngap = \"1ms\"\nsize = \"1kB\"\n")
        });
        let sporadic = if overrides.is_empty() { sporadic.collect() } else { String::new() };
        let mut scenario =
            Scenario::from_toml(&format!("{text}{sporadic}"), "many").expect("a good scenario");
        scenario.set_all(overrides.iter().copied()).expect("sound settings");
        run(&scenario, RunOptions::default()).expect_err("too many").to_string()
    };
    let expected =
        "2097153 messages wait or are under way, which is more than a run may hold: take longer messages";
    let short = refusal(&[("traffic.message_size", "1B"), ("transport.send_buffer", "1GiB")]);
    assert!(short.contains(expected), "{short}");
    let overload = refusal(&[]);
    assert!(overload.contains(expected), "{overload}");
}
