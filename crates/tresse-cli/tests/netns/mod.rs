//! Hosts as network namespaces: needs root and the command `ip`, and says so where it cannot run.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs `ip` with these arguments.
pub(crate) fn ip(arguments: &str) -> bool {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    done.is_ok_and(|done| done.status.success())
}

/// Runs these commands of `ip`; whether all succeeded.
pub(crate) fn all_of_ip(commands: &[String]) -> bool {
    commands.iter().all(|command| ip(command))
}

/// Runs a command in the namespace `host`; its arguments have no spaces.
pub(crate) fn run_in(host: &str, command: &str) -> bool {
    ip(&format!("netns exec {host} {command}"))
}

/// Hosts by the ends of their names, gone afterwards. None where the system does not let namespaces be made, which is said.
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(test: &str, ends: &[&str]) -> Option<Self> {
        let id = std::process::id();
        let hosts = Hosts { names: ends.iter().map(|end| format!("tresse-{test}-{end}-{id}")).collect() };
        let made =
            |name: &String| ip(&format!("netns add {name}")) && ip(&format!("-n {name} link set lo up"));
        if hosts.names.iter().all(made) {
            return Some(hosts);
        }
        eprintln!("{test}: not run: network namespaces need root and the command `ip`");
        None
    }

    pub(crate) fn name(&self, position: usize) -> &str {
        &self.names[position]
    }

    /// A link between two hosts, which names an interface and an address with its prefix at each end; `rate` is that of both
    /// directions, if it is bounded.
    pub(crate) fn link(&self, ends: [(usize, &str, &str); 2], rate: Option<&str>) {
        let [(from, near, _), (to, far, _)] = ends;
        let (from, to) = (self.name(from), self.name(to));
        assert!(ip(&format!("-n {from} link add {near} type veth peer name {far} netns {to}")));
        for (host, interface, address) in ends {
            let host = self.name(host);
            // An address of IPv6 is to be used at once, and not once nobody has been found to have it too.
            let sure = if address.contains(':') { " nodad" } else { "" };
            let made = [
                format!("-n {host} addr add {address} dev {interface}{sure}"),
                format!("-n {host} link set {interface} up"),
            ];
            assert!(all_of_ip(&made), "{made:?}");
            if let Some(rate) = rate {
                let shape =
                    format!("tc qdisc add dev {interface} root tbf rate {rate} burst 32kbit latency 100ms");
                assert!(run_in(host, &shape), "tc(8) with tbf");
            }
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

/// What a command prints in the namespace `host`, if it succeeds.
pub(crate) fn said_in(host: &str, command: &[&str]) -> Option<String> {
    let done = Command::new("ip").args(["netns", "exec", host]).args(command).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

/// `tresse` in the namespace `host`.
pub(crate) fn tresse_in(host: &str, arguments: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, env!("CARGO_BIN_EXE_tresse")]).args(arguments.split(' '));
    command
}

/// Bytes that left by an interface.
pub(crate) fn left_by(host: &str, interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    said_in(host, &["cat", &file]).and_then(|said| said.trim().parse().ok()).expect("a number")
}

/// Asks until the server listens.
pub(crate) fn client(host: &str, call: &str) -> Output {
    let begun = Instant::now();
    loop {
        let done = tresse_in(host, call).output().expect("a client");
        if done.status.success() || begun.elapsed() > Duration::from_secs(60) {
            return done;
        }
    }
}
