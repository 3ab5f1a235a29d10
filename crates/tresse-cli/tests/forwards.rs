//! Forwards of a tunnel: several, reverse ones, SOCKS and UDP, and those that it refuses.

#![allow(missing_docs, reason = "a test")]

mod common;
mod tunnels;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use common::{FOREVER, Running, noise};
use tunnels::{HERE, THERE, client, connect, echo, echoed, place, server, tcp_server};

/// A TCP server that says its name and ends.
fn named(name: &'static [u8; 1]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || listener.incoming().flatten().for_each(|mut one| drop(one.write_all(name))));
    address
}

fn read_to_end(mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).map(|_| all)
}

/// Lines of a client until `count` entries were named.
fn entries(client: &mut Running, count: usize) -> Vec<String> {
    (0..count).map(|_| client.line()).collect()
}

#[test]
fn forwards_lead_where_they_say_and_nowhere_else() {
    let (first, second) = (named(b"1"), named(b"2"));
    let hidden = named(b"3");
    let (mut server, port) = server(&["--tcp", &first.to_string(), "--tcp", &second.to_string()]);
    let [to_second, to_hidden] = [second, hidden].map(|target| format!("127.0.0.1:0={target}"));
    let mut client = client(&port, &["--tcp", "127.0.0.1:0", "--tcp", &to_second, "--tcp", &to_hidden]);
    let lines = entries(&mut client, 3);
    let entry = |end: &str| {
        let line = lines.iter().find(|line| line.trim_end().ends_with(end)).expect("a line for each");
        place(line, "connections to ")
    };
    assert_eq!(read_to_end(connect(entry("127.0.0.4"))).expect("a clean end"), b"1");
    assert_eq!(read_to_end(connect(entry(&second.to_string()))).expect("a clean end"), b"2");
    assert!(read_to_end(connect(entry(&hidden.to_string()))).is_err(), "it is reset");
    assert!(server.line().contains("a tunnel begins"));
    let line = server.line();
    let expected = format!("{hidden} is not allowed to be reached: --allow {hidden} permits it");
    assert!(line.contains(&expected), "{line}");
}

/// A SOCKS5 request for a port of this host; answers the connection and the code of the reply.
fn socks(entry: SocketAddr, target: SocketAddr) -> (TcpStream, u8) {
    socks_to(entry, b"127.0.0.1", target.port())
}

/// The same for a host of any name.
fn socks_to(entry: SocketAddr, name: &[u8], port: u16) -> (TcpStream, u8) {
    let mut stream = connect(entry);
    stream.write_all(&[5, 2, 2, 0]).expect("it is taken");
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [5, 0], "no authentication");
    let mut request = vec![5, 1, 0, 3, name.len() as u8];
    request.extend(name);
    request.extend(port.to_be_bytes());
    stream.write_all(&request).expect("it is taken");
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!((reply[0], reply[3]), (5, 1));
    (stream, reply[1])
}

#[test]
fn programs_say_by_socks_where_they_want_to_go() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let target = tcp_server(echo);
    let allow = [target, closed].map(|place| place.to_string());
    let (_server, port) = server(&["--allow", &allow[0], "--allow", &allow[1]]);
    let mut client = client(&port, &["--socks", "127.0.0.1:0"]);
    let entry = place(&client.line(), "connections to ");
    let (stream, code) = socks(entry, target);
    assert_eq!(code, 0);
    let data = noise(300_000);
    assert!(echoed(stream, data.clone()) == data);
    assert_eq!(socks(entry, closed).1, 5, "connection refused");
    assert_eq!(socks(entry, named(b"x")).1, 2, "not allowed");
    // A name that no host has ends nothing but its own connection.
    let (other, code) = socks(entry, target);
    assert_eq!(code, 0);
    for name in [&b"a b"[..], b"a\x1b[2J", b"\xff\xfe", &[b'a'; 254], &[b'a'; 255], b""] {
        assert_eq!(socks_to(entry, name, target.port()).1, 4, "{name:?}");
    }
    assert!(echoed(other, data.clone()) == data);
    // What speaks no SOCKS is let go.
    let mut stranger = connect(entry);
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is taken");
    assert!(read_to_end(stranger).is_ok_and(|all| all.is_empty()) || connect(entry).write_all(b"").is_ok());
    assert_eq!(socks(entry, target).1, 0, "others are served");
}

/// As many as there are descriptors would leave none for anything else.
#[cfg(target_os = "linux")]
#[test]
fn programs_that_say_nothing_by_socks_take_a_part_of_the_descriptors_alone() {
    const DESCRIPTORS: usize = 100;
    let target = tcp_server(echo);
    let (_server, port) = server(&["--allow", &target.to_string()]);
    let mut command = std::process::Command::new("sh");
    let limited = format!("ulimit -Sn 50; ulimit -Hn {DESCRIPTORS}; exec \"$@\"");
    command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_tresse"), "tunnel", "client"]);
    command.args(["--from", HERE, "--to", THERE, "--port", &port, "--socks", "127.0.0.1:0"]);
    let mut client = Running::of(command, Vec::new());
    let entry = place(&client.line(), "connections to ");
    assert_eq!(socks(entry, target).1, 0);
    let silent: Vec<TcpStream> = (0..DESCRIPTORS).map(|_| connect(entry)).collect();
    let descriptors = format!("/proc/{}/fd", client.id());
    while std::fs::read_dir(&descriptors).expect("it runs").count() < DESCRIPTORS / 2 {
        thread::sleep(Duration::from_millis(5));
    }
    drop(silent);
    assert_eq!(socks(entry, target).1, 0, "there is room");
    client.interrupt();
    let done = client.finish();
    assert!(!done.stderr.contains("not accepted"), "{done:?}");
}

