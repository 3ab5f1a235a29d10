//! Forked processes, and children of `vfork`, which share the parent's memory and close descriptors that the parent still uses.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// ID of the process that owns this memory; 0 before there is a socket.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Starts to watch forks, at the first socket.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        child();
        // SAFETY: the function exists as long as the process: a preloaded library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
}

/// Returns whether this is a child of `vfork`: another process than the one that owns this memory.
pub(crate) fn is_other_process() -> bool {
    std::process::id() as i32 != OWNER.load(Ordering::Relaxed)
}

extern "C" fn child() {
    OWNER.store(std::process::id() as i32, Ordering::Relaxed);
}
