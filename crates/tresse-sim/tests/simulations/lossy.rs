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
