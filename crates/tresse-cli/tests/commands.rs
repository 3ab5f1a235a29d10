//! The commands that need no network: sim, dissect, switches, help.

#![allow(missing_docs, reason = "a test")]

mod common;

use std::fs;

use common::{Dir, text, tresse};

const SCENARIO: &str = r#"
name = "short"
settle = "100ms"
start_jitter = "0"
measure = "2s"
[[path]]
rate = "10Mbit/s"
delay = "5ms"
[[path]]
rate = "5Mbit/s"
delay = "5ms"
"#;

fn scenario(dir: &Dir) -> String {
    let path = dir.path("short.toml");
    fs::write(&path, SCENARIO).expect("writable");
    text(&path)
}

fn document(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_simulation_gives_one_document_and_the_same_for_the_same_seed() {
    let dir = Dir::new("sim");
    let scenario = scenario(&dir);
    let run =
        |seed: &str| tresse(&["sim", &scenario, "--seed", seed, "--set", "path.1.rate=10Mbit/s", "--json"]);
    let first = run("7");
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.stdout, run("7").stdout);
    let outcome = document(&first.stdout);
    assert_eq!(outcome["seed"], 7);
    assert_eq!(outcome["scenario"]["path"][1]["rate"], "10Mbit/s");
    assert!(outcome["throughput_mbps"].as_f64().is_some_and(|rate| rate > 10.0), "both paths: {outcome}");
    assert_eq!(outcome["paths"].as_array().map(Vec::len), Some(2));
    assert_ne!(outcome["run"]["trace_hash"], document(&run("8").stdout)["run"]["trace_hash"]);
}

#[test]
fn a_simulation_takes_a_scheduler_along_in_a_shared_object() {
    let dir = Dir::new("plugin");
    let (scenario, object) = (scenario(&dir), dir.plugin("examples/schedulers/one_by_one.c", &[]));
    let choice = ["--set", "transport.stream_scheduler=one_by_one", "--set", "traffic.streams=3"];
    let run = |more: &[&str]| tresse(&[&["sim", &scenario, "--json"][..], &choice, more].concat());
    let without = run(&[]);
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(
        without.stderr.contains("unknown stream scheduler \"one_by_one\"; registered are "),
        "{without:?}"
    );
    let with = run(&["--scheduler-so", &object]);
    assert_eq!(with.code, Some(0), "{with:?}");
    let outcome = document(&with.stdout);
    assert_eq!(outcome["scenario"]["transport"]["stream_scheduler"], "one_by_one");
    assert_eq!(outcome["association"]["scheduler_failures"], serde_json::Value::Null, "none");
    assert_eq!(with.stderr, "");
    let unused = tresse(&["sim", &scenario, "--json", "--scheduler-so", &object]);
    let line = format!(
        "tresse: --scheduler-so {object} (one_by_one) has no effect beside stream_scheduler = first_come\n"
    );
    assert_eq!((unused.code, &unused.stderr), (Some(0), &line), "{unused:?}");
    let twice = run(&["--scheduler-so", &object, "--scheduler-so", &object]);
    let line = format!("tresse: --scheduler-so: {object}: the name \"one_by_one\" is already registered\n");
    assert_eq!((twice.code, &twice.stderr), (Some(2), &line), "{twice:?}");
    let none = run(&["--scheduler-so", &scenario]);
    let line = format!("tresse: --scheduler-so: {scenario}: it cannot be loaded: ");
    assert!(none.code == Some(2) && none.stderr.starts_with(&line), "{none:?}");
}

