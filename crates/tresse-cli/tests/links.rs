//! Paths over links of their own, in network namespaces: needs root and `ip`, and says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::{FOREVER, Running};
use netns::{all_of_ip, client, ip, left_by, said_in, tresse_in};
use serde_json::Value;

/// A host with two uplinks whose default routes have unlike metrics, and one with two addresses behind both.
struct Hosts {
    near: String,
    far: String,
}

impl Hosts {
    /// None where the system does not let namespaces be made, which is said.
    fn new(test: &str) -> Option<Self> {
        let hosts = Hosts::made(test);
        if hosts.is_none() {
            eprintln!("{test}: not run: network namespaces need root and the command `ip`");
        }
        hosts
    }

    fn made(test: &str) -> Option<Self> {
        let id = format!("{test}-{}", std::process::id());
        let hosts = Hosts { near: format!("tresse-near-{id}"), far: format!("tresse-far-{id}") };
        let (near, far) = (&hosts.near, &hosts.far);
        for name in [near, far] {
            if !ip(&format!("netns add {name}")) {
                return None;
            }
        }
        for link in [1, 2] {
            if !hosts.plug(link) || !ip(&format!("-n {far} addr add 10.78.{link}.1/32 dev lo")) {
                return None;
            }
        }
        (ip(&format!("-n {near} link set lo up")) && ip(&format!("-n {far} link set lo up"))).then_some(hosts)
    }

    /// Makes a link; each time its interfaces are new ones.
    fn plug(&self, link: u8) -> bool {
        let Hosts { near, far } = self;
        all_of_ip(&[
            format!("-n {near} link add up{link} type veth peer name down{link} netns {far}"),
            format!("-n {near} addr add 10.77.{link}.2/24 dev up{link}"),
            format!("-n {far} addr add 10.77.{link}.1/24 dev down{link}"),
            format!("-n {near} link set up{link} up"),
            format!("-n {far} link set down{link} up"),
            format!("-n {near} route add default via 10.77.{link}.1 metric {link}00"),
        ])
    }

    fn unplug(&self, link: u8) {
        assert!(ip(&format!("-n {} link del up{link}", self.near)));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            ip(&format!("netns del {name}"));
        }
    }
}

/// What a measurement says: its document and what went to standard error.
struct Measured {
    paths: Vec<Value>,
    mbps: f64,
    said: String,
}

