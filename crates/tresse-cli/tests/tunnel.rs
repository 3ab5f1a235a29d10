//! `tresse tunnel` between TCP programs: what goes through, what waits for what, how connections and tunnels end.

#![allow(missing_docs, reason = "a test")]

mod common;
mod tunnels;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{FOREVER, Running, noise};
use tunnels::{THERE, Tunnel, echo, echoed, tcp_server};

#[test]
fn every_byte_of_every_connection_comes_back() {
    let tunnel = Tunnel::to(tcp_server(echo), "256");
    let all = noise(3_000_000);
    let connections: Vec<_> = (0..8)
        .map(|number| {
            let (stream, data) = (tunnel.connect(), all[number * 1000..].to_vec());
            thread::spawn(move || assert!(echoed(stream, data.clone()) == data))
        })
        .collect();
    connections.into_iter().for_each(|connection| connection.join().expect("it came back"));
}

#[test]
fn streams_are_used_again_and_further_connections_wait() {
    let tunnel = Tunnel::to(tcp_server(echo), "2");
    let connections: Vec<_> = (0..20_u8)
        .map(|number| {
            let stream = tunnel.connect();
            thread::spawn(move || assert_eq!(echoed(stream, vec![number; 100]), [number; 100]))
        })
        .collect();
    connections.into_iter().for_each(|connection| connection.join().expect("it came back"));
}

/// Longer than all buffers between the two programs.
const LONG: usize = 16 << 20;

#[test]
fn a_connection_that_nobody_reads_holds_no_other_up() {
    let tunnel = Tunnel::to(
        tcp_server(|mut connection| {
            let mut kind = [0];
            match connection.read_exact(&mut kind) {
                Ok(()) if kind == *b"L" => drop(connection.write_all(&vec![7; LONG])),
                _ => echo(connection),
            }
        }),
        "256",
    );
    let mut unread = tunnel.connect();
    unread.write_all(b"L").expect("it is taken");
    for round in 0..3 {
        let data = noise(500_000 + round);
        let mut stream = tunnel.connect();
        stream.write_all(b"e").expect("it is taken");
        assert!(echoed(stream, data.clone()) == data);
    }
    let mut all = Vec::new();
    unread.read_to_end(&mut all).expect("a clean end");
    assert_eq!(all.len(), LONG);
}

#[test]
fn a_connection_that_breaks_does_not_look_like_one_that_ends() {
    // What is closed with something unread is reset.
    let tunnel = Tunnel::to(
        tcp_server(|mut connection| {
            let _ = connection.read_exact(&mut [0]);
        }),
        "256",
    );
    let mut stream = tunnel.connect();
    stream.write_all(&noise(200_000)).expect("it is taken");
    assert!(stream.read_to_end(&mut Vec::new()).is_err(), "it was reset");
    // The same stream serves again.
    let mut stream = tunnel.connect();
    stream.write_all(b"x").expect("it is taken");
    assert_eq!(stream.read_to_end(&mut Vec::new()).ok(), Some(0));
}

/// The system says of each connection which timer runs.
#[cfg(target_os = "linux")]
#[test]
fn both_hosts_of_a_connection_that_says_nothing_are_asked_whether_they_are_there() {
    let target = tcp_server(echo);
    let tunnel = Tunnel::to(target, "256");
    let mut stream = tunnel.connect();
    stream.write_all(b"x").expect("it is taken");
    stream.read_exact(&mut [0]).expect("it came back");
    let kept_alive = |local: Option<u16>, remote: Option<u16>| {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
        table.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is = |word: &str, port: Option<u16>| {
                port.is_none_or(|port| word.ends_with(&format!(":{port:04X}")))
            };
            let [_, from, to, state, _, timer, ..] = words[..] else { return false };
            is(from, local) && is(to, remote) && state == "01" && timer.starts_with("02:")
        })
    };
    // An acknowledgement may be outstanding yet, whose timer is shown instead.
    let begun = Instant::now();
    while !(kept_alive(Some(tunnel.entry.port()), None) && kept_alive(None, Some(target.port()))) {
        assert!(begun.elapsed() < FOREVER, "no timer runs");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_target_that_refuses_is_named_and_the_tunnel_goes_on() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut tunnel = Tunnel::to(closed, "1");
    for _ in 0..2 {
        assert!(tunnel.connect().read_to_end(&mut Vec::new()).is_err());
    }
    let begins = tunnel.server.line();
    assert!(begins.contains("a tunnel begins"), "{begins}");
    let line = tunnel.server.line();
    assert!(line.contains(&closed.to_string()) && line.contains("refused"), "{line}");
}

