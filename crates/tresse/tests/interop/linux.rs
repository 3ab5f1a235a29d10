//! The peer on the SCTP of the Linux kernel: a C program in a virtual machine, which boots once for all cases.

mod archive;
mod kernel;
mod machine;
mod wire;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use machine::Machine;
pub(crate) use machine::Seat;

use crate::peer::{Need, Peer, Place, Settings, compile};

/// Why the stack cannot take part, if it cannot.
pub(crate) fn lacks(need: Need) -> Option<&'static str> {
    match need {
        Need::NrSack => Some("it has no NR-SACK"),
        Need::Cmt => Some("it sends over one path at a time"),
        // Seen in captures, and in what it makes of others' fragments: it gives the second fragment FSN 0, which is the
        // first one's (RFC 8260 §2.1).
        Need::Interleaving | Need::InterleavedForward | Need::UnorderedForward => {
            Some("it counts fragments of I-DATA from the second one on")
        }
        Need::MultiHoming | Need::DynamicAddresses | Need::Restart | Need::Ecn => None,
    }
}

/// Boots the machine; an error says what is missing.
pub(crate) fn prepare() -> Result<(), String> {
    boot().map(drop)
}

/// Of the kernel in the machine.
pub(crate) fn version() -> String {
    boot().expect("prepared").kernel.clone()
}

/// The machine, which boots the first time.
fn boot() -> Result<&'static Machine, String> {
    static MACHINE: OnceLock<Result<Machine, String>> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Machine::start(&program()?, UDP_PORT));
    machine.as_ref().map_err(Clone::clone)
}

/// The compiled peer.
fn program() -> Result<PathBuf, String> {
    if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
        return Err("Debian's package qemu-system-x86 is needed".to_owned());
    }
    compile("linux_peer", "linux/sctp.h", "linux-libc-dev", "linux.c", &["-static", "-DSTACK_OF_LINUX"])
}

/// Addresses and a port in the machine for one peer. No other peer is given them: what a peer leaves behind may speak
/// for a while.
pub(crate) fn place(paths: usize) -> Place {
    static PLACES: AtomicU8 = AtomicU8::new(1);
    let seat = boot().expect("prepared").seat();
    let place = PLACES.fetch_add(1, Ordering::SeqCst);
    let address = |path: usize| IpAddr::from([127, 1, place, path as u8]);
    Place {
        local: (1..=paths).map(address).collect(),
        spare: address(paths + 1),
        udp: UDP_PORT,
        seat: Some(Arc::new(seat)),
    }
}

pub(crate) fn start(settings: &Settings) -> Peer {
    let seat = settings.seat.clone().expect("a place in the machine");
    let machine = boot().expect("prepared");
    let addresses = [&settings.local[..], &[settings.spare]].concat();
    let opening = machine.wire.open(&addresses, settings.udp, settings.call.is_some());
    let arguments = settings.arguments().join(" ");
    Peer::in_thread(move |inside| seat.run(&arguments, inside, || drop(opening)))
}

/// The kernel takes SCTP in UDP on one port for everybody.
const UDP_PORT: u16 = 9899;
