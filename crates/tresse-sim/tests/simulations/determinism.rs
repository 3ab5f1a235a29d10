//! The same seed gives the same run, and what only watches a run does not change it.

use crate::common::two_paths;
use tresse_sim::{Outcome, RunOptions, Scenario, run};

fn plain(scenario: &Scenario) -> Outcome {
    run(scenario, RunOptions::default()).expect("it runs")
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let scenario = two_paths(&[("path.1.loss", "1%"), ("record.interval", "100ms")]);
    assert_eq!(plain(&scenario), plain(&scenario));
}

#[test]
fn another_seed_gives_another_run() {
    let hash = |seed| plain(&two_paths(&[("seed", seed)])).run.trace_hash;
    assert_ne!(hash("1"), hash("2"));
}

#[test]
fn checksums_and_checks_change_nothing() {
    let scenario = two_paths(&[("path.0.loss", "1%")]);
    let reference = plain(&scenario);
    let checksums = RunOptions { checksums: true, ..RunOptions::default() };
    assert_eq!(run(&scenario, checksums).expect("it runs"), reference);
    assert_eq!(crate::common::checked(&scenario), reference);
}

#[test]
fn a_capture_and_a_progress_report_change_nothing() {
    let scenario = two_paths(&[("path.0.queue", "5 packets")]);
    let reference = plain(&scenario);
    let (mut file, mut shares) = (Vec::new(), Vec::new());
    let mut progress = |share| shares.push(share);
    let options =
        RunOptions { pcap: Some(&mut file), progress: Some(&mut progress), ..RunOptions::default() };
    assert_eq!(run(&scenario, options).expect("it runs"), reference);
    assert!(!file.is_empty());
    assert!(shares.is_sorted() && shares.last() == Some(&1.0), "{shares:?}");
}

#[test]
fn a_resolved_scenario_runs_the_same() {
    let scenario = two_paths(&[("path.1.delay", "75ms"), ("transport.stream_map", "fixed:0,1")]);
    let resolved = Scenario::from_toml(&scenario.to_toml(), "resolved").expect("what we print we read");
    assert_eq!(plain(&resolved), plain(&scenario));
}

#[test]
fn which_stream_begins_is_drawn_and_nothing_else_tells_streams_apart() {
    let delays = |seed: u32| -> [f64; 2] {
        let settings = [
            ("seed", &*seed.to_string()),
            ("start_jitter", "0s"),
            ("transport.send_buffer", "48KiB"),
            ("transport.receive_buffer", "48KiB"),
        ];
        let streams = plain(&two_paths(&settings)).streams;
        [0, 1].map(|stream: usize| streams[stream].delay_ms.expect("it got messages").mean)
    };
    let [one, other] = delays(1);
    // 33 messages fit. As two leave for each SACK, the one that waits is always of the same stream.
    assert!((one - other).abs() > 0.05 * one, "{one} and {other}");
    let exchanged = (2..12).filter(|seed| {
        let found = delays(*seed);
        assert!(found == [one, other] || found == [other, one], "{found:?}");
        found == [other, one]
    });
    assert!((1..10).contains(&exchanged.count()));
}
