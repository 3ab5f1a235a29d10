//! The commands of README.md for operators, as they stand there: with free ports, with files and keys of the test in place of the
//! reader's, and with a short measurement.

#![allow(missing_docs, reason = "a test")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use common::{Dir, Running, same, text, tresse};

/// Words of the commands of the page whose words begin like this, without the program, in the order of the page.
fn commands(begin: &[&str]) -> Vec<Vec<String>> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("the page");
    let page = page.replace("\\\n", " ");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines = page.lines().filter_map(|line| line.strip_prefix("target/release/tresse ")).map(words);
    lines.filter(|words| begin.iter().zip(words).all(|(begin, word)| begin == word)).collect()
}

/// The only such command, with some of its words replaced, and with more.
fn command(begin: &[&str], replaced: &[(&str, &str)], more: &[&str]) -> Vec<String> {
    let mut found = commands(begin);
    assert_eq!(found.len(), 1, "commands that begin with {begin:?}");
    let mut words = found.remove(0);
    for (old, new) in replaced {
        let word = words.iter_mut().find(|word| word == old);
        *word.unwrap_or_else(|| panic!("no {old} in {begin:?}")) = (*new).to_owned();
    }
    words.extend(more.iter().map(|&word| word.to_owned()));
    words
}

fn start(words: &[String]) -> Running {
    Running::start(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn perf_measures_between_the_addresses_of_the_page() {
    let mut server = start(&command(&["perf", "server"], &[], &["--port", "0"]));
    let port = server.udp_port();
    let done = start(&command(&["perf", "client"], &[], &["--port", &port, "--duration", "300ms"])).finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("127.0.0.4 -> 127.0.0.2"), "both paths: {}", done.stdout);
}

#[test]
fn a_tunnel_carries_a_tcp_connection() {
    let target = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let there = target.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        let (mut stream, _) = target.accept().expect("a connection");
        stream.write_all(b"hello").expect("an open connection");
    });
    let mut server = start(&command(&["tunnel", "server"], &[("localhost:80", &there)], &["--port", "0"]));
    let port = server.udp_port();
    let here = [("127.0.0.1:8080", "127.0.0.1:0")];
    let mut client = start(&command(&["tunnel", "client"], &here, &["--port", &port]));
    let line = client.line_with("TCP connections to ");
    let entry = line.split("TCP connections to ").nth(1).and_then(|rest| rest.split(' ').next());
    let mut stream = TcpStream::connect(entry.expect("an address")).expect("the client listens");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "hello");
}

#[test]
fn a_file_is_sent_in_the_clear_on_one_machine_and_encrypted_with_keys() {
    let dir = Dir::new("readme");
    let (file, out, key) = (text(&dir.file("sent", 100_000)), text(&dir.out()), text(&dir.path("my.key")));
    let [receive] = &commands(&["recv"])[..] else { panic!("one receiver") };
    let [plain, keyed] = &commands(&["send"])[..] else { panic!("two senders") };
    let made = start(&command(&["keygen"], &[("my.key", &key)], &[])).finish();
    let print = made.stdout.split_whitespace().find(|word| word.starts_with("sha256:"));
    let print = print.unwrap_or_else(|| panic!("no fingerprint: {made:?}"));
    let filled = |words: &[String], more: &[&str]| {
        let replaced = |word: &String| match word.as_str() {
            "received" => out.clone(),
            "FILE" => file.clone(),
            "my.key" => key.clone(),
            "SERVER" => "127.0.0.1".to_owned(),
            "sha256:…" => print.to_owned(),
            _ => word.clone(),
        };
        let more = more.iter().map(|&word| word.to_owned());
        words.iter().map(replaced).chain(more).collect::<Vec<_>>()
    };
    for (send, keys) in [(plain, &[][..]), (keyed, &["--key", key.as_str(), "--peer", print])] {
        let mut receiver = start(&filled(receive, &[&["--once", "--port", "0"], keys].concat()));
        let port = receiver.udp_port();
        let sent = start(&filled(send, &["--port", &port])).finish();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        assert_eq!(receiver.finish().code, Some(0));
        assert!(same(&dir.path("sent"), &dir.out().join("sent")));
        fs::remove_file(dir.out().join("sent")).expect("it arrived");
    }
}

#[test]
fn every_command_of_the_page_is_in_a_test() {
    // The simulation is run by python/tests/test_readme.py, which has the numbers of the page too.
    let tested = ["sim", "perf", "tunnel", "recv", "send", "keygen"];
    for words in commands(&[]) {
        assert!(tested.contains(&words[0].as_str()), "{words:?}");
        assert_eq!(tresse(&[&words[0], "--help"]).code, Some(0), "{words:?}");
    }
}
