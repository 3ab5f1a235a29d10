//! Forked processes, and children of `vfork`: these share the parent's memory and close descriptors that the parent still
//! uses.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// The process that has this memory; 0 before there is a socket.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Watches forks, from the first socket on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        child();
        // SAFETY: the function is there as long as the process: nothing unloads a preloaded library.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
        crate::end::watch();
    });
}

/// Returns whether this is another process than the one that owns this memory (`vfork`).
pub(crate) fn is_other_process() -> bool {
    std::process::id() as i32 != OWNER.load(Ordering::Relaxed)
}

extern "C" fn child() {
    OWNER.store(std::process::id() as i32, Ordering::Relaxed);
}