/// Measures from the one host to the other.
fn measure(hosts: &Hosts, listen: &str, call: &str) -> Measured {
    let serve = format!("perf server --listen {listen} --once --json --insecure");
    let mut server = tresse_in(&hosts.far, &serve).stdout(Stdio::null()).spawn().expect("a server");
    let done = client(&hosts.near, &format!("perf client {call} --json --insecure"));
    let _ = server.kill();
    let _ = server.wait();
    let said = String::from_utf8_lossy(&done.stderr).replace("tresse: ", "");
    assert!(done.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let paths = document["out"]["paths"].as_array().expect("paths").clone();
    Measured { paths, mbps: document["out"]["throughput_mbps"].as_f64().expect("a number"), said }
}

#[test]
fn each_path_leaves_by_the_interface_of_its_address() {
    let Some(hosts) = Hosts::new("each") else { return };
    let measured = measure(&hosts, "lo", "--to 10.78.1.1,10.78.2.1 --bytes 20MB");
    assert_eq!(measured.said, "from 10.77.1.2 (up1), 10.77.2.2 (up2)\n");
    let sent: Vec<_> =
        measured.paths.iter().map(|path| path["chunks_sent"].as_u64().expect("a number")).collect();
    for (position, interface) in ["up1", "up2"].into_iter().enumerate() {
        let (bytes, chunks) = (left_by(&hosts.near, interface), sent[position]);
        // A chunk has some 1,400 bytes; heartbeats and acknowledgements are few.
        assert!(bytes > chunks * 1000, "{interface}: {bytes} bytes left, {chunks} chunks were sent there");
        assert!(chunks > 100, "path {position} carried {chunks} chunks: {sent:?}");
    }
}

#[test]
fn an_interface_without_a_route_is_named_with_what_mends_it() {
    let Some(hosts) = Hosts::new("route") else { return };
    let near = &hosts.near;
    assert!(ip(&format!("-n {near} route del default via 10.77.2.1")));
    let call = "--to 10.78.1.1,10.78.2.1 --bytes 1MB";
    let said = measure(&hosts, "lo", call).said;
    let idle = "up2 (10.77.2.2) is not used: no route leads to 10.78.1.1 by it; mend it with: ip route add default via ROUTER";
    assert!(said.starts_with("from 10.77.1.2 (up1)\n") && said.contains(idle), "{said}");

    let named = format!("{call} --from up1,up2");
    let said = measure(&hosts, "lo", &named).said;
    let line = said.lines().next().expect("a line");
    assert!(line.starts_with("path 10.77.2.2 -> 10.78.2.1 leaves by up1, not by up2: no route"), "{said}");
    let (_, commands) = line.split_once("mend it with: ").expect("commands");
    let (commands, _) = commands.split_once(" (ROUTER").expect("a note");
    for command in commands.replace("ROUTER", "10.77.2.1").split(" && ") {
        let arguments = command.strip_prefix("ip ").expect("a command of ip");
        assert!(ip(&format!("-n {near} {arguments}")), "{command}");
    }
    let before = left_by(near, "up2");
    let mended = measure(&hosts, "lo", &named.replace("1MB", "20MB"));
    assert_eq!(mended.said, "");
    assert!(mended.paths[1]["chunks_sent"].as_u64() > Some(0));
    assert!(left_by(near, "up2") > before);
}

#[test]
fn two_endpoints_of_one_host_hear_each_other_over_two_interfaces() {
    let Some(hosts) = Hosts::new("self") else { return };
    let serve = "perf server --listen up2 --once --json --insecure";
    let mut server = tresse_in(&hosts.near, serve).stdout(Stdio::null()).spawn().expect("a server");
    let done = client(&hosts.near, "perf client --from up1 --to 10.77.2.2 --bytes 1MB --json --insecure");
    let _ = server.kill();
    let _ = server.wait();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A measurement, which a busy machine spoils.
#[test]
#[ignore = "measures rates for twenty seconds"]
fn two_links_of_50_mbits_carry_90() {
    let Some(hosts) = Hosts::new("rate") else { return };
    for (host, interface) in [(&hosts.near, "up"), (&hosts.far, "down")] {
        for link in [1, 2] {
            let shape = format!(
                "netns exec {host} tc qdisc add dev {interface}{link} root tbf rate 50mbit burst 32kbit latency 50ms"
            );
            assert!(ip(&shape), "tc(8) with tbf");
        }
    }
    let measured = measure(&hosts, "lo", "--to 10.78.1.1,10.78.2.1 --duration 20s");
    eprintln!("{:.1} Mbit/s of user data over two links of 50 Mbit/s: {:?}", measured.mbps, measured.paths);
    assert!(measured.mbps >= 90.0);
}

#[test]
fn an_address_that_is_replaced_in_mid_transfer_is_followed() {
    let Some(hosts) = Hosts::new("moved") else { return };
    let near = &hosts.near;
    // Slow enough to last while the address changes, however busy the machine is.
    let shape = "root tbf rate 8mbit burst 32kbit latency 100ms";
    for link in [1, 2] {
        assert!(ip(&format!("netns exec {near} tc qdisc add dev up{link} {shape}")), "tc(8) with tbf");
    }
    let serve = "perf server --listen lo --once --json --insecure";
    let mut server = tresse_in(&hosts.far, serve).stdout(Stdio::null()).spawn().expect("a server");
    let call = "perf client --to 10.78.1.1,10.78.2.1 --bytes 20MB --json --insecure";
    let measuring = thread::spawn({
        let near = near.clone();
        move || client(&near, call)
    });
    let begun = Instant::now();
    while left_by(near, "up1") < 1_000_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing leaves");
        thread::sleep(Duration::from_millis(20));
    }
    // What DHCP does with a new lease.
    for command in [
        "addr del 10.77.1.2/24 dev up1",
        "addr add 10.77.1.3/24 dev up1",
        "route add default via 10.77.1.1 metric 100",
    ] {
        assert!(ip(&format!("-n {near} {command}")), "{command}");
    }
    let done = measuring.join().expect("a client");
    let _ = server.kill();
    let _ = server.wait();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("10.77.1.3 has come and joins") && said.contains("10.77.1.2 is gone and leaves"),
        "{said}"
    );
    let document: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(document["out"]["bytes"], 20_000_000, "nothing is lost");
    let paths = document["out"]["paths"].as_array().expect("paths");
    let new = paths.iter().find(|path| path["local"] == "10.77.1.3").expect("a path from the new address");
    assert!(new["chunks_sent"].as_u64() > Some(100), "{paths:?}");
}

