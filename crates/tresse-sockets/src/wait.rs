//! Waits of a call until a descriptor is ready or a pipe is closed. Signals interrupt them, as they do the kernel's calls on sockets.
//! Meanwhile no call is in progress on the thread (`inside.rs`).

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, read};
use rustix::net::{RecvFlags, recv, sockopt};

use crate::inside;

/// Condition that a call may wait for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    Readable,
    Writable,
}

/// Waits until the descriptor is readable. As for a call that reads from it, the same signals interrupt the wait, and SO_RCVTIMEO
/// limits it.
///
/// # Errors
/// `AGAIN` for a non-blocking descriptor, or when the time is over; `INTR`.
pub(crate) fn wait_readable(theirs: impl AsFd) -> Result<(), Errno> {
    inside::pause(|| recv(theirs, &mut [0; 1], RecvFlags::PEEK)).map(|_| ())
}

/// Waits until the descriptor is writable.
///
/// # Errors
/// `AGAIN` for a non-blocking descriptor, or when SO_SNDTIMEO is over; `INTR`.
pub(crate) fn wait_writable(theirs: impl AsFd) -> Result<(), Errno> {
    if fcntl_getfl(&theirs)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    let limit = sockopt::socket_timeout(&theirs, sockopt::Timeout::Send)?;
    if wait_for(&theirs, PollFlags::OUT, limit)? { Ok(()) } else { Err(Errno::AGAIN) }
}

/// Waits until the write end of the pipe `told` is closed, at most for the time `left`. Without a limit it waits in a call that the
/// kernel restarts after a signal handler with SA_RESTART; with a limit every signal handler interrupts it. Both are what signal(7)
/// specifies for calls on sockets.
///
/// # Errors
/// `INTR`.
pub(crate) fn wait_told(told: impl AsFd, left: Option<Duration>) -> Result<(), Errno> {
    match left {
        None => inside::pause(|| read(told, &mut [0; 1])).map(|_| ()),
        left => wait_for(told, PollFlags::IN, left).map(|_| ()),
    }
}

/// Waits until a descriptor shows one of these events; returns false if the limit is over before.
fn wait_for(fd: impl AsFd, events: PollFlags, limit: Option<Duration>) -> Result<bool, Errno> {
    let limit = limit.map(|limit| rustix::time::Timespec::try_from(limit).unwrap_or(LONG));
    let mut fds = [PollFd::new(&fd, events)];
    inside::pause(|| poll(&mut fds, limit.as_ref())).map(|count| count > 0)
}

/// Waits until the descriptor is readable or writable, as `need` says, but at most a millisecond, in a call that has lasted for
/// `so_far`.
///
/// # Errors
/// `AGAIN` for a non-blocking descriptor, or when its timeout is over; `INTR`.
pub(crate) fn wait_a_little(theirs: impl AsFd, need: Need, so_far: Duration) -> Result<(), Errno> {
    let (timeout, events) = match need {
        Need::Readable => (sockopt::Timeout::Recv, PollFlags::IN),
        Need::Writable => (sockopt::Timeout::Send, PollFlags::OUT),
    };
    let over = sockopt::socket_timeout(&theirs, timeout)?.is_some_and(|limit| limit <= so_far);
    if over || is_nonblocking(&theirs) {
        return Err(Errno::AGAIN);
    }
    wait_for(theirs, events, Some(MOMENT)).map(|_| ())
}

/// Waits until `told` is readable, with `a_moment` at most a millisecond, in a call on `theirs` that has lasted for `so_far`.
///
/// # Errors
/// `AGAIN` when SO_SNDTIMEO of `theirs` is over; `INTR`.
pub(crate) fn wait_shown(
    theirs: impl AsFd,
    told: BorrowedFd<'_>,
    so_far: Duration,
    a_moment: bool,
) -> Result<(), Errno> {
    let limit = sockopt::socket_timeout(&theirs, sockopt::Timeout::Send)?;
    let left = limit.map(|limit| limit.checked_sub(so_far).ok_or(Errno::AGAIN)).transpose()?;
    let pause = left.into_iter().chain(a_moment.then_some(MOMENT)).min();
    wait_told(told, pause)
}

/// Returns whether calls on the descriptor are non-blocking.
pub(crate) fn is_nonblocking(theirs: impl AsFd) -> bool {
    fcntl_getfl(theirs).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

const MOMENT: Duration = Duration::from_millis(1);
const LONG: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 86_400, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Readiness;

    #[test]
    fn waiting_ends_with_what_is_waited_for_and_when_our_end_is_gone() {
        let (mut readiness, theirs) = Readiness::new(false, true).expect("a pair");
        readiness.wake();
        wait_readable(&theirs).expect("woken");
        readiness.show(&theirs, false, true);
        wait_writable(&theirs).expect("it is");
        drop(readiness);
        wait_readable(&theirs).expect("an end");
    }

    #[test]
    fn a_descriptor_that_does_not_block_does_not() {
        let (_readiness, theirs) = Readiness::new(true, true).expect("a pair");
        assert_eq!(wait_readable(&theirs), Err(Errno::AGAIN));
        assert_eq!(wait_writable(&theirs), Err(Errno::AGAIN));
    }
}
