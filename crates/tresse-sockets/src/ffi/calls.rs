//! The calls of libc with the prefix `tresse_`, except for those that carry data.

use std::ffi::{c_int, c_ulong, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{SIOCGIFADDR, SIOCGIFBRDADDR, SIOCGIFDSTADDR, SIOCGIFNETMASK, sockaddr, socklen_t};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{answer, give, give_name, given, length, lent, name_at, set_errno};
use crate::numbers::is_private;
use crate::{aliases, forked, names, open, options, receive, stack, table};

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(forked::socket(family, kind, protocol))
}

/// `bind(2)`.
///
/// # Safety
/// `name` is null or points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_bind(fd: c_int, name: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    answer(unsafe { name_at(name, len) }.and_then(|name| open::bind(fd, name)).map(|()| 0))
}

/// `listen(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_listen(fd: c_int, backlog: c_int) -> c_int {
    answer(open::listen(fd, backlog).map(|()| 0))
}

/// `accept(2)`.
///
/// # Safety
/// As for [`tresse_accept4`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_accept(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { tresse_accept4(fd, name, len, 0) }
}

/// `accept4(2)`.
///
/// # Safety
/// `name` is null, or `len` holds the number of bytes that it has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_accept4(
    fd: c_int,
    name: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if !name.is_null() && !len.is_null() {
        // SAFETY: the caller guarantees it.
        if let Err(error) = length(unsafe { *len }) {
            return answer(Err(error));
        }
    }
    let accepted = open::accept(fd, flags);
    if let Ok(accepted) = accepted
        && let Ok(peer) = names::peer_name(accepted)
    {
        // SAFETY: the caller guarantees it.
        let _ = unsafe { give(&peer, name.cast(), len) };
    }
    answer(accepted)
}

/// `connect(2)`.
///
/// # Safety
/// `name` is null or points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_connect(fd: c_int, name: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    let name = unsafe { name_at(name, len) };
    answer(name.and_then(|name| open::connect(fd, crate::layout::first_name(name)?)).map(|_| 0))
}

/// `shutdown(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_shutdown(fd: c_int, how: c_int) -> c_int {
    answer(open::shutdown(fd, how).map(|()| 0))
}

/// `close(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_close(fd: c_int) -> c_int {
    answer(aliases::close(fd).map(|()| 0))
}

/// Removes the descriptor of a socket from the table and leaves its number open: the caller is about to close it or to reuse it.
pub fn give_up(fd: c_int) {
    let _ = aliases::give_up(fd);
}

/// `dup(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_dup(fd: c_int) -> c_int {
    answer(aliases::duplicate(fd, 0, false))
}

/// `dup2(2)`.
///
/// # Safety
/// No other code still uses the descriptor `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_dup2(fd: c_int, to: c_int) -> c_int {
    if fd == to {
        return answer(table::find(fd).map(|_| fd));
    }
    // SAFETY: the caller guarantees it.
    unsafe { tresse_dup3(fd, to, 0) }
}

/// `dup3(2)`.
///
/// # Safety
/// As for [`tresse_dup2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if fd == to || to < 0 || flags & !libc::O_CLOEXEC != 0 {
        return answer(Err(if to < 0 { Errno::BADF } else { Errno::INVAL }));
    }
    if let Err(error) = table::find(fd) {
        return answer(Err(error));
    }
    if is_private(to) {
        return answer(Err(Errno::BUSY));
    }
    let _ = aliases::give_up(to);
    // SAFETY: the caller guarantees that no other code uses the number; the next call opens it if it is closed.
    let to = unsafe { OwnedFd::from_raw_fd(to) };
    answer(aliases::duplicate_to(fd, to, flags & libc::O_CLOEXEC != 0))
}

/// `fcntl(2)`. The third argument is passed where C passes it: on every system that this crate supports, an integer or a pointer is
/// in the same register, whether the function is declared as variadic or not.
///
/// # Safety
/// `argument` is what `command` needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    if let Err(error) = table::find(fd) {
        return answer(Err(error));
    }
    match command {
        libc::F_DUPFD => answer(aliases::duplicate(fd, argument as c_int, false)),
        libc::F_DUPFD_CLOEXEC => answer(aliases::duplicate(fd, argument as c_int, true)),
        // SAFETY: the caller guarantees it. The flags of the descriptor are those of the socket.
        _ => unsafe { libc::fcntl(fd, command, argument) },
    }
}

/// `ioctl(2)`; FIONREAD returns the bytes of the next message. As in Linux, requests about the queues of other protocols fail.
/// Requests for the addresses of an interface go to a UDP socket.
///
/// # Safety
/// `argument` is what `request` needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if let Err(error) = table::find(fd) {
        return answer(Err(error));
    }
    if matches!(request, libc::TIOCOUTQ | SIOCATMARK) {
        return answer(Err(Errno::NOTTY));
    }
    if matches!(request, SIOCGIFADDR | SIOCGIFDSTADDR | SIOCGIFBRDADDR | SIOCGIFNETMASK) {
        let mut family = [0; size_of::<c_int>()];
        let told = options::get_into(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut family);
        // These are IPv4 addresses: Linux returns them for sockets of that family only.
        if told.is_ok() && c_int::from_ne_bytes(family) != libc::AF_INET {
            return answer(Err(Errno::NOTTY));
        }
        return match socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None) {
            // SAFETY: the caller guarantees it.
            Ok(of_ip) => unsafe { libc::ioctl(of_ip.as_raw_fd(), request, argument) },
            Err(error) => answer(Err(error)),
        };
    }
    if request != libc::FIONREAD {
        // SAFETY: the caller guarantees it.
        return unsafe { libc::ioctl(fd, request, argument) };
    }
    if argument.is_null() {
        return answer(Err(Errno::FAULT));
    }
    answer(receive::readable_bytes(fd).map(|bytes| {
        // SAFETY: the argument of FIONREAD points to an `int` to be written.
        unsafe { argument.cast::<c_int>().write_unaligned(c_int::try_from(bytes).unwrap_or(c_int::MAX)) };
        0
    }))
}

