//! Tests of reading, overriding, printing and refusing scenarios.

use std::time::Duration;

use super::*;
use crate::link::{Change, CoDelSpec, Discipline, GilbertElliott, Loss, QueueLimit, RedSpec, Reordering};
use crate::tcp::CrossLoad;

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
    let PathSpec { forward, backward, .. } = &resolved.paths[1];
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
        ("transport.experiment.min_ssthresh", "2"),
        ("receiver.experiment.split_overbooking", "true"),
        ("path.1.delay", "50ms"),
        ("path[0].reverse.delay", "1ms"),
        ("host.packet_time", "50us"),
        ("record.interval", "100ms"),
        ("traffic.ordered", "false"),
        ("traffic.read", "after_sack"),
    ];
    for (key, value) in overrides {
        scenario.set(key, value).expect(key);
    }
    let resolved = scenario.resolved();
    assert_eq!(resolved.seed, u64::MAX);
    assert_eq!(resolved.sender.send_buffer.0, 131_072);
    assert_eq!((resolved.sender.max_burst, resolved.receiver.max_burst), (4, 8));
    let experiments = [&resolved.sender.experiment, &resolved.receiver.experiment];
    assert_eq!(experiments.map(|own| (own.min_ssthresh, own.split_overbooking)), [(2, false), (2, true)]);
    assert_eq!(resolved.paths[1].forward.delay, Duration::from_millis(50));
    assert_eq!(resolved.paths[0].backward.delay, Duration::from_millis(1));
    assert_eq!(resolved.record_interval, Some(Duration::from_millis(100)));
    assert!(!resolved.traffic.ordered);
    assert_eq!(resolved.traffic.read.name(), "after_sack");
    assert_eq!(resolved.packet_time, Duration::from_micros(50));
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
        ("path.0", "1ms", "two.toml: path.0: is a table: add one of its keys"),
        ("cross.0.kind", "bulk", "two.toml: cross.0.kind: the scenario has no cross there"),
        ("path.0.change.0.at", "1s", "two.toml: path.0.change.0.at: the scenario has no change there"),
        ("traffic.sporadic.0", "1", "two.toml: traffic.sporadic.0: the scenario has no sporadic there"),
        ("measure.x", "1s", "two.toml: measure.x: measure is a single value"),
        ("transport.", "1s", "two.toml: transport.: is no key: write key=value, such as path.1.delay=75ms"),
        ("transport", "1s", "two.toml: transport: \"1s\" is not a table"),
        ("path", "1s", "two.toml: path: \"1s\" is not an array of tables: one [[path]] for each"),
        (
            "transport.send_buffer",
            "64",
            "two.toml: transport.send_buffer: \"64\" is not a size such as \"64KiB\"",
        ),
        // Invalid for both hosts: the error names the table of both.
        ("transport.send_buffer", "0B", "two.toml: transport.send_buffer: must be from 1B to 1GiB"),
        ("sender.send_buffer", "0B", "two.toml: sender.send_buffer: must be from 1B to 1GiB"),
        (
            "path.0.codel.interval",
            "0s",
            "two.toml: path[0].codel.interval: \"0s\" is not a duration above 0s and up to 10min, such as \"5ms\"",
        ),
        (
            "measure",
            "1000000h",
            "two.toml: measure: \"1000000h\" is not a duration up to 1000h, such as \"25ms\"",
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

/// A recursion through a hundred thousand tables would overflow the stack.
#[test]
fn an_override_through_more_tables_than_any_key_has_is_refused() {
    let deep = format!("transport{}", ".a".repeat(100_000));
    let error = two_paths().set(&deep, "1").expect_err("no such key").to_string();
    assert!(
        error.contains("has more steps than any key: write key=value"),
        "{}",
        &error[error.len() - 100..]
    );
    assert!(two_paths().set("path.0.reverse.change.0.at", "1s").is_err(), "this is read");
}

/// The largest volume is told in a unit that there is.
#[test]
fn the_largest_volume_that_an_error_names_is_accepted() {
    let error = two_paths().set("traffic.volume", "1025GiB").expect_err("more than the most").to_string();
    assert!(error.ends_with("is not a size from 1B to 1024GiB, such as \"8MiB\""), "{error}");
    assert!(two_paths().set("traffic.volume", "1024GiB").is_ok());
}

#[test]
fn no_more_of_a_file_is_read_than_a_scenario_may_have() {
    let path = std::env::temp_dir().join(format!("tresse-long-{}.toml", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    let refused = |bytes| {
        file.set_len(bytes).expect("room");
        Scenario::load(&path).expect_err("zeros").to_string()
    };
    let (longest, longer) = (refused(16 << 20), refused((16 << 20) + 1));
    std::fs::remove_file(&path).expect("it is there");
    assert!(longest.contains(": line 1: "), "{} bytes", longest.len());
    assert!(longer.ends_with("is longer than 16 MiB: a scenario is a TOML file"), "{} bytes", longer.len());
}

#[test]
fn recovery_is_not_recorded_of_what_cannot_be_read() {
    let mut scenario = two_paths();
    scenario
        .set_all([("record.recovery", "true"), ("sender.encryption", "offer")])
        .expect("a peer in the clear");
    let error = scenario.set("receiver.encryption", "require").expect_err("both encrypt").to_string();
    assert!(error.starts_with("two.toml: record.recovery: TSNs of encrypted associations"), "{error}");
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
        "bad.toml: preset: \"cnt\" is not one of the presets cmt, adaptive, rfc9260, pfldnet2010, globecom2005, globecom2010"
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
        ("traffic.read", "never"),
        ("traffic.stop", "0"),
        ("host.packet_time", "2s"),
        ("host.idle_time", "1us"),
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

/// A number with a decimal point is not an integer, and a boolean or a number is not a name.
#[test]
fn values_of_another_kind_are_refused() {
    let path = "[[path]]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n";
    let whole = "a whole number from 0 to 18446744073709551615";
    assert_eq!(refusal(&format!("seed = 3.0\n{path}")), format!("bad.toml: seed: 3.0 is not {whole}"));
    assert_eq!(
        refusal(&format!("seed = \"3.0\"\n{path}")),
        format!("bad.toml: seed: \"3.0\" is not {whole}")
    );
    for value in ["true", "7", "1.5", "1979-05-27"] {
        let expected = format!("bad.toml: name: {value} is not a name in quotes, such as \"wifi-lte\"");
        assert_eq!(refusal(&format!("name = {value}\n{path}")), expected);
    }
    for table in ["traffic]\nstreams", "transport]\nmax_burst", "transport.experiment]\nmin_ssthresh"] {
        let refused = refusal(&format!("[{table} = 4.0\n{path}"));
        assert!(refused.contains("4.0"), "{refused}");
        assert!(Scenario::from_toml(&format!("[{table} = 4\n{path}"), "good.toml").is_ok(), "{table}");
    }
    for value in ["1979-05-27", "nan", "[1]"] {
        let refused = refusal(&format!("[transport]\npath_scheduler = {value}\n{path}"));
        assert!(refused.ends_with(" is not a number, true, false or a text in quotes"), "{refused}");
    }
    for (name, value) in
        [("path_scheduler", "true"), ("congestion_control", "3"), ("stream_scheduler", "0.5")]
    {
        let refused = refusal(&format!("[transport]\n{name} = {value}\n{path}"));
        assert_eq!(refused, format!("bad.toml: transport.{name}: {value} is not a text in quotes"));
    }
    let likely = format!("{path}loss = 1e-3\nbit_error_rate = 0.0\n");
    assert!(Scenario::from_toml(&likely, "good.toml").is_ok(), "numbers with a point where they are meant");
}

const CROSSED: &str = r#"
[traffic]
streams = 3
[[traffic.sporadic]]
stream = 1
gap = "1s"
size = "1B..100B"
[access]
delay = "1ms"
[[path]]
rate = "10Mbit/s"
delay = "150ms"
[[cross]]
kind = "bulk"
flows = 2
stop = "1min"
[[cross]]
kind = "web"
reverse = true
think = "30s"
"#;

#[test]
fn cross_traffic_and_sporadic_streams_are_read_and_printed() {
    let scenario = Scenario::from_toml(CROSSED, "crossed.toml").expect("a good scenario");
    let resolved = scenario.resolved();
    assert_eq!(resolved.traffic.sporadic[0].size, (1, 100));
    assert_eq!(resolved.traffic.saturated(), [0, 2]);
    assert_eq!((resolved.access.rate, resolved.access.delay), (1_000_000_000, Duration::from_millis(1)));
    let [bulk, web] = &resolved.cross_traffic[..] else { panic!("two pairs") };
    assert_eq!((&bulk.load, bulk.stop), (&CrossLoad::Bulk { flows: 2 }, Some(Duration::from_secs(60))));
    assert!(web.reverse && matches!(&web.load, CrossLoad::Web(web) if web.users == 1 && web.request == 300));
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
    assert_eq!(again.resolved(), resolved);
}

/// As many as there are, in the order that takes longest to compare each with those before it.
#[test]
fn every_stream_may_be_sporadic() {
    let mut text = "[traffic]\nstreams = 65535\n[[path]]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\n".to_owned();
    for stream in 0..65_535 {
        text.push_str(&format!("[[traffic.sporadic]]\nstream = {stream}\ngap = \"1s\"\nsize = \"1B\"\n"));
    }
    let scenario = Scenario::from_toml(&text, "many.toml").expect("a good scenario");
    assert_eq!(scenario.resolved().traffic.sporadic.len(), 65_535);
    assert!(scenario.resolved().traffic.saturated().is_empty());
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what is printed reads back");
    assert_eq!(again.resolved(), scenario.resolved());
    text.push_str("[[traffic.sporadic]]\nstream = 7\ngap = \"1s\"\nsize = \"1B\"\n");
    let twice = Scenario::from_toml(&text, "many.toml").expect_err("a stream twice").to_string();
    assert_eq!(twice, "many.toml: traffic.sporadic[65535].stream: has its messages described before");
}

#[test]
fn cross_traffic_is_refused_where_it_means_nothing() {
    let refused = |key: &str, value: &str| {
        let mut scenario = Scenario::from_toml(CROSSED, "x").expect("a good scenario");
        scenario.set(key, value).expect_err(key).to_string()
    };
    assert_eq!(refused("cross.0.kind", "ftp"), "x: cross[0].kind: \"ftp\" is not \"bulk\" or \"web\"");
    assert_eq!(refused("cross.1.path", "1"), "x: cross[1].path: \"1\" is not a path, from 0 to 0");
    let unknown = "x: cross[0].think: unknown key; the keys are kind, flows, path, ";
    assert!(refused("cross.0.think", "1s").starts_with(unknown), "{}", refused("cross.0.think", "1s"));
    assert_eq!(
        refused("traffic.sporadic.0.stream", "3"),
        "x: traffic.sporadic[0].stream: the traffic has streams 0 to 2"
    );
    assert!(refused("traffic.volume", "1MiB").contains("leave one of them out"));
    for (key, value) in [
        ("cross.0.flows", "0"),
        ("cross.0.stop", "0s"),
        ("cross.0.initial_window", "0"),
        ("cross.0.receive_window", "16MiB"),
        ("cross.0.rto_min", "0s"),
        ("cross.1.response_shape", "1"),
        ("cross.1.think", "0s"),
        ("traffic.sporadic.0.size", "9B..3B"),
        ("traffic.sporadic.0.gap", "0s"),
        ("access.rate", "0"),
    ] {
        assert!(refused(key, value).starts_with("x: "), "{key}={value}");
    }
}

const IMPAIRED: &str = r#"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
discipline = "red"
bit_error_rate = "1e-6"
bit_errors_spare = "48B"
duplicate = "2%"
reorder = 0.01
reorder_delay = "5ms"
jitter = "2ms"
red = { min_threshold = 10, uniform_drops = true, ecn = true }
gilbert_elliott = { p = "1%", r = 0.25 }
mtu = "9000B"
reverse = { mtu = "1500B", discipline = "codel", codel = { target = "10ms", ecn = true }, loss = 0, reorder = 0, change = [] }

[[path.change]]
at = "30s"
delay = "75ms"

[[path.change]]
at = "40s"
rate = "1Mbit/s"
loss = "5%"
outage = true
mtu = "1400B"
"#;

fn impaired() -> Scenario {
    Scenario::from_toml(IMPAIRED, "impaired.toml").expect("a good scenario")
}

#[test]
fn impairments_are_read_and_inherited() {
    let scenario = impaired();
    let PathSpec { forward, backward, .. } = &scenario.resolved().paths[0];
    let red = RedSpec { min_threshold: 10, uniform_drops: true, ecn: true, ..RedSpec::default() };
    assert_eq!(forward.discipline, Discipline::Red(red));
    let chain = GilbertElliott { p: 0.01, r: 0.25, good_loss: 0.0, bad_loss: 1.0 };
    assert_eq!((forward.loss, backward.loss), (Loss::GilbertElliott(chain), Loss::None));
    assert_eq!((forward.impairments.bit_error_rate, backward.impairments.bit_error_rate), (1e-6, 1e-6));
    assert_eq!((forward.impairments.bit_errors_spare, backward.impairments.bit_errors_spare), (48, 48));
    assert_eq!((forward.mtu, backward.mtu), (Some(9000), Some(1500)));
    assert_eq!((forward.impairments.duplication, backward.impairments.duplication), (0.02, 0.02));
    let late = Reordering { probability: 0.01, extra_delay: Duration::from_millis(5) };
    assert_eq!((forward.impairments.reordering, backward.impairments.reordering), (Some(late), None));
    let most = Duration::from_millis(2);
    assert_eq!((forward.impairments.jitter, backward.impairments.jitter), (most, most));
    let second = |s| Duration::from_secs(s);
    let delay = Change { at: second(30), delay: Some(Duration::from_millis(75)), ..Change::default() };
    let worse = Change {
        at: second(40),
        rate: Some(1_000_000),
        delay: None,
        loss: Some(Loss::Uniform(0.05)),
        outage: Some(true),
        mtu: Some(1400),
    };
    assert_eq!(forward.changes, [delay, worse]);
    assert!(backward.changes.is_empty());
    let codel = CoDelSpec { target: Duration::from_millis(10), ecn: true, ..CoDelSpec::default() };
    assert_eq!(backward.discipline, Discipline::CoDel(codel));
}

#[test]
fn impairments_are_printed_so_that_they_read_back() {
    let mut scenario = impaired();
    for key in [None, Some(("path.0.discipline", "codel")), Some(("path.0.reverse.discipline", "drop_tail"))]
    {
        if let Some((key, value)) = key {
            scenario.set(key, value).expect(key);
        }
        let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
        assert_eq!(again.resolved().paths, scenario.resolved().paths);
    }
}

/// The reverse direction inherits parameters that the forward direction does not use itself.
#[test]
fn unused_parameters_are_inherited_too() {
    let mut scenario = impaired();
    let swap = [("path.0.discipline", "codel"), ("path.0.reverse.discipline", "red")];
    scenario.set_all(swap).expect("both exist");
    let Discipline::Red(red) = scenario.resolved().paths[0].backward.discipline else { panic!("it is red") };
    assert_eq!(red.min_threshold, 10);
}

#[test]
fn bad_impairments_are_refused() {
    let refusals = [
        (
            "path.0.discipline",
            "fifo",
            "path[0].discipline: \"fifo\" is not \"drop_tail\", \"red\" or \"codel\"",
        ),
        (
            "path.0.red.min_treshold",
            "1",
            "path[0].red.min_treshold: unknown key; did you mean \"min_threshold\"?",
        ),
        ("path.0.reverse.change.0.at", "1s", "path.0.reverse.change.0.at: the scenario has no change there"),
        ("path.0.red.max_threshold", "10", "path[0].red.max_threshold: must be above min_threshold"),
        ("path.0.loss", "1%", "path[0].gilbert_elliott: takes the place of loss: leave one of them out"),
        (
            "path.0.change.1.at",
            "30s",
            "path[0].change[1].at: must be later than in the change before, and at most 1000h",
        ),
        ("path.0.change.0.dealy", "1ms", "path[0].change[0].dealy: unknown key; did you mean \"delay\"?"),
        (
            "path.0.reverse.change",
            "30s",
            "path[0].reverse.change: \"30s\" is not an array of tables: one [[path.reverse.change]] for each",
        ),
    ];
    for (key, value, expected) in refusals {
        let error = impaired().set(key, value).expect_err(key);
        assert_eq!(error.to_string(), format!("impaired.toml: {expected}"));
    }
    for (key, value) in [
        ("path.0.bit_error_rate", "-1e-6"),
        ("path.0.bit_error_rate", "2"),
        ("path.0.bit_errors_spare", "65536B"),
        ("path.0.duplicate", "101%"),
        ("path.0.reorder_delay", "5"),
        ("path.0.jitter", "11min"),
        ("path.0.red.weight", "0"),
        ("path.0.red.idle_rate", "-1"),
        ("path.0.red.uniform_drops", "maybe"),
        ("path.0.codel.interval", "0s"),
        ("path.0.gilbert_elliott.p", "nan"),
        ("path.0.change.0.outage", "1"),
    ] {
        assert!(impaired().set(key, value).is_err(), "{key}={value}");
    }
    let path = "[[path]]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n";
    assert!(refusal(&format!("{path}gilbert_elliott = {{ p = 0, r = 0 }}\n")).contains("must not both be 0"));
    assert!(refusal(&format!("{path}change = [{{ at = \"1s\" }}]\n")).contains("changes nothing"));
    assert!(refusal(&format!("{path}change = [{{ delay = \"1s\" }}]\n")).contains("change[0].at is missing"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Scenario::load("no/such/file.toml").expect_err("it does not exist").to_string();
    assert!(error.starts_with("no/such/file.toml: "), "{error}");
}

#[test]
fn a_path_may_use_the_links_of_one_before_it() {
    let text =
        "access.delay = \"50ms\"\n[[path]]\nrate = \"1Mbit/s\"\ndelay = \"5ms\"\n[[path]]\nshares = 0\n";
    let scenario = Scenario::from_toml(text, "shared.toml").expect("two paths over one link");
    let [own, shared] = &scenario.resolved().paths[..] else { panic!("two paths") };
    assert_eq!((own.shares, shared.shares, &shared.forward), (None, Some(0), &own.forward));
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
    assert_eq!(again.resolved(), scenario.resolved());

    let refused = |lines: &str| {
        let text = format!("{text}[[path]]\n{lines}\n");
        Scenario::from_toml(&text, "shared.toml").expect_err(lines).to_string()
    };
    for owner in ["1", "2", "7"] {
        let error = refused(&format!("shares = {owner}"));
        assert!(error.contains("path[2].shares") && error.contains("links of its own"), "{error}");
    }
    assert!(refused("shares = 0\nrate = \"2Mbit/s\"").contains("rate"), "it has no rate of its own");
}

const MOVING: &str = r#"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
leaves = "30s"
[[path]]
rate = "10Mbit/s"
delay = "10ms"
joins = "20s"
[[path]]
shares = 0
joins = "5s"
leaves = "10s"
"#;

#[test]
fn paths_join_and_leave() {
    let scenario = Scenario::from_toml(MOVING, "moving.toml").expect("a good scenario");
    let seconds = |at: Option<Duration>| at.map(|at| at.as_secs());
    let presences = scenario.resolved().paths.iter().map(|path| path.presence);
    let times: Vec<_> = presences.map(|one| (seconds(one.joins), seconds(one.leaves))).collect();
    assert_eq!(times, [(None, Some(30)), (Some(20), None), (Some(5), Some(10))]);
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml").expect("what we print we read");
    assert_eq!(again.resolved().paths, scenario.resolved().paths);
}

#[test]
fn what_makes_no_sense_of_joining_and_leaving_is_said_in_one_line() {
    let refused = |overrides: &[(&str, &str)]| {
        let mut scenario = Scenario::from_toml(MOVING, "x").expect("a good scenario");
        scenario.set_all(overrides.iter().copied()).expect_err("nonsense").to_string()
    };
    for (overrides, words) in [
        (&[("path.1.joins", "0s")][..], "path[1].joins"),
        (&[("path.2.leaves", "5s")], "path[2].leaves"),
        (&[("path.2.joins", "11s")], "must be later than joins"),
        (&[("path.0.joins", "1s"), ("path.1.joins", "1s")], "from the beginning"),
        (&[("path.1.joins", "30s")], "path[0].leaves: would leave no path"),
        (&[("path.1.leaves", "30s")], "would leave no path"),
        (&[("transport.dynamic_addresses", "false")], "needs dynamic_addresses = true"),
        (&[("receiver.authentication", "false")], "needs dynamic_addresses = true and authentication = true"),
        (&[("preset", "pfldnet2010")], "path[0].leaves: needs dynamic_addresses"),
    ] {
        let error = refused(overrides);
        assert!(error.contains(words) && !error.contains('\n'), "{overrides:?}: {error}");
    }
}
