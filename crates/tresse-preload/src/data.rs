//! Calls that send and receive messages.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use tresse_sockets::ffi::messages;

use crate::lifecycle::{fails, forward, invalid};
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

/// Declares `preadv2(2)` and `pwritev2(2)` under each of their names. At offset -1 they are `readv` and `writev` with flags, of
/// which only RWF_NOWAIT has an effect on a socket.
macro_rules! with_flags {
    ($($(#[$doc:meta])* fn $name:ident = $plain:path, $waitless:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the call: `buffers` is null or points to `count` buffers, each of as many bytes as it says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int
        ) -> ssize_t {
            match route::of(fd) {
                Route::Ours(_) if flags & !KNOWN_FLAGS != 0 => fails(libc::EOPNOTSUPP) as ssize_t,
                Route::Ours(_) if offset != -1 => fails(libc::ESPIPE) as ssize_t,
                // SAFETY: the caller guarantees it.
                Route::Ours(_inside) if flags & libc::RWF_NOWAIT != 0 => unsafe { $waitless(fd, buffers, count) },
                // SAFETY: the caller guarantees it.
                Route::Ours(_inside) => unsafe { $plain(fd, buffers, count) },
                // SAFETY: the caller guarantees it.
                Route::System => unsafe { real::$name(fd, buffers, count, offset, flags) },
            }
        }
    )* };
}

with_flags! {
    /// `preadv2(2)`.
    fn preadv2 = messages::tresse_readv, read_at_once;
    /// `preadv2(2)` for programs with large files.
    fn preadv64v2 = messages::tresse_readv, read_at_once;
    /// `pwritev2(2)`.
    fn pwritev2 = messages::tresse_writev, write_at_once;
    /// `pwritev2(2)` for programs with large files.
    fn pwritev64v2 = messages::tresse_writev, write_at_once;
}

/// Flags that Linux defines for files of every kind.
const KNOWN_FLAGS: c_int =
    libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_NOWAIT | libc::RWF_APPEND;

/// Returns a message of these buffers; `None` if `readv` does not take so many.
fn message_of(buffers: *const iovec, count: c_int) -> Option<msghdr> {
    // SAFETY: all fields are numbers and pointers, which may be null.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = buffers.cast_mut();
    message.msg_iovlen = usize::try_from(count).ok().filter(|&count| count <= MOST_BUFFERS)?;
    Some(message)
}

/// IOV_MAX of Linux.
const MOST_BUFFERS: usize = 1024;

/// # Safety
/// As for `readv(2)`.
unsafe fn read_at_once(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    let Some(mut message) = message_of(buffers, count) else { return invalid() as ssize_t };
    // SAFETY: the caller guarantees it.
    unsafe { messages::tresse_recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) }
}

/// # Safety
/// As for `writev(2)`.
unsafe fn write_at_once(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    let Some(message) = message_of(buffers, count) else { return invalid() as ssize_t };
    // SAFETY: the caller guarantees it.
    unsafe { messages::tresse_sendmsg(fd, &raw const message, libc::MSG_DONTWAIT) }
}

/// `sendmmsg(2)`.
///
/// # Safety
/// `messages` points to `count` valid messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    match route::of(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { messages::tresse_sendmmsg(fd, messages, count, flags) },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::sendmmsg(fd, messages, count, flags) },
    }
}

/// `recvmmsg(2)`.
///
/// # Safety
/// As for [`sendmmsg`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    limit: *mut timespec,
) -> c_int {
    match route::of(fd) {
        // SAFETY: the caller guarantees it.
        Route::Ours(_inside) => unsafe { messages::tresse_recvmmsg(fd, messages, count, flags, limit) },
        // SAFETY: the caller guarantees it.
        Route::System => unsafe { real::recvmmsg(fd, messages, count, flags, limit) },
    }
}

/// `read(2)` for programs that were compiled with checks of their buffers (`_FORTIFY_SOURCE`).
///
/// # Safety
/// `data` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(fd: c_int, data: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    check(len, room);
    // SAFETY: the caller guarantees it.
    unsafe { read(fd, data, len) }
}

/// `recv(2)` for such programs.
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
    // SAFETY: the caller guarantees it.
    unsafe { recv(fd, data, len, flags) }
}

/// `recvfrom(2)` for such programs.
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
    // SAFETY: the caller guarantees it.
    unsafe { recvfrom(fd, data, len, flags, name, name_len) }
}

/// Aborts the process if the call could write beyond the program's buffer, as the C library does.
fn check(len: size_t, room: size_t) {
    if len > room {
        std::process::abort();
    }
}
