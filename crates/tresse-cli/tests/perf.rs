//! `tresse perf` against itself: what is counted, what is refused, how it ends.

#![allow(missing_docs, reason = "a test")]

mod common;
#[path = "../../tresse/tests/relay/mod.rs"]
mod relay;

use std::time::{Duration, Instant};

use common::{Dir, Done, Running, text, tresse};
use relay::Relay;
use serde_json::Value;

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";

/// Starts a server for one client on a free port; answers it with its port.
fn server() -> (Running, String) {
    let mut running =
        Running::start(&["perf", "server", "--listen", THERE, "--port", "0", "--once", "--json"]);
    let port = running.udp_port();
    (running, port)
}

fn client(port: &str, more: &[&str]) -> Done {
    let args = ["perf", "client", "--from", HERE, "--to", THERE, "--port", port];
    tresse(&[&args[..], more].concat())
}

fn document(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// Both sides' accounts of one measurement.
fn measured(more: &[&str]) -> [Value; 2] {
    let (server, port) = server();
    let done = client(&port, &[&["--json"], more].concat());
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    [document(&done), document(&served)]
}

#[test]
fn every_byte_is_counted_at_the_other_end() {
    let [sent, received] = measured(&["--bytes", "3MB", "--message-size", "1000B", "--unordered"]);
    for flow in [&sent["out"], &received["in"]] {
        assert_eq!((&flow["bytes"], &flow["messages"]), (&3_000_000.into(), &3000.into()));
        let paths = flow["paths"].as_array().expect("a list");
        assert_eq!(paths.len(), 2);
        assert!(paths.iter().all(|path| path["chunks_sent"].as_u64() > Some(0)), "{paths:?}");
        let shares = flow["limited_by"]["total"].as_object().expect("shares by name");
        let sum: f64 = shares.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{shares:?}");
    }
    assert_eq!((&sent["in"], &received["out"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_server_sends_when_it_is_asked_to() {
    let [received, sent] = measured(&["--bytes", "1MB", "--reverse"]);
    assert_eq!((&received["in"]["bytes"], &received["out"]), (&1_000_000.into(), &Value::Null));
    assert_eq!(sent["out"]["bytes"], 1_000_000);
    for document in measured(&["--bytes", "1MB", "--both", "--streams", "100"]) {
        assert_eq!(document["in"]["bytes"], 1_000_000);
        assert_eq!(document["out"]["bytes"], 1_000_000);
    }
}

#[test]
fn a_rate_is_not_exceeded() {
    let begin = Instant::now();
    let [sent, _] = measured(&["--bytes", "200kB", "--rate", "4Mbit/s", "--message-size", "1000B"]);
    assert_eq!(sent["out"]["bytes"], 200_000);
    // The first message leaves at once, and the last one when the 199 before it have had their time.
    assert!(begin.elapsed() >= Duration::from_millis(2 * 199));
}

#[test]
fn streams_have_sizes_and_rates_of_their_own() {
    let own = ["--stream", "size=100B,rate=200kbit/s,class=latency", "--stream", "size=20kB,rate=4Mbit/s"];
    let [sent, received] = measured(&[&["--bytes", "500kB"], &own[..]].concat());
    for flow in [&sent["out"], &received["in"]] {
        let streams = flow["streams"].as_array().expect("a list");
        let of = |at: usize, key: &str| streams[at][key].as_u64().expect("a number");
        assert_eq!((streams.len(), of(0, "id"), of(1, "id")), (2, 1, 2));
        assert_eq!(of(0, "bytes") + of(1, "bytes"), 500_000);
        // Both have what their rates say, but for the last messages: a twentieth of the bytes are on the first.
        assert!((20_000..30_000).contains(&of(0, "bytes")) && of(0, "messages") > 200, "{streams:?}");
    }
    assert_eq!(sent["load"]["per_stream"][0]["class"], "latency");
}

#[test]
fn every_line_of_a_stream_is_a_document() {
    let (_server, port) = server();
    let done = client(&port, &["--duration", "300ms", "--interval", "50ms", "--json-stream"]);
    let lines: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).expect("a document")).collect();
    let (result, intervals) = lines.split_last().expect("lines");
    assert!(result["result"]["out"]["bytes"].as_u64() > Some(0), "{done:?}");
    assert!(!intervals.is_empty());
    let mut end = 0.0;
    for interval in intervals {
        let interval = &interval["interval"];
        assert_eq!(interval["start_s"], end);
        end = interval["end_s"].as_f64().expect("a number");
        assert_eq!(interval["out"]["paths"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn people_read_what_limited_it() {
    let (_server, port) = server();
    let done = client(&port, &["--bytes", "1MB"]);
    assert!(done.stdout.contains("to 127.0.0.3,127.0.0.4: 1.00 MB in "), "{done:?}");
    assert!(done.stdout.contains("in total limited by "), "{done:?}");
}

#[test]
fn a_required_throughput_that_is_missed_has_an_exit_code() {
    let (_server, port) = server();
    let done = client(&port, &["--bytes", "100kB", "--require-throughput", "9000Gbit/s"]);
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(done.stderr.contains("9000 Gbit/s is required, and "), "{done:?}");
}

#[test]
fn a_server_says_what_it_would_accept() {
    let (server, port) = server();
    let done = client(&port, &["--duration", "100000s"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("a measurement takes 86400 s at most, not 100000 s"), "{done:?}");
    let served = server.finish();
    assert_eq!(served.code, Some(1), "{served:?}");
    assert!(served.stderr.contains("refused: a measurement takes 86400 s at most"), "{served:?}");
}

#[test]
fn who_speaks_something_else_is_sent_away() {
    let dir = Dir::new("perf-stranger");
    let file = dir.file("file", 1000);
    let (server, port) = server();
    let sent = tresse(&["send", &text(&file), "--from", HERE, "--to", THERE, "--port", &port]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let served = server.finish();
    assert_eq!(served.code, Some(1), "{served:?}");
    assert!(served.stderr.contains("does not speak the protocol"), "{served:?}");
}

#[test]
fn nobody_there_is_an_exit_code_of_its_own() {
    let timers = ["--set", "rto_initial=50ms", "--set", "max_init_retransmits=1", "--set", "rto_min=50ms"];
    let done = client("9", &timers);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("127.0.0.3,127.0.0.4 UDP port 9"), "{done:?}");
}

#[test]
fn an_interrupt_ends_it_and_keeps_what_was_measured() {
    let (_server, port) = server();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let addresses = |list: &str| list.split(',').map(|text| text.parse().expect("one")).collect::<Vec<_>>();
    let (here, there) = (addresses(HERE), addresses(THERE));
    let relay = runtime.block_on(Relay::start(&here, &there, port.parse().expect("a number")));
    let args = ["perf", "client", "--from", HERE, "--to", THERE, "--port", &relay.port().to_string()];
    let more = ["--duration", "300s", "--interval", "10ms", "--json"];
    // It cannot end by itself, and is being measured when a path has carried its part.
    relay.starve_after(0, 1_000_000);
    relay.starve_after(1, 1_000_000);
    let running = Running::start(&[&args[..], &more].concat());
    runtime.block_on(relay.limited(0));
    running.interrupt();
    let done = running.finish();
    assert_eq!(done.code, Some(130), "{done:?}");
    assert!(done.stderr.contains("interrupted"), "{done:?}");
    assert!(document(&done)["intervals"].is_array(), "{done:?}");
}

#[test]
fn clients_that_were_killed_make_way_where_all_places_of_a_server_are_taken() {
    let mut server = Running::start(&["perf", "server", "--listen", "127.0.0.3", "--port", "0"]);
    let port = server.udp_port();
    let call = ["perf", "client", "--to", "127.0.0.3", "--port", &port];
    let places: Vec<Running> = (0..16)
        .map(|_| {
            let slow = ["--duration", "300s", "--rate", "100kbit/s", "--message-size", "1kB"];
            let mut client = Running::start(&[&call[..], &slow].concat());
            // It says so once it is connected.
            client.line_with("from 127.0.0.1");
            client
        })
        .collect();
    drop(places);
    let done = tresse(&[&call[..], &["--bytes", "1kB"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    server.line_with("another client takes its place");
}
