//! A tunnel under everything at once: links that fail and return, servers that are killed, keys that change. Not a byte may be
//! lost, doubled or altered, and memory stays flat. A minute, or `TRESSE_SOAK_SECONDS` (`make soak`: an hour). It needs root, and
//! says so where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;
mod tunnels;
mod two_links;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Dir, Running};
use netns::said_in;
use serde_json::Value;
use tunnels::{echo, place};
use two_links::{TwoLinks, secret};

/// What the programs have seen.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    bytes: AtomicU64,
    ended: AtomicU64,
    broken: AtomicU64,
}

/// The byte at `position` of connection `id`: neighbours, other connections and other positions differ.
fn byte(id: u64, position: u64) -> u8 {
    let mixed = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ position).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 56) as u8
}

/// One connection to a program that sends everything back: what comes is a beginning of what was sent, and all of it where
/// the connection ends well.
fn converse(entry: SocketAddr, id: u64, length: u64, tally: &Tally) {
    let Ok(stream) = TwoLinks::connect(entry) else { return };
    let mut writing = stream.try_clone().expect("a handle");
    let writer = thread::spawn(move || {
        let mut position = 0;
        while position < length {
            let piece: Vec<u8> = (position..length.min(position + 8192)).map(|at| byte(id, at)).collect();
            if writing.write_all(&piece).is_err() {
                return;
            }
            position += piece.len() as u64;
        }
        let _ = writing.shutdown(Shutdown::Write);
    });
    let (mut reading, mut position, mut buffer) = (stream, 0, vec![0; 1 << 16]);
    let clean = loop {
        match reading.read(&mut buffer) {
            Ok(0) => break true,
            Ok(read) => {
                for (at, &came) in (position..).zip(&buffer[..read]) {
                    assert_eq!(came, byte(id, at), "connection {id}, byte {at}");
                }
                position += read as u64;
                tally.bytes.fetch_add(read as u64, Ordering::Relaxed);
            }
            Err(error) => {
                assert_ne!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock,
                    "connection {id} hangs at {position}"
                );
                break false;
            }
        }
    };
    if clean {
        assert_eq!(position, length, "connection {id} ended well, and early");
        tally.ended.fetch_add(1, Ordering::Relaxed);
    } else {
        tally.broken.fetch_add(1, Ordering::Relaxed);
    }
    let _ = reading.shutdown(Shutdown::Both);
    writer.join().expect("it wrote");
}

/// Resident memory, KiB.
fn memory(process: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Times at which the links and the server fail, drawn from a seed, which is printed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn seconds() -> u64 {
    std::env::var("TRESSE_SOAK_SECONDS").ok().map_or(60, |text| text.parse().expect("a number of seconds"))
}

#[test]
fn nothing_is_lost_doubled_or_altered_whatever_fails() {
    let Some(hosts) = TwoLinks::new("soak") else { return };
    let dir = Dir::new("soak");
    let keys = format!("{} --set rekey_megabytes=1", secret(&dir.path("secret")));
    let target = hosts.tcp_server(echo);
    let mut server = hosts.server(&format!("--tcp {target} {keys}"));
    let mut client = hosts.client(&format!("--tcp 127.0.0.1:0 --metrics 127.0.0.1:0 {keys}"));
    let watched = place(&client.line_with("http://").replace("/metrics", " "), "http://").to_string();
    let entry = place(&client.line_with("connections to "), "connections to ");
    client.drain();
    server.drain();
    let tally = Arc::new(Tally::default());
    let talkers: Vec<_> = (0..6_u64)
        .map(|talker| {
            let tally = Arc::clone(&tally);
            TwoLinks::on(&hosts.near, move || {
                for round in 0.. {
                    if tally.over.load(Ordering::Relaxed) {
                        return;
                    }
                    let length = 1 + byte(talker, round) as u64 * if round % 8 == 0 { 8000 } else { 200 };
                    converse(entry, talker << 32 | round, length, &tally);
                    // A tunnel that is down resets at once what comes meanwhile.
                    thread::sleep(Duration::from_millis(5));
                }
            })
        })
        .collect();
    let whole = Duration::from_secs(seconds());
    let seed = 0x5eed_0000 + u64::from(std::process::id());
    eprintln!("seed {seed}, {} s", whole.as_secs());
    let (mut chance, begun) = (Chance(seed), Instant::now());
    let (mut kills, mut outages, mut rss) = (0, 0, Vec::new());
    let mut next_kill = Duration::from_secs(10);
    while begun.elapsed() < whole {
        thread::sleep(Duration::from_millis(500 + chance.below(1500)));
        let links = match chance.below(4) {
            0 => vec![1],
            1 => vec![2],
            2 => vec![1, 2],
            _ => Vec::new(),
        };
        links.iter().for_each(|link| hosts.plug(*link, "down"));
        thread::sleep(Duration::from_millis(300 + chance.below(1000)));
        links.iter().for_each(|link| hosts.plug(*link, "up"));
        outages += links.len();
        // The last third is left to one server, so that its keys change often.
        if begun.elapsed() > next_kill && begun.elapsed() < whole * 2 / 3 {
            next_kill = begun.elapsed() + Duration::from_secs(10 + chance.below(20));
            drop(server);
            server = hosts.server(&format!("--tcp {target} {keys}"));
            server.drain();
            kills += 1;
        }
        rss.push(memory(&client));
    }
    tally.over.store(true, Ordering::Relaxed);
    talkers.into_iter().for_each(|talker| talker.join().expect("no byte was wrong"));
    let tresse = env!("CARGO_BIN_EXE_tresse");
    let status = said_in(&hosts.near, &[tresse, "tunnel", "status", &watched, "--json"]).expect("a state");
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let generations = status["sessions"][0]["key_generation"].as_u64().expect("a number");
    let (ended, broken) = (tally.ended.load(Ordering::Relaxed), tally.broken.load(Ordering::Relaxed));
    let third = rss.len() / 3;
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or_default();
    let (middle, last) = (most(&rss[third..2 * third]), most(&rss[2 * third..]));
    eprintln!(
        "{} MB, {ended} connections ended well and {broken} broke; {outages} outages, {kills} servers killed, {generations} \
         sets of keys with the last; at most {middle} KiB, then {last} KiB resident",
        tally.bytes.load(Ordering::Relaxed) / 1_000_000,
    );
    assert!(ended > 50, "{ended} connections ended well");
    assert!(kills > 0 && outages > 0);
    assert!(generations > 1, "keys never changed");
    assert!(last <= middle + middle / 8 + 2048, "memory grows: {middle} KiB, then {last} KiB");
    drop(server);
}
