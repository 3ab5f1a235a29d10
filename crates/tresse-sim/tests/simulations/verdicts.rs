//! Causes that hold a transfer up, one at a time, and what is said to have limited it.

use std::time::Duration;

use tresse_proto::Limit;
use tresse_sim::{Outcome, RunOptions, Scenario, Shares, run};

/// Two paths of 20 and 30 Mbit/s with buffers that fill both, and what is changed of that.
fn outcome(changes: &[(&str, &str)], reads_every: Duration) -> Outcome {
    let mut scenario = Scenario::from_toml(PATHS, "verdicts.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(changes.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { check: true, reads_every, ..RunOptions::default() };
    run(&scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

const PATHS: &str = r#"
settle = "5s"
measure = "10s"
[transport]
send_buffer = "4MiB"
receive_buffer = "4MiB"
[traffic]
streams = 2
[[path]]
rate = "30Mbit/s"
delay = "7ms"
[[path]]
rate = "20Mbit/s"
delay = "17ms"
"#;

/// The limit that held longest, and for which share of the time.
fn longest(shares: &Shares) -> (Limit, f64) {
    let shares = Limit::ALL.map(|limit| (limit, shares.of(limit)));
    shares.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("there are limits")
}

/// What is said of all paths together: one limit for most of the time.
fn assert_limited_by(limit: Limit, outcome: &Outcome) {
    let (longest, share) = longest(&outcome.limited_by.total);
    assert!(
        longest == limit && share >= 0.5,
        "not {limit:?}: {:#?}, {:#?}",
        outcome.limited_by,
        outcome.paths
    );
}

#[test]
fn full_paths_are_called_full() {
    for preset in ["cmt", "adaptive"] {
        for buffer in ["4MiB", "512KiB"] {
            let buffers = [("transport.send_buffer", buffer), ("transport.receive_buffer", buffer)];
            let outcome = outcome(&[&[("preset", preset)], &buffers[..]].concat(), Duration::ZERO);
            assert!(
                outcome.paths.iter().all(|path| path.utilisation > 0.95),
                "{preset}, {buffer}: {outcome:#?}"
            );
            assert_limited_by(Limit::Full, &outcome);
            for limits in &outcome.limited_by.paths {
                assert_eq!(longest(limits).0, Limit::Full, "{preset}, {buffer}: {:#?}", outcome.limited_by);
            }
        }
    }
}

#[test]
fn losses_keep_the_congestion_window_small() {
    let lossy = [("path.0.loss", "1%"), ("path.1.loss", "1%")];
    assert_limited_by(Limit::CongestionWindow, &outcome(&lossy, Duration::ZERO));
}

#[test]
fn a_narrow_window_is_named_with_its_side() {
    let here = outcome(&[("sender.send_buffer", "32KiB")], Duration::ZERO);
    assert_limited_by(Limit::SendBuffer, &here);
    let there = outcome(&[("receiver.receive_buffer", "32KiB")], Duration::ZERO);
    assert_limited_by(Limit::ReceiveBuffer, &there);
}

#[test]
fn a_slow_reader_fills_the_receive_buffer() {
    let slow = Duration::from_millis(400);
    let outcome = outcome(&[("receiver.receive_buffer", "256KiB")], slow);
    assert!(outcome.throughput_mbps < 10.0, "{outcome:#?}");
    assert_limited_by(Limit::ReceiveBuffer, &outcome);
}

#[test]
fn a_slow_writer_leaves_paths_with_nothing_to_send() {
    let mut text = PATHS.replace("streams = 2", "streams = 1");
    text.push_str("[[traffic.sporadic]]\nstream = 0\ngap = \"2ms\"\nsize = \"500B..1400B\"\n");
    let scenario = Scenario::from_toml(&text, "writer.toml").unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_limited_by(Limit::Application, &outcome);
}

#[test]
fn a_dead_link_is_a_path_that_is_down() {
    let text = format!("{PATHS}[[path.change]]\nat = \"2s\"\noutage = true\n");
    let scenario = Scenario::from_toml(&text, "dead.toml").unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let (limit, share) = longest(&outcome.limited_by.paths[1]);
    assert!(limit == Limit::Path && share > 0.9, "{:#?}", outcome.limited_by);
    assert_limited_by(Limit::Full, &outcome);
}

/// The window of the path that goes on trying is one packet, and no cause of anything.
#[test]
fn paths_that_are_all_dead_are_named_and_not_their_windows() {
    let outage = "[[path.change]]\nat = \"4s\"\noutage = true\n";
    for count in [1, 2] {
        let tables: Vec<&str> = PATHS.split("[[path]]").collect();
        let paths: String = tables[1..=count].iter().map(|path| format!("[[path]]{path}{outage}")).collect();
        let text = format!("{}{paths}", tables[0]);
        let scenario = Scenario::from_toml(&text, "dead.toml").unwrap_or_else(|error| panic!("{error}"));
        let outcome = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.throughput_mbps, 0.0);
        assert_limited_by(Limit::Path, &outcome);
        for limits in &outcome.limited_by.paths {
            assert_eq!(longest(limits).0, Limit::Path, "{count} paths: {:#?}", outcome.limited_by);
        }
    }
}

#[test]
fn a_map_that_keeps_data_back_is_named_the_scheduler() {
    let bound = [("transport.stream_map", "fixed:0"), ("traffic.streams", "1")];
    let outcome = outcome(&bound, Duration::ZERO);
    assert_eq!(longest(&outcome.limited_by.paths[1]).0, Limit::Scheduler, "{:#?}", outcome.limited_by);
    assert_limited_by(Limit::Scheduler, &outcome);
}

#[test]
fn a_busy_processor_is_named_the_host() {
    for preset in ["cmt", "adaptive"] {
        // 300 us allow 3,333 packets a second of both directions, where the paths would carry 4,100 of data alone.
        for packet_time in ["300us", "1ms"] {
            let slow = [("preset", preset), ("host.packet_time", packet_time)];
            let outcome = outcome(&slow, Duration::ZERO);
            let busy = outcome.processors.expect("packets cost time");
            assert!(busy.sender > 0.99, "{preset}, {packet_time}: {outcome:#?}");
            assert!(outcome.paths.iter().all(|path| path.utilisation < 0.9), "{outcome:#?}");
            assert_limited_by(Limit::Host, &outcome);
        }
        let fast = outcome(&[("preset", preset), ("host.packet_time", "20us")], Duration::ZERO);
        assert!(fast.processors.is_some_and(|busy| busy.sender < 0.3), "{preset}: {fast:#?}");
        assert_limited_by(Limit::Full, &fast);
    }
}
