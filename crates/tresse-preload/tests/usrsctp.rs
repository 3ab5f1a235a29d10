//! Programs of others, unmodified, over tresse at one end, and the example programs of usrsctp, FreeBSD's stack in user space, at the
//! other. Those take the SCTP packets of a whole host: every test has a network namespace, which needs root.

#![cfg(target_os = "linux")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{Running, has, program, say, until_served};

/// A host with nothing else on it; gone with this value.
struct Host(String);

impl Host {
    /// Makes one for a test with these programs; nothing where this machine lacks something, which is said.
    fn new(test: &str, programs: &[&str]) -> Option<Self> {
        if !has(programs) {
            return None;
        }
        if !Path::new(EXAMPLES).is_dir() {
            say("SKIPPED: libusrsctp-examples is not installed (.ci/run installs it)");
            return None;
        }
        let host = Host(format!("tresse-usrsctp-{test}-{}", std::process::id()));
        if ip(&format!("netns add {}", host.0)) && ip(&format!("-n {} link set lo up", host.0)) {
            return Some(host);
        }
        say("SKIPPED: network namespaces need root and the command `ip`");
        None
    }

    /// A shell's line over tresse.
    fn over_tresse(&self, line: &str) -> Command {
        let inner = program("sh", TRESSE);
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0])
            .arg(inner.get_program())
            .args(inner.get_args())
            .args(["-c", line]);
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A shell's line with a program of usrsctp in it.
    fn over_usrsctp(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        // What it traces is of no use here, and a pipe that nobody reads would hold it up.
        let line = format!("cd {EXAMPLES}; {line} 2>/dev/null");
        command.args(["netns", "exec", &self.0, "timeout", "-k", "5", "100", "sh", "-c", &line]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// An example that serves whoever calls it by tresse's port.
    fn serves(&self, example: &str) -> Running {
        // What it prints for each message is not read.
        Running::start(self.over_usrsctp(&format!("exec ./{example} {TRESSE} {USRSCTP} >/dev/null")))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|done| done.status.success())
}

#[test]
fn an_echo_server_returns_what_socat_sends() {
    let Some(host) = Host::new("echo", &["socat"]) else { return };
    let _server = host.serves("echo_server");
    let expected: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    // What is sent ends when all has come back: behind a SHUTDOWN, which the end of it makes, the server may send nothing new.
    // It is called by the port that a process over tresse expects peers at, which is the server's here.
    let line = format!(
        "gate=$(mktemp -u); mkfifo $gate; {{ seq 20000; cat $gate; }} | socat STDIO SCTP4-CONNECT:127.0.0.1:7 | \
         {{ head -c {} | grep ''; came=$?; : >$gate; rm $gate; exit $came; }}",
        expected.len(),
    );
    let said = until_served(|| host.over_tresse(&line));
    assert!(said == expected, "{} bytes of {} came back", said.len(), expected.len());
}

#[test]
fn a_daytime_server_tells_socat_the_time() {
    let Some(host) = Host::new("daytime", &["socat"]) else { return };
    let _server = host.serves("daytime_server");
    let said = until_served(|| {
        host.over_tresse("socat -u SCTP4-CONNECT:127.0.0.1:13 STDOUT | grep -E '[0-9]+:[0-9]+:[0-9]+'")
    });
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_discard_server_takes_what_sctp_test_sends() {
    let Some(host) = Host::new("discard", &["sctp_test"]) else { return };
    let _server = host.serves("discard_server");
    for (port, case) in (7000..).zip(0..=5) {
        let line = format!("sctp_test -H 127.0.0.1 -P {port} -h 127.0.0.1 -p 9 -s -x 3 -c {case}");
        let said = until_served(|| host.over_tresse(&line));
        assert!(said.contains("Client: Sending packets.(3/3)"), "{said}");
    }
}

#[test]
fn a_client_hears_from_socat_what_it_has_said() {
    let Some(host) = Host::new("client", &["socat"]) else { return };
    let _server = Running::start(host.over_tresse("exec socat SCTP4-LISTEN:6001,fork PIPE"));
    // It ends with its input, which goes on until the answer has come, and fails where nobody listens yet.
    let line = format!(
        "heard=$(mktemp); for turn in 1 2 3 4 5 6 7 8 9 10; do \
         (echo hello; sleep 1) | ./client 127.0.0.1 6001 0 {USRSCTP} {TRESSE} >$heard; grep -qx hello $heard && break; done; \
         grep -x hello $heard"
    );
    assert_eq!(Running::start(host.over_usrsctp(&line)).finish(), "hello\n");
}

#[test]
fn tsctp_sends_to_socat() {
    let Some(host) = Host::new("tsctp", &["socat"]) else { return };
    let server = Running::start(host.over_tresse("socat -u SCTP4-LISTEN:6001 STDOUT | wc -c"));
    let line = format!("./tsctp -E {USRSCTP} -U {TRESSE} -p 6001 -l 1000 -n 2000 127.0.0.1");
    let sent = until_served(|| {
        host.over_usrsctp(&format!("{line} | grep 'Sending of 2000 messages of length 1000'"))
    });
    assert_eq!(sent.lines().count(), 1, "{sent}");
    assert_eq!(server.finish(), "2000000\n");
}

/// Directory of Debian's package libusrsctp-examples.
const EXAMPLES: &str = "/usr/lib/usrsctp";
/// UDP ports of the two stacks. A server of usrsctp has tresse's: a process over tresse that finds its port taken has another one,
/// and calls by that.
const TRESSE: u16 = 9899;
const USRSCTP: u16 = 9900;
