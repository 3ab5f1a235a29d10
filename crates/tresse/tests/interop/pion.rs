//! The peer on pion/sctp: a Go program, built by the test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::peer::Need;

/// What the stack does not have.
pub(crate) fn lacks(need: Need) -> Option<&'static str> {
    match need {
        Need::MultiHoming | Need::DynamicAddresses | Need::Cmt => {
            Some("it runs over a single connection that its caller provides")
        }
        Need::NrSack => Some("it has no NR-SACK"),
        Need::Ecn => Some("it has no ECN"),
        Need::Restart => Some("it ends an association whose peer restarts"),
        Need::Interleaving | Need::InterleavedForward | Need::UnorderedForward => None,
    }
}

/// The built peer; an error says what is missing.
pub(crate) fn program() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref().map_err(Clone::clone)
}

fn build() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/pion");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pion_peer");
    let go = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok_and(|output| output.status.success()))
        .ok_or("Go is needed (Debian's package golang-go)")?;
    let fetched =
        Command::new(go).args(["mod", "download"]).current_dir(&source).output().expect("it just ran");
    if !fetched.status.success() {
        let reason = String::from_utf8_lossy(&fetched.stderr);
        return Err(format!(
            "its modules cannot be had: {}",
            reason.lines().last().unwrap_or("no reason given")
        ));
    }
    let built = Command::new(go)
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&source)
        .output()
        .expect("it just ran");
    assert!(built.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&built.stderr));
    Ok(program)
}

/// As `go.mod` asks for it.
pub(crate) fn version() -> String {
    let line = include_str!("pion/go.mod").lines().find_map(|line| line.split_once("github.com/pion/sctp "));
    line.expect("go.mod names it").1.to_owned()
}
