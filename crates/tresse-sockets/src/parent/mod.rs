//! Connection of a forked process to the one that has the sockets: requests for calls, and their responses.
//!
//! Owns whether another process has the sockets of this one, and the connection to it. Independent of the effects of a call.

pub(crate) mod frame;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{Reader, Writer};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::lower;
use crate::numbers::{self, Private};
use crate::shared::lock;
use crate::table::{self, Alias};

/// True if this process was forked from the one that has the sockets.
pub(crate) static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Connection to the process that has the sockets.
pub(crate) static CHANNEL: Mutex<Option<Private<OwnedFd>>> = Mutex::new(None);

/// Returns access to the sockets if another process has them.
pub(crate) fn elsewhere() -> Option<ParentSockets> {
    IS_CHILD.load(Ordering::Relaxed).then_some(ParentSockets)
}

/// Codes of the calls that a frame requests.
pub(crate) mod ask {
    pub(crate) const FORK: i32 = 0;
    pub(crate) const SOCKET: i32 = 1;
    pub(crate) const CLOSE: i32 = 2;
    pub(crate) const BIND: i32 = 3;
    pub(crate) const BIND_ADD: i32 = 4;
    pub(crate) const BIND_REMOVE: i32 = 5;
    pub(crate) const LISTEN: i32 = 6;
    pub(crate) const ACCEPT: i32 = 7;
    pub(crate) const CONNECT: i32 = 8;
    pub(crate) const CONNECTED: i32 = 9;
    pub(crate) const SHUTDOWN: i32 = 10;
    pub(crate) const PEEL_OFF: i32 = 11;
    pub(crate) const LOCAL_NAME: i32 = 12;
    pub(crate) const PEER_NAME: i32 = 13;
    pub(crate) const LOCAL_NAMES: i32 = 14;
    pub(crate) const PEER_NAMES: i32 = 15;
    pub(crate) const NUMBER_TOWARDS: i32 = 16;
    pub(crate) const SET_OPTION: i32 = 17;
    pub(crate) const OPTION: i32 = 18;
    pub(crate) const SEND: i32 = 19;
    pub(crate) const RECEIVE: i32 = 20;
    pub(crate) const READABLE_BYTES: i32 = 21;
}

/// Access to the sockets of another process.
pub(crate) struct ParentSockets;

impl ParentSockets {
    /// Requests a connection for a process that is about to be forked from this one. Returns the handles that these sockets have on
    /// it, and the connection.
    pub(crate) fn fork(&self, handles: &[i32]) -> Result<(Vec<i32>, Private<OwnedFd>), Errno> {
        let mut answer = exchange_for_descriptor(Writer::default().number(ask::FORK).numbers(handles))?;
        Ok((answer.numbers()?, Private::moved(answer.descriptor()?)))
    }

    /// Closes all sockets in the other process; their descriptors here stay open.
    pub(crate) fn leave(&self) {
        let own = table::visible();
        for handle in own.iter().map(|alias| handle_of(alias)).collect::<BTreeSet<i32>>() {
            // An error means that another thread has closed it meanwhile.
            let _ = exchange(Writer::default().number(ask::CLOSE).number(handle));
        }
    }

    pub(crate) fn close(&self, fd: i32, act: impl FnOnce(&Alias)) -> Result<(), Errno> {
        let (alias, last) = table::remove(fd)?;
        act(&alias);
        if last { exchange(about(ask::CLOSE, &alias)).map(|_| ()) } else { Ok(()) }
    }
}

fn handle_of(alias: &Alias) -> i32 {
    alias.socket.handle.load(std::sync::atomic::Ordering::Relaxed)
}

/// Sends a request, and returns the part of the response that follows the error number.
pub(crate) fn exchange(request: Writer) -> Result<Reader, Errno> {
    accepted(call(request, || Ok(None))?)
}

/// Sends a request whose response has a descriptor. A number is reserved for it before: without a free one the kernel discards the
/// descriptor, and an association that was accepted would be lost with it.
///
/// # Errors
/// `MFILE` if no number is free.
pub(crate) fn exchange_for_descriptor(request: Writer) -> Result<Reader, Errno> {
    accepted(call(request, || numbers::reserve().map(Some))?)
}

fn accepted((error, answer): (i32, Reader)) -> Result<Reader, Errno> {
    if error == 0 { Ok(answer) } else { Err(Errno::from_raw_os_error(error)) }
}

/// Sends a request, and keeps the descriptor of `reserve` until the response arrives. Returns the error number, 0 for none, and the
/// rest of the response.
pub(crate) fn call(
    request: Writer,
    reserve: impl FnOnce() -> Result<Option<OwnedFd>, Errno>,
) -> Result<(i32, Reader), Errno> {
    let channel = lock(&CHANNEL);
    // Without a connection, the process that had the sockets has ended, and so have the sockets.
    let channel = channel.as_ref().ok_or(Errno::CONNRESET)?;
    let gone = |error| if error == Errno::PIPE { Errno::CONNRESET } else { error };
    let reserved = reserve()?;
    request.send(channel, None).map_err(gone)?;
    if reserved.is_some() {
        while lower::wait(&[], (channel.as_fd(), PollFlags::IN), None) == Err(Errno::INTR) {}
        drop(reserved);
    }
    let mut answer = Reader::receive(channel).map_err(gone)?;
    Ok((answer.number()?, answer))
}

pub(crate) fn about(what: i32, alias: &Alias) -> Writer {
    Writer::default().number(what).number(handle_of(alias))
}