#[test]
fn a_tunnel_that_ends_takes_its_connections_along_and_says_why() {
    let tunnel = Tunnel::with(tcp_server(echo), "256", &["--once"]);
    let mut stream = tunnel.connect();
    stream.write_all(b"x").expect("it is taken");
    stream.read_exact(&mut [0]).expect("it came back");
    tunnel.server.interrupt();
    assert_eq!(tunnel.server.finish().code, Some(130));
    let done = tunnel.client.finish();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains("in total limited by "), "what was measured is not lost: {done:?}");
    assert!(stream.read_to_end(&mut Vec::new()).is_err(), "it was reset");
}

#[cfg(unix)]
#[test]
fn a_tunnel_that_is_killed_does_not_look_like_the_end_of_its_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut tunnel = Tunnel::to(listener.local_addr().expect("bound"), "256");
    let mut program = tunnel.connect();
    program.write_all(b"x").expect("it is taken");
    let (mut target, _) = listener.accept().expect("the server connects");
    target.set_read_timeout(Some(FOREVER)).expect("not zero");
    target.read_exact(&mut [0]).expect("it came");
    target.write_all(b"y").expect("it is taken");
    program.read_exact(&mut [0]).expect("it came");
    for (killed, end) in [(&mut tunnel.client, &mut program), (&mut tunnel.server, &mut target)] {
        killed.signal("-KILL");
        let read = end.read(&mut [0]);
        assert!(read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset), "{read:?}");
    }
}

#[test]
fn a_server_that_comes_back_finds_the_client_waiting() {
    for while_down in ["wait", "refuse"] {
        let target = tcp_server(echo);
        let tunnel = Tunnel::with(target, "256", &["--while-down", while_down]);
        let mut old = tunnel.connect();
        old.write_all(b"x").expect("it is taken");
        old.read_exact(&mut [0]).expect("it came back");
        let Tunnel { server, mut client, entry, port } = tunnel;
        server.interrupt();
        assert_eq!(server.finish().code, Some(130));
        let line = client.line();
        assert!(line.contains("; trying again in 250ms"), "{line}");
        assert!(old.read_to_end(&mut Vec::new()).is_err(), "it was reset");
        if while_down == "refuse" {
            let mut meanwhile = TcpStream::connect(entry).expect("somebody listens");
            meanwhile.set_read_timeout(Some(FOREVER)).expect("not zero");
            assert!(meanwhile.read_to_end(&mut Vec::new()).is_err(), "it was reset");
        }
        let waiting = (while_down == "wait").then(|| TcpStream::connect(entry).expect("somebody listens"));
        let target = target.to_string();
        let args = ["tunnel", "server", "--listen", THERE, "--port", &port, "--tcp", &target];
        let _server = Running::start(&args);
        let mut lines = std::iter::repeat_with(|| client.line());
        assert!(lines.any(|line| line.contains("the tunnel is there again") || line.is_empty()));
        let stream = waiting.unwrap_or_else(|| TcpStream::connect(entry).expect("somebody listens"));
        stream.set_read_timeout(Some(FOREVER)).expect("not zero");
        let data = noise(100_000);
        assert_eq!(echoed(stream, data.clone()), data, "{while_down}");
    }
}
