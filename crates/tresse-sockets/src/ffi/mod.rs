//! The boundary to C: pointers become slices, errors become `errno`. Only this module of the crate has `unsafe` code.
//!
//! Functions have the signatures of the calls of libc and libsctp that they replace, and the same requirements: pointers are null
//! or point to as much memory as the call says, which no other code changes meanwhile.

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

/// Converts the result of a call that returns 0 or a descriptor; for an error it sets `errno` and returns -1.
fn answer(result: Result<i32, Errno>) -> c_int {
    result.unwrap_or_else(|error| {
        set_errno(error);
        -1
    })
}

/// Converts the result of a call that returns a number of bytes; for an error it sets `errno` and returns -1.
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
    // SAFETY: `errno` of this thread exists as long as the thread.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
}

/// Calls `act`, and restores `errno` afterwards.
pub(crate) fn keeping_errno(act: impl FnOnce()) {
    // SAFETY: `errno` of this thread exists as long as the thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    act();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Sends SIGPIPE to the calling thread, as Linux does: another thread did not make the call and may not have blocked the signal.
pub(crate) fn signal_pipe() {
    // SAFETY: the calling thread exists, and SIGPIPE is a signal.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
}

/// Returns memory of the caller that is read.
///
/// # Safety
/// `data` is null or points to `len` bytes that do not change for `'a`.
unsafe fn given<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || isize::try_from(len).is_err() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller guarantees it, and the length fits.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Returns memory of the caller that is written.
///
/// # Safety
/// `data` is null or points to `len` bytes that no other code uses for `'a`, and that have some value.
unsafe fn lent<'a>(data: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if len == 0 {
        return Ok(&mut []);
    }
    if data.is_null() || isize::try_from(len).is_err() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller guarantees it, and the length fits. Memory that C has not written yet has some value nevertheless: it
    // comes from outside of Rust, and this library only writes it.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

/// Returns a name that the caller passed.
///
/// # Safety
/// As for `given`.
unsafe fn name_at<'a>(name: *const sockaddr, len: socklen_t) -> Result<&'a [u8], Errno> {
    if len as usize > crate::layout::STORAGE {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller guarantees it.
    unsafe { given(name.cast(), len as usize) }
}

/// Returns the name of a message's destination, or an empty slice if there is none. Other bytes may follow the name: programs pass
/// the length of a `struct sockaddr_storage`.
///
/// # Safety
/// As for `given`.
unsafe fn one_name<'a>(name: *const sockaddr, len: socklen_t) -> Result<&'a [u8], Errno> {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { name_at(name, if name.is_null() { 0 } else { len }) }?;
    if bytes.is_empty() { Ok(bytes) } else { crate::layout::first_name(bytes) }
}

/// Sets an option of the local socket behind a descriptor, by a direct system call, which no preloaded library intercepts.
pub(crate) fn set_native_option(fd: impl AsFd, name: c_int, value: &[u8]) -> Result<(), Errno> {
    let len = socklen_t::try_from(value.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `len` is the length of the value, which is only read.
    let done = unsafe {
        let number = fd.as_fd().as_raw_fd();
        libc::syscall(libc::SYS_setsockopt, number, libc::SOL_SOCKET, name, value.as_ptr(), len)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Returns the value of an option of the local socket behind a descriptor, at most `room` bytes.
pub(crate) fn native_option(fd: impl AsFd, name: c_int, room: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; room.min(4096)];
    let mut len = socklen_t::try_from(value.len()).unwrap_or(0);
    let (number, level, to) = (fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, value.as_mut_ptr());
    // SAFETY: `len` is the length of the buffer.
    let done = unsafe { libc::syscall(libc::SYS_getsockopt, number, level, name, to, &raw mut len) };
    value.truncate(len as usize);
    if done == 0 { Ok(value) } else { Err(last_error()) }
}

/// Checks a length, which C passes as an unsigned number and the system reads as a signed one.
fn length(len: socklen_t) -> Result<usize, Errno> {
    i32::try_from(len).map_err(|_| Errno::INVAL)?;
    Ok(len as usize)
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Writes a name as [`give`] does, for a call whose only result is the name: a null pointer is an error.
///
/// # Safety
/// As for `give`.
unsafe fn give_name(
    name: Result<Vec<u8>, Errno>,
    to: *mut c_void,
    room: *mut socklen_t,
) -> Result<(), Errno> {
    let name = name?;
    if to.is_null() || room.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller guarantees it.
    unsafe {
        length(*room)?;
        give(&name, to, room)
    }
}

/// Writes as much of `bytes` as fits to `to`, and the length of `bytes` to `room`.
///
/// # Safety
/// `room` is null or holds the number of bytes that `to` has room for; both are writable.
unsafe fn give(bytes: &[u8], to: *mut c_void, room: *mut socklen_t) -> Result<(), Errno> {
    if to.is_null() {
        return Ok(());
    }
    if room.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: `room` is readable and writable, and `to` has as many bytes as `room` holds.
    unsafe {
        let fits = bytes.len().min(*room as usize);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), fits);
        *room = socklen_t::try_from(bytes.len()).unwrap_or(socklen_t::MAX);
    }
    Ok(())
}
