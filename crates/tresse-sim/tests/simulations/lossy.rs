//! Paths that lose packets at random: what is lost twice.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// One path of 10 Mbit/s and 20 ms that loses one packet in twenty-five.
const LOSSY: &str = r#"
preset = "cmt"
settle = "2s"
measure = "60s"
[transport]
loss_detection = "rfc9260"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
loss = "4%"
"#;

fn lossy(seed: &str, multiple_fast_retransmit: &str) -> Outcome {
    let mut scenario = Scenario::from_toml(LOSSY, "lossy").unwrap_or_else(|error| panic!("{error}"));
    let overrides =
        [("seed", seed), ("transport.experiment.multiple_fast_retransmit", multiple_fast_retransmit)];
    scenario.set_all(overrides).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

/// By time, nothing that is lost again and again waits for a timeout while others arrive.
#[test]
fn by_time_no_loss_waits_for_a_timeout() {
    for seed in ["1", "2", "3"] {
        let mut scenario = Scenario::from_toml(LOSSY, "lossy").unwrap_or_else(|error| panic!("{error}"));
        scenario
            .set_all([("seed", seed), ("transport.loss_detection", "rack")])
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(checked(&scenario).paths[0].timeouts, 0, "seed {seed}");
    }
}

#[test]
fn multiple_fast_retransmissions_save_most_timeouts() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let (on, off) = (lossy(seed, "true"), lossy(seed, "false"));
        let timeouts = |outcome: &Outcome| outcome.paths[0].timeouts;
        assert!(2 * timeouts(&on) < timeouts(&off), "{} of {}", timeouts(&on), timeouts(&off));
        with += on.throughput_mbps;
        without += off.throughput_mbps;
    }
    // Of single seeds 3 to 25 %.
    assert!(with > 1.05 * without, "{with} {without}");
}

/// Each leaves on both paths, and both seldom lose it. Bulk data that fills the paths beside them loses little more than what
/// the duplicates take. Not coupled: two like paths without other traffic may seem to share a queue.
#[test]
fn short_messages_of_a_latency_critical_stream_are_as_early_as_if_nothing_were_lost() {
    let text = |loss: &str, streams: u32| {
        let path = format!(
            "[[path]]\nrate = \"20Mbit/s\"\ndelay = \"25ms\"\nloss = \"{loss}\"\nqueue = \"100 packets\"\n"
        );
        format!(
            "preset = \"cmt\"\nsettle = \"5s\"\nmeasure = \"60s\"\n\
             [transport]\ncongestion_control = \"cubic\"\n[traffic]\nstreams = {streams}\n\
             [[traffic.sporadic]]\nstream = 0\ngap = \"20ms\"\nsize = \"1KiB\"\n{path}{path}"
        )
    };
    let outcome = |loss, streams, classes, map| {
        let mut scenario = Scenario::from_toml(&text(loss, streams), "urgent").expect("a scenario");
        let settings = [("transport.stream_classes", classes), ("transport.stream_map", map)];
        scenario.set_all(settings).expect("settings");
        checked(&scenario)
    };
    let p99 = |outcome: &Outcome| outcome.streams[0].delay_ms.as_ref().expect("messages came").p99;
    let (bulk, urgent) = (outcome("1%", 1, "", "any"), outcome("1%", 1, "0=latency", "any"));
    assert!(p99(&urgent) < 27.0 && p99(&bulk) > 50.0, "{} and {}", p99(&urgent), p99(&bulk));
    let (alone, beside) = (outcome("0%", 2, "", "adaptive"), outcome("0%", 2, "0=latency", "adaptive"));
    let carried = |outcome: &Outcome| outcome.streams[1].throughput_mbps;
    let copies: u64 = beside.paths.iter().map(|path| path.copies_sent).sum();
    assert!(copies > 1000, "{copies}");
    assert!(carried(&beside) > 0.97 * carried(&alone), "{} and {}", carried(&beside), carried(&alone));
}
