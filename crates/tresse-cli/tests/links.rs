//! Paths over links of their own, in network namespaces: needs root and `ip`, and says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A host with two uplinks whose default routes have unlike metrics, and one with two addresses behind both.
struct Hosts {
    near: String,
    far: String,
}

impl Hosts {
    /// None where the system does not let namespaces be made.
    fn new() -> Option<Self> {
        let id = std::process::id();
        let hosts = Hosts { near: format!("tresse-near-{id}"), far: format!("tresse-far-{id}") };
        let (near, far) = (&hosts.near, &hosts.far);
        for name in [near, far] {
            if !ip(&format!("netns add {name}")) {
                return None;
            }
        }
        for (link, metric) in [(1, 100), (2, 200)] {
            let made = [
                format!("-n {near} link add up{link} type veth peer name down{link} netns {far}"),
                format!("-n {near} addr add 10.77.{link}.2/24 dev up{link}"),
                format!("-n {far} addr add 10.77.{link}.1/24 dev down{link}"),
                format!("-n {far} addr add 10.78.{link}.1/32 dev lo"),
                format!("-n {near} link set up{link} up"),
                format!("-n {far} link set down{link} up"),
                format!("-n {near} route add default via 10.77.{link}.1 metric {metric}"),
            ];
            if !made.iter().all(|command| ip(command)) {
                return None;
            }
        }
        (ip(&format!("-n {near} link set lo up")) && ip(&format!("-n {far} link set lo up"))).then_some(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    done.is_ok_and(|done| done.status.success())
}

/// `tresse` in the namespace `host`.
fn tresse_in(host: &str, arguments: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, env!("CARGO_BIN_EXE_tresse")]).args(arguments.split(' '));
    command
}

/// Bytes that left by an interface.
fn left_by(host: &str, interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    let read = Command::new("ip").args(["netns", "exec", host, "cat", &file]).output().expect("ip");
    String::from_utf8_lossy(&read.stdout).trim().parse().expect("a number")
}

#[test]
fn each_path_leaves_by_the_interface_of_its_address() {
    let Some(hosts) = Hosts::new() else {
        eprintln!("not run: network namespaces need root and the command `ip`");
        return;
    };
    let serve = "perf server --listen 10.78.1.1,10.78.2.1 --port 9899 --once --json";
    let mut server =
        tresse_in(&hosts.far, serve).stdout(std::process::Stdio::null()).spawn().expect("a server");
    let call = "perf client --from 10.77.1.2,10.77.2.2 --to 10.78.1.1,10.78.2.1 --bytes 20MB --json";
    let done = client(&hosts, call);
    let _ = server.kill();
    let _ = server.wait();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let document: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let paths = document["out"]["paths"].as_array().expect("paths").clone();
    let sent: Vec<_> = paths.iter().map(|path| path["chunks_sent"].as_u64().expect("a number")).collect();
    for (position, interface) in ["up1", "up2"].into_iter().enumerate() {
        let (bytes, chunks) = (left_by(&hosts.near, interface), sent[position]);
        // A chunk has some 1,400 bytes; heartbeats and acknowledgements are few.
        assert!(bytes > chunks * 1000, "{interface}: {bytes} bytes left, {chunks} chunks were sent there");
        assert!(chunks > 100, "path {position} carried {chunks} chunks: {sent:?}");
    }
}

/// Asks until the server listens.
fn client(hosts: &Hosts, call: &str) -> Output {
    let begun = Instant::now();
    loop {
        let done = tresse_in(&hosts.near, call).output().expect("a client");
        if done.status.success() || begun.elapsed() > Duration::from_secs(60) {
            return done;
        }
    }
}
