//! `tresse doctor` through translators and filters, in network namespaces: needs root, `ip` and `nft`, and says so where it
//! cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod netns;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use netns::{Hosts, all_of_ip, run_in, tresse_in};
use serde_json::Value;

const NEAR: usize = 0;
const NAT: usize = 1;
const FAR: usize = 2;

/// A host, a router and a peer with two addresses behind it.
fn routed(test: &str) -> Option<Hosts> {
    let hosts = Hosts::new(test, &["near", "nat", "far"])?;
    hosts.link([(NEAR, "up1", "192.168.1.2/24"), (NAT, "lan1", "192.168.1.1/24")], None);
    hosts.link([(NAT, "wan1", "10.77.1.2/24"), (FAR, "down1", "10.77.1.1/24")], None);
    let (near, nat, far) = (hosts.name(NEAR), hosts.name(NAT), hosts.name(FAR));
    let routes = [
        format!("-n {far} addr add 10.78.1.1/32 dev lo"),
        format!("-n {far} addr add 10.78.2.1/32 dev lo"),
        format!("-n {far} route add default via 10.77.1.2"),
        format!("-n {near} route add default via 192.168.1.1"),
        format!("-n {nat} route add default via 10.77.1.1"),
    ];
    assert!(all_of_ip(&routes), "{routes:?}");
    assert!(run_in(nat, "sysctl -qw net.ipv4.ip_forward=1"));
    Some(hosts)
}

/// The same, whose router obeys a rule of nft(8) in a chain; None where there is no such thing, which is said.
fn ruled(test: &str, chain: &str, rule: &str) -> Option<Hosts> {
    let hosts = routed(test)?;
    let nat = hosts.name(NAT);
    let made = run_in(nat, "nft add table ip rules")
        && run_in(nat, &format!("nft add chain ip rules one {{ type {chain} ; }}"))
        && run_in(nat, &format!("nft add rule ip rules one {rule}"));
    if !made {
        eprintln!("{test}: not run: \"{rule}\" needs the command `nft` and a kernel that has it");
    }
    made.then_some(hosts)
}

const TRANSLATION: &str = "nat hook postrouting priority 100";
const FORWARDING: &str = "filter hook forward priority 0";

/// A server on the far host, gone with this.
struct Server(Child);

