//! Hosts as network namespaces: needs root and the command `ip`, and says so where it cannot run.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs `ip` with these arguments.
pub(crate) fn ip(arguments: &str) -> bool {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    done.is_ok_and(|done| done.status.success())
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
