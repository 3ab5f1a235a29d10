//! Captures and traces of real associations.

#![allow(missing_docs, reason = "a test")]

mod common;
mod tunnels;

use std::fs;
use std::process::Command;

use common::{Dir, Running, text, tresse};
use serde_json::Value;

const HERE: &str = "127.0.0.1,127.0.0.2";
const THERE: &str = "127.0.0.3,127.0.0.4";

/// A measurement whose client is given `more`, and the server's port.
fn measured(more: &[&str]) -> (common::Done, String) {
    let mut server =
        Running::start(&["perf", "server", "--listen", THERE, "--port", "0", "--once", "--json"]);
    let line = server.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next());
    let port = port.unwrap_or_else(|| panic!("no port in {line:?}")).to_owned();
    let call =
        ["perf", "client", "--from", HERE, "--to", THERE, "--port", &port, "--bytes", "300kB", "--quiet"];
    (tresse(&[&call[..], more].concat()), port)
}

/// Names of both files of one side's recording.
struct Files {
    pcap: String,
    trace: String,
}

impl Files {
    fn new(dir: &Dir, side: &str) -> Self {
        let name = |end: &str| text(&dir.path(&format!("{side}.{end}")));
        Files { pcap: name("pcapng"), trace: name("trace") }
    }

    fn options(&self) -> [&str; 4] {
        ["--pcap", &self.pcap, "--trace", &self.trace]
    }

    /// They have packets of both directions; `sends` says whether data of this side is to be in the trace.
    fn check(&self, port: &str, sends: bool) {
        read_by_tshark(&self.pcap, port);
        let shown = tresse(&["dissect", &self.pcap, "--port", port]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(
            shown.stdout.contains("INIT tag") && shown.stdout.contains("COOKIE ECHO"),
            "{}",
            shown.stdout
        );
        let text = fs::read_to_string(&self.trace).expect("written");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&lines[0]["tresse_trace"], &lines[0]["paths"]), (&1.into(), &2.into()), "{}", self.trace);
        let sent = lines.iter().filter(|line| line["e"] == "sent").count();
        assert!(!sends || sent > 20, "{}: {sent} chunks were sent", self.trace);
    }
}

/// Programs of others find whole packets with right checksums in the capture; not asked where tshark is missing.
fn read_by_tshark(pcap: &str, port: &str) {
    let ports = format!("udp.port=={port},sctp");
    let right = "sctp.checksum.status == 1 && udp.checksum.status == 1";
    let counted = |filter: &str| {
        let options = ["-o", "sctp.checksum:CRC 32c", "-o", "udp.check_checksum:TRUE"];
        let read =
            Command::new("tshark").args(["-r", pcap, "-d", &ports, "-Y", filter]).args(options).output();
        read.ok().map(|done| String::from_utf8_lossy(&done.stdout).lines().count())
    };
    let Some(all) = counted("sctp") else {
        eprintln!("records: tshark is not asked: it is not installed");
        return;
    };
    assert!(all > 20, "{all} packets");
    assert_eq!(counted(right), Some(all));
}

