//! Descriptor of a socket: one end of a pair of local sockets. So the kernel's `poll`, `select` and `epoll` report in any program
//! whether the socket is readable and writable. The library has the other end. A byte sent from there makes the descriptor
//! readable; bytes sent from the descriptor that are not read make it unwritable.
//!
//! Owns readiness and how a thread waits for it. Independent of the data that is read or written.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd, read};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::net::{recv, send, shutdown, socketpair, sockopt};

use crate::inside;
use crate::numbers::Private;
use crate::socket::Need;

/// The library's end of the pair, and the readiness that the descriptor shows.
#[derive(Debug)]
pub(crate) struct Readiness {
    ours: Private<OwnedFd>,
    readable: bool,
    writable: bool,
    /// The end of the association that the descriptor shows.
    hung_up: Option<Shutdown>,
}

impl Readiness {
    /// Creates a descriptor that is neither readable nor writable, and its readiness.
    pub(crate) fn new(nonblocking: bool, close_on_exec: bool) -> Result<(Self, OwnedFd), Errno> {
        // The first end gets the lowest free number, as the descriptor of a socket has to.
        let (theirs, ours) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let ours = Private::moved(ours);
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        if nonblocking {
            fcntl_setfl(&theirs, OFlags::NONBLOCK)?;
        }
        if !close_on_exec {
            fcntl_setfd(&theirs, FdFlags::empty())?;
        }
        // The smallest buffer that the kernel allows: a few bytes fill it.
        sockopt::set_socket_send_buffer_size(&theirs, 1)?;
        let mut readiness = Readiness { ours, readable: false, writable: true, hung_up: None };
        readiness.show(theirs.as_fd(), false, false);
        Ok((readiness, theirs))
    }

    /// Makes the descriptor `theirs` readable or not, and writable or not.
    pub(crate) fn show(&mut self, theirs: impl AsFd, readable: bool, writable: bool) {
        self.show_readable(theirs.as_fd(), readable);
        if writable != self.writable {
            self.writable = writable;
            // An error is ignored: the result of the program's next call is right, whatever the descriptor shows.
            if writable {
                while recv(&self.ours, &mut [0; FILLING], RecvFlags::DONTWAIT)
                    .is_ok_and(|(_, count)| count > 0)
                {}
            } else {
                let _ = send(theirs, &[0; FILLING], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
        }
    }

    /// Makes the descriptor show permanently that no more data arrives (`Write`: POLLRDHUP), and for `Both` that nothing can be
    /// sent either (POLLHUP).
    pub(crate) fn hang_up(&mut self, how: Option<Shutdown>) {
        if let Some(how) = how
            && self.hung_up != Some(how)
        {
            self.hung_up = Some(how);
            let _ = shutdown(&self.ours, how);
        }
    }

    fn show_readable(&mut self, theirs: impl AsFd, readable: bool) {
        if readable == self.readable {
            return;
        }
        self.readable = readable;
        if readable {
            let _ = send(&self.ours, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        } else {
            let _ = recv(theirs, &mut [0; 1], RecvFlags::DONTWAIT);
        }
    }

    /// Makes the descriptor readable, to wake threads that wait for it; the next `show` restores its true readiness.
    pub(crate) fn wake(&mut self) {
        if !self.readable {
            self.readable = true;
            let _ = send(&self.ours, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
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

/// Bytes that make a descriptor with the smallest send buffer unwritable: the kernel shows it as writable while at most a quarter
/// is used.
const FILLING: usize = 2048;
const MOMENT: Duration = Duration::from_millis(1);
const LONG: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 86_400, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(theirs: &OwnedFd) -> (bool, bool) {
        let mut fds = [PollFd::new(theirs, PollFlags::IN | PollFlags::OUT)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).expect("a poll");
        (fds[0].revents().contains(PollFlags::IN), fds[0].revents().contains(PollFlags::OUT))
    }

    #[test]
    fn a_descriptor_shows_every_combination_again_and_again() {
        let (mut readiness, theirs) = Readiness::new(true, true).expect("a pair");
        assert_eq!(shown(&theirs), (false, false));
        for round in 0..50 {
            for (readable, writable) in
                [(true, false), (true, true), (false, true), (false, false), (true, true)]
            {
                readiness.show(&theirs, readable, writable);
                assert_eq!(shown(&theirs), (readable, writable), "round {round}");
            }
        }
    }

    #[test]
    fn a_descriptor_shows_that_the_peer_has_hung_up_and_then_that_both_have() {
        let (mut readiness, theirs) = Readiness::new(true, true).expect("a pair");
        let events = || {
            let mut fds = [PollFd::new(&theirs, PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut fds, Some(&now)).expect("a poll");
            fds[0].revents()
        };
        readiness.show(&theirs, true, true);
        readiness.hang_up(None);
        assert_eq!(events(), PollFlags::IN | PollFlags::OUT);
        readiness.hang_up(Some(Shutdown::Write));
        assert_eq!(events(), PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP);
        readiness.hang_up(Some(Shutdown::Both));
        assert_eq!(events(), PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP | PollFlags::HUP);
    }

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
