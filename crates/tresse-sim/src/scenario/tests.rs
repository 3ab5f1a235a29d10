//! Reading, overriding, printing, refusing.

use std::time::Duration;

use super::*;
use crate::link::{Loss, QueueLimit};

const TWO_PATHS: &str = r#"
name = "two"
seed = 7
preset = "pfldnet2010"
settle = "19s"
measure = "300s"

[transport]
send_buffer = "64KiB"
receive_buffer = "64KiB"
max_burst = 8
concurrent = true

[receiver]
sack_delay = "100ms"

[traffic]
streams = 2

[[path]]
rate = "10Mbit/s"
delay = "10ms"

[[path]]
rate = "2Mbit/s"
delay = "75ms"
queue = "64KiB"
loss = "1%"
reverse = { rate = "1Mbit/s", loss = 0 }
"#;

fn two_paths() -> Scenario {
    Scenario::from_toml(TWO_PATHS, "two.toml").expect("a good scenario")
}

fn refusal(text: &str) -> String {
    Scenario::from_toml(text, "bad.toml").expect_err(text).to_string()
}

#[test]
fn a_scenario_is_read_with_its_defaults() {
    let scenario = two_paths();
    let resolved = scenario.resolved();
    assert_eq!((resolved.seed, resolved.measure), (7, Duration::from_secs(300)));
    assert_eq!(resolved.sender.send_buffer.0, 65_536);
    assert_eq!(resolved.sender.max_burst, 8);
    assert_eq!(resolved.sender.outbound_streams, 2, "as many as the traffic uses");
    assert_eq!(resolved.sender.rto_initial, Duration::from_secs(3), "from the preset");
    assert_eq!(resolved.receiver.sack_delay, Duration::from_millis(100));
    assert_eq!(resolved.sender.sack_delay, Duration::from_millis(200));
    assert_eq!(resolved.paths[0].forward.queue, QueueLimit::Packets(100));
    assert_eq!(resolved.paths[0].backward, resolved.paths[0].forward);
    let PathSpec { forward, backward } = resolved.paths[1];
    assert_eq!((forward.rate, backward.rate), (2_000_000, 1_000_000));
    assert_eq!((forward.loss, backward.loss), (Loss::Uniform(0.01), Loss::None));
    assert_eq!(backward.delay, forward.delay);
    assert_eq!(resolved.traffic.message_size, 1452);
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let scenario = two_paths();
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
    assert_eq!(again.resolved(), scenario.resolved());
    assert_eq!(again.to_toml(), scenario.to_toml());
}

#[test]
fn overrides_reach_every_place() {
    let mut scenario = two_paths();
    let overrides = [
        ("seed", "18446744073709551615"),
        ("measure", "30s"),
        ("transport.send_buffer", "128KiB"),
        ("sender.max_burst", "4"),
        ("path.1.delay", "50ms"),
        ("path[0].reverse.delay", "1ms"),
        ("record.interval", "100ms"),
        ("traffic.ordered", "false"),
    ];
    for (key, value) in overrides {
        scenario.set(key, value).expect(key);
    }
    let resolved = scenario.resolved();
    assert_eq!(resolved.seed, u64::MAX);
    assert_eq!(resolved.sender.send_buffer.0, 131_072);
    assert_eq!((resolved.sender.max_burst, resolved.receiver.max_burst), (4, 8));
    assert_eq!(resolved.paths[1].forward.delay, Duration::from_millis(50));
    assert_eq!(resolved.paths[0].backward.delay, Duration::from_millis(1));
    assert_eq!(resolved.record_interval, Some(Duration::from_millis(100)));
    assert!(!resolved.traffic.ordered);
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
    assert_eq!(again.resolved(), resolved);
}

#[test]
fn a_changed_preset_leaves_own_settings_alone() {
    let mut scenario = two_paths();
    scenario.set("preset", "cmt").expect("a preset");
    assert_eq!(scenario.resolved().sender.rto_initial, Duration::from_secs(1));
    assert_eq!(scenario.resolved().sender.send_buffer.0, 65_536);
}

