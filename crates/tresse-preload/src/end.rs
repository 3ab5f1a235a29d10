//! Exit of a process: the data that its sockets have sent is delivered before, as the kernel would do afterwards. Sockets that
//! forked processes still use move into a new process. Also `daemon`, which keeps the sockets.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use tresse_sockets::ffi::calls;

use crate::route::Inside;
use crate::{fork, real};

/// Returns the longest wait of an exit: `TRESSE_EXIT_WAIT` in milliseconds, or 10 s.
fn limit() -> Duration {
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let named = std::env::var("TRESSE_EXIT_WAIT").ok().and_then(|text| text.parse().ok());
        named.map_or(WAIT, Duration::from_millis)
    })
}

const WAIT: Duration = Duration::from_secs(10);

/// Prepares the exit of a process with sockets.
pub(crate) fn watch() {
    // Reads the environment now, and not during the exit.
    limit();
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = register;

/// Registers the handler by which `exit` ends the associations and waits for them. It is registered before any handler of the
/// program, and so called after those, which may use sockets.
extern "C" fn register() {
    // SAFETY: the function exists as long as the process.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if may_leave() {
        let _inside = Inside::enter();
        tresse_sockets::leave(limit());
    }
}

/// Returns whether the sockets may be ended: not in a signal handler that interrupted a call of this library, whose locks may be
/// held, and not in a child of `vfork`.
fn may_leave() -> bool {
    !Inside::is_on() && !fork::is_other_process()
}

/// `_exit(2)`. If other processes still use its sockets, the sockets move to a new process: a parent that goes into the background
/// ends like this.
///
/// # Safety
/// As for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    if may_leave() && tresse_sockets::is_needed() {
        let _inside = Inside::enter();
        tresse_sockets::leave(limit());
    }
    tresse_sockets::ffi::end_at_once(status)
}

/// `_Exit(3)`.
///
/// # Safety
/// As for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller guarantees it.
    unsafe { _exit(status) }
}

/// `daemon(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn daemon(keep_directory: c_int, keep_standard: c_int) -> c_int {
    if Inside::is_on() || fork::is_other_process() || !tresse_sockets::has_sockets() {
        // SAFETY: the arguments are numbers.
        return unsafe { real::daemon(keep_directory, keep_standard) };
    }
    let _inside = Inside::enter();
    calls::tresse_daemon(keep_directory, keep_standard)
}
