//! Captures of encrypted associations, read with the keys that were logged.

#![cfg(unix)]
#![allow(missing_docs, reason = "a test")]

mod common;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Dir, receiver, same, text, tresse};

/// Datagrams as they passed: whether towards the server, and what was in them.
type Passed = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Stands between a client and the server at `server`, and keeps a copy of all that passes.
fn relay(server: SocketAddr) -> (SocketAddr, Passed) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let (place, passed) = (socket.local_addr().expect("bound"), Passed::default());
    let copies = Arc::clone(&passed);
    thread::spawn(move || {
        let (mut buffer, mut client) = (vec![0; 65_536], None);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let onwards = from != server;
            if onwards {
                client = Some(from);
            }
            copies.lock().expect("no holder panics").push((onwards, buffer[..length].to_vec()));
            let to = if onwards { Some(server) } else { client };
            to.map(|to| socket.send_to(&buffer[..length], to));
        }
    });
    (place, passed)
}

/// A pcap file of IPv4 packets (LINKTYPE_RAW) with UDP to and from the port that `tresse dissect` looks for.
fn pcap(passed: &[(bool, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (number, (onwards, data)) in passed.iter().enumerate() {
        let (source, destination) = if *onwards { (50_000_u16, 9899) } else { (9899, 50_000) };
        let length = 28 + data.len();
        for word in [0, number as u32, length as u32, length as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45, 0]);
        file.extend((length as u16).to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for field in [source, destination, 8 + data.len() as u16, 0] {
            file.extend(field.to_be_bytes());
        }
        file.extend(data);
    }
    file
}

#[test]
fn a_capture_opens_with_the_logged_keys_and_without_them_stays_closed() {
    let dir = Dir::new("key-log");
    let secret = dir.path("secret");
    fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("writable");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("the owner may");
    let keys = ["--secret-file".to_owned(), text(&secret)];
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let listen = [&["--listen", "127.0.0.1", "--once"], &keys[..]].concat();
    let (server, port) = receiver(&dir.out(), &listen);
    let (place, passed) = relay(format!("127.0.0.1:{port}").parse().expect("an address"));
    let (file, log) = (dir.file("big", 300_000), text(&dir.path("keys.log")));
    let relayed = place.port().to_string();
    let call = ["send", &text(&file), "--from", "127.0.0.1", "--to", "127.0.0.1", "--port", &relayed];
    let done = tresse(&[&call[..], &keys, &["--key-log", &log]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.finish().code, Some(0));
    assert!(same(&file, &dir.out().join("big")));

    assert_eq!(fs::metadata(&log).expect("it was made").permissions().mode() & 0o777, 0o600);
    let lines = fs::read_to_string(&log).expect("text");
    assert_eq!(lines.lines().count(), 2, "a key for each direction");
    let capture = text(&dir.path("capture.pcap"));
    let passed = passed.lock().expect("no holder panics");
    fs::write(&capture, pcap(&passed)).expect("writable");
    let closed = tresse(&["dissect", &capture]);
    assert_eq!(closed.code, Some(0), "{closed:?}");
    let opened = tresse(&["dissect", &capture, "--key-log", &log]);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    let count =
        |done: &common::Done, what: &str| done.stdout.lines().filter(|line| line.contains(what)).count();
    let records = count(&closed, "epoch bits");
    assert!(records > 200, "{} packets, {records} of them records", passed.len());
    assert_eq!(
        (count(&opened, "decrypted "), count(&opened, "epoch bits")),
        (records, 0),
        "every record opens"
    );
    assert_eq!(count(&opened, "bad "), 0, "they are whole");
    assert!(count(&opened, " DATA ") > 200 && count(&opened, "SHUTDOWN COMPLETE") > 0);
    assert_eq!(count(&closed, "SHUTDOWN"), 0, "without keys nothing of that shows");

    // Keys of another association open nothing.
    let other: String = lines
        .lines()
        .map(|line| {
            let mut fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
            fields[2] = fields[2].chars().rev().collect();
            fields.join(" ") + "\n"
        })
        .collect();
    fs::write(&log, format!("# not these\n{other}")).expect("writable");
    let wrong = tresse(&["dissect", &capture, "--key-log", &log]);
    assert_eq!((wrong.code, count(&wrong, "decrypted "), count(&wrong, "epoch bits")), (Some(0), 0, records));
    fs::write(&log, "nonsense\n").expect("writable");
    let refused = tresse(&["dissect", &capture, "--key-log", &log]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("keys.log: line 1 is no line of a key log"), "{refused:?}");
}