#[test]
fn a_refused_override_changes_nothing() {
    let mut scenario = two_paths();
    let refusals = [
        ("measur", "1s", "two.toml: measur: unknown key; did you mean \"measure\"?"),
        ("path.2.delay", "1ms", "two.toml: path.2.delay: the scenario has path.0 to path.1"),
        ("path.delay", "1ms", "two.toml: path.delay: the scenario has path.0 to path.1"),
        ("measure.x", "1s", "two.toml: measure.x: measure is a single value"),
        ("transport.", "1s", "two.toml: transport.: is no key: write key=value, such as path.1.delay=75ms"),
        ("transport", "1s", "two.toml: transport: \"1s\" is not a table"),
        ("path", "1s", "two.toml: path: \"1s\" is not an array of tables: one [[path]] for each"),
        (
            "transport.send_buffer",
            "64",
            "two.toml: transport.send_buffer: \"64\" is not a size such as \"64KiB\"",
        ),
        (
            "transport.stream_map",
            "fixed:0,2",
            "two.toml: transport.stream_map: names path 2, and the scenario has paths 0 to 1",
        ),
    ];
    for (key, value, expected) in refusals {
        let error = scenario.set(key, value).expect_err(key);
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(scenario, two_paths());
}

#[test]
fn contradictions_that_cancel_out_may_be_set_together() {
    let mut scenario = two_paths();
    assert!(scenario.set("transport.rto_max", "2s").is_err(), "rto_initial is 3s");
    let both = [("transport.rto_max", "2s"), ("transport.rto_initial", "1s")];
    assert!(scenario.set_all(both).is_ok());
}

#[test]
fn errors_say_where_and_what_would_be_accepted() {
    let path = "[[path]]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n";
    assert_eq!(refusal(""), "bad.toml: path: a scenario has at least one [[path]]");
    assert_eq!(
        refusal(&format!("{path}{path}rat = \"1Mbit/s\"\n")),
        "bad.toml: path[1].rat: unknown key; did you mean \"rate\"?"
    );
    assert_eq!(
        refusal("[[path]]\nrate = \"1Mbit/s\"\n"),
        "bad.toml: path[0].delay is missing: it is a duration up to 10min, such as \"25ms\""
    );
    assert_eq!(
        refusal(&format!("[transport]\nsend_bufer = \"1KiB\"\n{path}")),
        "bad.toml: transport.send_bufer: unknown key; did you mean \"send_buffer\"?"
    );
    assert_eq!(
        refusal(&format!("preset = \"cnt\"\n{path}")),
        "bad.toml: preset: \"cnt\" is not one of the presets cmt, rfc9260, pfldnet2010; did you mean \"cmt\"?"
    );
    assert_eq!(
        refusal(&format!("{path}loss = \"120%\"\n")),
        "bad.toml: path[0].loss: \"120%\" is not a probability such as \"1%\" or 0.01"
    );
    assert_eq!(refusal(&format!("{path}loss = [1]\n")).matches("an array is not").count(), 1);
    assert!(refusal("name = \"x\"\nrate = = 3\n").starts_with("bad.toml: line 2: "));
    assert!(!refusal("a = \"\n").contains('\n'), "one line");
    for (key, value) in [
        ("measure", "0"),
        ("measure", "9999h"),
        ("settle", "-1s"),
        ("seed", "-1"),
        ("framing", "1MB"),
        ("traffic.streams", "0"),
        ("traffic.message_size", "0"),
        ("traffic.refill", "always"),
        ("traffic.stop", "0"),
        ("record.interval", "1us"),
        ("path.0.rate", "0"),
        ("path.0.delay", "1h"),
        ("path.0.queue", "100"),
        ("path.0.loss", "nan"),
        ("transport.inbound_streams", "1"),
        ("transport.path_pairs", "full_mesh"),
    ] {
        assert!(two_paths().set(key, value).is_err(), "{key}={value}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Scenario::load("no/such/file.toml").expect_err("it does not exist").to_string();
    assert!(error.starts_with("no/such/file.toml: "), "{error}");
}
