//! `tresse tunnel` as a service: configuration files, reloads, metrics, status, logs, its service manager, servers that die.

#![cfg(unix)]
#![allow(missing_docs, reason = "a test")]

mod common;
mod tunnels;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Dir, FOREVER, Running, noise, text, tresse};
use serde_json::Value;
use tunnels::{HERE, Relay, THERE, connect, echo, echoed, place, server, tcp_server};

/// A client that a file describes; `more` are lines of it.
fn write_client(dir: &Dir, port: &str, more: &str) -> String {
    let list =
        |addresses: &str| addresses.split(',').map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
    let file = dir.path("client.toml");
    let lines = format!(
        "role = \"client\"\nfrom = [{}]\nto = [{}]\nport = {port}\n{more}\n",
        list(HERE),
        list(THERE)
    );
    fs::write(&file, lines).expect("writable");
    text(&file)
}

fn comes_back(entry: SocketAddr) -> bool {
    let data = noise(50_000);
    echoed(connect(entry), data.clone()) == data
}

#[test]
fn a_changed_configuration_holds_from_the_signal_on_and_connections_stay() {
    let dir = Dir::new("reload");
    let target = tcp_server(echo).to_string();
    let (_server, port) = server(&["--tcp", &target]);
    let file = write_client(&dir, &port, "tcp = \"127.0.0.1:0\"");
    let mut client = Running::start(&["tunnel", "run", &file]);
    let first = place(&client.line(), "connections to ");
    let mut stays = connect(first);
    stays.write_all(b"x").expect("it is taken");
    stays.read_exact(&mut [0]).expect("it came back");

    write_client(&dir, &port, &format!("tcp = \"127.0.0.1:0={target}\"\nconnections = 9"));
    client.signal("-HUP");
    let second = place(&client.line_with("connections to "), "connections to ");
    let line = client.line_with("restart");
    assert!(line.contains("connections: changes with a restart alone"), "{line}");
    client.line_with("read anew");
    assert!(comes_back(second));
    assert!(TcpStream::connect(first).is_err(), "nobody listens there any more");
    stays.write_all(b"y").expect("it is taken");
    stays.read_exact(&mut [0]).expect("it came back");

    fs::write(&file, "role = \"client\"\nnonsense = 1\n").expect("writable");
    client.signal("-HUP");
    let line = client.line_with("nonsense");
    assert!(line.contains("is no option of a client") && line.contains("stays as it is"), "{line}");
    assert!(comes_back(second));

    // Settings that a start refuses are refused now, and not when the host starts again.
    write_client(&dir, &port, "tcp = \"127.0.0.1:0\"\nset = { rto = \"1s\" }");
    client.signal("-HUP");
    let line = client.line_with("rto");
    assert!(line.contains("unknown setting") && line.contains("stays as it is"), "{line}");
    assert!(comes_back(second));

    // What runs since the start needs no restart.
    write_client(&dir, &port, "tcp = \"127.0.0.1:0\"");
    client.signal("-HUP");
    loop {
        let line = client.line();
        assert!(!line.contains("restart"), "{line}");
        if line.contains("read anew") {
            break;
        }
    }
}

/// A key of one's own, and its fingerprint.
fn key(dir: &Dir, name: &str) -> (String, String) {
    let file = text(&dir.path(name));
    let fingerprint = tresse(&["keygen", &file]).stdout.trim().to_owned();
    (file, fingerprint)
}

/// The number of reloads with this result, as the metrics say.
fn reloads(watched: SocketAddr, result: &str) -> u64 {
    let answer = http(watched, "/metrics");
    let name = format!("tresse_reloads_total{{result=\"{result}\"}} ");
    let count = answer.lines().find_map(|line| line.strip_prefix(&name)).expect("a sample");
    count.parse().expect("a number")
}