#[test]
fn a_simulation_says_what_limited_it_and_its_seed() {
    let dir = Dir::new("lines");
    let done = tresse(&["sim", &scenario(&dir), "--seed", "3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.starts_with("short: ") && done.stdout.contains("seed 3"), "{done:?}");
    assert!(done.stdout.contains("in total limited by "), "{done:?}");
    let quiet = tresse(&["sim", &scenario(&dir), "--quiet"]);
    assert_eq!((quiet.code, quiet.stdout, quiet.stderr), (Some(0), String::new(), String::new()));
}

#[test]
fn a_setting_without_effect_is_named() {
    let dir = Dir::new("idle");
    let scenario = scenario(&dir);
    let run = |setting: &str| tresse(&["sim", &scenario, "--set", setting]);
    let idle = run("transport.key_drain=5s");
    assert_eq!(idle.code, Some(0), "{idle:?}");
    assert_eq!(idle.stderr, "tresse: transport.key_drain has no effect beside encryption = off\n");
    assert_eq!(run("transport.sack_delay=100ms").stderr, "");
}

#[test]
fn a_simulation_without_an_association_says_so() {
    let dir = Dir::new("unreached");
    let deaf = ["--set", "path.0.loss=100%", "--set", "path.1.loss=100%"];
    let done = tresse(&[&["sim", &scenario(&dir)][..], &deaf].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let expected = "no association was set up: the handshake found no way through";
    assert!(done.stdout.contains(expected), "{done:?}");
    let done = tresse(&["sim", &scenario(&dir), "--set", "traffic.start=1h"]);
    let expected = "no association was set up: the run ended before its start (traffic.start, start_jitter)";
    assert!(done.stdout.contains(expected), "{done:?}");
    assert!(!done.stdout.contains("NaN") && !done.stdout.contains("limited by nothing"), "{done:?}");
}

#[test]
fn a_simulation_whose_traffic_stops_as_planned_does_not_end_early() {
    let dir = Dir::new("stop");
    let run = |stop: &str| tresse(&["sim", &scenario(&dir), "--set", stop]);
    let planned = run("traffic.stop=1s");
    let said = "the association was shut down at the end of its traffic (traffic.stop)";
    assert!(planned.stdout.contains(said) && !planned.stdout.contains("early"), "{planned:?}");
    let unfinished = run("traffic.stop=1ms");
    assert!(unfinished.stdout.contains("the association ended early: aborted"), "{unfinished:?}");
    let later = run("traffic.stop=1h");
    assert!(!later.stdout.contains("the association"), "{later:?}");
}

#[test]
fn a_simulation_can_be_held_to_a_throughput() {
    let dir = Dir::new("required");
    let run = |rate: &str| tresse(&["sim", &scenario(&dir), "--require-throughput", rate]);
    assert_eq!(run("1kbit/s").code, Some(0));
    let missed = run("900Gbit/s");
    assert_eq!(missed.code, Some(4), "{missed:?}");
    assert!(missed.stdout.starts_with("short: "), "the result is printed all the same: {missed:?}");
    assert!(missed.stderr.starts_with("tresse: 900 Gbit/s is required, and "), "{missed:?}");
    assert_eq!(run("0bit/s").code, Some(2));
}

#[test]
fn a_simulated_capture_dissects() {
    let dir = Dir::new("capture");
    let (scenario, capture) = (scenario(&dir), text(&dir.path("short.pcapng")));
    let args = ["sim", &scenario, "--set", "measure=100ms", "--pcap", &capture];
    assert_eq!(tresse(&args).code, Some(0));
    let dissected = tresse(&["dissect", &capture]);
    assert_eq!(dissected.code, Some(0), "{dissected:?}");
    let lines: Vec<&str> = dissected.stdout.lines().collect();
    assert!(lines[0].contains("INIT"), "{}", lines[0]);
    for kind in ["INIT ACK", "COOKIE ECHO", "COOKIE ACK", "DATA", "SACK"] {
        assert!(lines.iter().any(|line| line.contains(kind)), "no {kind}");
    }
    assert!(!dissected.stdout.contains("bad "), "captures carry right checksums");
    assert_eq!(dissected.stderr, format!("tresse: {0} packets, {0} of them SCTP\n", lines.len()));

    let again = tresse(&args);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("the file exists"), "{again:?}");
}

#[test]
fn damaged_captures_end_in_one_line() {
    let dir = Dir::new("damage");
    let (scenario, capture) = (scenario(&dir), dir.path("short.pcapng"));
    let args = ["sim", &scenario, "--set", "settle=10ms", "--set", "measure=50ms", "--pcap", &text(&capture)];
    assert_eq!(tresse(&args).code, Some(0));
    let whole = fs::read(&capture).expect("written");
    let damaged = text(&dir.path("damaged"));
    for len in [0, 3, 10, whole.len() / 2, whole.len() - 1] {
        fs::write(&damaged, &whole[..len]).expect("writable");
        let done = tresse(&["dissect", &damaged]);
        assert_eq!(done.code, Some(2), "{len} bytes: {done:?}");
        let last = done.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("tresse: {damaged}: is ")), "{len} bytes: {done:?}");
    }
    let other = tresse(&["dissect", &scenario]);
    assert!(other.stderr.contains("is no capture in the format pcap or pcapng ("), "{other:?}");
    // Whatever the bytes are: an answer, never a crash.
    let mut state = 1_u32;
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 8) as usize % bytes.len();
            bytes[at] = (state >> 3) as u8;
        }
        fs::write(&damaged, bytes).expect("writable");
        let done = tresse(&["dissect", &damaged]);
        assert!(matches!(done.code, Some(0 | 2)), "{done:?}");
    }
}

