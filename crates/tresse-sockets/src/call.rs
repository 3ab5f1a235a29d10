//! A call on a socket of this process: its begin and its end, and how it is repeated until it succeeds.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt;
use tresse_proto::AssociationId;

use crate::engine::State;
use crate::stack::Stack;
use crate::table::{self, Alias, Socket};
use crate::wait::{self, Need};
use crate::{inside, parent};

/// A call on a socket: the descriptor, and the stack of the process.
pub(crate) struct Call {
    pub(crate) alias: Arc<Alias>,
    pub(crate) stack: &'static Stack,
}

impl Call {
    /// Begins a call on the descriptor `fd`.
    ///
    /// # Errors
    /// `BADF` for a descriptor that is not ours.
    pub(crate) fn on(fd: i32) -> Result<Self, Errno> {
        if parent::elsewhere().is_some() {
            return Err(Errno::OPNOTSUPP);
        }
        let (alias, stack) = (table::find(fd)?, Stack::existing().ok_or(Errno::BADF)?);
        stack.enter();
        Ok(Call { alias, stack })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.alias.socket
    }

    pub(crate) fn key(&self) -> u64 {
        self.alias.socket.key
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.alias.socket.engine.lock()
    }

    /// Gives the engine a turn for the work of this call. The engine must not be locked.
    pub(crate) fn leave(&self) {
        self.stack.leave(&self.alias.socket.engine);
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        wait::is_nonblocking(&*self.alias)
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until the descriptor is readable, unless the
    /// descriptor is non-blocking or `at_once`.
    pub(crate) fn until<T>(
        &self,
        at_once: bool,
        attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.repeat(at_once, attempt, |since| {
            if self.stack.shared.is_synchronous() {
                return self.sleep(Need::Readable, since);
            }
            self.stack.shared.send_pending();
            wait::wait_readable(&*self.alias)
        })
    }

    /// Repeats `attempt` as [`Self::until`] does, but waits for room in the send buffer of the association `to`, or of all
    /// associations.
    pub(crate) fn until_room<T>(
        &self,
        to: Option<AssociationId>,
        at_once: bool,
        attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.repeat(at_once, attempt, |since| {
            if self.stack.shared.is_synchronous() {
                return self.sleep(Need::Writable, since);
            }
            if self.is_nonblocking() {
                return Err(Errno::AGAIN);
            }
            self.stack.shared.send_pending();
            let room = self.lock().room(self.key(), to);
            match room {
                Ok(None) => Ok(()),
                Ok(Some(told)) => wait::wait_told(&told, self.left_of(sockopt::Timeout::Send, since)?),
                // No descriptor is left for a pipe: the socket's own descriptor is writable when all associations have room.
                Err(_) => wait::wait_writable(&*self.alias),
            }
        })
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`, or the descriptor is closed. In between it calls `wait` with the time
    /// at which the call began to wait.
    fn repeat<T>(
        &self,
        at_once: bool,
        mut attempt: impl FnMut(&Self) -> Result<T, Errno>,
        wait: impl Fn(Instant) -> Result<(), Errno>,
    ) -> Result<T, Errno> {
        let mut since = None;
        loop {
            match attempt(self) {
                Err(Errno::AGAIN) if !at_once => {}
                done => return done,
            }
            if self.alias.is_gone() {
                return Err(Errno::BADF);
            }
            wait(*since.get_or_insert_with(Instant::now)).map_err(|error| match error {
                // The error of a descriptor that was closed depends on what it showed before.
                Errno::CONNRESET if self.alias.is_gone() => Errno::BADF,
                error => error,
            })?;
        }
    }

    /// Waits in a call of the synchronous mode, which began to wait at `since`, and then receives packets and handles timers.
    fn sleep(&self, need: Need, since: Instant) -> Result<(), Errno> {
        if self.is_nonblocking() {
            return Err(Errno::AGAIN);
        }
        let (timeout, events) = match need {
            Need::Readable => (sockopt::Timeout::Recv, PollFlags::IN),
            Need::Writable => (sockopt::Timeout::Send, PollFlags::OUT),
        };
        let left = self.left_of(timeout, since)?;
        inside::pause(|| self.stack.shared.sleep(&*self.alias, events, left))?;
        self.stack.turn();
        Ok(())
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until the write end of the pipe `told` is closed,
    /// at most for SO_SNDTIMEO.
    pub(crate) fn until_told<T>(
        &self,
        told: BorrowedFd<'_>,
        mut attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let since = Instant::now();
        loop {
            match attempt(self) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
            let left = self.left_of(sockopt::Timeout::Send, since)?;
            if self.stack.shared.is_synchronous() {
                inside::pause(|| self.stack.shared.sleep(told, PollFlags::IN, left))?;
                self.stack.turn();
            } else {
                self.stack.shared.send_pending();
                wait::wait_told(told, left)?;
            }
        }
    }

    /// Returns the remaining time of a call that began to wait at `since`; `None` for no limit, `AGAIN` if the time is over.
    fn left_of(&self, timeout: sockopt::Timeout, since: Instant) -> Result<Option<Duration>, Errno> {
        let limit = sockopt::socket_timeout(&*self.alias, timeout)?;
        limit.map(|limit| limit.checked_sub(since.elapsed()).ok_or(Errno::AGAIN)).transpose()
    }
}
