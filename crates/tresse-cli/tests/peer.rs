//! `tresse peer` as server and client, of itself: what goes through, what is reported, how it ends.

#![allow(missing_docs, reason = "a test")]

mod common;
#[path = "../../tresse/tests/relay/mod.rs"]
mod relay;

use std::io::Write;
use std::net::IpAddr;

use common::{Dir, Done, Running, tresse};
use relay::Relay;
use serde_json::Value;

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";

/// Timers short enough for tests that wait for them.
const QUICK: [&str; 6] =
    ["--set", "rto_initial=100ms", "--set", "rto_min=50ms", "--set", "max_init_retransmits=1"];

/// Starts a server on a free port; answers it with its port.
fn server(more: &[&str]) -> (Running, String) {
    let args = ["peer", "server", "--listen", THERE, "--port", "0", "--json"];
    let mut running = Running::start(&[&args[..], more].concat());
    let line = running.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next());
    let port = port.unwrap_or_else(|| panic!("no port in {line:?}")).to_owned();
    (running, port)
}

fn client(port: &str, more: &[&str]) -> Done {
    let args = ["peer", "client", "--from", HERE, "--to", THERE, "--port", port, "--json"];
    tresse(&[&args[..], more].concat())
}

/// A relay on `runtime` between clients and the server on `port`.
fn relayed(runtime: &tokio::runtime::Runtime, port: &str) -> Relay {
    let addresses =
        |list: &str| list.split(',').map(|text| text.parse().expect("one")).collect::<Vec<IpAddr>>();
    let port = port.parse().expect("a number");
    runtime.block_on(Relay::start(&addresses(HERE), &addresses(THERE), port))
}

