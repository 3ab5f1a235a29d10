//! Hosts whose addresses change under associations with a peer that takes no changes of addresses, in network namespaces: needs
//! root, `ip` and `tc`, and says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use common::{Dir, FOREVER, Running, same, text};
use netns::{Hosts, all_of_ip, left_by, tresse_in};
use serde_json::Value;

const NEAR: usize = 0;
const FAR: usize = 1;
const TO: &str = "--to 10.78.1.1,10.78.2.1 --insecure";
const PLAIN: &str = "--set authentication=false --insecure";

/// A host with two uplinks of 8 Mbit/s, slow enough to change addresses while they carry something, and one behind both.
fn hosts(test: &str) -> Option<Hosts> {
    let hosts = Hosts::new(test, &["near", "far"])?;
    for link in [1, 2] {
        let near = (NEAR, &*format!("up{link}"), &*format!("10.77.{link}.2/24"));
        let far = (FAR, &*format!("down{link}"), &*format!("10.77.{link}.1/24"));
        hosts.link([near, far], Some("8mbit"));
        let routes = [
            format!("-n {} addr add 10.78.{link}.1/32 dev lo", hosts.name(FAR)),
            format!("-n {} route add default via 10.77.{link}.1 metric {link}00", hosts.name(NEAR)),
        ];
        assert!(all_of_ip(&routes), "{routes:?}");
    }
    Some(hosts)
}

/// The near host's address on a link becomes the next one, as after a new lease of DHCP.
fn replace(hosts: &Hosts, link: u8, last: u8) {
    let (near, next) = (hosts.name(NEAR), last + 1);
    let commands = [
        format!("-n {near} addr del 10.77.{link}.{last}/24 dev up{link}"),
        format!("-n {near} addr add 10.77.{link}.{next}/24 dev up{link}"),
        format!("-n {near} route add default via 10.77.{link}.1 metric {link}00"),
    ];
    assert!(all_of_ip(&commands), "{commands:?}");
}

fn wait_for(hosts: &Hosts, bytes: u64) {
    let (begun, before) = (Instant::now(), left_by(hosts.name(NEAR), "up1"));
    while left_by(hosts.name(NEAR), "up1") < before + bytes {
        assert!(begun.elapsed() < FOREVER, "nothing leaves");
        thread::sleep(Duration::from_millis(20));
    }
}

fn running(hosts: &Hosts, host: usize, call: &str) -> Running {
    Running::of(tresse_in(hosts.name(host), call), Vec::new())
}

#[test]
fn a_measurement_goes_on_over_a_new_association() {
    let Some(hosts) = hosts("moved-perf") else { return };
    let mut server = running(&hosts, FAR, &format!("perf server --listen lo {PLAIN}"));
    server.line_with("listening on ");
    let mut client = running(&hosts, NEAR, &format!("perf client {TO} --bytes 12MB --json"));
    client.line_with("from 10.77.1.2 (up1), 10.77.2.2 (up2)");
    wait_for(&hosts, 1_000_000);
    // One is replaced while the other still works, and then both at once.
    replace(&hosts, 2, 2);
    client.line_with("a new one goes on from 10.77.1.2,10.77.2.3");
    wait_for(&hosts, 500_000);
    replace(&hosts, 2, 3);
    replace(&hosts, 1, 2);
    client.line_with("a new one goes on from");
    let done = client.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let former = document["former"].as_array().expect("a list");
    assert!(former.len() >= 2 && former[0]["from"][1] == "10.77.2.2", "{document:#}");
    let before: u64 = former.iter().filter_map(|one| one["acknowledged_bytes"].as_u64()).sum();
    let all = before + document["out"]["bytes"].as_u64().expect("a number");
    assert!((12_000_000..12_000_000 + former.len() as u64).contains(&all), "{all}: {document:#}");
    let paths = document["out"]["paths"].as_array().expect("paths");
    assert!(paths.iter().any(|path| path["local"] == "10.77.1.3"), "{paths:#?}");
}

