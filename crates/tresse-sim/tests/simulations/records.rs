//! Runs with an end, and what is recorded of how losses are made good.

use tresse_sim::{RunOptions, Scenario, run};

const LOSSY: &str = r#"
    settle = "0s"
    measure = "600s"
    start_jitter = "0s"
    [transport]
    # A chunk a message from the start, and timers that expire where the data is.
    mtu_discovery = false
    potentially_failed = false
    [traffic]
    volume = "1MiB"
    message_size = "1452B"
    [record]
    recovery = true
    [[path]]
    rate = "10Mbit/s"
    delay = "25ms"
    [[path]]
    rate = "10Mbit/s"
    delay = "25ms"
    loss = "5%"
"#;

fn scenario(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let mut scenario = Scenario::from_toml(text, "records").expect("a sound scenario");
    scenario.set_all(overrides.iter().copied()).expect("sound overrides");
    scenario
}

fn traced(scenario: &Scenario) -> (tresse_sim::Outcome, Vec<serde_json::Value>) {
    let mut trace = Vec::new();
    let options = RunOptions { trace: Some(&mut trace), check: true, ..RunOptions::default() };
    let outcome = run(scenario, options).expect("a sound run");
    let text = String::from_utf8(trace).expect("text");
    (outcome, text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect())
}

#[test]
fn a_run_with_a_volume_ends_when_all_of_it_is_delivered() {
    let outcome = run(&scenario(LOSSY, &[]), RunOptions::default()).expect("a sound run");
    let completed = outcome.completed_s.expect("it completed");
    let messages = (1u64 << 20).div_ceil(1452);
    assert_eq!((outcome.run.messages_accepted, outcome.run.messages_delivered), (messages, messages));
    // 8.4 Mbit over two paths of 10 Mbit/s, one of them lossy.
    assert!((0.5..60.0).contains(&completed), "{completed} s");
    assert!((outcome.measured_s - completed).abs() < 1e-9, "the run is over then");
}

#[test]
fn a_volume_that_is_delivered_while_the_run_settles_takes_as_long() {
    let measured = run(&scenario(LOSSY, &[]), RunOptions::default()).expect("a sound run");
    let settled = run(&scenario(LOSSY, &[("settle", "60s")]), RunOptions::default()).expect("a sound run");
    assert_eq!((settled.completed_s, &settled.run), (measured.completed_s, &measured.run));
    assert_eq!((settled.measured_s, settled.throughput_mbps), (0.0, 0.0), "nothing was left to measure");
}

#[test]
fn a_volume_that_does_not_fit_the_run_is_not_completed() {
    let outcome = run(&scenario(LOSSY, &[("measure", "100ms")]), RunOptions::default()).expect("a sound run");
    assert_eq!(outcome.completed_s, None);
}

#[test]
fn recoveries_are_counted() {
    let outcome = run(&scenario(LOSSY, &[]), RunOptions::default()).expect("a sound run");
    let recovery = outcome.recovery.expect("it was asked for");
    assert_eq!(recovery.tsns, outcome.run.messages_delivered, "a chunk a message");
    // 25 ms and 1.2 ms for the packet at least; what was lost took a round trip more.
    let (mean, longest) = (recovery.tsn_ms.expect("TSNs came"), recovery.tsn_max_ms.expect("TSNs came"));
    assert!(mean > 26.2 && longest > 76.0, "{recovery:?}");
    assert_eq!(recovery.timeouts, outcome.paths.iter().map(|path| path.timeouts).sum::<u64>());
    assert_eq!(recovery.timeout_rows.iter().sum::<u64>(), recovery.timeouts);
    assert!(recovery.timeout_rows.is_sorted_by(|one, next| one >= next), "a second follows a first");
}

#[test]
fn a_path_that_dies_times_out_in_a_row() {
    let dying = format!("{LOSSY}\n[[path.change]]\nat = \"200ms\"\noutage = true\n");
    let again = ("transport.timeout_retransmit_path", "same");
    let settings = [("traffic.volume", "64MiB"), ("measure", "20s"), again];
    let outcome = run(&scenario(&dying, &settings), RunOptions::default());
    let recovery = outcome.expect("a sound run").recovery.expect("it was asked for");
    assert!(recovery.timeout_rows.len() >= 2, "{recovery:?}");
}

#[test]
fn a_trace_tells_what_happened_and_changes_nothing() {
    let scenario = scenario(LOSSY, &[]);
    let plain = run(&scenario, RunOptions::default()).expect("a sound run");
    let (outcome, lines) = traced(&scenario);
    assert_eq!(outcome.run.trace_hash, plain.run.trace_hash);
    assert_eq!(lines[0]["tresse_trace"], 1);
    let of = |kind: &'static str| lines.iter().filter(move |line| line["e"] == kind);
    let again = |kind| of(kind).filter(|line| line["again"] == true).count() as u64;
    let chunks: u64 = outcome.paths.iter().map(|path| path.chunks_sent + path.chunks_resent).sum();
    assert_eq!(of("sent").count() as u64, chunks);
    assert_eq!(again("sent"), outcome.paths.iter().map(|path| path.chunks_resent).sum::<u64>());
    assert_eq!(of("arrived").count() as u64 - again("arrived"), outcome.run.messages_delivered);
    assert!(
        of("sack").count() > 0
            && of("state").all(|line| line["cwnd"].as_array().is_some_and(|all| all.len() == 2))
    );
    let times: Vec<f64> = lines[1..].iter().filter_map(|line| line["t"].as_f64()).collect();
    assert!(times.is_sorted() && times.len() == lines.len() - 1);
}

/// Several things happen at one instant, and only the first of them comes after some time.
#[test]
fn a_trace_names_no_limit_that_held_for_no_time() {
    let busy = "settle = \"1s\"\nmeasure = \"5s\"\n[[path]]\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n\
                [[path]]\nrate = \"5Mbit/s\"\ndelay = \"20ms\"\n";
    let (outcome, lines) = traced(&scenario(busy, &[]));
    let idle = |shares: &tresse_sim::Shares| shares.of(tresse_proto::Limit::Nothing);
    assert!(outcome.limited_by.paths.iter().all(|path| idle(path) == 0.0), "{:?}", outcome.limited_by);
    let limits: Vec<_> =
        lines.iter().filter(|line| line["e"] == "state").map(|line| &line["limit"]).collect();
    assert!(limits.len() > 1000, "{}", limits.len());
    for limits in &limits[1..] {
        assert!(
            limits.as_array().is_some_and(|paths| paths.iter().all(|path| path != "nothing")),
            "{limits}"
        );
    }
}
