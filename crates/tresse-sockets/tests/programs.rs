//! Programs in C that use the library through its header, as a program for the kernel's SCTP would: compiled with `cc`, linked
//! with the shared object, and run over UDP and over raw IP, in both modes.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where cargo has put the shared object for these tests.
fn library() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        // Tests are linked with the crate as Rust: the shared object is beside the directory of the tests.
        let own = std::env::current_exe().expect("a path");
        let target = own.parent().and_then(Path::parent).expect("target/debug").to_owned();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--package", "tresse-sockets", "--lib"])
            .env("CARGO_TARGET_DIR", target.parent().expect("target"))
            .status();
        assert!(built.expect("cargo").success(), "the library builds");
        assert!(target.join("libtresse_sockets.so").exists(), "{}", target.display());
        target
    })
}

/// Compiles `tests/c/<name>.c`.
fn compiled(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Wno-unused-function",
            "-Werror",
            "-O1",
            "-g",
            "-pthread",
            "-o",
        ])
        .arg(&program)
        .arg(root.join("tests/c").join(name).with_extension("c"))
        .arg("-I")
        .arg(root.join("../../include"))
        .arg("-L")
        .arg(library())
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .arg("-ltresse_sockets")
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// UDP ports of processes that run at the same time are different.
fn udp_port() -> String {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let step = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    (20_000 + (std::process::id() as u16 % 1000) * 20 + step % 20).to_string()
}

#[track_caller]
fn succeeds(mut command: Command) {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
}

/// Runs a program in every way that the library can carry packets.
#[track_caller]
fn runs(name: &str) {
    let program = compiled(name);
    let timed = || {
        let mut command = Command::new("timeout");
        command.arg("120").arg(&program).env_remove("TRESSE_UDP_PORT");
        command
    };
    let mut udp = timed();
    udp.env("TRESSE_UDP_PORT", udp_port());
    succeeds(udp);
    let mut synchronous = timed();
    synchronous.env("TRESSE_UDP_PORT", udp_port()).env("TRESSE_SYNCHRONOUS", "1");
    succeeds(synchronous);
    // Raw IP where this process may; UDP else, once more.
    succeeds(timed());
}

#[test]
fn one_to_one_sockets_are_used_as_those_of_tcp() {
    runs("one_to_one");
}