#[test]
fn a_client_whose_configuration_names_something_wrong_stays_as_it_is() {
    let dir = Dir::new("client-whole");
    let [(mine, of_client), (theirs, of_server)] = ["client.key", "server.key"].map(|name| key(&dir, name));
    let target = tcp_server(echo).to_string();
    let (_server, port) = server(&["--tcp", &target, "--key", &theirs, "--peer", &of_client]);
    let watched = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let write = |tcp: &str, key: &str, peer: &str, more: &str| {
        let keys = format!("key = {key:?}\npeer = {peer:?}\nmetrics = \"{watched}\"\n{more}");
        write_client(&dir, &port, &format!("tcp = [{tcp}]\n{keys}"))
    };
    let place_of = |port: u16| format!("\"127.0.0.1:{port}\"");
    let taken = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr().map(|at| (one, at.port())));
    let (_taken, taken) = taken.expect("a free port");
    let [first, second] = [free_port(), free_port()];
    let file = write(&place_of(first), &mine, &of_server, "");
    let mut client = Running::start(&["tunnel", "run", &file]);
    client.line_with("connections to ");
    let entry = SocketAddr::from(([127, 0, 0, 1], first));
    assert!(comes_back(entry));

    let nobody = text(&dir.path("nobody"));
    fs::write(&nobody, "sha256:x\n").expect("writable");
    let (new, both) = (place_of(second), format!("{}, {}", place_of(second), place_of(taken)));
    for (tcp, key, peer, more, says) in [
        (&new, "/no/such.key", &*of_server, "", "--key /no/such.key: "),
        (&new, &*file, &of_server, "", "client.toml: "),
        (&new, &mine, &*nobody, "", "--peer "),
        (&new, &mine, "/no/such/peers", "", "--peer /no/such/peers: "),
        (&new, &mine, &of_server, "key-log = \"/no/such/log\"", "--key-log /no/such/log: "),
        (&new, &mine, &of_server, "scheduler-so = \"/no/such.so\"", "--scheduler-so: /no/such.so: "),
        (&both, &mine, &of_server, "", &*format!("--tcp 127.0.0.1:{taken}: ")),
    ] {
        write(tcp, key, peer, more);
        client.signal("-HUP");
        let line = client.line();
        assert!(line.contains(says) && line.contains("client.toml: "), "{says}: {line}");
        assert!(line.ends_with("; everything stays as it is\n"), "{says}: {line}");
        assert!(comes_back(entry), "{says}");
        assert!(TcpStream::connect(("127.0.0.1", second)).is_err(), "{says}: nobody listens there");
    }
    assert_eq!((reloads(watched, "failed"), reloads(watched, "applied")), (7, 0));
    write(&new, &mine, &of_server, "");
    client.signal("-HUP");
    client.line_with("read anew");
    let entry = SocketAddr::from(([127, 0, 0, 1], second));
    assert!(comes_back(entry));
    assert!(TcpStream::connect(("127.0.0.1", first)).is_err(), "nobody listens there any more");
    // An entry takes the port of the one that it replaces.
    write(&format!("\"{entry}={target}\""), &mine, &of_server, "");
    client.signal("-HUP");
    client.line_with(&format!("to {target}"));
    client.line_with("read anew");
    assert!(comes_back(entry));
    assert_eq!((reloads(watched, "failed"), reloads(watched, "applied")), (7, 2));
}

