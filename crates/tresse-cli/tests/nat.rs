//! Paths behind address translators, of both families and of one link alone, in network namespaces: needs root, `ip`, `nft`
//! and `tc`, and says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod netns;

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use netns::{Hosts, all_of_ip, client, ip, left_by, run_in, said_in, tresse_in};
use serde_json::Value;

const NEAR: usize = 0;
const NAT: usize = 1;
const FAR: usize = 2;

/// A host with two uplinks, a translator on each, and a host with two addresses behind both.
fn translated(test: &str, rate: Option<&str>) -> Option<Hosts> {
    let hosts = Hosts::new(test, &["near", "nat", "far"])?;
    let (near, nat, far) = (hosts.name(NEAR), hosts.name(NAT), hosts.name(FAR));
    for link in [1, 2] {
        let lan = [format!("192.168.{link}.2/24"), format!("192.168.{link}.1/24")];
        let wan = [format!("10.77.{link}.2/24"), format!("10.77.{link}.1/24")];
        let [up, lan_end, wan_end, down] = ["up", "lan", "wan", "down"].map(|name| format!("{name}{link}"));
        hosts.link([(NEAR, &up, &lan[0]), (NAT, &lan_end, &lan[1])], rate);
        hosts.link([(NAT, &wan_end, &wan[0]), (FAR, &down, &wan[1])], rate);
        let routes = [
            format!("-n {far} addr add 10.78.{link}.1/32 dev lo"),
            format!("-n {near} route add default via 192.168.{link}.1 metric {link}00"),
            format!("-n {nat} route add 10.78.{link}.1/32 via 10.77.{link}.1"),
        ];
        assert!(all_of_ip(&routes), "{routes:?}");
    }
    assert!(run_in(nat, "sysctl -qw net.ipv4.ip_forward=1"));
    if !translates(nat, "oifname wan1 masquerade") || !translates(nat, "oifname wan2 masquerade") {
        eprintln!("{test}: not run: address translation needs the command `nft` and a kernel that has it");
        return None;
    }
    Some(hosts)
}

/// Adds a rule for what leaves `nat`.
fn translates(nat: &str, rule: &str) -> bool {
    let chain = "{ type nat hook postrouting priority 100 ; }";
    run_in(nat, "nft add table ip nat")
        && run_in(nat, &format!("nft add chain ip nat post {chain}"))
        && run_in(nat, &format!("nft add rule ip nat post {rule}"))
}

/// The translator of a link has another address, as after a new lease, and forgets what it had.
fn rebind(hosts: &Hosts, link: u8) {
    let nat = hosts.name(NAT);
    let commands = [
        format!("-n {nat} addr del 10.77.{link}.2/24 dev wan{link}"),
        format!("-n {nat} addr add 10.77.{link}.3/24 dev wan{link}"),
        format!("-n {nat} route add 10.78.{link}.1/32 via 10.77.{link}.1"),
    ];
    assert!(all_of_ip(&commands), "{commands:?}");
}

fn server(host: &str, arguments: &str) -> Child {
    let serve = format!("perf server {arguments} --once --json --insecure");
    tresse_in(host, &serve).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a server")
}

fn document(output: &[u8]) -> Value {
    serde_json::from_slice(output)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(output)))
}

/// What the client and the server say of a transfer, while which `meanwhile` happens.
fn transfer(
    hosts: &Hosts,
    (from, to): (usize, usize),
    listen: &str,
    call: &str,
    meanwhile: impl FnOnce(),
) -> [Value; 2] {
    let serving = server(hosts.name(to), listen);
    let call = format!("perf client {call} --json --insecure");
    let host = hosts.name(from).to_owned();
    let measuring = thread::spawn(move || client(&host, &call));
    meanwhile();
    let done = measuring.join().expect("a client");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let served = serving.wait_with_output().expect("a server");
    [document(&done.stdout), document(&served.stdout)]
}

/// Full packets between the far host and addresses outside the translators, either way, from now on.
fn count(hosts: &Hosts, addresses: &[&str]) {
    let far = hosts.name(FAR);
    assert!(run_in(far, "nft add table ip seen"));
    for (chain, end) in [("input", "saddr"), ("output", "daddr")] {
        let made = format!("nft add chain ip seen {chain} {{ type filter hook {chain} priority 0 ; }}");
        assert!(run_in(far, &made), "{made}");
        for address in addresses {
            let counter = counter_of(address);
            assert!(chain == "output" || run_in(far, &format!("nft add counter ip seen {counter}")));
            let rule = format!("ip {end} {address} ip length > 1000 counter name {counter}");
            assert!(run_in(far, &format!("nft add rule ip seen {chain} {rule}")), "{rule}");
        }
    }
}

/// How many of them there were with `address`.
fn counted(hosts: &Hosts, address: &str) -> u64 {
    let list = ["nft", "-j", "list", "counter", "ip", "seen", &counter_of(address)];
    let listed = said_in(hosts.name(FAR), &list).expect("a counter");
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let entries = listed["nftables"].as_array().expect("a list");
    entries.iter().filter_map(|entry| entry["counter"]["packets"].as_u64()).sum()
}

fn counter_of(address: &str) -> String {
    format!("of{}", address.replace('.', "_"))
}

/// The share of the bytes by paths that lead to `remote`.
fn share_of(paths: &Value, remote: &str) -> f64 {
    let to = |path: &&Value| path["remote"] == remote;
    paths.as_array().expect("paths").iter().filter(to).filter_map(|path| path["share"].as_f64()).sum()
}

