//! Calls that move bytes between descriptors without the program's memory (`sendfile`, `splice`). They fail for SCTP sockets, as in
//! the kernel for many files; most programs then read and write instead.

use std::ffi::{c_int, c_uint};

use libc::{off_t, size_t, ssize_t};

use crate::lifecycle::invalid;
use crate::real;
use crate::route::{self, Route};

fn is_ours(fd: c_int) -> bool {
    !matches!(route::of(fd), Route::System)
}

/// `sendfile(2)`: EINVAL for SCTP sockets.
///
/// # Safety
/// `offset` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if is_ours(to) || is_ours(from) {
        return invalid() as ssize_t;
    }
    // SAFETY: the caller guarantees it.
    unsafe { real::sendfile(to, from, offset, count) }
}

/// `sendfile(2)` for programs with large files.
///
/// # Safety
/// As for [`sendfile`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if is_ours(to) || is_ours(from) {
        return invalid() as ssize_t;
    }
    // SAFETY: the caller guarantees it.
    unsafe { real::sendfile64(to, from, offset, count) }
}

/// `splice(2)`: EINVAL for SCTP sockets.
///
/// # Safety
/// The offsets are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut i64,
    to: c_int,
    to_offset: *mut i64,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if is_ours(to) || is_ours(from) {
        return invalid() as ssize_t;
    }
    // SAFETY: the caller guarantees it.
    unsafe { real::splice(from, from_offset, to, to_offset, len, flags) }
}
