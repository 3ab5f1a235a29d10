//! Causes that hold a transfer up, injected one at a time between real sockets, and whether `tresse perf` names them.
//!
//! The network is that of `tresse emulate`. A machine that is busy with other things becomes a cause itself, where the cause is
//! something that only a fast enough sender meets: those run when they are asked for (`make verdicts`). A path that is down, a
//! path that the scheduler leaves out, and a sender that has nothing to send are what they are on every machine. All
//! causes in the simulator, where no machine is busy, are in every `make test`.

#![allow(missing_docs, reason = "a test")]

mod common;

use std::process::{Child, Command};

use common::{Dir, Done, Running, tresse};
use serde_json::Value;

const PATHS: &str = r#"
settle = "0s"
measure = "600s"
[[path]]
rate = "12Mbit/s"
delay = "10ms"
queue = "50 packets"
[[path]]
rate = "8Mbit/s"
delay = "15ms"
queue = "50 packets"
"#;

/// What is different from two good paths with large buffers.
#[derive(Default)]
struct Cause {
    scenario: &'static str,
    emulator: &'static [&'static str],
    server: &'static [&'static str],
    client: &'static [&'static str],
}

/// Processes that want all of one processor, gone with this.
struct Spinners(Vec<Child>);

impl Spinners {
    /// On the first processor.
    fn start(count: usize) -> Self {
        let spin = || {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn().expect("taskset(1)")
        };
        Spinners((0..count).map(|_| spin()).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for spinner in &mut self.0 {
            let _ = spinner.kill();
            let _ = spinner.wait();
        }
    }
}

fn port_of(line: &str) -> String {
    let rest = line.split("UDP port ").nth(1).unwrap_or_else(|| panic!("no port in {line:?}"));
    rest.chars().take_while(char::is_ascii_digit).collect()
}

/// What a measurement between hosts of their own addresses `net` says of the data that the client sends.
fn outcome(net: u8, cause: &Cause) -> Value {
    let dir = Dir::new(&format!("verdicts-{net}"));
    let scenario = dir.path("paths.toml");
    std::fs::write(&scenario, format!("{PATHS}{}", cause.scenario)).expect("writable");
    let scenario = scenario.to_str().expect("UTF-8");
    let near = format!("127.0.{net}.1,127.0.{net}.2");
    let far = format!("127.0.{}.1,127.0.{}.2", net + 1, net + 1);
    let serve = ["perf", "server", "--listen", &far, "--port", "0", "--once", "--json"];
    let mut server = Running::start(&[&serve[..], cause.server].concat());
    let server_port = port_of(&server.line());
    let ends = ["--client", &near, "--server", &far, "--server-port", &server_port, "--port", "0"];
    let mut emulator =
        Running::start(&[&["emulate", scenario, "--json"], &ends[..], cause.emulator].concat());
    let port = port_of(&emulator.line());
    let call = ["perf", "client", "--from", &near, "--to", &far, "--port", &port, "--json"];
    let done: Done = tresse(&[&call[..], &["--duration", "6s", "--omit", "2s"], cause.client].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    emulator.interrupt();
    let document: Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    document["out"].clone()
}

fn assert_named(verdict: &str, net: u8, cause: &Cause) {
    let out = outcome(net, cause);
    eprintln!("{verdict}: {} Mbit/s, {}", out["throughput_mbps"], out["limited_by"]["total"]);
    assert_eq!(out["verdict"], verdict, "{out:#}");
}

#[test]
#[ignore = "rests on a machine that is not busy"]
fn a_full_link() {
    assert_named("full", 21, &Cause::default());
}

#[test]
#[ignore = "rests on a machine that is not busy"]
fn loss() {
    let lossy: &[&str] = &[
        "--set",
        "path.0.loss=3%",
        "--set",
        "path.1.loss=3%",
        "--set",
        "path.0.rate=50Mbit/s",
        "--set",
        "path.1.rate=50Mbit/s",
    ];
    assert_named("congestion_window", 23, &Cause { emulator: lossy, ..Cause::default() });
}

#[test]
#[ignore = "rests on a machine that is not busy"]
fn a_narrow_send_buffer() {
    assert_named(
        "send_buffer",
        25,
        &Cause { client: &["--set", "send_buffer=16KiB", "--message-size", "1KiB"], ..Cause::default() },
    );
}

#[test]
#[ignore = "rests on a machine that is not busy"]
fn a_narrow_receive_buffer() {
    assert_named(
        "receive_buffer",
        27,
        &Cause { server: &["--set", "receive_buffer=16KiB"], ..Cause::default() },
    );
}

#[test]
#[ignore = "rests on a machine that is not busy"]
fn a_slow_reader() {
    // What the reader leaves fills this buffer before the measurement counts; the usual one of 4 MiB takes longer than it lasts.
    let slow = &["--read-rate", "3Mbit/s", "--set", "receive_buffer=256KiB"];
    assert_named("receive_buffer", 29, &Cause { server: slow, ..Cause::default() });
}

#[test]
fn a_slow_writer() {
    assert_named(
        "application",
        31,
        &Cause { client: &["--rate", "2Mbit/s", "--message-size", "1KiB"], ..Cause::default() },
    );
}

#[test]
fn a_scheduler_that_keeps_data_back() {
    assert_named(
        "scheduler",
        33,
        &Cause { client: &["--set", "stream_map=fixed:0,0", "--streams", "1"], ..Cause::default() },
    );
}

#[test]
fn a_dead_link() {
    let outage = "[[path.change]]\nat = \"1s\"\noutage = true\n";
    let out = outcome(35, &Cause { scenario: outage, ..Cause::default() });
    let down = out["limited_by"]["paths"][1]["path_down"].as_f64().expect("a share");
    assert!(down > 0.5, "{out:#}");
}

/// The client shares its processor with others that come first.
#[test]
#[ignore = "rests on a machine that is not busy"]
fn a_busy_processor() {
    let (near, far) = ("127.0.37.1,127.0.37.2", "127.0.38.1,127.0.38.2");
    let mut server = Running::start(&["perf", "server", "--listen", far, "--port", "0", "--once", "--json"]);
    let port = port_of(&server.line());
    let _spinners = Spinners::start(2);
    let call = ["perf", "client", "--from", near, "--to", far, "--port", &port, "--json", "--duration", "6s"];
    let last = ["-c", "0", "nice", "-n", "10", env!("CARGO_BIN_EXE_tresse")];
    let done = Command::new("taskset").args([&last[..], &call].concat()).output().expect("taskset(1)");
    let said = String::from_utf8_lossy(&done.stderr);
    let document: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(document["out"]["verdict"], "host", "{document:#}");
}
