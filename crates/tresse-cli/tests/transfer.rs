//! Files from one process to another over real sockets: whole, resumed, over a path that dies, refused.

#![allow(missing_docs, reason = "a test")]

mod common;
#[path = "../../tresse/tests/relay/mod.rs"]
mod relay;

use std::fs;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use common::{Dir, FOREVER, Running, noise, receiver, same, text, tresse};
use relay::Relay;
use tresse::{Endpoint, Peer};

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";

/// Both paths carry data. By default a path is left out where the other one alone is as fast or faster.
const BOTH: [&str; 4] = ["--set", "path_suspension=false", "--set", "path_scheduler=round_robin"];

/// Timers short enough for tests that wait for them.
const QUICK: [&str; 8] = [
    "--set",
    "rto_initial=100ms",
    "--set",
    "rto_min=50ms",
    "--set",
    "path_max_retrans=1",
    "--set",
    "heartbeat_interval=200ms",
];

fn addresses(list: &str) -> Vec<IpAddr> {
    list.split(',').map(|address| address.parse().expect("an address")).collect()
}

/// Sends `file` from HERE to THERE.
fn send(file: &str, port: &str, more: &[&str]) -> Running {
    let args = ["send", file, "--from", HERE, "--to", THERE, "--port", port];
    Running::start(&[&args[..], more].concat())
}

/// Lets a part of the file through, so that the transfer is under way and cannot end.
fn starve(relay: &Relay) {
    for path in 0..2 {
        relay.starve_after(path, 4_000_000);
    }
}

