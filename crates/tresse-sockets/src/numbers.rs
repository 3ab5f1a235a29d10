//! Numbers of descriptors that the program does not know of: out of the way of its own. Programs count on the lowest free number
//! (`close(0)` and then `open`), and `select` has room for few.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

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

/// Moves a descriptor, which is closed on exec, out of the way; it keeps its number if there is no other.
pub(crate) fn moved<T: AsFd + From<OwnedFd>>(fd: T) -> T {
    match rustix::io::fcntl_dupfd_cloexec(&fd, least()) {
        Ok(high) => T::from(high),
        Err(_) => fd,
    }
}

const OUT_OF_THE_WAY: i32 = 4096;
