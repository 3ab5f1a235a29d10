//! Captures and traces of real associations.

#![allow(missing_docs, reason = "a test")]

mod common;

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