#[test]
fn a_server_whose_configuration_names_something_wrong_stays_as_it_is() {
    let dir = Dir::new("server-whole");
    let secret = text(&dir.path("secret"));
    fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("writable");
    assert!(Command::new("chmod").args(["600", &secret]).status().is_ok_and(|done| done.success()));
    let [(mine, of_server), (theirs, of_client)] = ["server.key", "client.key"].map(|name| key(&dir, name));
    let file = text(&dir.path("server.toml"));
    let target = tcp_server(echo);
    let write = |tcp: &str, keys: &str| {
        let place = "role = \"server\"\nlisten = \"127.0.0.3\"\nport = 0\nmetrics = \"127.0.0.1:0\"";
        fs::write(&file, format!("{place}\ntcp = {tcp:?}\n{keys}")).expect("writable");
    };
    let pinned = |key: &str, peer: &str| format!("key = {key:?}\npeer = {peer:?}\n");
    let (there, nowhere) = (target.to_string(), "127.0.0.1:1");
    let shared = format!("secret-file = {secret:?}\n");
    let wrong = [
        (pinned("/no/such.key", &of_client), "--key /no/such.key: "),
        (pinned(&mine, "/no/such/peers"), "--peer /no/such/peers: "),
        (String::new(), "is given any more"),
    ];
    let keys = ["--key", &theirs, "--peer", &of_server];
    for (begun, of_client) in [(pinned(&mine, &of_client), &keys[..]), (shared, &["--secret-file", &secret])]
    {
        write(&there, &begun);
        let mut server = Running::start(&["tunnel", "run", &file]);
        let port = server.udp_port();
        let watched = place(&server.line_with("http://").replace("/metrics", " "), "http://");
        let call = ["tunnel", "client", "--to", "127.0.0.3", "--port", &port, "--tcp", "127.0.0.1:0"];
        let mut client = Running::start(&[&call[..], of_client].concat());
        let entry = place(&client.line_with("connections to "), "connections to ");
        assert!(comes_back(entry));
        server.line_with("a tunnel begins");
        for (keys, says) in &wrong {
            write(nowhere, keys);
            server.signal("-HUP");
            let line = server.line();
            assert!(line.contains(says) && line.contains("server.toml: "), "{line}");
            assert!(line.ends_with("; everything stays as it is\n"), "{line}");
            assert!(comes_back(entry), "{says}");
        }
        assert_eq!((reloads(watched, "failed"), reloads(watched, "applied")), (3, 0));
    }
}

/// A UDP server that answers with its name.
fn named(name: &'static [u8; 1]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        while let Ok((_, peer)) = socket.recv_from(&mut [0; 9]) {
            let _ = socket.send_to(name, peer);
        }
    });
    address
}

#[test]
fn datagrams_lead_elsewhere_from_the_signal_on_and_come_in_where_they_did() {
    let dir = Dir::new("retarget");
    let (_server, port) = server(&["--allow", "127.0.0.1:*"]);
    let write = |target: SocketAddr| write_client(&dir, &port, &format!("udp = \"127.0.0.1:0={target}\""));
    let mut client = Running::start(&["tunnel", "run", &write(named(b"1"))]);
    let entry = place(&client.line(), "datagrams to ");
    let program = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    program.set_read_timeout(Some(FOREVER)).expect("not zero");
    let asked = || {
        let mut name = [0; 1];
        program.send_to(b"?", entry).expect("it is taken");
        program.recv_from(&mut name).map(|_| name).expect("an answer")
    };
    assert_eq!(asked(), *b"1");
    write(named(b"2"));
    client.signal("-HUP");
    client.line_with("read anew");
    assert_eq!(asked(), *b"2");
}

/// The flow does not hold the port that the new entry needs.
#[test]
fn datagrams_come_in_at_all_addresses_from_the_signal_on_although_a_flow_is_open() {
    let dir = Dir::new("widened");
    let (_server, port) = server(&["--allow", "127.0.0.1:*"]);
    let target = named(b"1");
    let probe = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.local_addr());
    let entry = probe.expect("a free port").port();
    let write = |at: &str| write_client(&dir, &port, &format!("udp = \"{at}:{entry}={target}\""));
    let mut client = Running::start(&["tunnel", "run", &write("127.0.0.1")]);
    client.line_with("datagrams to ");
    let program = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    program.set_read_timeout(Some(FOREVER)).expect("not zero");
    let asked = |at: &str| {
        let mut name = [0; 1];
        program.send_to(b"?", (at, entry)).expect("it is taken");
        program.recv_from(&mut name).map(|_| name).expect("an answer")
    };
    for _ in 0..10 {
        assert_eq!(asked("127.0.0.1"), *b"1");
        write("0.0.0.0");
        client.signal("-HUP");
        let line = client.line();
        assert!(line.contains("datagrams to 0.0.0.0:"), "{line}");
        client.line_with("read anew");
        assert_eq!(asked("127.0.0.9"), *b"1");
        write("127.0.0.1");
        client.signal("-HUP");
        let line = client.line();
        assert!(line.contains("datagrams to 127.0.0.1:"), "{line}");
        client.line_with("read anew");
    }
}