impl Server {
    fn start(hosts: &Hosts) -> Self {
        let serve = "perf server --listen 10.78.1.1,10.78.2.1 --stun --insecure";
        let mut server = tresse_in(hosts.name(FAR), serve).stderr(Stdio::piped()).spawn().expect("a server");
        let mut said = BufReader::new(server.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        assert!(line.contains("listening on"), "{line}");
        Server(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the doctor finds on the near host.
fn findings(hosts: &Hosts, options: &str) -> Vec<Value> {
    let call = format!("doctor --from up1 --to 10.78.1.1,10.78.2.1 --json --insecure --timeout 3s{options}");
    let done = tresse_in(hosts.name(NEAR), &call).output().expect("a doctor");
    let document: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)));
    document["findings"].as_array().expect("a list").clone()
}

/// Asserts that a check came to this state in both paths, and said all of `words`.
fn assert_found(findings: &[Value], check: &str, state: &str, words: &[&str]) {
    let found: Vec<_> = findings.iter().filter(|one| one["check"] == check).collect();
    assert_eq!(found.len(), 2, "{check}: {findings:#?}");
    for one in found {
        assert_eq!(one["state"], state, "{one:#}");
        let says = one["says"].as_str().expect("words");
        assert!(words.iter().all(|word| says.contains(word)), "{words:?} in {says:?}");
    }
}

#[test]
fn a_host_without_a_link_is_told_and_the_rest_of_it_is_checked() {
    let Some(hosts) = Hosts::new("lonely", &["near"]) else { return };
    let done = tresse_in(hosts.name(NEAR), "doctor --json").output().expect("a doctor");
    assert_eq!(done.status.code(), Some(4), "{}", String::from_utf8_lossy(&done.stderr));
    let document: Value = serde_json::from_slice(&done.stdout).expect("a document");
    let state = |check: &str| {
        let mut findings = document["findings"].as_array().expect("a list").iter();
        findings.find(|one| one["check"] == check).map(|one| one["state"].clone())
    };
    assert_eq!(state("interfaces"), Some("bad".into()), "{document:#}");
    assert!(state("wake-ups").is_some() && state("clock").is_some(), "{document:#}");
}

#[test]
fn a_path_without_a_translator_is_told() {
    let Some(hosts) = routed("plain") else { return };
    let _server = Server::start(&hosts);
    let findings = findings(&hosts, "");
    assert_found(&findings, "address translation", "well", &["none; the peer sees 192.168.1.2:"]);
    assert_found(&findings, "packet rate", "well", &["200 of 200", "10 of 10"]);
    assert_found(&findings, "packet size", "well", &["bytes of 1500"]);
}

#[test]
fn a_router_that_drops_large_packets_in_silence_is_told() {
    let Some(hosts) = ruled("hole", FORWARDING, "ip length > 1300 drop") else { return };
    let _server = Server::start(&hosts);
    let findings = findings(&hosts, "");
    assert_found(&findings, "packet size", "poor", &["of the 1500", "something drops larger ones"]);
}

#[test]
fn a_translator_with_one_mapping_is_told_with_its_filter() {
    let Some(hosts) = ruled("cone", TRANSLATION, "oifname wan1 masquerade") else { return };
    let _server = Server::start(&hosts);
    let words = [
        "192.168.1.2 is 10.77.1.2 outside",
        "mapping endpoint-independent",
        "filtering address- and port-dependent",
    ];
    let findings = findings(&hosts, "");
    assert_found(&findings, "address translation", "well", &words);
    assert_found(&findings, "binding lifetime", "unknown", &["--binding-lifetime 3m"]);
}

#[test]
fn a_symmetric_translator_is_told() {
    let Some(hosts) = ruled("symmetric", TRANSLATION, "oifname wan1 masquerade fully-random") else { return };
    let _server = Server::start(&hosts);
    let words = ["mapping address- and port-dependent", "hardly be called"];
    assert_found(&findings(&hosts, ""), "address translation", "poor", &words);
}

#[test]
fn a_translator_that_forgets_soon_is_named_with_the_setting_that_keeps_it() {
    let Some(hosts) = ruled("forgets", TRANSLATION, "oifname wan1 masquerade") else { return };
    for timer in ["udp_timeout", "udp_timeout_stream"] {
        let set = format!("sysctl -qw net.netfilter.nf_conntrack_{timer}=3");
        assert!(run_in(hosts.name(NAT), &set), "{set}");
    }
    let _server = Server::start(&hosts);
    let findings = findings(&hosts, " --binding-lifetime 5s");
    assert_found(&findings, "binding lifetime", "poor", &["gone after", "idle path is silent for longer"]);
    let binding = findings.iter().find(|one| one["check"] == "binding lifetime").expect("found above");
    let mend = binding["mend"].as_str().expect("a setting");
    assert!(mend.starts_with("--set heartbeat_interval=1s"), "{mend}");
}

#[test]
fn a_translator_that_remembers_is_well() {
    let Some(hosts) = ruled("remembers", TRANSLATION, "oifname wan1 masquerade") else { return };
    let _server = Server::start(&hosts);
    let words = ["lives 2 s without packets at least"];
    assert_found(&findings(&hosts, " --binding-lifetime 2s"), "binding lifetime", "well", &words);
}

#[test]
fn a_limit_of_packets_is_told() {
    let rule = "meta l4proto udp limit rate over 50/second drop";
    let Some(hosts) = ruled("limited", FORWARDING, rule) else { return };
    let _server = Server::start(&hosts);
    assert_found(&findings(&hosts, ""), "packet rate", "poor", &["something on the way limits UDP"]);
}

#[test]
fn a_blocked_port_is_told_from_one_where_nobody_listens() {
    let Some(hosts) = ruled("blocked", FORWARDING, "udp dport 9899 drop") else { return };
    {
        let _server = Server::start(&hosts);
        assert_found(&findings(&hosts, ""), "UDP", "bad", &["UDP port 9899 is blocked on the way"]);
    }
    assert!(run_in(hosts.name(NAT), "nft flush ruleset"));
    assert_found(&findings(&hosts, ""), "UDP", "bad", &["nobody listens on UDP port 9899"]);
}
