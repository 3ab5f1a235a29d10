//! `tresse emulate` between real processes: what goes through, what is counted, and that as much is lost as in a
//! simulation.

#![allow(missing_docs, reason = "a test")]

mod common;

use common::{Dir, Done, Running, tresse};
use serde_json::Value;

/// Slow enough that a busy machine keeps up, and lossy enough to compare.
const SCENARIO: &str = r#"
settle = "0s"
measure = "600s"
[traffic]
volume = "600kB"
message_size = "1400B"
[[path]]
rate = "4Mbit/s"
delay = "5ms"
queue = "200 packets"
loss = "3%"
[path.reverse]
loss = 0
[[path]]
rate = "2Mbit/s"
delay = "10ms"
queue = "200 packets"
"#;

/// Addresses of this test alone, so that others may run beside it.
const CLIENT: &str = "127.0.11.1,127.0.11.2";
const SERVER: &str = "127.0.12.1,127.0.12.2";

/// The number behind `word` in a line.
fn number_after(line: &str, word: &str) -> String {
    let rest = line.split(word).nth(1).unwrap_or_else(|| panic!("no {word:?} in {line:?}"));
    rest.chars().take_while(char::is_ascii_digit).collect()
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn packets(link: &Value, what: &str) -> f64 {
    link[what].as_f64().unwrap_or_else(|| panic!("no {what} in {link}"))
}

#[test]
fn a_transfer_meets_the_rates_of_the_paths_and_the_losses_of_the_simulation() {
    let dir = Dir::new("emulate");
    let scenario = dir.path("paths.toml");
    std::fs::write(&scenario, SCENARIO).expect("writable");
    let scenario = scenario.to_str().expect("UTF-8");

    let out = dir.out();
    let out = out.to_str().expect("UTF-8");
    let mut receiver = Running::start(&["recv", "--listen", SERVER, "--port", "0", "--out", out, "--once"]);
    let server_port = number_after(&receiver.line(), "UDP port ");
    let ends = ["--client", CLIENT, "--server", SERVER, "--server-port", &server_port, "--port", "0"];
    let mut emulator = Running::start(&[&["emulate", scenario, "--json"], &ends[..]].concat());
    let port = number_after(&emulator.line(), "UDP port ");

    let file = dir.file("file", 600_000);
    let file = file.to_str().expect("UTF-8");
    let began = std::time::Instant::now();
    let sent = tresse(&["send", file, "--from", CLIENT, "--to", SERVER, "--port", &port, "--json"]);
    let took = began.elapsed();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.finish().code, Some(0));
    emulator.interrupt();
    let emulated = json(&emulator.finish());
    let buffers = ["--set", "transport.send_buffer=4MiB", "--set", "transport.receive_buffer=4MiB"];
    let simulated = json(&tresse(&[&["sim", scenario, "--json"], &buffers[..]].concat()));

    // However fast the machine, both links at once carry 6 Mbit/s.
    assert!(took.as_secs_f64() >= 600_000.0 * 8.0 / 6e6, "{took:?}");
    // Which path takes how much, and what goes again, depends on how soon the processes have their turns; what a path does
    // to what it takes does not.
    let links = |id: usize| (&emulated["paths"][id]["to_server"], &simulated["paths"][id]);
    assert!([0, 1].iter().all(|&id| packets(links(id).0, "arrived") > 0.0), "{emulated}");
    let (real, virtually) = links(0);
    let loss = packets(real, "dropped_loss") / packets(real, "packets");
    let expected = virtually["loss"].as_f64().expect("a number");
    // Some 300 packets make a standard error of 1 %, fewer ones a larger one.
    let error = (expected * (1.0 - expected) / packets(real, "packets")).sqrt();
    assert!(
        (loss - expected).abs() < 4.0 * error,
        "{loss} of path 0 were lost, {expected} in the simulation"
    );
    assert_eq!(packets(links(1).0, "dropped_loss"), 0.0);
    // Each byte goes over some link once.
    let carried = packets(links(0).0, "arrived_bytes") + packets(links(1).0, "arrived_bytes");
    assert!(carried >= 620_000.0, "{carried} bytes");
    let late = |key: &str| emulated["late"][key].as_f64().expect("a number");
    let late = ["p50_ms", "p99_ms", "p999_ms", "max_ms"].map(late);
    assert!(late.is_sorted(), "{emulated}");
    assert!(emulated["in_real_time"].is_boolean(), "{emulated}");
    assert_eq!((&emulated["strangers"], &emulated["unsent"]), (&0.into(), &0.into()));
}

