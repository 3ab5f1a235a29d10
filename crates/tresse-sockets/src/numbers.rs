//! High numbers for descriptors that only the library uses. Programs rely on getting the lowest free number (`close(0)` and then
//! `open`), and `select` takes small numbers only. Programs that close all numbers in a row do not mean to close these.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::owned::PRIVATE;

/// A descriptor that only the library uses; its number is marked as private until it is closed.
#[derive(Debug)]
pub(crate) struct Private<T: AsFd>(T);

impl<T: AsFd> Private<T> {
    pub(crate) fn new(fd: T) -> Self {
        PRIVATE.insert(fd.as_fd().as_raw_fd());
        Private(fd)
    }
}

impl<T: AsFd + From<OwnedFd>> Private<T> {
    /// Moves a descriptor to a high number and marks it as private.
    pub(crate) fn moved(fd: T) -> Self {
        Private::new(moved(fd))
    }
}

impl<T: AsFd> Drop for Private<T> {
    /// Removes the mark before the descriptor is closed: afterwards the number may belong to the program.
    fn drop(&mut self) {
        PRIVATE.remove(self.0.as_fd().as_raw_fd());
    }
}

impl<T: AsFd> Deref for Private<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: AsFd> AsFd for Private<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns whether only the library uses this descriptor. Takes no lock and allocates nothing, so that a signal handler may call
/// it.
pub fn is_private(fd: i32) -> bool {
    PRIVATE.contains(fd)
}

/// Returns the first private descriptor from `from` on. A signal handler may call it, as [`is_private`].
pub fn next_private(from: i32) -> Option<i32> {
    PRIVATE.next(from)
}

/// Closes all private descriptors but `kept` in a forked process, whichever value in its memory owns them.
pub(crate) fn close_private(kept: i32) {
    let mut from = 0;
    while let Some(fd) = PRIVATE.next(from) {
        if fd != kept {
            PRIVATE.remove(fd);
            crate::ffi::close_all(&[fd]);
        }
        let Some(next) = fd.checked_add(1) else { return };
        from = next;
    }
}

/// Returns the least number for a descriptor of the library: half of the greatest that the process may have, but at most 4096.
fn least() -> i32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from(limit / 2).unwrap_or(OUT_OF_THE_WAY).min(OUT_OF_THE_WAY)
}

/// Returns a descriptor made by `duplicate` with a high number, or with a low one if no high number is free.
///
/// # Errors
/// No number is free.
pub(crate) fn duplicate(duplicate: impl Fn(i32) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    duplicate(least()).or_else(|_| duplicate(0))
}

/// Reserves the lowest free number until the result is dropped. A process that another thread forks meanwhile keeps this descriptor
/// forever, so it is an event descriptor, whose end no process waits for.
///
/// # Errors
/// No number is free.
pub(crate) fn reserve() -> Result<OwnedFd, Errno> {
    eventfd(0, EventfdFlags::CLOEXEC)
}

/// Moves a descriptor to a high number, with close-on-exec; it keeps its number if no high one is free.
pub(crate) fn moved<T: AsFd + From<OwnedFd>>(fd: T) -> T {
    match rustix::io::fcntl_dupfd_cloexec(&fd, least()) {
        Ok(high) => T::from(high),
        Err(_) => fd,
    }
}

const OUT_OF_THE_WAY: i32 = 4096;
