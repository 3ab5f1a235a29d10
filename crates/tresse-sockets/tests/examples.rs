//! The examples in C, compiled as their users would from what `make install-sockets` lays out, and run.

#![cfg(target_os = "linux")]

mod common;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::udp_port;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

/// The library of these tests, installed once into a directory of their own; answers where `pkg-config` finds it.
fn installed() -> &'static Path {
    static STAGE: OnceLock<PathBuf> = OnceLock::new();
    STAGE.get_or_init(|| {
        let stage = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        let library = common::library();
        // The rule with the library that is built already: a release takes minutes.
        let make = Command::new("make")
            .current_dir(root())
            .args(["install-sockets", "CARGO=true", "PREFIX=/usr"])
            .arg(format!("DESTDIR={}", stage.display()))
            .arg(format!("SOCKETS_BUILT={}", library.display()))
            .output()
            .expect("make");
        said(&make);
        let soname = "lib/libtresse_sockets.so.0";
        for file in [soname, "lib/libtresse_sockets.so", "lib/libtresse_sockets.a", "include/tresse_sctp.h"] {
            assert!(stage.join("usr").join(file).exists(), "{file}");
        }
        stage
    })
}

fn pkg_config(stage: &Path, words: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(words)
        .arg("tresse-sockets")
        .env("PKG_CONFIG_SYSROOT_DIR", stage)
        .env("PKG_CONFIG_PATH", stage.join("usr/lib/pkgconfig"))
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output()
        .expect("pkg-config");
    said(&output).split_whitespace().map(str::to_owned).collect()
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Library {
    Shared,
    Static,
}

fn compiled(stage: &Path, library: Library) -> PathBuf {
    let name = if library == Library::Static { "by_queue_static" } else { "by_queue" };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&program);
    compiler.arg(root().join("examples/sockets/by_queue.c"));
    match library {
        Library::Shared => {
            compiler.args(pkg_config(stage, &["--cflags", "--libs"]));
            compiler.arg(format!("-Wl,-rpath,{}", stage.join("usr/lib").display()));
        }
        Library::Static => {
            // Both libraries lie in one directory, where the linker would prefer the shared one.
            let words = pkg_config(stage, &["--cflags", "--static", "--libs"]);
            compiler
                .args(words.iter().map(|word| word.replace("-ltresse_sockets", "-l:libtresse_sockets.a")));
        }
    }
    said(&compiler.output().expect("a C compiler"));
    program
}

/// Bytes of each of the two streams, as a program has printed them.
fn bytes(text: &str) -> [u64; 2] {
    let numbers: Vec<u64> = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect();
    numbers.try_into().expect("two streams")
}

