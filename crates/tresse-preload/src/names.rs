//! Names and options of sockets.

use std::ffi::{c_int, c_void};

use libc::{sockaddr, socklen_t};
use tresse_sockets::ffi::calls;

use crate::lifecycle::forward;
use crate::real;
use crate::route::{self, Route, tcp_as_sctp};

forward! {
    /// `getsockname(2)`.
    fn getsockname(name: *mut sockaddr, len: *mut socklen_t) -> c_int = calls::tresse_getsockname;
    /// `getpeername(2)`.
    fn getpeername(name: *mut sockaddr, len: *mut socklen_t) -> c_int = calls::tresse_getpeername;
}

/// Returns the level and the SCTP option for an option of TCP, in the numbers of libsctp's header; `None` if the option is not one
/// of TCP, or TCP sockets stay TCP. A TCP option without an SCTP option counts as set, as with `withsctp`.
fn disguised(level: c_int, name: c_int) -> Option<(c_int, Option<c_int>)> {
    const SCTP_NODELAY: c_int = 3;
    const SCTP_MAXSEG: c_int = 13;
    let asked = level == libc::IPPROTO_TCP && tcp_as_sctp();
    asked.then_some((
        libc::IPPROTO_SCTP,
        match name {
            libc::TCP_NODELAY => Some(SCTP_NODELAY),
            libc::TCP_MAXSEG => Some(SCTP_MAXSEG),
            _ => None,
        },
    ))
}

/// `setsockopt(2)`.
///
/// # Safety
/// `value` is null or points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    match route::of(fd) {
        Route::Ours(_inside) => match disguised(level, name) {
            // SAFETY: the caller guarantees it.
            Some((level, Some(name))) => unsafe { calls::tresse_setsockopt(fd, level, name, value, len) },
            Some((_, None)) => 0,
            // SAFETY: the caller guarantees it.
            None => unsafe { calls::tresse_setsockopt(fd, level, name, value, len) },
        },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::setsockopt(fd, level, name, value, len) },
    }
}

/// `getsockopt(2)`.
///
/// # Safety
/// `len` holds the number of bytes that `value` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    match route::of(fd) {
        Route::Ours(_inside) => {
            let (level, name) = match disguised(level, name) {
                Some((level, Some(name))) => (level, name),
                _ => (level, name),
            };
            // SAFETY: the caller guarantees it.
            unsafe { calls::tresse_getsockopt(fd, level, name, value, len) }
        }
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::getsockopt(fd, level, name, value, len) },
    }
}