fn document(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

#[test]
fn generated_messages_come_back_whole_from_an_echo() {
    let (server, port) = server(&["--mode", "echo", "--associations", "1", "--verify"]);
    let work = ["--count", "500", "--size", "1B-20kB", "--streams", "16", "--unordered-every", "3"];
    let done = client(&port, &[&work[..], &["--verify", "--await-echo"]].concat());
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    for summary in [document(&done), document(&served)] {
        let total = &summary["total"];
        assert_eq!((&total["messages_sent"], &total["messages_received"]), (&500.into(), &500.into()));
        assert_eq!(total["bytes_sent"], total["bytes_received"]);
        assert_eq!(total["wrong_messages"], 0);
        let paths = summary["associations"][0]["paths"].as_array().expect("a list");
        assert_eq!(paths.len(), 2);
        assert!(summary["associations"][0]["limited_by"]["total"].is_object(), "{summary}");
    }
    assert!(document(&done)["associations"][0]["outbound_streams"].as_u64() >= Some(16));
}

#[test]
fn many_associations_run_at_once_from_ports_that_follow_each_other() {
    let (server, port) = server(&["--mode", "discard", "--associations", "8", "--verify"]);
    let done = client(&port, &["--associations", "8", "--local-sctp-port", "6001", "--count", "50"]);
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    let total = &document(&served)["total"];
    assert_eq!((&total["associations"], &total["messages_received"]), (&8.into(), &400.into()));
    assert_eq!(total["messages_sent"], 0);
}

#[cfg(target_os = "linux")]
#[test]
fn drivers_share_out_the_associations_of_a_server() {
    let (server, port) = server(&["--mode", "echo", "--associations", "40", "--verify", "--drivers", "3"]);
    let done = client(&port, &["--associations", "40", "--count", "20", "--await-echo", "--verify"]);
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{} {}", done.stderr, served.stderr);
    let total = &document(&done)["total"];
    assert_eq!((&total["associations"], &total["messages_received"]), (&40.into(), &800.into()));
    let refused = tresse(&["peer", "server", "--listen", HERE, "--drivers", "0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("1..=256"), "{refused:?}");
}

/// Far more set-ups at once than a queue that a system keeps for a listener holds.
#[test]
fn a_thousand_associations_at_once_are_all_set_up() {
    let (server, port) = server(&["--mode", "echo", "--associations", "1000", "--verify"]);
    let done = client(&port, &["--associations", "1000", "--count", "2", "--await-echo", "--verify"]);
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{} {}", done.stderr, served.stderr);
    for summary in [document(&done), document(&served)] {
        let total = &summary["total"];
        assert_eq!((&total["associations"], &total["messages_received"]), (&1000.into(), &2000.into()));
        assert_eq!(
            (&total["associations_not_set_up"], &total["messages_not_echoed"]),
            (&0.into(), &0.into())
        );
    }
}

/// The client goes on until it hears that the server ends the association, and by then echoes wait for room.
#[test]
fn messages_that_were_not_echoed_are_counted_and_are_a_failure() {
    let ending =
        ["--mode", "echo", "--associations", "1", "--shutdown-after", "300ms", "--set", "send_buffer=3000B"];
    let (server, port) = server(&ending);
    let done = client(&port, &["--count", "0", "--await-echo"]);
    let served = server.finish();
    for (side, summary) in [(&done, document(&done)), (&served, document(&served))] {
        let missing = summary["total"]["messages_not_echoed"].as_u64().expect("a count");
        assert!(missing > 0, "{summary}");
        assert_eq!(summary["associations"][0]["messages_not_echoed"], missing);
        assert_eq!(side.code, Some(1), "{side:?}");
    }
    let missing = &document(&served)["total"]["messages_not_echoed"];
    assert!(served.stderr.contains(&format!("messages that were not echoed: {missing}")), "{served:?}");
}

/// Nobody sends anything back, and everything ends in peace.
#[test]
fn an_echo_that_never_came_is_a_failure_of_whoever_waited_for_it() {
    let (server, port) = server(&["--mode", "discard", "--associations", "1"]);
    let done = client(&port, &["--count", "7", "--await-echo", "--shutdown-after", "300ms"]);
    assert_eq!((done.code, server.finish().code), (Some(1), Some(0)), "{done:?}");
    assert_eq!(document(&done)["total"]["messages_not_echoed"], 7);
    assert!(done.stderr.contains("messages that were not echoed: 7"), "{done:?}");
}

#[test]
fn either_side_generates_and_ends_when_told() {
    let generating =
        ["--mode", "generate", "--count", "0", "--shutdown-after", "300ms", "--associations", "1"];
    let (server, port) = server(&generating);
    let done = client(&port, &["--mode", "discard", "--verify"]);
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    let (sent, received) = (document(&served), document(&done));
    assert_eq!(sent["total"]["messages_sent"], received["total"]["messages_received"]);
    assert!(sent["associations"][0]["seconds"].as_f64() >= Some(0.3));
}

#[test]
fn an_abort_is_told_to_the_peer_and_fails_only_there() {
    let (server, port) = server(&["--mode", "discard", "--associations", "1"]);
    // Nobody repeats an ABORT: it should meet no full buffer.
    let done = client(&port, &["--count", "0", "--pause", "10ms", "--abort-after", "200ms"]);
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(1)), "{done:?} {served:?}");
    assert!(served.stderr.contains("the peer aborted the association: User-Initiated Abort: as asked for"));
    assert_eq!(document(&done)["associations"][0]["end"], "the association was aborted here");
}

#[test]
fn switches_of_associations_and_of_endpoints_are_set_alike() {
    let (server, port) =
        server(&["--associations", "1", "--set", "cookie_lifetime=10s", "--set", "inbound_streams=3"]);
    let done = client(&port, &["--set", "outbound_streams=40", "--count", "1", "--await-echo"]);
    assert_eq!((done.code, server.finish().code), (Some(0), Some(0)), "{done:?}");
    assert_eq!(document(&done)["associations"][0]["outbound_streams"], 3);

    let unknown = tresse(&["peer", "server", "--listen", THERE, "--set", "cookie_live=1s"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("cookie_live"), "{unknown:?}");
}

#[test]
fn nobody_there_is_exit_code_3_and_an_interrupt_130() {
    let done = client("9", &QUICK);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("the peer did not answer"), "{done:?}");

    let (server, port) = server(&["--mode", "discard"]);
    let done = client(&port, &["--count", "10"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    server.interrupt();
    let served = server.finish();
    assert_eq!(served.code, Some(130), "{served:?}");
    assert_eq!(document(&served)["total"]["messages_received"], 10, "what was measured is written");
}

/// With the advice that `tresse send` and `tresse perf` give.
#[test]
fn a_refused_set_up_has_the_next_step() {
    let (_server, port) = server(&["--mode", "discard"]);
    let other = client(&port, &["--sctp-port", "5002"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("does it listen on SCTP port 5002 (--sctp-port)?"), "{other:?}");

    let dir = Dir::new("peer-secret");
    let secret = common::text(&dir.path("secret"));
    std::fs::write(&secret, "a secret that both sides have, long enough to be one").expect("writable");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("the owner may");
    }
    let clear = client(&port, &["--secret-file", &secret]);
    assert_eq!(clear.code, Some(1), "{clear:?}");
    assert!(
        clear.stderr.contains("start the other side with --key and --peer, or --secret-file"),
        "{clear:?}"
    );
    let (_server, port) = self::server(&["--mode", "discard", "--secret-file", &secret]);
    let clear = client(&port, &[]);
    assert_eq!(clear.code, Some(1), "{clear:?}");
    assert!(clear.stderr.contains("it encrypts: give --key and --peer, or --secret-file"), "{clear:?}");
}

#[test]
fn a_message_that_cannot_be_sent_is_a_failure_with_its_reason() {
    let (server, port) = server(&["--mode", "discard", "--associations", "1"]);
    let done = client(&port, &["--size", "3MB", "--count", "1"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("message 0 was refused: the message has 3000000 bytes"), "{done:?}");
    drop(server);
}

#[test]
fn the_time_given_ends_everything() {
    let (unlimited, port) = server(&["--mode", "discard", "--associations", "1"]);
    // Little is left to be sent when the time is over: a farewell has its time too.
    let done = client(&port, &["--count", "0", "--pause", "10ms", "--duration", "300ms"]);
    if done.code == Some(0) {
        assert_eq!(document(&done)["associations"][0]["end"], "the association was shut down");
        let served = unlimited.finish();
        assert_eq!(served.code, Some(0), "{served:?}");
    } else {
        // On a busy machine the time may be over before the set-up is.
        assert!(done.stderr.contains("ended before it was set up"), "{done:?}");
    }

    let (limited, _) = server(&["--mode", "discard", "--duration", "300ms"]);
    let waited = limited.finish();
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(document(&waited)["total"]["associations"], 0);
}

#[test]
fn streams_are_reset_and_added_while_messages_flow() {
    let (server, port) = server(&["--mode", "echo", "--associations", "1", "--verify"]);
    let work =
        ["--count", "0", "--size", "1B-20kB", "--streams", "4", "--verify", "--shutdown-after", "800ms"];
    let changes =
        ["--reset-streams", "100ms:0,2", "--reset-streams", "300ms:all", "--add-streams", "500ms:6"];
    let done = client(&port, &[&work[..], &changes, &["--set", "outbound_streams=4"]].concat());
    let served = server.finish();
    // What comes last may find the end begun, and is not echoed.
    let missing = document(&served)["total"]["messages_not_echoed"].as_u64().expect("a count");
    assert_eq!((done.code, served.code), (Some(0), Some(i32::from(missing > 0))), "{done:?} {served:?}");
    let told = |summary: &Value| -> Vec<String> {
        let events = summary["associations"][0]["events"].as_array().expect("a list");
        events.iter().filter_map(|event| event["what"].as_str()).map(str::to_owned).collect()
    };
    let (here, there) = (told(&document(&done)), told(&document(&served)));
    for expected in
        ["outbound streams 0,2 began anew", "outbound streams began anew", "the peer agreed to add 6"]
    {
        assert!(here.iter().any(|what| what.starts_with(expected)), "{expected}: {here:?}");
    }
    for expected in ["inbound streams 0,2 began anew", "inbound streams began anew"] {
        assert!(there.iter().any(|what| what == expected), "{expected}: {there:?}");
    }
    assert_eq!(document(&done)["associations"][0]["outbound_streams"], 10);

    let mistake = tresse(&["peer", "client", "--to", "127.0.0.3", "--reset-streams", "all"]);
    assert_eq!(mistake.code, Some(2));
    assert!(mistake.stderr.contains("with a colon between"), "{mistake:?}");
}

#[test]
fn messages_that_need_not_arrive_are_given_up_and_counted() {
    let (server, port) = server(&["--mode", "discard", "--associations", "1", "--verify"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let relay = relayed(&runtime, &port);
    relay.roughen();
    let work = ["--count", "1000", "--size", "1B-20kB", "--max-retransmissions", "0"];
    let args =
        ["peer", "client", "--from", HERE, "--to", THERE, "--json", "--port", &relay.port().to_string()];
    let client = Running::start(&[&args[..], &work].concat());
    // The end is not disturbed: a process that leaves with its last packet cannot repeat it.
    while relay.carried(0)[0] + relay.carried(1)[0] < 4_000_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    relay.smoothen();
    let (done, served) = (client.finish(), server.finish());
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    let count = |summary: &Value, key: &str| summary["total"][key].as_u64().expect("a count");
    let (sent, received) = (document(&done), document(&served));
    let given_up = count(&sent, "messages_abandoned");
    assert!(given_up > 0 && count(&sent, "messages_sent") == 1000, "{sent}");
    assert!(count(&received, "messages_received") + given_up >= 1000, "{received}");
}

/// A path of the association is cut in mid-transfer: the other one carries the rest. One of two streams is bound to it, so
/// that it is needed until it is known to fail; else it might rest, or the transfer be over before.
#[test]
fn a_path_that_dies_takes_no_message_with_it() {
    let timers = ["--set", "rto_initial=100ms", "--set", "rto_min=50ms", "--set", "path_max_retrans=0"];
    let (server, port) =
        server(&[&["--mode", "discard", "--associations", "1", "--verify"][..], &timers].concat());
    let addresses =
        |list: &str| list.split(',').map(|text| text.parse().expect("one")).collect::<Vec<IpAddr>>();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let port = port.parse().expect("a number");
    let relay = runtime.block_on(Relay::start(&addresses(HERE), &addresses(THERE), port));
    relay.cut_after(1, 200_000);
    let work = ["--count", "600", "--size", "1B-20kB", "--streams", "2", "--set", "stream_map=fixed:0,1"];
    let done = client(&relay.port().to_string(), &[&work[..], &timers].concat());
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    assert_eq!(document(&served)["total"]["messages_received"], 600);
    // Its data leaves it when the first probes stay unanswered (RFC 7829); the end may come before T3 expires and it is inactive.
    let state = document(&done)["associations"][0]["paths"][1]["state"].clone();
    assert!(state == "potentially_failed" || state == "inactive", "{state}");
}

#[test]
fn raw_ip_carries_it_too_or_says_what_is_missing() {
    // Addresses of this process: raw sockets of one address share its packets.
    let number = std::process::id() << 1;
    let place = |last: u32| {
        let [_, high, middle, low] = (number | last).to_be_bytes();
        IpAddr::from([127, 128 | (high & 63), middle, low]).to_string()
    };
    let (there, here) = (place(0), place(1));
    let mut server =
        Running::start(&["peer", "server", "--listen", &there, "--raw", "--associations", "1", "--verify"]);
    let line = server.line();
    if !line.starts_with("tresse: listening on ") {
        assert_eq!(
            line,
            "tresse: raw IP needs the right to open raw sockets (root or CAP_NET_RAW); SCTP in UDP needs no \
             privilege; leave out --raw for that\n"
        );
        assert_eq!(server.finish().code, Some(1));
        let _ = writeln!(std::io::stderr(), "raw IP: skipped, the right to open raw sockets is missing");
        return;
    }
    let args =
        ["peer", "client", "--to", &there, "--from", &here, "--raw", "--json", "--verify", "--await-echo"];
    let done = tresse(&args);
    assert_eq!((done.code, server.finish().code), (Some(0), Some(0)), "{done:?}");
    assert_eq!(document(&done)["lower_layer"], "ip");
    assert_eq!(document(&done)["total"]["messages_received"], 1000);
}

#[test]
fn both_sides_take_schedulers_along_and_tell_of_one_that_fails() {
    let dir = Dir::new("peer-scheduler");
    let object = dir.plugin("crates/tresse-plugin/tests/schedulers/fixture.c", &["-DANSWER=70000"]);
    let choice = ["--scheduler-so", &object, "--set", "stream_scheduler=fixture"];
    let (server, port) = server(&[&["--mode", "echo", "--associations", "2"], &choice[..]].concat());
    let work = ["--count", "20", "--associations", "2", "--await-echo", "--verify"];
    let done = client(&port, &[&work[..], &choice[..]].concat());
    let served = server.finish();
    assert_eq!((done.code, served.code), (Some(0), Some(0)), "{done:?} {served:?}");
    for summary in [document(&done), document(&served)] {
        assert_eq!(summary["total"]["messages_received"], 40);
        let told =
            summary.to_string().matches("the stream scheduler fixture failed: it answered 70000").count();
        assert_eq!(told, 2, "once in each association: {summary}");
    }
}