/// Runs both ends on loopback addresses, two on each side, behind two paths of unequal rates; the bytes of each stream, which are
/// the same at both ends.
fn run(program: &Path, mode: &str) -> [u64; 2] {
    let [near, far] = [udp_port(), udp_port()];
    let _paths = Paths::start(near.parse().expect("a number"), far.parse().expect("a number"));
    let end = |udp: &str| {
        let mut command = Command::new("timeout");
        command.arg("120").arg(program).env("TRESSE_UDP_PORT", udp);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let addresses = [NEAR, FAR].map(|side| side.map(|address| address.to_string()));
    let mut server = end(&far).args(["server", "7000"]).args(&addresses[1]).spawn().expect("it starts");
    let mut says = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    assert_eq!(says.next().expect("a line").expect("text"), "listening");
    let mut client = end(&near);
    client.args(["client", "7000", SECONDS, mode]).args(addresses.as_flattened());
    let given = bytes(&said(&client.output().expect("it runs")));
    let arrived: Vec<String> = says.map(|line| line.expect("text")).collect();
    said(&server.wait_with_output().expect("it ends"));
    assert_eq!(given, bytes(&arrived.join("\n")), "{mode}");
    given
}

#[test]
fn a_program_needs_nothing_but_the_static_library() {
    let program = compiled(installed(), Library::Static);
    let [slow, fast] = run(&program, "in_turn");
    assert!(slow > 0 && fast > 0, "{slow} and {fast} bytes");
}

/// Figure 6 has paths of 10 and of 25 Mbit/s, a tenth of which any machine carries. Fed in turn, the stream on the fast path gets no
/// more than the one on the slow path; fed by its queue, it comes to what its path carries: 2.5 times as much, less on a machine
/// that is busy elsewhere.
#[test]
fn streams_go_as_fast_as_their_paths_where_they_are_fed_by_their_queues() {
    let stage = installed();
    let program = compiled(stage, Library::Shared);
    let [slow, fast] = run(&program, "in_turn");
    assert!(slow > 0 && slow.abs_diff(fast) <= 1400, "in turn: {slow} and {fast} bytes");
    let [slow, fast] = run(&program, "by_queue");
    let share = fast as f64 / slow as f64;
    println!("by queue: {slow} and {fast} bytes, {share:.2} times as many");
    assert!(slow > 0 && share > 1.5, "by queue: {slow} and {fast} bytes, {share:.2} times as many");
}

const SECONDS: &str = "5";
const NEAR: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
const FAR: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 3), Ipv4Addr::new(127, 0, 0, 4)];
/// Bits a second towards each address of the server.
const RATES: [u64; 2] = [1_000_000, 2_500_000];
/// Packets that wait for a path at most, and how long one is on the way, both as in the paper.
const QUEUE: usize = 100;
const DELAY: Duration = Duration::from_millis(10);

/// Two paths between the addresses of both ends. Each end finds the other at a UDP port that is a path's.
struct Paths {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Paths {
    /// The client has UDP port `near`, and the server `far`.
    fn start(near: u16, far: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hers = FAR.map(|address| bound(address, near));
        let his = NEAR.map(|address| bound(address, far));
        let mut threads = Vec::new();
        for (side, rate) in RATES.into_iter().enumerate() {
            // From the client to one address of the server, whatever address it comes from.
            let (from, to) = (share(&hers[side]), [&his[0], &his[1]].map(share));
            let stopped = Arc::clone(&stop);
            threads.push(thread::spawn(move || {
                carry(&from, Some(rate), &stopped, |packet, source| {
                    let at = NEAR.iter().position(|&address| IpAddr::V4(address) == source.ip());
                    let _ = to[at.expect("the client's")].send_to(packet, (FAR[side], far));
                });
            }));
            let (from, to) = (share(&his[side]), [&hers[0], &hers[1]].map(share));
            let stopped = Arc::clone(&stop);
            threads.push(thread::spawn(move || {
                carry(&from, None, &stopped, |packet, source| {
                    let at = FAR.iter().position(|&address| IpAddr::V4(address) == source.ip());
                    let _ = to[at.expect("the server's")].send_to(packet, (NEAR[side], near));
                });
            }));
        }
        Paths { stop, threads }
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn bound(address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((address, port)).expect("nobody else has it");
    socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
    socket
}

fn share(socket: &UdpSocket) -> UdpSocket {
    socket.try_clone().expect("a descriptor")
}

/// Gives what comes to `from` to `deliver`, each packet when it has passed a link of this rate behind those before it.
fn carry(from: &UdpSocket, rate: Option<u64>, stop: &AtomicBool, deliver: impl Fn(&[u8], SocketAddr)) {
    let mut on_the_way: VecDeque<(Instant, Vec<u8>, SocketAddr)> = VecDeque::new();
    let (mut room, mut free) = ([0; 65_536], Instant::now());
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, source)) = from.recv_from(&mut room) {
            let waiting = on_the_way.iter().filter(|(due, ..)| *due > Instant::now() + DELAY).count();
            if waiting < QUEUE {
                let time = rate.map_or(0, |rate| len as u64 * 8 * 1_000_000_000 / rate);
                free = free.max(Instant::now()) + Duration::from_nanos(time);
                on_the_way.push_back((free + DELAY, room[..len].to_vec(), source));
            }
        }
        while on_the_way.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
            let (_, packet, source) = on_the_way.pop_front().expect("it is there");
            deliver(&packet, source);
        }
    }
}