/// One line a second, whose numbers add up to all of them.
#[cfg(target_os = "linux")]
#[test]
fn connections_for_which_a_server_has_no_descriptors_fill_no_log() {
    let target = tcp_server(echo).to_string();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tresse"), "tunnel", "server"]);
    command.args(["--listen", THERE, "--port", "0", "--tcp", &target]);
    let mut server = Running::of(command, Vec::new());
    let port = server.udp_port();
    let mut client = client(&port, &["--tcp", "127.0.0.1:0"]);
    let entry = place(&client.line_with("connections to "), "connections to ");
    let begun = Instant::now();
    let (mut open, mut refused) = (Vec::new(), 0);
    while refused < 100 {
        let mut one = connect(entry);
        match one.write_all(b"x").and_then(|()| one.read_exact(&mut [0])) {
            Ok(()) => open.push(one),
            Err(_) => refused += 1,
        }
    }
    let (mut lines, mut told) = (0, 0);
    while told < refused {
        let line = server.line_with("Too many open files");
        let more = line.split_once("; ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
        (lines, told) = (lines + 1, told + more.unwrap_or(1));
    }
    assert_eq!(told, refused);
    assert!(lines <= 2 + begun.elapsed().as_secs(), "{lines} lines");
    drop(open);
}

#[test]
fn entries_that_nobody_uses_keep_no_connection_from_others() {
    let target = tcp_server(echo).to_string();
    let (_server, port) = server(&["--tcp", &target, "--allow-listen", "*:*", "--connections", "1"]);
    let tcp = ["--tcp", "127.0.0.1:0", "--tcp", "127.0.0.2:0"];
    let [one, other] = ["127.0.0.1:0", "127.0.0.2:0"].map(|place| format!("{place}={target}"));
    let remote = ["--remote", &one, "--remote", &other];
    let mut client = client(&port, &[&tcp[..], &remote, &["--connections", "1"]].concat());
    let lines = entries(&mut client, 4);
    for line in lines.iter().flat_map(|line| [line, line]) {
        let words = if line.contains("the server accepts") { "connections at " } else { "connections to " };
        assert_eq!(echoed(connect(place(line, words)), vec![7; 9]), [7; 9], "{line}");
    }
}

#[test]
fn a_server_listens_for_its_client_where_it_may() {
    let (_server, port) = server(&["--allow-listen", "127.0.0.1:*"]);
    let target = tcp_server(echo);
    let [near, far] = ["127.0.0.1:0", "127.0.0.9:0"].map(|place| format!("{place}={target}"));
    let mut client = client(&port, &["--remote", &near, "--remote", &far]);
    let lines = entries(&mut client, 2).concat();
    assert!(
        lines.contains("127.0.0.9:0 is not allowed: --allow-listen 127.0.0.9:0 permits it there"),
        "{lines}"
    );
    let entry = place(&lines, "accepts TCP connections at ");
    let data = noise(700_000);
    let connections: Vec<_> = (0..4)
        .map(|number| {
            let data = data[number * 1000..].to_vec();
            thread::spawn(move || assert!(echoed(connect(entry), data.clone()) == data))
        })
        .collect();
    connections.into_iter().for_each(|connection| connection.join().expect("it came back"));
}

/// A UDP server that sends everything back.
fn udp_echo() -> String {
    let echo = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let target = echo.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, peer)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], peer);
        }
    });
    target
}

/// A socket for datagrams to `entry`.
fn program(entry: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.connect(entry).expect("an address");
    socket.set_read_timeout(Some(FOREVER)).expect("not zero");
    socket
}

#[test]
fn flows_that_are_quiet_make_way_for_connections_and_other_flows() {
    let (tcp, udp) = (tcp_server(echo).to_string(), udp_echo());
    let (_server, port) = server(&["--tcp", &tcp, "--udp", &udp, "--connections", "2"]);
    let forever = ["--connections", "2", "--udp-idle", "1000s"];
    let mut client =
        client(&port, &[&["--tcp", "127.0.0.1:0", "--udp", "127.0.0.1:0"], &forever[..]].concat());
    let lines = entries(&mut client, 2);
    let entry = |words| place(lines.iter().find(|line| line.contains(words)).expect("a line"), words);
    for _ in 0..2 {
        for _ in 0..2 {
            let asks = program(entry("datagrams to "));
            asks.send(b"question").expect("it is taken");
            assert_eq!(asks.recv(&mut [0; 9]).expect("it comes back"), 8);
        }
        let stream = connect(entry("connections to "));
        assert_eq!(echoed(stream, vec![7; 9]), [7; 9]);
    }
}

#[test]
fn datagrams_keep_their_boundaries_and_flows_their_peers() {
    let target = udp_echo();
    // Also those of which a part is delivered before the rest is there.
    let in_parts = ["--set", "partial_delivery_point=4KiB"];
    let (_server, port) = server(&[&["--udp", &target], &in_parts[..]].concat());
    let mut client = client(&port, &[&["--udp", "127.0.0.1:0"], &in_parts[..]].concat());
    let entry = place(&client.line(), "datagrams to ");
    let flows: Vec<UdpSocket> = (0..3).map(|_| program(entry)).collect();
    let mut buffer = vec![0; 65_536];
    for length in [1, 0, 1200, 9000, 40_000] {
        for (number, flow) in flows.iter().enumerate() {
            let mut datagram = noise(length);
            datagram.iter_mut().for_each(|byte| *byte ^= number as u8);
            flow.send(&datagram).expect("it is taken");
            let back = flow.recv(&mut buffer).expect("it comes back");
            assert!(buffer[..back] == datagram[..], "{length} bytes of flow {number}");
        }
    }
}
