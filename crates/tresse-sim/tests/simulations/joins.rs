//! Paths that join and leave while the association runs: both hosts add and remove their addresses (RFC 5061).

use tresse_sim::{Outcome, RunOptions, Scenario, run};

use crate::common::{checked, scenario};

/// Three paths of 10 Mbit/s and 20 ms, of which the third has these `lines`.
fn third(lines: &str, overrides: &[(&str, &str)]) -> Scenario {
    let text = format!(
        r#"
        settle = "10s"
        measure = "10s"
        start_jitter = "0s"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        {lines}
        "#
    );
    let mut scenario = Scenario::from_toml(&text, "third").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    scenario
}

fn throughputs(outcome: &Outcome) -> Vec<f64> {
    outcome.paths.iter().map(|path| path.throughput_mbps).collect()
}

#[test]
fn a_third_path_carries_its_share_from_when_it_joins() {
    let always = checked(&third("", &[]));
    let joined = checked(&third("joins = \"5s\"", &[]));
    assert!(joined.throughput_mbps > 0.97 * always.throughput_mbps, "{}", joined.throughput_mbps);
    assert!(throughputs(&joined).iter().all(|path| *path > 8.5), "{:?}", throughputs(&joined));
    assert_eq!(joined.paths[2].state, Some("active"));

    let later = checked(&third("joins = \"15s\"", &[]));
    let paths = throughputs(&later);
    assert!((4.0..5.5).contains(&paths[2]), "half of the measured time: {paths:?}");
    let never = checked(&third("joins = \"30s\"", &[]));
    assert_eq!((never.paths[2].state, never.paths[2].throughput_mbps), (None, 0.0));
    assert_eq!(never.paths[2].wire_mbps, 0.0, "not a packet");
}

#[test]
fn a_path_that_leaves_takes_nothing_with_it() {
    let left = checked(&third("leaves = \"15s\"", &[]));
    let paths = throughputs(&left);
    assert!((4.0..5.5).contains(&paths[2]) && paths[0] > 8.5 && paths[1] > 8.5, "{paths:?}");
    assert_eq!(left.paths[2].state, Some("removed"));
    let all = [("traffic.volume", "20MiB"), ("settle", "0s"), ("measure", "60s")];
    let whole = checked(&third("joins = \"2s\"\nleaves = \"4s\"", &all));
    assert!(whole.completed_s.is_some());
    assert_eq!(whole.run.messages_delivered, whole.run.messages_accepted);
    assert!(whole.paths[2].throughput_mbps > 0.5, "{:?}", throughputs(&whole));
}

/// The sender takes no address any more, so there is no third path, and what the receiver adds would be none of the scenario.
#[test]
fn a_path_that_would_join_while_the_sender_shuts_down_carries_nothing() {
    let stop = [("traffic.stop", "5s"), ("settle", "0s"), ("measure", "60s")];
    // All of it is in the send buffer after a second, and delivered before another is over.
    let volume = [("traffic.volume", "4MiB"), ("transport.send_buffer", "2MiB"), ("settle", "0s")];
    for (joins, end) in [("5.02", stop), ("5.1", stop), ("1.3", volume)] {
        let lines = format!("joins = \"{joins}s\"\nleaves = \"5.3s\"");
        let outcome = checked(&third(&lines, &end));
        assert_eq!(outcome.run.messages_delivered, outcome.run.messages_accepted);
        let path = &outcome.paths[2];
        assert_eq!((path.state, path.wire_mbps), (None, 0.0), "joins = {joins}: not a packet");
        let chunks: u64 = outcome.paths.iter().map(|path| path.chunks_sent + path.chunks_resent).sum();
        assert_eq!(chunks, outcome.run.data_chunks);
    }
}

/// Every path is another one in the end: the association moves from network to network.
#[test]
fn an_association_outlives_all_its_first_paths() {
    let moves = [
        ("path.0.leaves", "8s"),
        ("path.1.joins", "4s"),
        ("path.1.leaves", "12s"),
        ("path.2.joins", "11s"),
        ("settle", "1s"),
        ("measure", "19s"),
    ];
    let outcome = checked(&third("", &moves));
    let states: Vec<_> = outcome.paths.iter().map(|path| path.state).collect();
    assert_eq!(states, [Some("removed"), Some("removed"), Some("active")]);
    // Of 19 s, the first is there for 7, the second for 8, the third for 9.
    let paths = throughputs(&outcome);
    for (path, seconds) in paths.iter().zip([7.0, 8.0, 9.0]) {
        let full = 9.5 * seconds / 19.0;
        assert!((0.75 * full..1.05 * full).contains(path), "{paths:?}");
    }
}

#[test]
fn a_trace_names_paths_by_their_place_in_the_scenario() {
    let moving =
        third("", &[("path.1.joins", "3s"), ("path.0.leaves", "6s"), ("measure", "1s"), ("settle", "8s")]);
    let mut trace = Vec::new();
    let options = RunOptions { trace: Some(&mut trace), ..RunOptions::default() };
    let watched = run(&moving, options).expect("a sound run");
    assert_eq!(watched.run.trace_hash, checked(&moving).run.trace_hash);
    let text = String::from_utf8(trace).expect("text");
    let lines =
        text.lines().skip(1).map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    for line in lines.filter(|line| line["e"] == "sent") {
        let (time, path) = (line["t"].as_f64().expect("a time"), line["path"].as_u64().expect("a path"));
        assert!(path != 1 || time > 3.0, "{line}");
        assert!(path != 0 || time < 6.1, "{line}");
    }
}

#[test]
fn the_example_uses_its_third_path_while_it_is_there() {
    let outcome = checked(&scenario("third-path.toml", &[]));
    let series = outcome.series.expect("it is recorded");
    let windows = series.time_s.iter().zip(&series.paths[2].cwnd_bytes);
    assert!(windows.clone().all(|(time, window)| *time >= 10.0 || *window == 0));
    assert!(windows.filter(|(time, _)| (12.0..50.0).contains(*time)).all(|(_, window)| *window > 0));
    let mut limits = series.time_s.iter().zip(&series.paths[2].limit).filter(|(time, _)| **time < 10.0);
    assert!(limits.all(|(_, limit)| *limit == "path_down"), "it has not joined");
    let share = outcome.paths[2].throughput_mbps;
    assert!((10.0..13.0).contains(&share), "of 20 Mbit/s for 40 s of 60: {share}");
}
