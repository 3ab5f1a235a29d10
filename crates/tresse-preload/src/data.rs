//! Calls that send and receive messages.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};
use tresse_sockets::ffi::messages;

use crate::lifecycle::forward;
use crate::real;
use crate::route::{self, Route};

forward! {
    /// `send(2)`.
    fn send(data: *const c_void, len: size_t, flags: c_int) -> ssize_t = messages::tresse_send;
    /// `sendto(2)`.
    fn sendto(
        data: *const c_void, len: size_t, flags: c_int, name: *const sockaddr, name_len: socklen_t
    ) -> ssize_t = messages::tresse_sendto;
    /// `sendmsg(2)`.
    fn sendmsg(message: *const msghdr, flags: c_int) -> ssize_t = messages::tresse_sendmsg;
    /// `write(2)`.
    fn write(data: *const c_void, len: size_t) -> ssize_t = messages::tresse_write;
    /// `writev(2)`.
    fn writev(buffers: *const iovec, count: c_int) -> ssize_t = messages::tresse_writev;
    /// `recv(2)`.
    fn recv(data: *mut c_void, len: size_t, flags: c_int) -> ssize_t = messages::tresse_recv;
    /// `recvfrom(2)`.
    fn recvfrom(
        data: *mut c_void, len: size_t, flags: c_int, name: *mut sockaddr, name_len: *mut socklen_t
    ) -> ssize_t = messages::tresse_recvfrom;
    /// `recvmsg(2)`.
    fn recvmsg(message: *mut msghdr, flags: c_int) -> ssize_t = messages::tresse_recvmsg;
    /// `read(2)`.
    fn read(data: *mut c_void, len: size_t) -> ssize_t = messages::tresse_read;
    /// `readv(2)`.
    fn readv(buffers: *const iovec, count: c_int) -> ssize_t = messages::tresse_readv;
}

/// `sendmmsg(2)`.
///
/// # Safety
/// `messages` names `count` of them, each in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    match route::of(fd) {
        // SAFETY: the caller's.
        Route::Ours(_inside) => unsafe { messages::tresse_sendmmsg(fd, messages, count, flags) },
        // SAFETY: the caller's.
        Route::System => unsafe { real::sendmmsg(fd, messages, count, flags) },
    }
}

/// `recvmmsg(2)`. Only the first message is waited for, whatever `limit` says.
///
/// # Safety
/// As [`sendmmsg`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    limit: *mut timespec,
) -> c_int {
    match route::of(fd) {
        // SAFETY: the caller's.
        Route::Ours(_inside) => unsafe { messages::tresse_recvmmsg(fd, messages, count, flags, limit) },
        // SAFETY: the caller's.
        Route::System => unsafe { real::recvmmsg(fd, messages, count, flags, limit) },
    }
}

/// `read(2)` of programs that were compiled with checks of their buffers.
///
/// # Safety
/// `data` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(fd: c_int, data: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    check(len, room);
    // SAFETY: the caller's.
    unsafe { read(fd, data, len) }
}

/// `recv(2)` of such programs.
///
/// # Safety
/// `data` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(len, room);
    // SAFETY: the caller's.
    unsafe { recv(fd, data, len, flags) }
}

/// `recvfrom(2)` of such programs.
///
/// # Safety
/// `data` has room for `room` bytes; `name` is null, or `name_len` holds the number of bytes that it has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_len: *mut socklen_t,
) -> ssize_t {
    check(len, room);
    // SAFETY: the caller's.
    unsafe { recvfrom(fd, data, len, flags, name, name_len) }
}

/// The program is about to write beyond its buffer, and ends as it asked for.
fn check(len: size_t, room: size_t) {
    if len > room {
        std::process::abort();
    }
}