const SIOCATMARK: c_ulong = 0x8905;

/// `getsockname(2)`.
///
/// # Safety
/// `len` holds the number of bytes that `name` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_getsockname(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    answer(unsafe { give_name(names::local_name(fd), name.cast(), len) }.map(|()| 0))
}

/// `getpeername(2)`.
///
/// # Safety
/// `len` holds the number of bytes that `name` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_getpeername(fd: c_int, name: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    answer(unsafe { give_name(names::peer_name(fd), name.cast(), len) }.map(|()| 0))
}

/// `setsockopt(2)`.
///
/// # Safety
/// `value` is null or points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let value = length(len).and_then(|len| unsafe { given(value, len) });
    answer(value.and_then(|value| options::set(fd, level, name, value)))
}

/// `getsockopt(2)`.
///
/// # Safety
/// `len` holds the number of bytes that `value` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if len.is_null() {
        return answer(Err(Errno::FAULT));
    }
    // SAFETY: the caller guarantees it.
    let room = length(unsafe { *len }).and_then(|len| unsafe { lent(value, len) });
    let got = room.and_then(|room| options::get_into(fd, level, name, room));
    // SAFETY: the caller guarantees it.
    answer(got.map(|fits| unsafe {
        *len = socklen_t::try_from(fits).unwrap_or(socklen_t::MAX);
        0
    }))
}

/// `poll(2)`; in the synchronous mode it also receives packets and handles timers while it waits.
///
/// # Safety
/// `fds` points to `number` structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_poll(fds: *mut libc::pollfd, number: libc::nfds_t, timeout: c_int) -> c_int {
    let started = std::time::Instant::now();
    loop {
        // SAFETY: the caller guarantees it.
        let Some(ready) = stack::turn_in_call(|| unsafe { libc::poll(fds, number, 0) }) else {
            // SAFETY: the caller guarantees it.
            return unsafe { libc::poll(fds, number, timeout) };
        };
        let left = u64::try_from(timeout)
            .ok()
            .map(|limit| limit.saturating_sub(started.elapsed().as_millis() as u64));
        if ready != 0 || left == Some(0) {
            return ready;
        }
        // Packets do not wake this wait, so it is repeated at short intervals.
        let pause = left.map_or(1, |left| left.min(1)) as c_int;
        // SAFETY: the caller guarantees it.
        if unsafe { libc::poll(fds, number, pause) } < 0 {
            return -1;
        }
    }
}

/// In the synchronous mode: receives packets and handles due timers, for event loops that do not wait in `tresse_poll`.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_turn() {
    stack::turn_in_call(|| ());
}

/// Registers a stream scheduler, which future associations can then name. The table, `struct tresse_scheduler` of
/// `tresse_scheduler.h`, is copied. Returns -1 with EINVAL for an invalid table, EEXIST for a name that is in use.
///
/// # Safety
/// `scheduler` is null or points to such a table, whose hooks exist until [`tresse_unregister_scheduler`] has returned 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_register_scheduler(scheduler: *const c_void) -> c_int {
    // SAFETY: the caller guarantees it.
    let plugin = unsafe { tresse_plugin::Plugin::of_table(scheduler, || ()) };
    answer(plugin.map_err(|_| Errno::INVAL).and_then(crate::schedulers::register).map(|()| 0))
}

/// Unregisters a stream scheduler: once this has returned 0, its hooks are not called any more. Returns -1 with EBUSY while an
/// association or a socket uses it, ENOENT for a name that was not registered.
///
/// # Safety
/// `name` is null or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tresse_unregister_scheduler(name: *const std::ffi::c_char) -> c_int {
    if name.is_null() {
        return answer(Err(Errno::FAULT));
    }
    // SAFETY: the caller guarantees it.
    let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_str().map_err(|_| Errno::NOENT);
    answer(name.and_then(crate::schedulers::unregister).map(|()| 0))
}

/// Closes all sockets, and waits until their data is delivered and their associations have ended, at most `timeout` milliseconds; a
/// negative timeout means no limit.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_finish(timeout: c_int) {
    let limit = u64::try_from(timeout).map_or(std::time::Duration::MAX, std::time::Duration::from_millis);
    crate::finish::finish(limit);
}

/// `daemon(3)`: the process in the background keeps the sockets.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_daemon(keep_directory: c_int, keep_standard: c_int) -> c_int {
    if !crate::finish::has_sockets() {
        // SAFETY: the arguments are numbers.
        return unsafe { daemon(keep_directory, keep_standard) };
    }
    answer(crate::finish::daemonize(keep_directory != 0, keep_standard != 0).map(|()| 0))
}

unsafe extern "C" {
    /// `daemon(3)` of the C library.
    fn daemon(keep_directory: c_int, keep_standard: c_int) -> c_int;
}

/// Returns 1 if a descriptor is one of our sockets, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_owns(fd: c_int) -> c_int {
    c_int::from(table::owns(fd))
}

/// Requests the synchronous mode, in which no thread of the library acts between calls. Returns -1 with EBUSY once there is a
/// socket.
#[unsafe(no_mangle)]
pub extern "C" fn tresse_synchronous() -> c_int {
    if stack::set_synchronous() {
        return 0;
    }
    set_errno(Errno::BUSY);
    -1
}
