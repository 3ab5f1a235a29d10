//! Objects out of C sources, and simulated associations to use them in.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tresse_sim::{Outcome, RunOptions, Scenario};

pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Compiles a C source to a shared object of this name.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(compiler)
        .args(["-std=c11", "-O2", "-shared", "-fPIC", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .args(flags)
        .arg("-o")
        .args([&object, &Path::new(ROOT).join(source)])
        .status();
    assert!(compiled.expect("a C compiler").success(), "{source} with {flags:?}");
    object
}

/// Three streams share two paths until a megabyte has arrived; every message is checked.
pub fn run(transport: &str, options: RunOptions<'_>) -> Outcome {
    let text = format!(
        r#"
        settle = "0s"
        measure = "60s"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        loss = "1%"
        [[path]]
        rate = "2Mbit/s"
        delay = "30ms"
        [traffic]
        streams = 3
        volume = "1MB"
        message_size = "3000B"
        [transport]
        {transport}
        "#
    );
    let scenario = Scenario::from_toml(&text, "plugins").unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { check: true, ..options };
    tresse_sim::run(&scenario, options).unwrap_or_else(|error| panic!("{transport}: {error}"))
}

/// Whether an object is in this process's memory.
pub fn is_loaded(object: &Path) -> bool {
    let object = object.canonicalize().expect("it is there");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells");
    maps.lines().any(|line| line.ends_with(&*object.to_string_lossy()))
}