#[test]
fn mistakes_in_scenarios_name_file_key_and_what_is_accepted() {
    let dir = Dir::new("mistakes");
    let (scenario, folder) = (scenario(&dir), dir.path("").display().to_string());
    let binary = dir.path("binary").display().to_string();
    std::fs::write(&binary, [0xFF, 0xFE, 0]).expect("writable");
    for (args, expected) in [
        (vec!["sim", &scenario, "--set", "path.0.rat=1Mbit/s"], "did you mean \"rate\"?"),
        (vec!["sim", &scenario, "--set", "measure=5"], "a duration up to 1000h, such as"),
        (vec!["sim", &scenario, "--set", "measure"], "is not KEY=VALUE"),
        (vec!["sim", &scenario, "--set", "path.0.speed=1Mbit/s"], "the keys are joins, leaves, "),
        (vec!["sim", &scenario, "--set", "transport.window=1"], "unknown key; docs/switches.md lists them"),
        (vec!["sim", "missing.toml"], "missing.toml: there is no such file"),
        (vec!["sim", &folder], "is a directory"),
        (vec!["sim", &binary], "is no text in UTF-8"),
        #[cfg(unix)]
        (vec!["sim", "/dev/zero"], "is longer than 16 MiB: a scenario is a TOML file"),
        #[cfg(unix)]
        (vec!["tunnel", "run", "/dev/zero"], "/dev/zero: is longer than 1MiB"),
        #[cfg(unix)]
        (vec!["keygen", "--show", "/dev/zero"], "/dev/zero: is longer than 1MiB"),
        #[cfg(unix)]
        (vec!["dissect", &scenario, "--key-log", "/dev/zero"], "--key-log /dev/zero: is longer than 256MiB"),
        #[cfg(unix)]
        (
            vec!["perf", "client", "--to", "127.0.0.1", "--secret-file", "/dev/zero"],
            "--secret-file /dev/zero: is longer than 4MiB",
        ),
        (vec!["perf", "client", "--to", "127.0.0.1", "--timeout", "0s"], "it must be longer than nothing"),
        (vec!["sim", &scenario, "--pcap", &folder], "is a directory"),
        (vec!["dissect", "missing.pcap"], "missing.pcap"),
        (vec!["simulate"], "unrecognized subcommand"),
    ] {
        let done = tresse(&args);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    }
}

#[test]
fn who_is_refused_finds_no_new_file_and_old_ones_as_they_were() {
    let dir = Dir::new("refused");
    let scenario = scenario(&dir);
    let (capture, trace) = (text(&dir.path("run.pcapng")), text(&dir.path("run.trace")));
    std::fs::write(&trace, "precious").expect("writable");
    let both = ["sim", &scenario, "--pcap", &capture, "--trace", &trace];
    let exists = tresse(&both);
    assert_eq!(exists.code, Some(2), "{exists:?}");
    assert!(exists.stderr.contains("run.trace: the file exists (--force overwrites it)"), "{exists:?}");
    assert_eq!(std::fs::read_to_string(&trace).expect("there"), "precious");
    assert!(!dir.path("run.pcapng").exists(), "it was not to be");

    let unknown = ["sim", &scenario, "--pcap", &capture, "--set", "transport.stream_scheduler=nobody"];
    assert_eq!(tresse(&unknown).code, Some(2));
    assert!(!dir.path("run.pcapng").exists(), "nothing was simulated");

    let nowhere = tresse(&["sim", &scenario, "--pcap", &text(&dir.path("gone/run.pcapng"))]);
    assert!(nowhere.stderr.ends_with("run.pcapng: there is no such directory\n"), "{nowhere:?}");
    let same = text(&dir.path("./run.trace"));
    let one = tresse(&["sim", &scenario, "--pcap", &same, "--trace", &trace, "--force"]);
    assert_eq!(one.code, Some(2), "{one:?}");
    assert!(
        one.stderr.ends_with("run.trace: the capture goes to the same file: name another one\n"),
        "{one:?}"
    );
    assert_eq!(std::fs::read_to_string(&trace).expect("there"), "precious");
    let forced = tresse(&[&both[..], &["--force", "--set", "measure=1s"]].concat());
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(std::fs::metadata(&capture).expect("written").len() > 1000);
    assert!(!std::fs::read_to_string(&trace).expect("written").contains("precious"));
}

#[test]
fn switches_are_listed_for_people_and_programs() {
    let plain = tresse(&["switches"]);
    assert!(plain.stdout.contains("send_buffer = 1MiB") && plain.stdout.contains("pfldnet2010"), "{plain:?}");
    // By the groups of docs/switches.md, each with its heading.
    let place = |what: &str| plain.stdout.find(what).unwrap_or_else(|| panic!("no {what:?} in {plain:?}"));
    let headings = tresse::config::GROUPS.iter().map(|group| place(&format!(": {}\n", group.name)));
    assert!(headings.is_sorted() && place(": Buffers and streams\n") < place("\n  send_buffer = "));
    assert!(place("\n  send_buffer = ") < place(": Paths\n"), "{plain:?}");
    let json = document(&tresse(&["switches", "--json"]).stdout);
    let names: Vec<&str> =
        json["presets"].as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, tresse::config::PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>());
}

#[test]
fn help_is_no_mistake() {
    let help = tresse(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("dissect"));
}

#[test]
fn who_gives_no_command_is_shown_those_there_are() {
    for (args, command) in [(&[][..], "dissect"), (&["perf"], "client"), (&["tunnel"], "server")] {
        let shown = tresse(args);
        assert_eq!((shown.code, shown.stdout.as_str()), (Some(2), ""));
        assert!(shown.stderr.contains("Usage: tresse") && shown.stderr.contains(command), "{shown:?}");
    }
}
