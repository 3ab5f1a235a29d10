//! BBR in whole runs: short queues, losses by chance, rates that change, and others on the path.

use tresse_sim::{Outcome, RunOptions, Scenario, run};

const PATH: &str = r#"
[[path]]
rate = "20Mbit/s"
delay = "25ms"
"#;

/// User data that 20 Mbit/s carry: 1,452 of 1,500 bytes and the slack of a margin of a percent.
const FULL_MBPS: f64 = 19.1;

fn outcome(paths: &str, controller: &str, overrides: &[(&str, &str)]) -> Outcome {
    let head = r#"
settle = "3s"
measure = "20s"
[transport]
send_buffer = "4MiB"
receive_buffer = "4MiB"
"#;
    let mut scenario = Scenario::from_toml(&format!("{head}{paths}"), "bbr").expect("a good scenario");
    scenario.set("transport.congestion_control", controller).expect("a controller");
    scenario.set_all(overrides.iter().copied()).expect("a good scenario");
    let options = RunOptions { check: true, ..RunOptions::default() };
    run(&scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_path_is_filled_with_hardly_a_queue() {
    let [bbr, cubic] = ["bbr", "cubic"].map(|controller| outcome(PATH, controller, &[]));
    assert!(bbr.throughput_mbps > 0.95 * FULL_MBPS, "{}", bbr.throughput_mbps);
    assert!(bbr.throughput_mbps > 0.97 * cubic.throughput_mbps, "{}", cubic.throughput_mbps);
    let queues = [&bbr, &cubic].map(|outcome| outcome.paths[0].queue_mean_packets);
    assert!(queues[0] < 8.0 && queues[1] > 40.0, "{queues:?}");
}

#[test]
fn losses_by_chance_leave_most_of_two_unlike_paths() {
    let paths = format!("{PATH}loss = \"1%\"\n[[path]]\nrate = \"8Mbit/s\"\ndelay = \"60ms\"\nloss = \"1%\"");
    let [bbr, cubic] = ["bbr", "cubic"].map(|controller| outcome(&paths, controller, &[]).throughput_mbps);
    assert!(bbr > 2.5 * cubic && bbr > 15.0, "{bbr} and {cubic} Mbit/s");
}

#[test]
fn a_path_that_becomes_faster_or_slower_is_followed() {
    for (rate, full) in [("60Mbit/s", 3.0 * FULL_MBPS), ("5Mbit/s", FULL_MBPS / 4.0)] {
        let paths = format!("{PATH}[[path.change]]\nat = \"2s\"\nrate = \"{rate}\"");
        let changed = outcome(&paths, "bbr", &[("settle", "12s"), ("measure", "10s")]);
        assert!(changed.throughput_mbps > 0.9 * full, "{} of {full}", changed.throughput_mbps);
        assert!(changed.paths[0].queue_mean_packets < 15.0, "{:#?}", changed.paths);
    }
}

#[test]
fn neither_it_nor_a_tcp_beside_it_is_starved() {
    for queue in ["20 packets", "85 packets", "170 packets"] {
        let paths = format!("{PATH}queue = \"{queue}\"\n[[cross]]\nkind = \"bulk\"");
        let beside = outcome(&paths, "bbr", &[("measure", "60s")]);
        let tcp = beside.cross[0].throughput_mbps;
        assert!(beside.throughput_mbps > 0.2 * FULL_MBPS, "{} behind {queue}", beside.throughput_mbps);
        assert!(tcp > 0.2 * FULL_MBPS, "{tcp} behind {queue}");
    }
}

#[test]
fn a_path_that_dies_is_left_and_one_that_returns_is_used() {
    let second = "[[path]]\nrate = \"20Mbit/s\"\ndelay = \"25ms\"\n";
    let changes =
        "[[path.change]]\nat = \"6s\"\noutage = true\n[[path.change]]\nat = \"9s\"\noutage = false\n";
    let outcome = outcome(&format!("{PATH}{second}{changes}"), "bbr", &[]);
    // One of them is away for three of 20 seconds, and returns within a second or two.
    assert!(outcome.throughput_mbps > 1.65 * FULL_MBPS, "{}", outcome.throughput_mbps);
}