#[test]
fn a_file_with_a_mistake_is_refused_in_one_line() {
    let dir = Dir::new("mistake");
    let file = text(&dir.path("wrong.toml"));
    for (lines, says) in [
        ("role = \"client\"\n", "--to"),
        ("role = \"cook\"\n", "role must be"),
        ("role = \"server\"\nlisten = \"127.0.0.1\"\ntcp = \"nowhere\"\n", "HOST:PORT"),
        ("role = \"client\"\nto = \"127.0.0.1\"\n", "|--socks <ADDRESS:PORT>|"),
        ("role = \"server\"\nlisten = \"127.0.0.1\"\n", "|--udp <HOST:PORT>|"),
        ("role = \"server\"\nlisten = \"192.0.2.1\"\ntcp = \"a:1\"\n", "192.0.2.1 is beyond this host"),
        (
            "role = \"server\"\nlisten = \"127.0.0.1\"\ntcp = \"a:1\"\nset = { rto = \"1s\" }\n",
            "unknown setting \"rto\"",
        ),
    ] {
        fs::write(&file, lines).expect("writable");
        let done = tresse(&["tunnel", "run", &file]);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("wrong.toml: ") && done.stderr.contains(says), "{done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    }
    assert_eq!(tresse(&["tunnel", "run", "/no/such/file"]).code, Some(2));
}

/// What a tunnel answers to HTTP.
fn http(place: SocketAddr, path: &str) -> String {
    let mut stream = connect(place);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn metrics_and_status_tell_what_happens() {
    let target = tcp_server(echo).to_string();
    let (mut server, port) = server(&["--tcp", &target, "--metrics", "127.0.0.1:0"]);
    let of_server = place(&server.line_with("http://").replace("/metrics", " "), "http://");
    let call = ["tunnel", "client", "--from", HERE, "--to", THERE, "--port", &port];
    let more = ["--tcp", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut client = Running::start(&[&call[..], &more].concat());
    let of_client = place(&client.line_with("http://").replace("/metrics", " "), "http://");
    let entry = place(&client.line_with("connections to "), "connections to ");
    assert!(comes_back(entry));
    for (watched, role) in [(of_server, "server"), (of_client, "client")] {
        let answer = http(watched, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        let sample = |name: &str| {
            let lines = body.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
        };
        assert_eq!(sample("tresse_connections_opened_total"), 1.0, "{body}");
        assert_eq!(sample("tresse_path_up"), 2.0, "{body}");
        assert!(sample("tresse_path_bytes_sent_total") >= 50_000.0, "{body}");
        assert!(sample("tresse_path_limited_seconds_total") > 0.0, "{body}");
        assert!(body.contains(&format!("tresse_running_seconds{{role=\"{role}\"}}")), "{body}");
        for line in body.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
            assert!(value.is_some() && line.starts_with("tresse_"), "{line}");
        }
        let done = tresse(&["tunnel", "status", &watched.to_string()]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.stdout.starts_with(role) && done.stdout.contains("in the clear"), "{done:?}");
        assert_eq!(done.stdout.matches(" -> ").count(), 2, "{done:?}");
        let done = tresse(&["tunnel", "status", &watched.to_string(), "--json"]);
        let state: Value = serde_json::from_str(&done.stdout).expect("JSON");
        assert_eq!(state["sessions"][0]["connections_opened"], 1, "{state}");
    }
    assert!(http(of_client, "/secrets").starts_with("HTTP/1.1 404 "));
    // Whoever says nothing keeps nobody out until its time is over. On a machine that stood still so long, it is over.
    let answered_at_once = || {
        let silent: Vec<TcpStream> = (0..16).map(|_| connect(of_client)).collect();
        assert!(http(of_client, "/metrics").starts_with("HTTP/1.1 200 "));
        let mut newest = silent.last().expect("there are some");
        newest.set_nonblocking(true).expect("a socket");
        newest.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!((0..3).any(|_| answered_at_once()), "it waited for others");
    let other = tcp_server(|mut connection| {
        let _ = connection.read(&mut [0; 1024]);
        let _ = connection.write_all(b"220 mail.example.org\r\n");
    });
    assert_eq!(tresse(&["tunnel", "status", &other.to_string()]).code, Some(1), "no tunnel's state");
    drop(client);
    assert_eq!(tresse(&["tunnel", "status", &of_client.to_string()]).code, Some(3));
}

#[test]
fn a_service_manager_hears_what_it_wants_to() {
    let dir = Dir::new("notify");
    let path = dir.path("socket");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(FOREVER)).expect("not zero");
    let file = dir.path("server.toml");
    fs::write(&file, "role = \"server\"\nlisten = \"127.0.0.1\"\nport = 0\ntcp = \"localhost:80\"\n")
        .expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tresse"));
    command.args(["tunnel", "run", &text(&file)]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    let mut server = Running::of(command, Vec::new());
    let heard = |wanted: &str| {
        let mut buffer = [0; 1024];
        loop {
            let length = manager.recv(&mut buffer).expect("a word");
            let said = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if said.starts_with(wanted) {
                return said;
            }
        }
    };
    heard("READY=1");
    heard("STATUS=listening on 127.0.0.1");
    heard("WATCHDOG=1");
    heard("WATCHDOG=1");
    server.signal("-HUP");
    assert!(heard("RELOADING=1").contains("\nMONOTONIC_USEC="));
    heard("READY=1");
    server.line_with("read anew");
    server.interrupt();
    heard("STOPPING=1");
    assert_eq!(server.finish().code, Some(130));
}

#[test]
fn the_unit_is_one_that_systemd_accepts() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/tresse-tunnel@.service");
    let unit = fs::read_to_string(unit).expect("a unit");
    // Systemd 252 and earlier ignore the type notify-reload, and then know neither readiness nor reloads.
    assert!(unit.contains("\nType=notify\n") && unit.contains("\nExecReload="), "{unit}");
    let dir = Dir::new("unit");
    let file = dir.path("tresse-tunnel@office.service");
    fs::write(&file, unit.replace("/usr/bin/tresse", env!("CARGO_BIN_EXE_tresse"))).expect("writable");
    let Ok(checked) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else {
        eprintln!("unit: skipped: systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!said.contains("tresse-tunnel@office.service"), "{said}");
}

#[test]
fn a_log_in_json_has_fields() {
    let mut server = Running::start(&[
        "tunnel",
        "server",
        "--listen",
        "127.0.0.1",
        "--port",
        "0",
        "--tcp",
        "localhost:80",
        "--log",
        "json",
        "--metrics",
        "127.0.0.1:0",
    ]);
    let lines = [server.line(), server.line()];
    let events = lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
    assert_eq!(events[0]["level"], "INFO");
    assert!(events[0]["message"].as_str().is_some_and(|message| message.starts_with("listening on ")));
    assert!(events[1]["place"].as_str().is_some_and(|place| place.starts_with("127.0.0.1:")), "{events:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_cannot_be_written_ends_no_tunnel() {
    let (_server, port) = server(&["--tcp", &tcp_server(echo).to_string()]);
    let entry = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>/dev/full", env!("CARGO_BIN_EXE_tresse")]);
    command.args(["tunnel", "client", "--from", HERE, "--to", THERE, "--port", &port]);
    command.args(["--tcp", &entry.to_string(), "--metrics", "127.0.0.1:0"]);
    let _client = Running::of(command, Vec::new());
    let begun = Instant::now();
    while TcpStream::connect(entry).is_err() {
        assert!(begun.elapsed() < FOREVER, "nobody listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(comes_back(entry));
}

#[test]
fn a_tunnel_that_is_down_refuses_connections_from_the_signal_on() {
    let dir = Dir::new("refuse");
    let (server, port) = server(&["--tcp", &tcp_server(echo).to_string()]);
    let write = |while_down: &str| {
        write_client(&dir, &port, &format!("tcp = \"127.0.0.1:0\"\nwhile-down = \"{while_down}\""))
    };
    let mut client = Running::start(&["tunnel", "run", &write("wait")]);
    let entry = place(&client.line(), "connections to ");
    assert!(comes_back(entry));
    server.interrupt();
    server.finish();
    client.line_with("trying again");
    let mut waits = connect(entry);
    write("refuse");
    client.signal("-HUP");
    assert!(waits.read_to_end(&mut Vec::new()).is_err(), "it was reset");
}

/// Encrypted: no word of the new server about the old association can be believed.
#[test]
fn a_server_that_was_killed_is_missed_and_its_successor_found() {
    let dir = Dir::new("killed");
    let secret = dir.path("secret");
    fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("writable");
    assert!(Command::new("chmod").args(["600", &text(&secret)]).status().is_ok_and(|done| done.success()));
    let keys = ["--secret-file", &text(&secret)];
    let target = tcp_server(echo).to_string();
    let options = [&["--tcp", &target], &keys[..]].concat();
    let (old, port) = server(&options);
    let call = ["tunnel", "client", "--from", HERE, "--to", THERE, "--port", &port, "--tcp", "127.0.0.1:0"];
    let mut client = Running::start(&[&call[..], &keys].concat());
    let entry = place(&client.line_with("connections to "), "connections to ");
    let mut before = connect(entry);
    before.write_all(b"x").expect("it is taken");
    before.read_exact(&mut [0]).expect("it came back");
    // Killed, not asked to end: nobody is told.
    drop(old);
    let new = ["tunnel", "server", "--listen", THERE, "--port", &port];
    let mut new = Running::start(&[&new[..], &options].concat());
    new.line_with("listening");
    let back = Instant::now();
    client.line_with("has said nothing");
    assert!(comes_back(entry));
    eprintln!("a new connection came back {:.1} s after the server", back.elapsed().as_secs_f64());
    client.line_with("begun anew");
    assert!(before.read_to_end(&mut Vec::new()).is_err(), "it was reset");
}

/// A server that stops for a while is not a new one: what was open goes on.
#[test]
fn a_server_that_stands_still_loses_no_connection() {
    let target = tcp_server(echo).to_string();
    let (server, port) = server(&["--tcp", &target]);
    let call = ["tunnel", "client", "--from", HERE, "--to", THERE, "--port", &port, "--tcp", "127.0.0.1:0"];
    let mut client = Running::start(&call);
    let entry = place(&client.line(), "connections to ");
    let mut stream = connect(entry);
    stream.write_all(b"x").expect("it is taken");
    stream.read_exact(&mut [0]).expect("it came back");
    server.signal("-STOP");
    client.line_with("has said nothing");
    std::thread::sleep(Duration::from_secs(1));
    server.signal("-CONT");
    client.line_with("heard again");
    let data = noise(100_000);
    assert_eq!(echoed(stream, data.clone()), data);
    assert!(comes_back(entry));
}

/// The server's packets arrive all the time, and so does its answer that it knows the session.
#[test]
fn a_session_that_the_server_hears_no_more_is_replaced() {
    let target = tcp_server(echo).to_string();
    let mut server =
        Running::start(&["tunnel", "server", "--listen", "127.0.0.3", "--port", "0", "--tcp", &target]);
    let port = server.udp_port();
    let relay = Relay::to(format!("127.0.0.3:{port}").parse().expect("an address"));
    let call = ["tunnel", "client", "--from", "127.0.0.1", "--to", Relay::PLACE, "--port", &port];
    let mut client = Running::start(&[&call[..], &["--tcp", "127.0.0.1:0", "--liveness", "500ms"]].concat());
    let entry = place(&client.line(), "connections to ");
    assert!(comes_back(entry));
    relay.lose_one_direction();
    client.line_with("hears the former tunnel no more");
    assert!(comes_back(entry));
}

#[test]
fn a_peer_that_is_no_longer_trusted_loses_its_session_at_once() {
    let dir = Dir::new("revoked");
    let [of_server, of_client, other] = ["server.key", "client.key", "other.key"].map(|name| key(&dir, name));
    let file = text(&dir.path("server.toml"));
    let target = tcp_server(echo);
    let write = |keys: &str| {
        let lines =
            format!("role = \"server\"\nlisten = \"127.0.0.3\"\nport = 0\ntcp = \"{target}\"\n{keys}");
        fs::write(&file, lines).expect("writable");
    };
    let keyed = |peer: &str| format!("key = {:?}\npeer = {peer:?}\n", of_server.0);
    write(&keyed(&of_client.1));
    let mut server = Running::start(&["tunnel", "run", &file]);
    let port = server.udp_port();
    let call = ["tunnel", "client", "--to", "127.0.0.3", "--port", &port, "--tcp", "127.0.0.1:0"];
    let keys = ["--key", &of_client.0, "--peer", &of_server.1];
    let mut client = Running::start(&[&call[..], &keys].concat());
    let entry = place(&client.line_with("connections to "), "connections to ");
    assert!(comes_back(entry));

    // A file without keys is no reason to trust nobody, or everybody.
    write("");
    server.signal("-HUP");
    let line = server.line_with("is given any more");
    assert!(line.contains("everything stays as it is"), "{line}");
    assert!(comes_back(entry));

    let mut open = connect(entry);
    open.write_all(b"x").expect("it is taken");
    open.read_exact(&mut [0]).expect("it came back");
    write(&keyed(&other.1));
    server.signal("-HUP");
    server.line_with("its key is no longer trusted");
    client.line_with("trying again");
    assert!(open.read_to_end(&mut Vec::new()).is_err(), "it was reset");
    let line = client.line_with("; trying again");
    assert!(line.contains("trust"), "{line}");
}

/// A port of this host that was free just now.
fn free_port() -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.expect("a free port").port()
}

#[test]
fn a_listener_whose_permission_comes_back_comes_back_too() {
    let dir = Dir::new("permission");
    let file = text(&dir.path("server.toml"));
    let (target, port) = (tcp_server(echo), free_port());
    let write = |more: &str| {
        let lines = format!(
            "role = \"server\"\nlisten = [\"127.0.0.3\", \"127.0.0.4\"]\nport = 0\ntcp = \"{target}\"\n{more}"
        );
        fs::write(&file, lines).expect("writable");
    };
    let allows = format!("allow-listen = \"127.0.0.1:{port}\"\n");
    write(&allows);
    let mut server = Running::start(&["tunnel", "run", &file]);
    let udp = server.udp_port();
    let mut client = tunnels::client(&udp, &["--remote", &format!("127.0.0.1:{port}={target}")]);
    let entry = place(&client.line_with("accepts TCP"), "connections at ");
    assert!(comes_back(entry));
    write("");
    server.signal("-HUP");
    let line = client.line_with("does not accept");
    assert!(line.contains("is not allowed any more"), "{line}");
    assert!(TcpStream::connect(entry).is_err(), "nobody listens there any more");
    write(&allows);
    server.signal("-HUP");
    assert_eq!(place(&client.line_with("accepts TCP"), "connections at "), entry);
    assert!(comes_back(entry));
}

#[test]
fn a_client_whose_listener_another_took_while_it_was_silent_asks_for_it_again() {
    let (_server, udp) = server(&["--allow-listen", "127.0.0.1:*"]);
    let (target, port) = (tcp_server(echo), free_port());
    let remote = format!("127.0.0.1:{port}={target}");
    let mut first = tunnels::client(&udp, &["--remote", &remote]);
    let entry = place(&first.line_with("accepts TCP"), "connections at ");
    first.signal("-STOP");
    let mut second = tunnels::client(&udp, &["--remote", &remote]);
    // It asks until the first one counts as silent.
    second.line_with("accepts TCP");
    first.signal("-CONT");
    first.line_with("another client has taken");
    second.interrupt();
    second.finish();
    assert_eq!(place(&first.line_with("accepts TCP"), "connections at "), entry);
    assert!(comes_back(entry));
}