#[test]
fn a_file_goes_on_over_a_new_association() {
    for once in ["", " --once"] {
        let Some(hosts) = hosts("moved-send") else { return };
        let dir = Dir::new("moved-send");
        let file = dir.file("file", 8_000_000);
        let call = format!("recv --listen lo --out {} {PLAIN}{once}", text(&dir.out()));
        let mut receiver = running(&hosts, FAR, &call);
        receiver.line_with("listening on ");
        let mut sender = running(&hosts, NEAR, &format!("send {} {TO} --json", text(&file)));
        sender.line_with("from 10.77.1.2 (up1), 10.77.2.2 (up2)");
        wait_for(&hosts, 1_000_000);
        replace(&hosts, 1, 2);
        // A receiver that ends after one sender notices that it comes back where the old association can tell it.
        if once.is_empty() {
            replace(&hosts, 2, 2);
        }
        sender.line_with("a new one goes on from");
        let done = sender.finish();
        assert_eq!(done.code, Some(0), "{done:?}");
        let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
        assert!(document["resumed_bytes"].as_u64() > Some(0), "{document:#}");
        assert!(same(&file, &dir.out().join("file")));
        if once.is_empty() {
            receiver.interrupt();
        }
        let done = receiver.finish();
        assert_eq!(done.code, if once.is_empty() { Some(130) } else { Some(0) }, "{done:?}");
    }
}

#[test]
fn a_tunnel_is_there_again_over_a_new_association() {
    let Some(hosts) = hosts("moved-tunnel") else { return };
    let call = format!("tunnel server --listen lo {PLAIN} --allow 127.0.0.1:7000");
    let mut server = running(&hosts, FAR, &call);
    server.line_with("listening on ");
    server.drain();
    let echo = thread_in(hosts.name(FAR), || {
        let listener = TcpListener::bind("127.0.0.1:7000").expect("a free port");
        thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut bytes = [0; 4];
                    while connection.read_exact(&mut bytes).is_ok() && connection.write_all(&bytes).is_ok() {}
                });
            }
        });
    });
    echo.join().expect("it listens");
    let mut client =
        running(&hosts, NEAR, &format!("tunnel client {TO} --tcp 127.0.0.1:7001=127.0.0.1:7000"));
    client.line_with("127.0.0.1:7001");
    let entry: SocketAddr = "127.0.0.1:7001".parse().expect("an address");
    let mut open = connected(&hosts, entry);
    assert!(echoes(&mut open));
    // While the other address works, an open connection is not cut.
    replace(&hosts, 2, 2);
    thread::sleep(Duration::from_secs(3));
    assert!(echoes(&mut open));
    drop(open);
    client.line_with("a new one goes on from");
    let mut open = connected(&hosts, entry);
    assert!(echoes(&mut open));
    replace(&hosts, 2, 3);
    replace(&hosts, 1, 2);
    client.line_with("a new one goes on from");
    // The former connection ends, and is not left to wait.
    assert!(!echoes(&mut open));
    assert!(echoes(&mut connected(&hosts, entry)));
}

fn echoes(connection: &mut std::net::TcpStream) -> bool {
    let mut back = [0; 4];
    connection.write_all(b"ping").is_ok() && connection.read_exact(&mut back).is_ok() && &back == b"ping"
}

fn connected(hosts: &Hosts, entry: SocketAddr) -> std::net::TcpStream {
    let connecting = thread_in(hosts.name(NEAR), move || std::net::TcpStream::connect(entry));
    let stream = connecting.join().expect("a thread").expect("the tunnel accepts");
    stream.set_read_timeout(Some(FOREVER)).expect("a time");
    stream
}

/// Does `work` on a thread in the namespace `host`, whose sockets it opens.
fn thread_in<T: Send + 'static>(
    host: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let namespace = std::fs::File::open(std::path::Path::new("/run/netns").join(host)).expect("it was made");
    thread::spawn(move || {
        use std::os::fd::AsFd;
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).expect("root may");
        work()
    })
}
