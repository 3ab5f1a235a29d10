//! The examples in C, compiled as their users would from what `make install-sockets` lays out, and run.

#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// Installs the library of these tests into a directory of their own; answers where `pkg-config` finds it.
fn installed() -> PathBuf {
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
    for file in ["lib/libtresse_sockets.so", "lib/libtresse_sockets.a", "include/tresse_sctp.h"] {
        assert!(stage.join("usr").join(file).exists(), "{file}");
    }
    stage
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

fn compiled(stage: &Path) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("by_queue");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&program);
    compiler.arg(root().join("examples/sockets/by_queue.c")).args(pkg_config(stage, &["--cflags", "--libs"]));
    compiler.arg(format!("-Wl,-rpath,{}", stage.join("usr/lib").display()));
    said(&compiler.output().expect("a C compiler"));
    program
}

/// Bytes of each of the two streams, as a program has printed them.
fn bytes(text: &str) -> [u64; 2] {
    let numbers: Vec<u64> = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect();
    numbers.try_into().expect("two streams")
}

/// Runs both ends on loopback addresses, two on each side.
fn run(program: &Path, mode: &str) {
    let udp = udp_port();
    let end = || {
        let mut command = Command::new("timeout");
        command.arg("60").arg(program).env("TRESSE_UDP_PORT", &udp);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut server = end().args(["server", "7000", "127.0.0.3", "127.0.0.4"]).spawn().expect("it starts");
    let mut says = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    assert_eq!(says.next().expect("a line").expect("text"), "listening");
    let addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
    let client = end().args(["client", "7000", "1", mode]).args(addresses).output().expect("it runs");
    let given = bytes(&said(&client));
    let arrived: Vec<String> = says.map(|line| line.expect("text")).collect();
    said(&server.wait_with_output().expect("it ends"));
    let arrived = bytes(&arrived.join("\n"));
    assert_eq!(given, arrived, "{mode}");
    assert!(given.iter().all(|&bytes| bytes > 0), "{given:?}");
    if mode == "in_turn" {
        assert!(given[0].abs_diff(given[1]) <= 1400, "{given:?}");
    }
}

#[test]
fn the_program_of_figure_6_feeds_streams_by_their_queues_or_in_turn() {
    let stage = installed();
    let program = compiled(&stage);
    run(&program, "by_queue");
    run(&program, "in_turn");
}
