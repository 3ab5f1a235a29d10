//! Processes that fork. SCTP sockets stay with the process that made them: the thread that drives them is there. A child has
//! descriptors of them, and may close them or give them up by `exec`; every other call fails.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::route::Inside;

/// Descriptors that are looked at.
const MOST: usize = 1 << 16;

/// Those that were ours when the process was forked, one bit each. A lock of the parent could be held for ever here.
static WERE_OURS: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];
static IN_CHILD: AtomicBool = AtomicBool::new(false);
/// The process that has the sockets; 0 before there is one.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// From the first socket on, forks are watched.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        OWNER.store(std::process::id() as i32, Ordering::Relaxed);
        // SAFETY: the functions are there as long as the process: nothing unloads a preloaded library.
        unsafe { libc::pthread_atfork(Some(prepare), None, Some(child)) };
        crate::end::watch();
    });
}

/// Whether this process was forked from one with SCTP sockets.
pub(crate) fn in_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Whether the descriptor was that of an SCTP socket of the parent, and was not closed since.
pub(crate) fn was_ours(fd: c_int) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// It is closed.
pub(crate) fn forget(fd: c_int) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Whether this is not the process that has the sockets, although it sees their memory (`vfork`).
pub(crate) fn is_other_process() -> bool {
    std::process::id() as i32 != OWNER.load(Ordering::Relaxed)
}

fn place(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((WERE_OURS.get(fd / 64)?, 1 << (fd % 64)))
}

extern "C" fn prepare() {
    let _inside = Inside::enter();
    for (word, bits) in WERE_OURS.iter().enumerate() {
        let ours = (0..64).filter(|bit| tresse_sockets::owns((word * 64 + bit) as c_int));
        bits.store(ours.fold(0, |all, bit| all | 1 << bit), Ordering::Relaxed);
    }
}

extern "C" fn child() {
    IN_CHILD.store(true, Ordering::Relaxed);
}