#[test]
fn a_capture_and_a_trace_have_what_went_over_the_paths() {
    let dir = Dir::new("records");
    let (pcap, trace) = (text(&dir.path("run.pcapng")), text(&dir.path("run.trace")));
    let both = ["--pcap", &pcap, "--trace", &trace];
    let (done, port) = measured(&both);
    assert_eq!(done.code, Some(0), "{done:?}");

    let lines: Vec<Value> = fs::read_to_string(&trace)
        .expect("written")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((&lines[0]["tresse_trace"], &lines[0]["paths"]), (&1.into(), &2.into()));
    let of = |kind: &'static str| lines.iter().filter(move |line| line["e"] == kind);
    let sent: u64 =
        of("sent").filter(|line| line["again"] == false).filter_map(|line| line["bytes"].as_u64()).sum();
    assert!(sent >= 300_000, "{sent} bytes of user data, and the messages about them");
    let last = of("sent").filter_map(|line| line["tsn"].as_u64()).max();
    let acknowledged = of("sack").filter_map(|line| line["tsn"].as_u64()).max();
    assert!(acknowledged.is_some() && acknowledged <= last, "{acknowledged:?} of {last:?}");
    assert!(of("state").count() > 0 && of("arrived").count() > 0);
    let times: Vec<f64> = lines[1..].iter().map(|line| line["t"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted());

    let shown = tresse(&["dissect", &pcap, "--port", &port]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for expected in ["INIT tag", "COOKIE ECHO", "127.0.0.1:", "127.0.0.4:"] {
        assert!(shown.stdout.contains(expected), "{expected}: {}", shown.stdout);
    }

    read_by_tshark(&pcap, &port);

    let (again, _) = measured(&both);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("run.pcapng: the file exists (--force overwrites it)"), "{again:?}");
}

#[test]
fn both_ends_of_a_measurement_are_recorded() {
    let dir = Dir::new("records-perf");
    let [near, far] = ["client", "server"].map(|side| Files::new(&dir, side));
    let serve = ["perf", "server", "--listen", THERE, "--port", "0", "--once"];
    let mut server = Running::start(&[&serve[..], &far.options()].concat());
    let line = server.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next()).expect("a port");
    let call = ["perf", "client", "--from", HERE, "--to", THERE, "--port", port, "--quiet"];
    let done = tresse(&[&call[..], &["--both", "--bytes", "300kB"], &near.options()].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = server.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    near.check(port, true);
    far.check(port, true);
}

#[test]
fn both_ends_of_a_transfer_are_recorded() {
    let dir = Dir::new("records-transfer");
    let [near, far] = ["send", "recv"].map(|side| Files::new(&dir, side));
    let out = text(&dir.out());
    let mut receiving = Running::start(
        &[&["recv", "--port", "0", "--out", &out, "--listen", THERE, "--once"][..], &far.options()].concat(),
    );
    let line = receiving.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next()).expect("a port");
    let file = text(&dir.file("file", 300_000));
    let call = ["send", &file, "--from", HERE, "--to", THERE, "--port", port, "--quiet"];
    let done = tresse(&[&call[..], &near.options()].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = receiving.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    near.check(port, true);
    far.check(port, false);
}

#[test]
fn both_ends_of_a_tunnel_are_recorded() {
    let dir = Dir::new("records-tunnel");
    let [near, far] = ["client", "server"].map(|side| Files::new(&dir, side));
    let target = tunnels::tcp_server(tunnels::echo).to_string();
    let (server, port) = tunnels::server(&[&["--tcp", &target][..], &far.options()].concat());
    let mut client = tunnels::client(&port, &[&["--tcp", "127.0.0.1:0"][..], &near.options()].concat());
    let entry = tunnels::place(&client.line(), "connections to ");
    let data = common::noise(300_000);
    assert!(tunnels::echoed(tunnels::connect(entry), data.clone()) == data);
    client.interrupt();
    client.finish();
    server.interrupt();
    server.finish();
    near.check(&port, true);
    far.check(&port, true);
}

#[test]
fn both_ends_of_a_peers_work_are_recorded() {
    let dir = Dir::new("records-peer");
    let [near, far] = ["client", "server"].map(|side| Files::new(&dir, side));
    let serve = ["peer", "server", "--listen", THERE, "--port", "0", "--mode", "echo", "--associations", "1"];
    let mut server = Running::start(&[&serve[..], &far.options()].concat());
    let line = server.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next()).expect("a port");
    let call = ["peer", "client", "--from", HERE, "--to", THERE, "--port", port, "--await-echo"];
    let done = tresse(&[&call[..], &["--count", "100", "--size", "2kB"], &near.options()].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = server.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    near.check(port, true);
    far.check(port, true);
}
