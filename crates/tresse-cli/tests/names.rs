//! Names of both sides that stand for nothing, or not yet.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;

use std::fs;

use common::{Dir, Running, text, tresse};

/// A name that the system refuses without asking anybody: a label has 63 bytes at most.
fn nobody() -> String {
    format!("{}.invalid", "a".repeat(64))
}

#[test]
fn a_name_that_is_not_found_is_no_mistake_of_the_command_line() {
    let (dir, nobody) = (Dir::new("names"), nobody());
    let file = text(&dir.file("file", 10));
    for call in [
        &["send", &file, "--to"][..],
        &["perf", "client", "--to"],
        &["doctor", "--to"],
        &["tunnel", "client", "--once", "--tcp", "127.0.0.1:0", "--to"],
    ] {
        let done = tresse(&[call, &[&nobody]].concat());
        assert_eq!(done.code, Some(3), "{call:?}: {done:?}");
        assert!(done.stderr.contains(&nobody) && done.stderr.lines().count() <= 2, "{call:?}: {done:?}");
        for wrong in ["no such name", "0.0.0.0", "a:b"] {
            let done = tresse(&[call, &[wrong]].concat());
            assert_eq!(done.code, Some(2), "{call:?} {wrong:?}: {done:?}");
        }
    }
}

#[test]
fn a_name_beside_one_that_is_found_is_left_out() {
    let (dir, nobody) = (Dir::new("some-names"), nobody());
    let (receiver, port) = common::receiver(&dir.out(), &["--listen", "127.0.0.1", "--once"]);
    let to = format!("{nobody},127.0.0.1");
    let done = tresse(&["send", &text(&dir.file("file", 10)), "--to", &to, "--port", &port]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains(&nobody) && done.stderr.contains("going on without it"), "{done:?}");
    assert_eq!(receiver.finish().code, Some(0));
}

#[test]
fn an_own_name_that_is_not_found_is_none_either() {
    let (dir, nobody) = (Dir::new("own-names"), nobody());
    let (file, out) = (text(&dir.file("file", 10)), text(&dir.0));
    for call in [
        &["send", &file, "--to", "127.0.0.1", "--from"][..],
        &["perf", "client", "--to", "127.0.0.1", "--from"],
        &["doctor", "--from"],
        &["tunnel", "client", "--once", "--tcp", "127.0.0.1:0", "--to", "127.0.0.1", "--from"],
        &["recv", "--out", &out, "--listen"],
        &["perf", "server", "--listen"],
        &["tunnel", "server", "--tcp", "127.0.0.1:7", "--listen"],
        &["peer", "server", "--listen"],
    ] {
        let done = tresse(&[call, &[&nobody]].concat());
        assert_eq!(done.code, Some(3), "{call:?}: {done:?}");
        assert!(done.stderr.contains(&nobody) && done.stderr.lines().count() <= 2, "{call:?}: {done:?}");
        let done = tresse(&[call, &[""]].concat());
        assert_eq!(done.code, Some(2), "{call:?}: {done:?}");
    }
}

/// Files that a host of the tests has in place of those in /etc.
struct Etc(String);

impl Etc {
    fn new(host: &str) -> Self {
        let etc = Etc(format!("/etc/netns/{host}"));
        fs::create_dir_all(&etc.0).expect("root may");
        fs::write(format!("{}/nsswitch.conf", etc.0), "hosts: files dns\n").expect("writable");
        // Nobody answers there.
        fs::write(format!("{}/resolv.conf", etc.0), "nameserver 127.0.0.1\n").expect("writable");
        etc.name_hosts("");
        etc
    }

    fn name_hosts(&self, lines: &str) {
        fs::write(format!("{}/hosts", self.0), format!("127.0.0.1 localhost\n{lines}")).expect("writable");
    }
}

impl Drop for Etc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_client_of_a_tunnel_waits_for_the_name_of_its_server_and_then_remembers_it() {
    let Some(hosts) = netns::Hosts::new("names", &["one"]) else { return };
    let host = hosts.name(0);
    let etc = Etc::new(host);
    let start = |arguments: &str| Running::of(netns::tresse_in(host, arguments), Vec::new());
    let serve = || start("tunnel server --listen 127.0.0.1 --port 9899 --tcp 127.0.0.1:7");
    let mut server = serve();
    server.udp_port();
    let mut client = start("tunnel client --to the-server --port 9899 --tcp 127.0.0.1:0");
    let line = client.line_with("trying again");
    assert!(line.contains("the-server"), "{line}");
    etc.name_hosts("127.0.0.1 the-server\n");
    let line = client.line_with("TCP connections to ");
    assert!(line.contains("go through the-server"), "{line}");
    // While nobody knows the name any more, the last address serves.
    etc.name_hosts("");
    server.interrupt();
    assert_eq!(server.finish().code, Some(130));
    client.line_with("trying again");
    let _server = serve();
    client.line_with("the tunnel is there again");
}