/// What a sender has queued by the end of a measurement would take minutes to leave.
#[test]
fn measurements_end_on_time_with_much_still_queued() {
    let dir = Dir::new("emulate-ends");
    let scenario = dir.path("paths.toml");
    let slow = "[[path]]\nrate = \"200kbit/s\"\ndelay = \"5ms\"\n";
    std::fs::write(&scenario, format!("settle = \"0s\"\nmeasure = \"600s\"\n{slow}{slow}"))
        .expect("writable");
    let scenario = scenario.to_str().expect("UTF-8");
    let (client, server) = ("127.0.15.1,127.0.15.2", "127.0.16.1,127.0.16.2");
    for direction in [&[][..], &["--reverse"], &["--both"]] {
        // 8 MiB are 167 s of both paths.
        let buffers = ["--set", "send_buffer=8MiB"];
        let serve = ["perf", "server", "--listen", server, "--port", "0", "--once", "--json"];
        let mut far = Running::start(&[&serve[..], &buffers].concat());
        let server_port = number_after(&far.line(), "UDP port ");
        let ends = ["--client", client, "--server", server, "--server-port", &server_port, "--port", "0"];
        let mut emulator = Running::start(&[&["emulate", scenario, "--json"], &ends[..]].concat());
        let port = number_after(&emulator.line(), "UDP port ");
        let call = ["perf", "client", "--from", client, "--to", server, "--port", &port, "--duration", "2s"];
        let begun = std::time::Instant::now();
        let done = tresse(&[&call[..], &["--json"], &buffers, direction].concat());
        let took = begun.elapsed().as_secs();
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(took < 100, "{took} s, {direction:?}");
        assert_eq!(far.finish().code, Some(0));
        emulator.interrupt();
        emulator.finish();
    }
}

#[test]
fn mistakes_are_told_in_one_line() {
    let dir = Dir::new("emulate-mistakes");
    let scenario = dir.path("paths.toml");
    std::fs::write(&scenario, SCENARIO).expect("writable");
    let scenario = scenario.to_str().expect("UTF-8");
    for (args, expected) in [
        (
            &["--client", "127.0.0.1"][..],
            "--client has 1 address, and the scenario 2 paths: give one for each",
        ),
        (&["--client", "127.0.0.1,127.0.0.1"], "--client has 127.0.0.1 twice: each path has one of its own"),
        (&["--server-port", "7000", "--port", "7000"], "--port 7000 is the server's"),
        (&["--set", "path.0.rat=1"], "path[0].rat: unknown key; did you mean \"rate\"?"),
        (&["--server", "192.0.2.1,192.0.2.2", "--port", "0"], "cannot take UDP port 0 on 192.0.2.1"),
    ] {
        let done = tresse(&[&["emulate", scenario], args].concat());
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains(expected) && done.stderr.lines().count() == 1, "{done:?}");
    }
}

#[test]
fn an_emulation_ends_when_its_time_is_over_and_keeps_a_capture() {
    let dir = Dir::new("emulate-time");
    let scenario = dir.path("paths.toml");
    std::fs::write(&scenario, format!("{SCENARIO}[[cross]]\nkind = \"bulk\"\n")).expect("writable");
    let capture = dir.path("emulated.pcapng");
    let (scenario, capture) = (scenario.to_str().expect("UTF-8"), capture.to_str().expect("UTF-8"));
    let ends = ["--client", "127.0.13.1,127.0.13.2", "--server", "127.0.14.1,127.0.14.2", "--port", "0"];
    let args = ["emulate", scenario, "--duration", "300ms", "--set", "start_jitter=0s", "--pcap", capture];
    let done = tresse(&[&args[..], &ends[..]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("emulated for") && done.stdout.lines().count() >= 6, "{done:?}");
    // Cross traffic goes on whether or not anybody else is there.
    assert!(std::fs::metadata(capture).expect("written").len() > 10_000);
}
