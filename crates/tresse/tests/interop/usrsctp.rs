//! The peer on usrsctp: a C program, compiled by the test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::peer::Need;

/// Why the stack cannot take part, if it cannot.
pub(crate) fn lacks(need: Need) -> Option<&'static str> {
    match need {
        // Seen in every run, in captures: a chunk is reported missing, and neither it nor an I-FORWARD-TSN
        // that skips it ever comes, although everything behind it is acknowledged.
        Need::InterleavedForward => Some("it stops for good after a lost chunk of a message that it gave up"),
        Need::MultiHoming | Need::NrSack | Need::Cmt | Need::Restart | Need::Ecn => None,
    }
}

/// The compiled peer; an error says what is missing.
pub(crate) fn program() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(compile).as_deref().map_err(Clone::clone)
}

fn compile() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/usrsctp/peer.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp_peer");
    let mut compiler = Command::new("cc");
    let probe = compiler.args(["-include", "usrsctp.h", "-E", "-x", "c", "/dev/null"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return Err("a C compiler and Debian's package libusrsctp-dev are needed".to_owned());
    }
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .args(["-lusrsctp", "-lpthread"])
        .output()
        .expect("it just ran");
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    Ok(program)
}
