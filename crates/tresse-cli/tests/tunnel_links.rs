//! A tunnel over two links of 20 Mbit/s: links that are unplugged, servers that are killed under load, small requests and
//! datagrams beside bulk. It needs root, and says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;
mod tunnels;
mod two_links;

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{Dir, FOREVER, Running, noise};
use tunnels::{echo, echoed, place};
use two_links::{QUEUE, TwoLinks, answer, request, secret};

/// An encrypted tunnel with a TCP entry at the near host.
fn tunnel(hosts: &TwoLinks, keys: &str, target: SocketAddr, options: &str) -> (Running, Running, SocketAddr) {
    let server = hosts.server(&format!("--tcp {target} {keys}"));
    let mut client = hosts.client(&format!("--tcp 127.0.0.1:0={target} {keys} {options}"));
    let entry = place(&client.line_with("connections to "), "connections to ");
    (server, client, entry)
}

/// Begins a transfer of some seconds that comes back to the near host.
fn transfer(hosts: &TwoLinks, entry: SocketAddr) -> JoinHandle<()> {
    TwoLinks::on(&hosts.near, move || {
        let data = noise(12_000_000);
        let stream = TwoLinks::connect(entry).expect("somebody listens");
        assert!(echoed(stream, data.clone()) == data, "every byte came back");
    })
}

#[test]
fn a_link_that_is_unplugged_breaks_nothing() {
    let Some(hosts) = TwoLinks::new("unplug") else { return };
    let dir = Dir::new("tunnel-unplug");
    let keys = secret(&dir.path("secret"));
    let (_server, _client, entry) = tunnel(&hosts, &keys, hosts.tcp_server(echo), "");
    let transfer = transfer(&hosts, entry);
    for (link, state) in [(1, "down"), (1, "up"), (2, "down"), (2, "up")] {
        thread::sleep(Duration::from_millis(700));
        hosts.plug(link, state);
    }
    transfer.join().expect("it came back");
}

/// Chunks keep their size, so what was in flight arrives in fragments only.
#[test]
fn links_that_become_narrow_break_nothing() {
    let Some(hosts) = TwoLinks::new("narrow") else { return };
    let dir = Dir::new("tunnel-narrow");
    let keys = secret(&dir.path("secret"));
    let (_server, _client, entry) = tunnel(&hosts, &keys, hosts.tcp_server(echo), "");
    let transfer = transfer(&hosts, entry);
    thread::sleep(Duration::from_secs(1));
    hosts.narrow(1, 1300);
    hosts.narrow(2, 1000);
    transfer.join().expect("it came back");
}

#[test]
fn the_log_names_a_path_that_fails_and_one_that_works_again() {
    let Some(hosts) = TwoLinks::new("named") else { return };
    let dir = Dir::new("tunnel-named");
    let keys = secret(&dir.path("secret"));
    let (mut server, mut client, entry) = tunnel(&hosts, &keys, hosts.tcp_server(echo), "");
    let used = TwoLinks::on(&hosts.near, move || {
        let data = noise(1_000_000);
        assert!(echoed(TwoLinks::connect(entry).expect("somebody listens"), data.clone()) == data);
    });
    used.join().expect("both paths work");
    for (state, says) in [("down", "has failed"), ("up", "works again")] {
        hosts.plug(1, state);
        let line = client.line_with("path 10.79.1.2 -> 10.79.1.1 ");
        assert!(line.contains(says), "{line}");
        let line = server.line_with("path 10.79.1.1 -> 10.79.1.2 ");
        assert!(line.contains(says), "{line}");
    }
}

