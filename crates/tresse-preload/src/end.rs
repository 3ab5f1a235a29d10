//! The end of a process: what its sockets have sent is still delivered, as the kernel would after the process has gone.

use std::sync::OnceLock;
use std::time::Duration;

use crate::fork;
use crate::route::Inside;

/// How long an exit waits at most: `TRESSE_EXIT_WAIT` in milliseconds.
fn limit() -> Duration {
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let named = std::env::var("TRESSE_EXIT_WAIT").ok().and_then(|text| text.parse().ok());
        named.map_or(WAIT, Duration::from_millis)
    })
}

const WAIT: Duration = Duration::from_secs(10);

/// From now on `exit` closes the sockets and waits for their associations.
pub(crate) fn watch() {
    // Read while nothing else is ending.
    limit();
    // SAFETY: the function is there as long as the process.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if !fork::is_other_process() {
        let _inside = Inside::enter();
        tresse_sockets::finish(limit());
    }
}
