//! Numbers of descriptors that the program does not know of: out of the way of its own. Programs count on the lowest free number
//! (`close(0)` and then `open`), and `select` has room for few. Programs that close all numbers in a row do not mean these.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::owned::PRIVATE;

/// A descriptor that only the library has: its number is among the private ones until it is closed.
#[derive(Debug)]
pub(crate) struct Private<T: AsFd>(T);

impl<T: AsFd> Private<T> {
    pub(crate) fn new(fd: T) -> Self {
        PRIVATE.insert(fd.as_fd().as_raw_fd());
        Private(fd)
    }
}

impl<T: AsFd + From<OwnedFd>> Private<T> {
    /// The same, moved out of the way.
    pub(crate) fn moved(fd: T) -> Self {
        Private::new(moved(fd))
    }
}

impl<T: AsFd> Drop for Private<T> {
    /// Before it is closed: afterwards the number may be the program's.
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

/// Returns whether the program does not know of this descriptor. Takes no lock and allocates nothing, so that a signal handler may
/// ask.
pub fn is_private(fd: i32) -> bool {
    PRIVATE.contains(fd)
}

/// The first descriptor from `from` on that the program does not know of. As safe as [`is_private`].
pub fn next_private(from: i32) -> Option<i32> {
    PRIVATE.next(from)
}

/// Closes the private descriptors in a process that was forked, whoever has them in its memory; all but `kept`.
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

/// The least number for a descriptor of the library: in the upper half of those that the process may have.
fn least() -> i32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from(limit / 2).unwrap_or(OUT_OF_THE_WAY).min(OUT_OF_THE_WAY)
}

/// Another descriptor of the same, made by `duplicate` with the least number; a low one if there is no other.
///
/// # Errors
/// None is left.
pub(crate) fn duplicate(duplicate: impl Fn(i32) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    duplicate(least()).or_else(|_| duplicate(0))
}

/// Keeps the lowest free number for a descriptor to come, until it is dropped. A process that another thread forks meanwhile keeps
/// it for good, so it is of nothing whose end anybody waits for.
///
/// # Errors
/// None is left.
pub(crate) fn reserve() -> Result<OwnedFd, Errno> {
    eventfd(0, EventfdFlags::CLOEXEC)
}

/// Moves a descriptor, which is closed on exec, out of the way; it keeps its number if there is no other.
pub(crate) fn moved<T: AsFd + From<OwnedFd>>(fd: T) -> T {
    match rustix::io::fcntl_dupfd_cloexec(&fd, least()) {
        Ok(high) => T::from(high),
        Err(_) => fd,
    }
}

const OUT_OF_THE_WAY: i32 = 4096;
