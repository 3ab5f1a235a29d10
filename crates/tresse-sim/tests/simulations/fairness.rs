//! Promises of coupled congestion controllers (RFC 6356 §2): no more than one flow's share of a bottleneck that their
//! paths have in common, and less on a path that others crowd.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

pub(crate) const UNCOUPLED: [&str; 2] = ["rfc9260", "cubic"];
pub(crate) const COUPLED: [&str; 5] = ["cmt_rp_v1", "cmt_rp_v2", "lia", "olia", "balia"];

fn outcome(text: &str, controller: &str, seed: &str) -> Outcome {
    let mut scenario = Scenario::from_toml(text, "fairness").unwrap_or_else(|error| panic!("{error}"));
    let overrides = [("transport.congestion_control", controller), ("seed", seed)];
    scenario.set_all(overrides).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

/// Two paths over one link of 10 Mbit/s, and a TCP flow over it as well. RED, so that who gets which drop does not
/// depend on who comes in bursts.
const ONE_BOTTLENECK: &str = r#"
preset = "cmt"
settle = "20s"
measure = "60s"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "200 packets"
discipline = "red"
red = { min_threshold = 10, max_threshold = 60, max_probability = 0.1, uniform_drops = true }
[[path]]
shares = 0
[[cross]]
kind = "bulk"
"#;

/// The association's part of what it and the TCP flow carry, in the mean over two seeds.
fn share_beside_tcp(controller: &str) -> f64 {
    let shares = ["1", "2"].map(|seed| {
        let outcome = outcome(ONE_BOTTLENECK, controller, seed);
        let (ours, theirs) = (outcome.throughput_mbps, outcome.cross[0].throughput_mbps);
        assert!(ours + theirs > 8.0, "{controller} leaves the link idle: {ours} and {theirs}");
        ours / (ours + theirs)
    });
    shares.iter().sum::<f64>() / 2.0
}

#[test]
fn two_paths_over_one_bottleneck_take_one_flows_share_when_coupled_and_two_when_not() {
    let [uncoupled, cubic] = UNCOUPLED.map(share_beside_tcp);
    assert!((0.58..0.72).contains(&uncoupled), "two of three flows: {uncoupled}");
    assert!((0.58..0.72).contains(&cubic), "two of three flows: {cubic}");
    for controller in COUPLED {
        let coupled = share_beside_tcp(controller);
        assert!(coupled < uncoupled - 0.05, "{controller}: {coupled}, uncoupled {uncoupled}");
        assert!((0.42..0.58).contains(&coupled), "one of two flows: {controller} takes {coupled}");
    }
}

/// Two paths over one link whose queue drops what does not fit, and a TCP flow over it as well.
const ONE_QUEUE: &str = r#"
preset = "cmt"
settle = "20s"
measure = "60s"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "60 packets"
[[path]]
shares = 0
[[cross]]
kind = "bulk"
"#;

/// Who gets which drop depends on who comes in bursts, so that the means of three runs are compared.
#[test]
fn paths_over_one_queue_are_found_out_and_become_one_flow() {
    let carried = |text: &str, controller: &str| {
        ["1", "2", "3"].map(|seed| outcome(text, controller, seed).throughput_mbps).iter().sum::<f64>() / 3.0
    };
    let one = carried(&ONE_QUEUE.replace("[[path]]\nshares = 0\n", ""), "cubic");
    let [uncoupled, coupled] = ["cubic", "coupled_cubic"].map(|controller| carried(ONE_QUEUE, controller));
    assert!(coupled < 1.2 * one && coupled < uncoupled, "{coupled} of {one} Mbit/s, uncoupled {uncoupled}");
    let found = outcome(ONE_QUEUE, "coupled_cubic", "1");
    assert_eq!(found.paths.iter().map(|path| path.shares_with).collect::<Vec<_>>(), [Some(1), Some(0)]);
}

#[test]
fn paths_with_bottlenecks_of_their_own_are_left_alone() {
    let [uncoupled, coupled] =
        ["cubic", "coupled_cubic"].map(|controller| outcome(CROWDED_PATH, controller, "1"));
    assert_eq!(coupled.throughput_mbps, uncoupled.throughput_mbps);
    assert!(coupled.paths.iter().all(|path| path.shares_with.is_none()));
}

/// Two links of 10 Mbit/s, the second one crossed by three TCP flows. RED here too: a full drop-tail queue drops what
/// comes in bursts, so that a window which hardly grows keeps its place there, coupled or not.
const CROWDED_PATH: &str = r#"
preset = "cmt"
settle = "20s"
measure = "60s"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "200 packets"
discipline = "red"
red = { min_threshold = 10, max_threshold = 60, max_probability = 0.1, uniform_drops = true }
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "200 packets"
discipline = "red"
red = { min_threshold = 10, max_threshold = 60, max_probability = 0.1, uniform_drops = true }
[[cross]]
kind = "bulk"
path = 1
flows = 3
"#;

#[test]
fn load_moves_away_from_a_crowded_path_and_the_free_one_stays_full() {
    // In the mean over four seeds: the chance of RED moves a single run by 3 %.
    let crowded = |controller| {
        let outcomes = ["1", "2", "3", "4"].map(|seed| outcome(CROWDED_PATH, controller, seed));
        let mean = |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / 4.0;
        // No worse than one flow on the better path.
        let all = mean(|outcome| outcome.throughput_mbps);
        assert!(all > 0.9 * 9.68, "{controller}: {all}");
        (mean(|outcome| outcome.paths[0].throughput_mbps), mean(|outcome| outcome.paths[1].throughput_mbps))
    };
    let (_, uncoupled) = crowded("rfc9260");
    for controller in COUPLED {
        let (free, coupled) = crowded(controller);
        assert!(
            coupled < 0.75 * uncoupled,
            "{controller}: {coupled} of the crowded path, uncoupled {uncoupled}"
        );
        assert!(free > 3.0 * coupled, "{controller}: {free} and {coupled}");
    }
}
