//! Calls that open, connect, duplicate and close descriptors.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use libc::{sockaddr, socklen_t};
use tresse_sockets::ffi::calls;

use crate::route::{self, Inside, Route, set_errno, tcp_as_sctp};
use crate::{end, fork, real};

/// Returns whether these arguments make an SCTP socket.
fn is_sctp(family: c_int, kind: c_int, protocol: c_int) -> bool {
    let style = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let stream = style == libc::SOCK_STREAM;
    let named = protocol == libc::IPPROTO_SCTP && (stream || style == libc::SOCK_SEQPACKET);
    let disguised = stream && matches!(protocol, 0 | libc::IPPROTO_TCP) && tcp_as_sctp();
    (family == libc::AF_INET || family == libc::AF_INET6) && (named || disguised)
}

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    if Inside::is_on() || !is_sctp(family, kind, protocol) {
        // SAFETY: the arguments are numbers.
        return unsafe { real::socket(family, kind, protocol) };
    }
    let _inside = Inside::enter();
    fork::watch();
    end::watch();
    calls::tresse_socket(family, kind, libc::IPPROTO_SCTP)
}

/// `close(2)`; EBADF for the library's own descriptors, since some programs close every number.
///
/// # Safety
/// No other code still uses the descriptor `fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if route::is_private(fd) {
        return fails(libc::EBADF);
    }
    // A signal handler interrupted a call of this library: the descriptor is closed later.
    if Inside::is_on() && tresse_sockets::owns(fd) && !fork::is_other_process() && Inside::close_later(fd) {
        return 0;
    }
    match route::of_closing(fd) {
        Route::Ours(_inside) => calls::tresse_close(fd),
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::close(fd) },
    }
}

/// `close_range(2)`.
///
/// # Safety
/// No other code still uses the descriptors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // With an unknown flag the system reports an error and closes nothing.
    if flags & !(libc::CLOSE_RANGE_UNSHARE as c_int) == 0 {
        for fd in first..=last.min(HIGHEST) {
            if !route::is_private(fd as c_int)
                && let Route::Ours(_inside) = route::of_closing(fd as c_int)
            {
                calls::give_up(fd as c_int);
            }
        }
    }
    // The library's threads continue to use the descriptors of this process, so they must stay shared.
    let shared = route::next_private(0).is_some();
    let flags = if shared { flags & !(libc::CLOSE_RANGE_UNSHARE as c_int) } else { flags };
    // A program that closes a whole range does not mean to close the library's own descriptors.
    let mut from = first;
    while let Some(fd) = route::next_private(from).filter(|&fd| fd <= last) {
        // SAFETY: the caller guarantees it.
        if from < fd && unsafe { real::close_range(from, fd - 1, flags) } != 0 {
            return -1;
        }
        from = fd + 1;
    }
    if from > last && from > first {
        return 0;
    }
    // SAFETY: the caller guarantees it.
    unsafe { real::close_range(from, last, flags) }
}

/// `closefrom(3)`.
///
/// # Safety
/// As for [`close_range`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller guarantees it.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// `dup(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn dup(fd: c_int) -> c_int {
    match route::of(fd) {
        Route::Ours(_inside) => calls::tresse_dup(fd),
        // SAFETY: the argument is a number.
        Route::System => unsafe { real::dup(fd) },
    }
}

/// Removes the socket with the descriptor `to`, which is about to become a duplicate of `fd`.
fn give_up(fd: c_int, to: c_int) {
    // If `fd` is not open, the call fails and leaves `to` as it is. SAFETY: the arguments are numbers.
    let is_open = || unsafe { real::fcntl(fd, libc::F_GETFD, 0) } >= 0;
    if fd != to
        && let Route::Ours(_inside) = route::of_closing(to)
        && is_open()
    {
        calls::give_up(to);
    }
}

/// `dup2(2)`; EBUSY if `to` is one of the library's own descriptors.
///
/// # Safety
/// No other code still uses the descriptor `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    if route::is_private(to) {
        return fails(libc::EBUSY);
    }
    match route::of_closing(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { calls::tresse_dup2(fd, to) },
        Route::System => {
            give_up(fd, to);
            // SAFETY: the caller guarantees it.
            unsafe { real::dup2(fd, to) }
        }
    }
}

/// `dup3(2)`.
///
/// # Safety
/// As for [`dup2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if route::is_private(to) {
        return fails(libc::EBUSY);
    }
    match route::of_closing(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { calls::tresse_dup3(fd, to, flags) },
        Route::System => {
            give_up(fd, to);
            // SAFETY: the caller guarantees it.
            unsafe { real::dup3(fd, to, flags) }
        }
    }
}

/// `fcntl(2)`.
///
/// # Safety
/// `argument` is what `command` needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    match route::of_closing(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { calls::tresse_fcntl(fd, command, argument) },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::fcntl(fd, command, argument) },
    }
}

/// `fcntl(2)` for programs with large files.
///
/// # Safety
/// As for [`fcntl`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    match route::of_closing(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { calls::tresse_fcntl(fd, command, argument) },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::fcntl64(fd, command, argument) },
    }
}

/// `ioctl(2)`.
///
/// # Safety
/// `argument` is what `request` needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    match route::of(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { calls::tresse_ioctl(fd, request, argument) },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::ioctl(fd, request, argument) },
    }
}

/// Declares calls whose first argument is a descriptor, and that pass all arguments to the C library or to our function.
macro_rules! forward {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty = $ours:path;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the call: pointers are null or point to as much memory as it says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, $($arg: $type),*) -> $out {
            match route::of(fd) {
                #[allow(unused_unsafe, reason = "some take numbers only")]
                // SAFETY: the caller guarantees it.
                Route::Ours(_inside) => unsafe { $ours(fd, $($arg),*) },
                // SAFETY: the caller guarantees it.
                Route::System => unsafe { real::$name(fd, $($arg),*) },
            }
        }
    )* };
}
pub(crate) use forward;

forward! {
    /// `bind(2)`.
    fn bind(name: *const sockaddr, len: socklen_t) -> c_int = calls::tresse_bind;
    /// `listen(2)`.
    fn listen(backlog: c_int) -> c_int = calls::tresse_listen;
    /// `accept(2)`.
    fn accept(name: *mut sockaddr, len: *mut socklen_t) -> c_int = calls::tresse_accept;
    /// `accept4(2)`.
    fn accept4(name: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int = calls::tresse_accept4;
    /// `connect(2)`.
    fn connect(name: *const sockaddr, len: socklen_t) -> c_int = calls::tresse_connect;
    /// `shutdown(2)`.
    fn shutdown(how: c_int) -> c_int = calls::tresse_shutdown;
}

/// Greatest descriptor that is checked; programs do not have greater ones.
const HIGHEST: c_uint = 1 << 20;

/// Fails with EINVAL.
pub(crate) fn invalid() -> c_int {
    fails(libc::EINVAL)
}

/// Sets `errno` and returns -1.
pub(crate) fn fails(number: c_int) -> c_int {
    set_errno(number);
    -1
}