#[test]
fn a_file_arrives_identical_over_both_paths() {
    let dir = Dir::new("both");
    let len: usize =
        std::env::var("TRESSE_TRANSFER_BYTES").map_or(40_000_000, |text| text.parse().expect("bytes"));
    let file = dir.file("data.bin", len);
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once", "--json"]);
    let sent = send(&text(&file), &port, &[&["--json"], &BOTH[..]].concat()).finish();
    let received = receiver.finish();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{sent:?} {received:?}");
    assert_eq!(dir.received(), ["data.bin"]);
    assert!(same(&file, &dir.out().join("data.bin")));

    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    let received: serde_json::Value = serde_json::from_str(&received.stdout).expect("one JSON document");
    assert_eq!(sent["size_bytes"], len);
    assert_eq!(sent["blake3"], received["blake3"]);
    assert!(sent["throughput_mbps"].as_f64().is_some_and(|rate| rate > 0.0));
    for path in 0..2 {
        let share = sent["paths"][path]["share"].as_f64().expect("a number");
        assert!(share > 0.1, "path {path} carried {share}");
        let limits = sent["limited_by"]["paths"][path].as_object().expect("a map");
        let sum: f64 = limits.values().filter_map(serde_json::Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{limits:?}");
    }
}

#[test]
fn a_limited_transfer_is_no_faster_than_it_may_be() {
    let dir = Dir::new("limited");
    let file = dir.file("data.bin", 2_000_000);
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let sent = send(&text(&file), &port, &["--rate", "16Mbit/s", "--json"]).finish();
    assert_eq!((sent.code, receiver.finish().code), (Some(0), Some(0)), "{sent:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    // A second; the last piece leaves at its beginning, not at its end.
    assert!(sent["seconds"].as_f64().is_some_and(|seconds| seconds > 0.9), "{sent}");
}

#[test]
fn a_file_arrives_although_the_scheduler_that_was_taken_along_fails() {
    let dir = Dir::new("scheduler");
    let file = dir.file("data.bin", 2_000_000);
    let object = dir.plugin("crates/tresse-plugin/tests/schedulers/fixture.c", &["-DANSWER=70000"]);
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let choice = ["--scheduler-so", &object, "--set", "stream_scheduler=fixture", "--json"];
    let sent = send(&text(&file), &port, &choice).finish();
    assert_eq!((sent.code, receiver.finish().code), (Some(0), Some(0)), "{sent:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
    let said = "stream scheduler \"fixture\" failed and was replaced: it answered 70000";
    assert!(sent.stderr.contains(said), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_dies_in_mid_transfer_neither_loses_a_byte_nor_stops_it() {
    let dir = Dir::new("kill");
    let file = dir.file("data.bin", 30_000_000);
    let (receiver, port) = receiver(&dir.out(), &[&["--listen", THERE, "--once"], &QUICK[..]].concat());
    let relay = Relay::start(&addresses(HERE), &addresses(THERE), port.parse().expect("a port")).await;
    relay.cut_after(1, 300_000);
    // 2.4 s: longer than the dead path takes to be found inactive.
    let settings = [&["--json", "--rate", "100Mbit/s"], &QUICK[..], &BOTH[..]].concat();
    let sender = send(&text(&file), &relay.port().to_string(), &settings);
    let ended = tokio::task::spawn_blocking(|| (sender.finish(), receiver.finish())).await;
    let (sent, received) = ended.expect("both ended");
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{sent:?} {received:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    assert_eq!(sent["paths"][1]["state"], "inactive");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_broke_off_goes_on_where_it_was() {
    let dir = Dir::new("resume");
    let file = dir.file("data.bin", 30_000_000);
    let (first, port) = receiver(&dir.out(), &["--listen", THERE]);
    let relay = Relay::start(&addresses(HERE), &addresses(THERE), port.parse().expect("a port")).await;
    starve(&relay);
    let sender = send(&text(&file), &relay.port().to_string(), &[]);
    relay.limited(0).await;
    first.interrupt();
    let ended = tokio::task::spawn_blocking(|| (first.finish(), sender.finish())).await;
    let (interrupted, broken) = ended.expect("both ended");
    assert_eq!(interrupted.code, Some(130), "{interrupted:?}");
    assert!(interrupted.stderr.contains("are kept in"), "{interrupted:?}");
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.stderr.contains("the receiver was interrupted"), "{broken:?}");
    assert!(!dir.received().contains(&"data.bin".to_owned()), "nothing under the final name");

    let (second, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let sent = send(&text(&file), &port, &["--json"]).finish();
    assert_eq!((sent.code, second.finish().code), (Some(0), Some(0)));
    assert!(same(&file, &dir.out().join("data.bin")));
    assert_eq!(dir.received(), ["data.bin"]);
    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    assert!(sent["resumed_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_sender_says_so_and_the_receiver_keeps_what_it_has() {
    let dir = Dir::new("interrupt");
    let file = dir.file("data.bin", 30_000_000);
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let relay = Relay::start(&addresses(HERE), &addresses(THERE), port.parse().expect("a port")).await;
    starve(&relay);
    let sender = send(&text(&file), &relay.port().to_string(), &[]);
    relay.limited(0).await;
    sender.interrupt();
    let ended = tokio::task::spawn_blocking(|| (sender.finish(), receiver.finish())).await;
    let (sent, received) = ended.expect("both ended");
    assert_eq!(sent.code, Some(130), "{sent:?}");
    assert_eq!(received.code, Some(1), "{received:?}");
    assert!(received.stderr.contains("the sender was interrupted"), "{received:?}");
    assert!(received.stderr.contains("are kept in"), "{received:?}");
    assert!(!dir.received().contains(&"data.bin".to_owned()), "nothing under the final name");
}

/// Lets some of a file through and kills one side without a word; answers what the other one is, still running.
async fn killed(dir: &Dir, file: &str, receiver_dies: bool) -> (Running, String) {
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE]);
    let relay = Relay::start(&addresses(HERE), &addresses(THERE), port.parse().expect("a port")).await;
    for path in 0..2 {
        relay.starve_after(path, 12_000_000);
    }
    let sender = send(file, &relay.port().to_string(), &[]);
    relay.limited(0).await;
    // What is dropped is killed.
    if receiver_dies { (sender, port) } else { (receiver, port) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_was_killed_goes_on_at_once() {
    let dir = Dir::new("killed-sender");
    let file = dir.file("data.bin", 40_000_000);
    let (receiver, port) = killed(&dir, &text(&file), false).await;
    let sent = send(&text(&file), &port, &["--json"]).finish();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    assert!(sent["resumed_bytes"].as_u64() > Some(1_000_000), "{sent}");
    receiver.interrupt();
    assert_eq!(receiver.finish().code, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_a_receiver_had_that_was_killed_little_comes_again() {
    let dir = Dir::new("killed-receiver");
    let file = dir.file("data.bin", 40_000_000);
    drop(killed(&dir, &text(&file), true).await);
    let (second, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let sent = send(&text(&file), &port, &["--json"]).finish();
    assert_eq!((sent.code, second.finish().code), (Some(0), Some(0)), "{sent:?}");
    assert!(same(&file, &dir.out().join("data.bin")));
    assert_eq!(dir.received(), ["data.bin"]);
    let sent: serde_json::Value = serde_json::from_str(&sent.stdout).expect("one JSON document");
    assert!(sent["resumed_bytes"].as_u64() >= Some(8 << 20), "{sent}");
}

#[test]
fn files_and_directories_arrive_over_one_association_and_again_nothing_does() {
    let dir = Dir::new("tree");
    fs::create_dir_all(dir.path("tree/deep")).expect("writable");
    for (name, len) in [("tree/a", 300_000), ("tree/deep/b", 1), ("tree/deep/c", 0), ("single", 70_000)] {
        dir.file(name, len);
    }
    let (tree, single) = (text(&dir.path("tree")), text(&dir.path("single")));
    for again in [false, true] {
        let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
        let args = ["send", &tree, &single, "--from", HERE, "--to", THERE, "--port", &port, "--json"];
        let sent = tresse(&args);
        assert_eq!((sent.code, receiver.finish().code), (Some(0), Some(0)), "{sent:?}");
        let reports: Vec<serde_json::Value> =
            sent.stdout.lines().map(|line| serde_json::from_str(line).expect("a document")).collect();
        let names: Vec<_> = reports.iter().filter_map(|report| report["name"].as_str()).collect();
        assert_eq!(names, ["tree/a", "tree/deep/b", "tree/deep/c", "single"]);
        for (report, name) in reports.iter().zip(names) {
            assert!(same(&dir.path(name), &dir.out().join(name)), "{name}");
            let expected = if again { &report["size_bytes"] } else { &serde_json::Value::from(0) };
            assert_eq!(&report["resumed_bytes"], expected, "{report}");
        }
    }
    assert_eq!(dir.received(), ["single", "tree"]);
}

#[test]
fn a_file_that_is_refused_does_not_keep_others_back() {
    let dir = Dir::new("one-refused");
    let files = ["a", "b", "c"].map(|name| text(&dir.file(name, 50_000)));
    // Of the same length, and another content.
    fs::write(dir.out().join("b"), &noise(50_001)[1..]).expect("writable");
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let [a, b, c] = &files;
    let sent = tresse(&["send", a, b, c, "--from", HERE, "--to", THERE, "--port", &port]);
    assert_eq!((sent.code, receiver.finish().code), (Some(1), Some(1)), "{sent:?}");
    assert!(sent.stderr.contains("did not store b: the file exists already"), "{sent:?}");
    assert_eq!(dir.received(), ["a", "b", "c"]);
    assert!(same(&dir.path("c"), &dir.out().join("c")));
    assert!(!same(&dir.path("b"), &dir.out().join("b")), "it was left alone");
}

#[test]
fn standard_input_is_sent_under_the_name_it_is_given() {
    let dir = Dir::new("stdin");
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let args = ["send", "-", "--name", "piped", "--from", HERE, "--to", THERE, "--port", &port];
    let content = noise(700_001);
    let sent = Running::fed(&args, content.clone()).finish();
    assert_eq!((sent.code, receiver.finish().code), (Some(0), Some(0)), "{sent:?}");
    assert!(fs::read(dir.out().join("piped")).expect("there") == content, "content differs");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_standard_input_nothing_is_kept_and_an_interrupted_sender_says_so() {
    let dir = Dir::new("stdin-interrupt");
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let relay = Relay::start(&addresses(HERE), &addresses(THERE), port.parse().expect("a port")).await;
    starve(&relay);
    let port = relay.port().to_string();
    let args = ["send", "-", "--name", "piped", "--from", HERE, "--to", THERE, "--port", &port];
    let sender = Running::fed(&args, noise(30_000_000));
    relay.limited(0).await;
    sender.interrupt();
    let ended = tokio::task::spawn_blocking(|| (sender.finish(), receiver.finish())).await;
    let (sent, received) = ended.expect("both ended");
    assert_eq!((sent.code, received.code), (Some(130), Some(1)), "{sent:?} {received:?}");
    assert!(sent.stderr.contains("the receiver keeps nothing"), "{sent:?}");
    assert!(received.stderr.contains("nothing of it is kept"), "{received:?}");
    assert_eq!(dir.received(), [""; 0]);
}

#[test]
fn an_existing_file_is_only_replaced_with_force() {
    let dir = Dir::new("exists");
    let file = dir.file("data.bin", 100_000);
    fs::write(dir.out().join("data.bin"), "old").expect("writable");
    let (refusing, port) = receiver(&dir.out(), &["--listen", THERE, "--once"]);
    let sent = send(&text(&file), &port, &[]).finish();
    assert_eq!((sent.code, refusing.finish().code), (Some(1), Some(1)));
    assert!(sent.stderr.contains("data.bin: the file exists already"), "{sent:?}");
    assert_eq!(fs::read(dir.out().join("data.bin")).expect("there"), b"old");

    let (replacing, port) = receiver(&dir.out(), &["--listen", THERE, "--once", "--force"]);
    assert_eq!(send(&text(&file), &port, &[]).finish().code, Some(0));
    assert_eq!(replacing.finish().code, Some(0));
    assert!(same(&file, &dir.out().join("data.bin")));
}

#[test]
fn a_receiver_takes_one_file_after_the_other_until_interrupted() {
    let dir = Dir::new("several");
    let files = [dir.file("a", 0), dir.file("b", 1), dir.file("c", 300_000)];
    let (receiver, port) = receiver(&dir.out(), &["--listen", THERE]);
    for file in &files {
        let sent = send(&text(file), &port, &["--quiet"]).finish();
        assert_eq!((sent.code, sent.stdout, sent.stderr), (Some(0), String::new(), String::new()));
    }
    receiver.interrupt();
    let ended = receiver.finish();
    assert_eq!(ended.code, Some(130));
    assert_eq!(dir.received(), ["a", "b", "c"]);
    for (file, name) in files.iter().zip(["a", "b", "c"]) {
        assert!(same(file, &dir.out().join(name)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_does_not_wait_for_announcements_when_interrupted() {
    let dir = Dir::new("silent");
    let (receiver, port) = receiver(&dir.out(), &["--listen", "127.0.0.3"]);
    let endpoint = Endpoint::builder().local_addresses(addresses("127.0.0.1")).udp_port(0).bind();
    let endpoint = endpoint.expect("a free port");
    let peer = Peer::new(addresses("127.0.0.3"), 5001).with_udp_port(port.parse().expect("a port"));
    let silent = endpoint.connect(peer).await.expect("it listens");
    // The receiver takes the association a moment after it is there.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    receiver.interrupt();
    let ended = tokio::task::spawn_blocking(|| receiver.finish()).await.expect("it ended");
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}: {ended:?}", began.elapsed());
    drop(silent);
}

#[test]
fn nobody_listening_is_unreachable() {
    let dir = Dir::new("nobody");
    let file = dir.file("data.bin", 10);
    let silent = std::net::UdpSocket::bind("127.0.0.3:0").expect("free");
    let port = silent.local_addr().expect("bound").port().to_string();
    let args = ["send", &text(&file), "--from", "127.0.0.1", "--to", "127.0.0.3", "--port", &port];
    let sent = tresse(&[&args[..], &["--timeout", "300ms"]].concat());
    assert_eq!(sent.code, Some(3));
    let expected = format!(
        "tresse: 127.0.0.3 UDP port {port}: no answer within 300ms; tresse doctor --to 127.0.0.3 --port {port} finds \
         what is in the way\n"
    );
    assert_eq!(sent.stderr, expected);
}

#[test]
fn an_sctp_port_that_nobody_takes_is_named() {
    let dir = Dir::new("sctp-port");
    let file = dir.file("data.bin", 10);
    let (_receiver, port) = receiver(&dir.out(), &["--listen", THERE]);
    let sent = send(&text(&file), &port, &["--sctp-port", "5002"]).finish();
    assert_eq!((sent.code, sent.stderr.lines().count()), (Some(1), 1), "{sent:?}");
    assert!(sent.stderr.contains("does it listen on SCTP port 5002 (--sctp-port)?"), "{sent:?}");
}

#[test]
fn mistakes_are_one_line_and_exit_code_2() {
    let dir = Dir::new("mistakes");
    let file = text(&dir.file("data.bin", 10));
    let missing = text(&dir.path("missing"));
    let cases: [(&[&str], &str); 9] = [
        (&["send", &missing, "--to", "127.0.0.1"], "there is no such file"),
        (&["send", &text(&dir.out()), "--to", "127.0.0.1"], "there is no file in what was named"),
        (&["send", &file, "--to", "no where"], "it is no IP address or host name"),
        (&["send", &file], "--to"),
        (&["send", &file, "--to", "::1", "--from", "127.0.0.1"], "no local address can reach ::1"),
        (&["send", &file, "--to", "0.0.0.0", "--from", "127.0.0.1"], "0.0.0.0 names no other host"),
        (&["send", &file, "--to", "127.0.0.1", "--set", "rto_mim=1s"], "did you mean \"rto_min\"?"),
        (&["send", &file, "--to", "127.0.0.1", "--name", "../x"], "the name stands for a directory"),
        (&["recv", "--listen", "127.0.0.1", "--out", &missing], "there is no such directory"),
    ];
    for (args, expected) in cases {
        let done = tresse(args);
        assert_eq!(done.code, Some(2), "{args:?} {done:?}");
        assert!(done.stderr.contains(expected), "{args:?} {done:?}");
        assert!(done.stderr.starts_with("tresse: ") && done.stderr.lines().count() == 1, "{done:?}");
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn an_address_that_is_not_there_is_named_and_may_come_yet() {
    let dir = Dir::new("absent");
    let out = text(&dir.out());
    let done = tresse(&["recv", "--listen", "192.0.2.1", "--insecure", "--out", &out]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("192.0.2.1") && done.stderr.lines().count() == 1, "{done:?}");
    assert!(done.stderr.contains("this host does not have the address"), "{done:?}");
}

#[test]
fn a_port_in_use_is_named() {
    let dir = Dir::new("port");
    let (_holder, port) = receiver(&dir.out(), &["--listen", "127.0.0.3"]);
    let out = text(&dir.out());
    let second = tresse(&["recv", "--listen", "127.0.0.3", "--port", &port, "--out", &out]);
    assert_eq!(second.code, Some(1));
    assert_eq!(
        second.stderr,
        format!("tresse: cannot bind 127.0.0.3 to UDP port {port}: the port is in use\n")
    );
}

/// Senders that a receiver serves at a time.
const PLACES: usize = 16;

#[test]
fn senders_that_were_killed_keep_nobody_out() {
    let dir = Dir::new("killed-senders");
    let file = text(&dir.file("file", 200_000));
    let (_receiver, port) = receiver(&dir.out(), &["--listen", "127.0.0.1"]);
    let send = |name: &str, more: &[&str]| {
        let call = ["send", &file, "--name", name, "--to", "127.0.0.1", "--port", &port];
        Running::start(&[&call[..], more].concat())
    };
    let slow = |number: usize| send(&format!("slow-{number}"), &["--rate", "10kbit/s"]);
    let senders: Vec<_> = (0..PLACES).map(slow).collect();
    let begun = Instant::now();
    // What is under way has a file each.
    while dir.received().len() < PLACES {
        assert!(begun.elapsed() < FOREVER, "all are accepted");
        thread::sleep(Duration::from_millis(20));
    }
    drop(senders);
    let begun = Instant::now();
    let done = send("next", &[]).finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(begun.elapsed() < MINUTES, "it waited until an association was given up: {:?}", begun.elapsed());
    assert!(same(&dir.out().join("next"), &dir.path("file")));
}

/// Far more than a silence that counts, and less than it takes to give up an association.
const MINUTES: Duration = Duration::from_secs(120);
