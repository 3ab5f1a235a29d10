//! Common part of the tests with programs in C: the library, a compiler, ports.

#![allow(dead_code, reason = "every test file uses its own part of this")]

mod ports;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Where cargo has put the shared object for these tests.
pub(crate) fn library() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        // Tests are linked with the crate as Rust: the shared object is beside the directory of the tests.
        let own = std::env::current_exe().expect("a path");
        let target = own.parent().and_then(Path::parent).expect("target/debug").to_owned();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--package", "tresse-sockets", "--lib"])
            // In the profile of the tests: the library of another one stands elsewhere.
            .args((!cfg!(debug_assertions)).then_some("--release"))
            .env("CARGO_TARGET_DIR", target.parent().expect("target"))
            .status();
        assert!(built.expect("cargo").success(), "the library builds");
        assert!(target.join("libtresse_sockets.so").exists(), "{}", target.display());
        target
    })
}

/// Compiles `tests/c/<name>.c`, once for each test program.
pub(crate) fn compiled(name: &'static str) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().expect("no compiler has panicked");
    compiled.entry(name).or_insert_with(|| compile(name, &["-O1"])).clone()
}

/// Compiles `tests/c/<name>.c` with further options of the compiler.
pub(crate) fn compile(name: &str, options: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", env!("CARGO_CRATE_NAME")));
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-g", "-pthread"])
        .args(options)
        .arg("-o")
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

/// A UDP port that nobody else has.
pub(crate) fn udp_port() -> String {
    ports::reserved().to_string()
}