/// Waits until so many bytes have left a host by an interface.
fn wait_for(host: &str, interface: &str, bytes: u64) {
    let begun = Instant::now();
    while left_by(host, interface) < bytes {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing leaves by {interface}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_path_behind_a_translator_carries_data_both_ways() {
    let Some(hosts) = translated("nat", Some("10mbit")) else { return };
    for direction in ["", " --reverse"] {
        let call = format!("--to 10.78.1.1,10.78.2.1 --bytes 6MB{direction}");
        let outside = ["10.77.1.2", "10.77.2.2"];
        if direction.is_empty() {
            count(&hosts, &outside);
        }
        let before = outside.map(|address| counted(&hosts, address));
        transfer(&hosts, (NEAR, FAR), "--listen lo", &call, || ());
        for (address, before) in outside.into_iter().zip(before) {
            let packets = counted(&hosts, address) - before;
            assert!(packets > 400, "{packets} full packets with {address}{direction}");
        }
    }
}

/// A path carries data again at most some seconds after the translator on it has taken another address.
#[test]
fn a_translator_that_takes_another_address_is_followed_on_every_path() {
    for direction in ["", " --reverse"] {
        let Some(hosts) = translated("rebound", Some("10mbit")) else { return };
        let call = format!("--to 10.78.1.1,10.78.2.1 --bytes 24MB{direction}");
        let outside = ["10.77.1.3", "10.77.2.3"];
        count(&hosts, &outside);
        let sender = if direction.is_empty() { (NEAR, "up") } else { (FAR, "down") };
        let [_, served] = transfer(&hosts, (NEAR, FAR), "--listen lo", &call, || {
            for link in [2, 1] {
                let interface = format!("{}{link}", sender.1);
                let before = left_by(hosts.name(sender.0), &interface);
                wait_for(hosts.name(sender.0), &interface, before + 1_500_000);
                rebind(&hosts, link);
            }
        });
        let flow = if direction.is_empty() { &served["in"] } else { &served["out"] };
        assert_eq!(flow["bytes"], 24_000_000, "nothing is lost");
        for address in outside {
            let packets = counted(&hosts, address);
            assert!(packets > 400, "{packets} full packets with {address}{direction}");
        }
    }
}

/// The server has one address of its own, which means nothing outside, and is called by those of two uplinks.
#[test]
fn a_server_with_one_interface_behind_a_translator_is_reached() {
    let Some(hosts) = translated("one-armed", None) else { return };
    let nat = hosts.name(NAT);
    hosts.link([(NAT, "lan9", "192.168.9.1/24"), (NEAR, "arm", "192.168.9.2/24")], None);
    for link in [1, 2] {
        assert!(ip(&format!("-n {} route del default via 192.168.{link}.1", hosts.name(NEAR))));
    }
    assert!(ip(&format!("-n {} route add default via 192.168.9.1", hosts.name(NEAR))));
    let rules = [
        "nft add chain ip nat pre { type nat hook prerouting priority -100 ; }",
        "nft add rule ip nat pre iifname wan1 udp dport 9899 dnat to 192.168.9.2",
        "nft add rule ip nat pre iifname wan2 udp dport 9899 dnat to 192.168.9.2",
    ];
    assert!(rules.iter().all(|rule| run_in(nat, rule)));
    let call = "--from 10.77.1.1,10.77.2.1 --to 10.77.1.2,10.77.2.2 --bytes 5MB";
    let [called, served] = transfer(&hosts, (FAR, NEAR), "--listen 192.168.9.2", call, || ());
    assert_eq!((&called["out"]["bytes"], &served["in"]["bytes"]), (&5_000_000.into(), &5_000_000.into()));
    let active = |path: &&Value| path["state"] == "active" && path["chunks_sent"].as_u64() > Some(0);
    let paths = called["out"]["paths"].as_array().expect("paths");
    assert!(paths.iter().any(|path| active(&path)), "{paths:#?}");
}

#[test]
fn a_path_of_each_family_carries_data() {
    let Some(hosts) = Hosts::new("mixed", &["near", "nat", "far"]) else { return };
    hosts.link([(NEAR, "up1", "10.79.1.2/24"), (FAR, "down1", "10.79.1.1/24")], Some("10mbit"));
    hosts.link([(NEAR, "up2", "fd79::2/64"), (FAR, "down2", "fd79::1/64")], Some("10mbit"));
    let call = "--to 10.79.1.1,fd79::1 --bytes 6MB";
    let [_, served] = transfer(&hosts, (NEAR, FAR), "--listen 10.79.1.1,fd79::1", call, || ());
    for remote in ["10.79.1.1", "fd79::1"] {
        assert!(share_of(&served["in"]["paths"], remote) > 0.1, "{served:#}");
    }
}

#[test]
fn addresses_of_one_link_alone_are_named_with_their_interface() {
    let Some(hosts) = Hosts::new("link", &["near", "nat", "far"]) else { return };
    hosts.link([(NEAR, "up1", "fe80::2/64"), (FAR, "down1", "fe80::1/64")], Some("10mbit"));
    hosts.link([(NEAR, "up2", "10.79.2.2/24"), (FAR, "down2", "10.79.2.1/24")], Some("10mbit"));
    let listen = "--listen fe80::1%down1,10.79.2.1";
    let [_, served] = transfer(&hosts, (NEAR, FAR), listen, "--to fe80::1%up1,10.79.2.1 --bytes 6MB", || ());
    for remote in ["fe80::1", "10.79.2.1"] {
        assert!(share_of(&served["in"]["paths"], remote) > 0.1, "{served:#}");
    }
}
