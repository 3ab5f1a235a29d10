//! A path that falls silent in mid-transfer: how soon the other one carries everything, and how soon it is back.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// Two paths of 50 ms there and back. From the fifth second on one of them brings nothing, for ten seconds.
fn dying(seed: u64, dies: usize, traffic: &str, settle_ms: u32, measure_ms: u32) -> Outcome {
    let path = |position| {
        let outage =
            "[[path.change]]\nat = \"5s\"\noutage = true\n[[path.change]]\nat = \"15s\"\noutage = false\n";
        let changes = if position == dies { outage } else { "" };
        format!("[[path]]\nrate = \"10Mbit/s\"\ndelay = \"25ms\"\n{changes}")
    };
    let text = format!(
        "preset = \"cmt\"\nseed = {seed}\nsettle = \"{settle_ms}ms\"\nmeasure = \"{measure_ms}ms\"\n{traffic}{}{}",
        path(0),
        path(1)
    );
    checked(&Scenario::from_toml(&text, "dying").unwrap_or_else(|error| panic!("{error}")))
}

/// Three round trips and two probe timeouts are 350 ms, and less is asked for.
#[test]
fn the_survivor_is_full_three_tenths_of_a_second_after_the_other_path_died() {
    for dies in [0, 1] {
        let outcome = dying(7, dies, "", 5_300, 500);
        assert!(outcome.paths[1 - dies].throughput_mbps >= 0.9 * 10.0 * 1452.0 / 1500.0, "{outcome:#?}");
    }
}

/// A message of 1 KiB every 5 ms. The aim is no gap above three round trips and a probe timeout of two, 250 ms, and a message is
/// 25 ms on its way. Nearly all runs meet it, and none waits for T3.
#[test]
fn a_paced_flow_hardly_notices_the_death_of_a_path() {
    let traffic = "[traffic]\n[[traffic.sporadic]]\nstream = 0\ngap = \"5ms\"\nsize = \"1KiB\"\n";
    let runs = [0, 1].into_iter().flat_map(|dies| (1..=12).map(move |seed| (dies, seed)));
    let longest: Vec<_> = runs
        .map(|(dies, seed)| {
            dying(seed, dies, traffic, 4_000, 4_000).streams[0].delay_ms.expect("messages came").max
        })
        .collect();
    let met = longest.iter().filter(|&&delay| delay <= 275.0).count();
    assert!(met >= 20, "{met} of 24: {longest:?}");
    assert!(longest.iter().all(|&delay| delay < 325.0), "{longest:?}");
}

/// Both paths have full queues, and for two of their long round trips SACKs take the path that died. T3 of the survivor expires
/// meanwhile, for nothing, and the answer to its heartbeat comes before the next SACK.
#[test]
fn a_survivor_whose_sacks_took_the_dead_path_gets_its_window_back() {
    for (delays, buffer) in [(["9ms", "2.5ms"], "1MiB"), (["21ms", "4.5ms"], "256KiB")] {
        let path = |delay| format!("[[path]]\nrate = \"5Mbit/s\"\ndelay = \"{delay}\"\n");
        let text = format!(
            "preset = \"cmt\"\nsettle = \"13s\"\nmeasure = \"1s\"\n\
             [transport]\nsend_buffer = \"{buffer}\"\nreceive_buffer = \"{buffer}\"\n\
             {}{}[[path.change]]\nat = \"12s\"\noutage = true\n",
            path(delays[0]),
            path(delays[1])
        );
        let outcome = checked(&Scenario::from_toml(&text, "dead").unwrap_or_else(|error| panic!("{error}")));
        assert!(outcome.throughput_mbps >= 0.9 * 5.0 * 1452.0 / 1500.0, "{outcome:#?}");
    }
}

#[test]
fn a_path_that_returns_carries_data_within_a_second() {
    for dies in [0, 1] {
        let outcome = dying(7, dies, "", 15_000, 1_000);
        assert!(outcome.paths[dies].throughput_mbps > 0.0, "{outcome:#?}");
        let outcome = dying(7, dies, "", 17_000, 1_000);
        assert!(outcome.throughput_mbps >= 0.9 * 20.0 * 1452.0 / 1500.0, "{outcome:#?}");
    }
}

/// What the dead path had in flight goes again over the other one, in the same instant as new data: reports on the new data,
/// which left first, do not make it count as lost.
#[test]
fn a_path_that_takes_over_is_not_cut_for_what_it_did_not_lose() {
    let scenario = crate::common::scenario(
        "adaptive/changing.toml",
        &[
            ("path.0.change.0.outage", "true"),
            ("path.1.delay", "50ms"),
            ("settle", "9304ms"),
            ("measure", "500ms"),
        ],
    );
    let outcome = crate::common::checked(&scenario);
    assert_eq!(outcome.paths[1].fast_retransmits, 0, "{:#?}", outcome.paths);
    assert!(outcome.throughput_mbps > 0.95 * 9.68, "{}", outcome.throughput_mbps);
}
