//! Descriptor of a socket: one end of a pair of local sockets. So the kernel's `poll`, `select` and `epoll` report in any program
//! whether the socket is readable and writable. The library has the other end. A byte sent from there makes the descriptor
//! readable; bytes sent from the descriptor that are not read make it unwritable.
//!
//! Owns readiness. Independent of the data that is read or written, and of calls that wait (`wait.rs`).

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::net::{recv, send, shutdown, socketpair, sockopt};

use crate::numbers::Private;

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

/// Bytes that make a descriptor with the smallest send buffer unwritable: the kernel shows it as writable while at most a quarter
/// is used.
const FILLING: usize = 2048;

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

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
}
