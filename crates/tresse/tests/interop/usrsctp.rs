//! The peer on usrsctp: a C program, compiled by the test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::peer::{Need, compile};

/// Why the stack cannot take part, if it cannot.
pub(crate) fn lacks(need: Need) -> Option<&'static str> {
    match need {
        // Seen in every run, in captures: a chunk is reported missing, and neither it nor an I-FORWARD-TSN
        // that skips it ever comes, although everything behind it is acknowledged.
        Need::InterleavedForward => {
            Some("it stops sending after the loss of a chunk of an abandoned message")
        }
        // Seen in captures: after an I-FORWARD-TSN with the U bit (RFC 8260 §2.3.1) it ends the association at the ordered
        // message of that MID ("Delivered MID=00000000").
        Need::UnorderedForward => {
            Some("it takes an abandoned unordered message for the ordered one with the same number")
        }
        Need::MultiHoming
        | Need::DynamicAddresses
        | Need::NrSack
        | Need::Cmt
        | Need::Restart
        | Need::Interleaving
        | Need::Ecn => None,
    }
}

/// The compiled peer; an error says what is missing.
pub(crate) fn program() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT
        .get_or_init(|| compile("usrsctp_peer", "usrsctp.h", "libusrsctp-dev", "usrsctp.c", &["-lusrsctp"]))
        .as_deref()
        .map_err(Clone::clone)
}

/// Of the installed package.
pub(crate) fn version() -> String {
    let asked = Command::new("dpkg-query").args(["-W", "-f", "${Version}", "libusrsctp-dev"]).output();
    match asked {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => "of no package".to_owned(),
    }
}