#[test]
fn a_server_that_is_killed_under_load_is_replaced_and_the_client_left_alone() {
    let Some(hosts) = TwoLinks::new("killed") else { return };
    let dir = Dir::new("tunnel-killed");
    let keys = secret(&dir.path("secret"));
    let target = hosts.tcp_server(answer);
    let (old, mut client, entry) = tunnel(&hosts, &keys, target, "");
    let bulk = TwoLinks::on(&hosts.near, move || {
        let mut stream = TwoLinks::connect(entry).expect("somebody listens");
        stream.write_all(&[b'b'; 100]).expect("it is taken");
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    thread::sleep(Duration::from_secs(2));
    drop(old);
    let _new = hosts.server(&format!("--tcp {target} {keys}"));
    let back = Instant::now();
    let took = TwoLinks::on(&hosts.near, move || {
        // Those that were made before the silence was noticed are reset.
        while request(entry).is_err() {
            assert!(back.elapsed() < FOREVER, "no connection works");
        }
        back.elapsed()
    });
    let took = took.join().expect("it worked");
    client.line_with("begun anew");
    eprintln!("a new connection worked {:.2} s after the new server listened", took.as_secs_f64());
    bulk.join().expect("it was reset");
}

/// Programs that know nothing of tunnels speak TCP over a device, and links fail meanwhile.
#[test]
fn a_tun_device_carries_what_any_program_sends() {
    let Some(hosts) = TwoLinks::new("tun") else { return };
    if !std::path::Path::new("/dev/net/tun").exists() {
        return eprintln!("tun: not run: it needs /dev/net/tun");
    }
    let dir = Dir::new("tunnel-tun");
    let keys = secret(&dir.path("secret"));
    let target = hosts.tcp_server(echo);
    let mut server = hosts.server(&format!("--tun tresse0 --tcp {target} --connections 1 {keys}"));
    let mut client = hosts.client(&format!("--tun tresse0 --tcp 127.0.0.1:0 --connections 1 {keys}"));
    let entry = place(&client.line_with("connections to "), "connections to ");
    address_device(&hosts.near, "10.80.0.2/30", "tresse0");
    address_device(&hosts.far, "10.80.0.1/30", "tresse0");
    let (told, address) = std::sync::mpsc::channel();
    let _ = TwoLinks::on(&hosts.far, move || {
        let listener = std::net::TcpListener::bind("10.80.0.1:0").expect("the device's address");
        told.send(listener.local_addr().expect("bound")).expect("somebody waits");
        listener.incoming().flatten().for_each(|one| drop(thread::spawn(move || echo(one))));
    });
    let target = address.recv().expect("it is bound");
    let transfer = TwoLinks::on(&hosts.near, move || {
        let data = noise(6_000_000);
        let stream = TwoLinks::connect(target).expect("somebody listens");
        assert!(echoed(stream, data.clone()) == data, "every byte came back");
    });
    for (link, state) in [(1, "down"), (1, "up"), (2, "down"), (2, "up")] {
        thread::sleep(Duration::from_millis(700));
        hosts.plug(link, state);
    }
    transfer.join().expect("it came back");
    // The streams of the device are not those of connections.
    let beside = TwoLinks::on(&hosts.near, move || {
        echoed(TwoLinks::connect(entry).expect("somebody listens"), vec![1])
    });
    assert_eq!(beside.join().expect("it came back"), [1]);
    // 1,500 bytes less headers, in multiples of four: once packets of that size have arrived.
    for side in [&mut client, &mut server] {
        side.line_with("tresse0: MTU 1408");
    }
}

/// Gives a device that a tunnel makes an address, once it is there.
fn address_device(host: &str, address: &str, device: &str) {
    let begun = Instant::now();
    while !netns::ip(&format!("-n {host} addr add {address} dev {device}")) {
        assert!(begun.elapsed() < FOREVER, "there is no device");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(netns::ip(&format!("-n {host} link set {device} up")));
}

#[test]
fn a_device_serves_the_client_before_once_the_last_one_has_left() {
    let Some(hosts) = TwoLinks::new("tun-back") else { return };
    if !std::path::Path::new("/dev/net/tun").exists() {
        return eprintln!("tun-back: not run: it needs /dev/net/tun");
    }
    let dir = Dir::new("tunnel-tun-back");
    let keys = secret(&dir.path("secret"));
    let mut server = hosts.server(&format!("--tun tresse0 {keys}"));
    let _first = hosts.client(&format!("--tun tresse0 {keys}"));
    address_device(&hosts.far, "10.80.0.1/30", "tresse0");
    address_device(&hosts.near, "10.80.0.2/30", "tresse0");
    let done = Arc::new(AtomicU64::new(0));
    let sending = TwoLinks::on(&hosts.far, {
        let done = Arc::clone(&done);
        move || {
            let socket = UdpSocket::bind("10.80.0.1:0").expect("the device's address");
            while done.load(Ordering::Relaxed) == 0 {
                let _ = socket.send_to(&[7; 100], "10.80.0.2:9");
                thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let arrives_at = |device: &str| {
        let file = format!("/sys/class/net/{device}/statistics/rx_packets");
        let count = || {
            let said = netns::said_in(&hosts.near, &["cat", &file]);
            said.and_then(|said| said.trim().parse::<u64>().ok()).expect("a number")
        };
        let (before, begun) = (count(), Instant::now());
        while count() < before + 10 {
            assert!(begun.elapsed() < FOREVER, "nothing comes to {device}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    arrives_at("tresse0");
    let second = hosts.client(&format!("--tun tresse1 {keys}"));
    address_device(&hosts.near, "10.81.0.2/30", "tresse1");
    server.line_with("tresse0: its packets go to");
    arrives_at("tresse1");
    second.interrupt();
    second.finish();
    server.line_with("tresse0: its packets go to");
    arrives_at("tresse0");
    done.store(1, Ordering::Relaxed);
    sending.join().expect("it sent");
}

/// The 95th percentile.
fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 95 / 100]
}

/// 300 requests, one each 20 ms, and how long they took.
fn requests(hosts: &TwoLinks, entry: SocketAddr) -> Vec<Duration> {
    let all = TwoLinks::on(&hosts.near, move || {
        (0..300)
            .map(|_| {
                thread::sleep(Duration::from_millis(20));
                request(entry).expect("an answer")
            })
            .collect()
    });
    all.join().expect("they were answered")
}

/// A measurement, which a busy machine spoils.
#[test]
#[ignore = "measures delays for a minute"]
fn small_requests_beside_bulk_wait_for_one_queue() {
    let Some(hosts) = TwoLinks::new("small") else { return };
    let dir = Dir::new("tunnel-small");
    let keys = secret(&dir.path("secret"));
    for (how, class) in [("one class", String::new()), ("latency", "latency".to_owned())] {
        let (small, big) = (hosts.tcp_server(answer), hosts.tcp_server(answer));
        let class = if class.is_empty() { class } else { format!("--class {}={class}", small.port()) };
        let server = hosts.server(&format!("--tcp {small} --tcp {big} {keys}"));
        let entries = format!("--tcp 127.0.0.1:0={small} --tcp 127.0.0.1:0={big}");
        let mut client = hosts.client(&format!("{entries} {class} {keys}"));
        let lines = [client.line_with("connections to "), client.line_with("connections to ")];
        let entry = |target: SocketAddr| {
            let line = lines.iter().find(|line| line.contains(&format!("to {target}"))).expect("a line");
            place(line, "connections to ")
        };
        let (to_small, to_big) = (entry(small), entry(big));
        let idle = p95(requests(&hosts, to_small));
        let carried = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&carried);
        let bulk = TwoLinks::on(&hosts.near, move || {
            let mut stream = TwoLinks::connect(to_big).expect("somebody listens");
            stream.write_all(&[b'b'; 100]).expect("it is taken");
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                count.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        thread::sleep(Duration::from_secs(3));
        let (before, begun) = (carried.load(Ordering::Relaxed), Instant::now());
        let loaded = p95(requests(&hosts, to_small));
        let bytes = carried.load(Ordering::Relaxed) - before;
        let mbps = bytes as f64 * 8e-6 / begun.elapsed().as_secs_f64();
        drop((server, client));
        bulk.join().expect("it ended");
        eprintln!("{how}: p95 {idle:?} idle, {loaded:?} beside {mbps:.1} Mbit/s");
        assert!(loaded <= 2 * idle + QUEUE, "{how}: {loaded:?} beside bulk, {idle:?} idle");
        assert!(mbps > 30.0, "{how}: bulk carried {mbps:.1} Mbit/s");
    }
}

/// A measurement, which a busy machine spoils.
#[test]
#[ignore = "measures losses for ten seconds"]
fn datagrams_at_30_mbits_arrive() {
    let Some(hosts) = TwoLinks::new("udp") else { return };
    let dir = Dir::new("tunnel-udp");
    let keys = secret(&dir.path("secret"));
    let (told, address) = std::sync::mpsc::channel();
    let sink = TwoLinks::on(&hosts.far, move || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("not zero");
        told.send(socket.local_addr().expect("bound")).expect("somebody waits");
        let (mut buffer, mut seen) = ([0; 2048], std::collections::BTreeSet::new());
        let mut copies = 0;
        while let Ok(length) = socket.recv(&mut buffer) {
            assert_eq!(length, DATAGRAM, "boundaries are kept");
            let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
            copies += u64::from(!seen.insert(number));
        }
        (seen.len(), copies)
    });
    let target: SocketAddr = address.recv().expect("it is bound");
    let _server = hosts.server(&format!("--udp {target} {keys}"));
    let mut client = hosts.client(&format!("--udp 127.0.0.1:0 {keys}"));
    let entry = place(&client.line_with("datagrams to "), "datagrams to ");
    let source = TwoLinks::on(&hosts.near, move || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.connect(entry).expect("an address");
        let begun = Instant::now();
        let mut sent = 0_u32;
        while begun.elapsed() < Duration::from_secs(10) {
            let due = (begun.elapsed().as_secs_f64() * 30e6 / (8.0 * DATAGRAM as f64)) as u32;
            while sent < due {
                let mut datagram = [0; DATAGRAM];
                datagram[..4].copy_from_slice(&sent.to_be_bytes());
                let _ = socket.send(&datagram);
                sent += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        sent
    });
    let sent = source.join().expect("it sent");
    let (arrived, copies) = sink.join().expect("it heard");
    let lost = 100.0 * (1.0 - arrived as f64 / f64::from(sent));
    eprintln!("{sent} datagrams of {DATAGRAM} bytes at 30 Mbit/s: {lost:.2} % lost, {copies} doubled");
    assert_eq!(copies, 0);
    assert!(lost < 1.0, "{lost:.2} % lost");
}

const DATAGRAM: usize = 1200;