/// A request to remove an address would be in flight, without a path, when the new addresses come.
#[test]
fn addresses_that_are_all_replaced_after_a_while_without_any_are_followed() {
    let Some(hosts) = Hosts::new("replaced") else { return };
    let near = &hosts.near;
    for link in [1, 2] {
        let shape = "root tbf rate 4mbit burst 32kbit latency 100ms";
        assert!(ip(&format!("netns exec {near} tc qdisc add dev up{link} {shape}")), "tc(8) with tbf");
    }
    let serve = "perf server --listen lo --once --json --insecure";
    let mut server = tresse_in(&hosts.far, serve).stdout(Stdio::null()).spawn().expect("a server");
    let call = "perf client --to 10.78.1.1,10.78.2.1 --bytes 5MB --insecure";
    let mut client = Running::of(tresse_in(near, call), Vec::new());
    let begun = Instant::now();
    while left_by(near, "up1") < 500_000 {
        assert!(begun.elapsed() < FOREVER, "nothing leaves");
        thread::sleep(Duration::from_millis(20));
    }
    for link in [1, 2] {
        assert!(ip(&format!("-n {near} addr del 10.77.{link}.2/24 dev up{link}")));
    }
    // Longer than the interval of two checks.
    thread::sleep(Duration::from_secs(3));
    for link in [1, 2] {
        assert!(ip(&format!("-n {near} addr add 10.77.{link}.3/24 dev up{link}")));
        assert!(ip(&format!("-n {near} route add default via 10.77.{link}.1 metric {link}00")));
    }
    let mut said = Vec::new();
    while said.len() < 4 {
        let line = client.line_with("10.77.");
        if line.contains("has come") || line.contains("is gone") {
            said.push(line);
        }
    }
    assert!(said[..2].iter().all(|line| line.contains("has come and joins")), "{said:?}");
    assert!(said[2..].iter().all(|line| line.contains("is gone and leaves")), "{said:?}");
    let done = client.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let _ = server.kill();
    let _ = server.wait();
}

/// A modem that is plugged in again has the address of before, and an interface of another number.
#[test]
fn an_interface_that_comes_back_carries_its_path_again() {
    for follows in [false, true] {
        let Some(hosts) = Hosts::new("back") else { return };
        let near = &hosts.near;
        // Slow enough to last meanwhile, however busy the machine is.
        assert!(ip(&format!(
            "netns exec {near} tc qdisc add dev up1 root tbf rate 1mbit burst 32kbit latency 100ms"
        )));
        let serve = "perf server --listen lo --once --json --insecure";
        let mut server = Running::of(tresse_in(&hosts.far, serve), Vec::new());
        server.line_with("listening on ");
        let from = if follows { "auto" } else { "up1,up2" };
        let call = format!("perf client --from {from} --to 10.78.1.1,10.78.2.1 --duration 300s --insecure");
        let mut client = Running::of(tresse_in(near, &call), Vec::new());
        let carries = || {
            let begun = Instant::now();
            while left_by(near, "up2") < 500_000 {
                assert!(begun.elapsed() < Duration::from_secs(120), "nothing leaves: follows = {follows}");
                thread::sleep(Duration::from_millis(20));
            }
        };
        carries();
        hosts.unplug(2);
        if follows {
            client.line_with("10.77.2.2 is gone and leaves");
            let begun = Instant::now();
            while said_in(near, &["ss", "-uan"]).expect("ss(8)").contains("10.77.2.2") {
                assert!(begun.elapsed() < FOREVER, "its sockets are not closed");
                thread::sleep(Duration::from_millis(20));
            }
        }
        assert!(hosts.plug(2));
        carries();
    }
}

#[test]
fn an_address_that_comes_back_before_the_peer_has_heard_of_it_joins_again() {
    let Some(hosts) = Hosts::new("early") else { return };
    let Hosts { near, far } = &hosts;
    assert!(ip(&format!(
        "netns exec {near} tc qdisc add dev up1 root tbf rate 1mbit burst 32kbit latency 100ms"
    )));
    let serve = "perf server --listen lo --once --json --insecure";
    let mut server = Running::of(tresse_in(far, serve), Vec::new());
    server.line_with("listening on ");
    let call = "perf client --to 10.78.1.1,10.78.2.1 --duration 300s --insecure";
    let mut client = Running::of(tresse_in(near, call), Vec::new());
    let carries = || {
        let (begun, before) = (Instant::now(), left_by(near, "up2"));
        while left_by(near, "up2") < before + 500_000 {
            assert!(begun.elapsed() < FOREVER, "nothing leaves");
            thread::sleep(Duration::from_millis(20));
        }
    };
    carries();
    assert!(ip(&format!("-n {far} link set down1 down")));
    assert!(ip(&format!("-n {near} addr del 10.77.2.2/24 dev up2")));
    client.line_with("10.77.2.2 is gone and leaves");
    let back = [
        format!("-n {near} addr add 10.77.2.2/24 dev up2"),
        format!("-n {near} route add default via 10.77.2.1 metric 200"),
    ];
    assert!(all_of_ip(&back), "{back:?}");
    // It is looked for every second, and cannot join before the other link works.
    thread::sleep(Duration::from_millis(2500));
    assert!(ip(&format!("-n {far} link set down1 up")));
    client.line_with("10.77.2.2 has come and joins");
    carries();
}
