//! The boundary to C: pointers become slices, errors become `errno`. The only place of this crate with `unsafe`.
//!
//! Functions have the signatures of the calls of libc and libsctp that they stand for, and ask of their caller what those
//! ask: pointers that are null or name as much memory as the call says, which nobody else changes meanwhile.

#![allow(unsafe_code, reason = "this is where C calls")]

pub mod calls;
mod fork;
pub mod libsctp;
pub mod messages;
mod number;

pub use fork::end_at_once;
pub(crate) use fork::{close_all, fork, quiet_thread, watch as watch_forks};
pub(crate) use number::Number;

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};

use libc::{sockaddr, socklen_t, ssize_t};
use rustix::io::Errno;

/// The answer of a call that gives 0 or a descriptor.
fn answer(result: Result<i32, Errno>) -> c_int {
    result.unwrap_or_else(|error| {
        set_errno(error);
        -1
    })
}

/// The answer of a call that gives a number of bytes.
fn count(result: Result<usize, Errno>) -> ssize_t {
    match result {
        Ok(count) => ssize_t::try_from(count).unwrap_or(ssize_t::MAX),
        Err(error) => {
            set_errno(error);
            -1
        }
    }
}

fn set_errno(error: Errno) {
    // SAFETY: the system's place for the number of this thread is there as long as the thread.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
}

/// Does something that leaves the number of the last error as it is.
pub(crate) fn keeping_errno(act: impl FnOnce()) {
    // SAFETY: the system's place for the number of this thread is there as long as the thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    act();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Sends SIGPIPE to the calling thread, as Linux does: others may not have blocked it, and have no part in it.
pub(crate) fn signal_pipe() {
    // SAFETY: the calling thread is there, and the number is that of a signal.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
}

/// Memory of the caller that is read.
///
/// # Safety
/// `data` is null or names `len` bytes that stay as they are for `'a`.
unsafe fn given<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || isize::try_from(len).is_err() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise, and the length fits.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Memory of the caller that is written.
///
/// # Safety
/// `data` is null or names `len` bytes that nobody else uses for `'a`, and that hold some value or other.
unsafe fn lent<'a>(data: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if len == 0 {
        return Ok(&mut []);
    }
    if data.is_null() || isize::try_from(len).is_err() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise, and the length fits. Memory that C has not written yet holds bytes nevertheless: it was
    // given to this function from elsewhere, and is only written here.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

/// A name that the caller has given.
///
/// # Safety
/// As `given`.
unsafe fn name_at<'a>(name: *const sockaddr, len: socklen_t) -> Result<&'a [u8], Errno> {
    if len as usize > crate::layout::STORAGE {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's.
    unsafe { given(name.cast(), len as usize) }
}

/// The one name that a message is for; nothing where there is none. Programs say that theirs is as long as a
/// `struct sockaddr_storage`, and have anything at all behind it.
///
/// # Safety
/// As `given`.
unsafe fn one_name<'a>(name: *const sockaddr, len: socklen_t) -> Result<&'a [u8], Errno> {
    // SAFETY: the caller's.
    let bytes = unsafe { name_at(name, if name.is_null() { 0 } else { len }) }?;
    if bytes.is_empty() { Ok(bytes) } else { crate::layout::first_name(bytes) }
}

/// Sets an option of the descriptor itself; without the C library, in front of which this library may stand.
pub(crate) fn set_native_option(fd: impl AsFd, name: c_int, value: &[u8]) -> Result<(), Errno> {
    let len = socklen_t::try_from(value.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the value is as long as it says, and only read.
    let done = unsafe {
        let number = fd.as_fd().as_raw_fd();
        libc::syscall(libc::SYS_setsockopt, number, libc::SOL_SOCKET, name, value.as_ptr(), len)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Value of an option of the descriptor itself, at most `room` bytes.
pub(crate) fn native_option(fd: impl AsFd, name: c_int, room: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; room.min(4096)];
    let mut len = socklen_t::try_from(value.len()).unwrap_or(0);
    let (number, level, to) = (fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, value.as_mut_ptr());
    // SAFETY: there is room for as many bytes as it says.
    let done = unsafe { libc::syscall(libc::SYS_getsockopt, number, level, name, to, &raw mut len) };
    value.truncate(len as usize);
    if done == 0 { Ok(value) } else { Err(last_error()) }
}

/// A length that C passes as an unsigned number and the system takes for a signed one.
fn length(len: socklen_t) -> Result<usize, Errno> {
    i32::try_from(len).map_err(|_| Errno::INVAL)?;
    Ok(len as usize)
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Writes a name as [`give`] does, for a call that only asks for it.
///
/// # Safety
/// As `give`.
unsafe fn give_name(
    name: Result<Vec<u8>, Errno>,
    to: *mut c_void,
    room: *mut socklen_t,
) -> Result<(), Errno> {
    let name = name?;
    if to.is_null() || room.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's.
    unsafe {
        length(*room)?;
        give(&name, to, room)
    }
}

/// Writes as much of `bytes` as there is room for, and how long they are.
///
/// # Safety
/// `room` is null or holds the number of bytes that `to` has room for; both can be written.
unsafe fn give(bytes: &[u8], to: *mut c_void, room: *mut socklen_t) -> Result<(), Errno> {
    if to.is_null() {
        return Ok(());
    }
    if room.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: `room` can be read and written, and `to` has as many bytes as it says.
    unsafe {
        let fits = bytes.len().min(*room as usize);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), fits);
        *room = socklen_t::try_from(bytes.len()).unwrap_or(socklen_t::MAX);
    }
    Ok(())
}
