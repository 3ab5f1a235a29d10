//! The boundary to C: pointers become slices, errors become `errno`. Only this module of the crate has `unsafe` code.
//!
//! Functions have the signatures of the calls of libc and libsctp that they replace, and the same requirements: pointers are null
//! or point to as much memory as the call says, which no other code changes meanwhile.

#![allow(unsafe_code, reason = "this is where C calls")]

pub mod calls;
pub mod libsctp;
pub mod messages;
mod number;
mod system;

pub(crate) use number::Number;
pub use system::end_at_once;
pub(crate) use system::{
    Side, close_all, fork, hold_signals, keeping_errno, native_option, quiet_thread, release_signals,
    set_native_option, signal_pipe, watch_forks,
};

use std::ffi::{c_int, c_void};

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

/// Checks a length, which C passes as an unsigned number and the system reads as a signed one.
fn length(len: socklen_t) -> Result<usize, Errno> {
    i32::try_from(len).map_err(|_| Errno::INVAL)?;
    Ok(len as usize)
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
