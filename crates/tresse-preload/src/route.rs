//! Dispatch of a call: to the system or to tresse.

use std::ffi::{c_int, c_uint};
use std::sync::OnceLock;

pub(crate) use tresse_sockets::Inside;

use crate::fork;

/// Destination of a call on a descriptor.
pub(crate) enum Route {
    System,
    /// To a socket of tresse; the value marks a call in progress.
    Ours(Inside),
}

/// Returns the destination of a call on the descriptor `fd`.
pub(crate) fn of(fd: c_int) -> Route {
    if Inside::is_on() {
        return Route::System;
    }
    if !tresse_sockets::owns(fd) {
        return Route::System;
    }
    tresse_sockets::hold_back();
    Route::Ours(Inside::enter())
}

/// Returns the destination of a call that closes a descriptor. In a child of `vfork`, which shares the memory of its parent, it is
/// the system: the parent continues to use the socket.
pub(crate) fn of_closing(fd: c_int) -> Route {
    match of(fd) {
        Route::Ours(_) if fork::is_other_process() => Route::System,
        route => route,
    }
}

/// Returns whether only the library uses this descriptor. A child of `vfork` may close its own copies.
pub(crate) fn is_private(fd: c_int) -> bool {
    tresse_sockets::is_private(fd) && !fork::is_other_process()
}

/// Returns the first such descriptor from `from` on.
pub(crate) fn next_private(from: c_uint) -> Option<c_uint> {
    let next = tresse_sockets::next_private(c_int::try_from(from).ok()?)?;
    if fork::is_other_process() { None } else { c_uint::try_from(next).ok() }
}

pub(crate) fn set_errno(number: c_int) {
    // SAFETY: `errno` of this thread exists as long as the thread.
    unsafe { *libc::__errno_location() = number };
}

/// Returns whether TCP sockets become SCTP sockets, as with lksctp's `withsctp`: `TRESSE_TCP_AS_SCTP=1`.
pub(crate) fn tcp_as_sctp() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("TRESSE_TCP_AS_SCTP").is_some_and(|text| text == "1"))
}
