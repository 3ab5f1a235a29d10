//! The threads that serve forked processes: one for each, which executes its calls on the sockets here, one after the other. It
//! blocks only to wait for the next request.

use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::CHILDREN;
use crate::delegated::{read_info, write_received};
use crate::numbers::{self, Private};
use crate::parent::ask;
use crate::parent::frame::{Reader, Writer};
use crate::shared::lock;
use crate::{aliases, lower, names, open, options, receive, send, table};

/// A response, and a descriptor that is sent with it.
type Answer = Result<(Writer, Option<OwnedFd>), Errno>;

/// A forked process that is served: the connection to it, and the handles of the sockets that it still has.
pub(super) struct ChildProcess {
    pub(super) channel: Private<OwnedFd>,
    handles: Mutex<BTreeSet<i32>>,
}

/// All processes that are served.
pub(super) static SERVED: Mutex<Vec<Arc<ChildProcess>>> = Mutex::new(Vec::new());
/// Locked for reading from the first byte of a request to the last one of its response.
pub(super) static ANSWERING: RwLock<()> = RwLock::new(());

/// Starts to serve a process that has these handles: hidden descriptors of this process.
pub(super) fn start(channel: Private<OwnedFd>, handles: BTreeSet<i32>) {
    CHILDREN.fetch_add(1, Ordering::AcqRel);
    let served = Arc::new(ChildProcess { channel, handles: Mutex::new(handles) });
    lock(&SERVED).push(Arc::clone(&served));
    serve(served);
}

/// Starts to serve all forked processes from this process, which has the sockets now.
pub(super) fn resume() {
    let all = lock(&SERVED).clone();
    all.into_iter().for_each(serve);
}

fn serve(served: Arc<ChildProcess>) {
    let child = ChildServer(served);
    // If no thread can be started, the child finds its connection closed.
    crate::ffi::quiet_thread("tresse-child", move || while child.serve_once() {});
}

/// Server of one process, for as long as that exists.
struct ChildServer(Arc<ChildProcess>);

impl Drop for ChildServer {
    /// Closes the sockets of the process, which has ended or runs another program.
    fn drop(&mut self) {
        let _one = ANSWERING.read().unwrap_or_else(PoisonError::into_inner);
        for handle in std::mem::take(&mut *lock(&self.0.handles)) {
            let _ = aliases::close(handle);
        }
        lock(&SERVED).retain(|other| !Arc::ptr_eq(other, &self.0));
        CHILDREN.fetch_sub(1, Ordering::AcqRel);
    }
}

fn done() -> Answer {
    Ok((Writer::default().number(0), None))
}

impl ChildServer {
    /// Waits for a request and responds to it; returns false at the end of the connection.
    fn serve_once(&self) -> bool {
        let channel = &self.0.channel;
        while lower::wait(&[], (channel.as_fd(), PollFlags::IN), None) == Err(Errno::INTR) {}
        let _one = ANSWERING.read().unwrap_or_else(PoisonError::into_inner);
        let Ok(mut request) = Reader::receive(channel) else { return false };
        let (answer, with) = match self.answer(&mut request) {
            Ok((answer, with)) => (answer, with),
            Err(error) => (Writer::default().number(error.raw_os_error()), None),
        };
        answer.send(channel, with.as_ref().map(AsFd::as_fd)).is_ok()
    }

    fn answer(&self, request: &mut Reader) -> Answer {
        match request.number()? {
            ask::FORK => Self::fork(&request.numbers()?),
            ask::SOCKET => {
                let (family, kind, protocol) = (request.number()?, request.number()?, request.number()?);
                let reserved = ChildServer::reserve()?;
                self.made(open::socket(family, kind | libc::SOCK_CLOEXEC, protocol)?, reserved)
            }
            what => {
                let fd = request.number()?;
                if !lock(&self.0.handles).contains(&fd) {
                    return Err(Errno::BADF);
                }
                match what {
                    ask::SEND | ask::RECEIVE | ask::READABLE_BYTES => carry(what, fd, request),
                    ask::SET_OPTION | ask::OPTION => option(what, fd, request),
                    ask::LOCAL_NAME..=ask::NUMBER_TOWARDS => name(what, fd, request),
                    _ => self.live(what, fd, request),
                }
            }
        }
    }

    /// Prepares a process that the served process is about to fork: it gets duplicates of these handles, and a connection.
    fn fork(handles: &[i32]) -> Answer {
        let (served, channel) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let served = Private::moved(served);
        let fresh: Vec<i32> = handles
            .iter()
            .map(|&handle| {
                table::find(handle).and_then(|alias| table::duplicate_hidden(&alias)).unwrap_or(-1)
            })
            .collect();
        let held = fresh.iter().copied().filter(|&handle| handle >= 0).collect();
        start(served, held);
        Ok((Writer::default().number(0).numbers(&fresh), Some(channel)))
    }

    /// Reserves numbers for the two descriptors that [`ChildServer::made`] makes: once an association is accepted it is too late to
    /// fail for want of numbers.
    fn reserve() -> Result<[OwnedFd; 2], Errno> {
        Ok([numbers::reserve()?, numbers::reserve()?])
    }

    /// Responds with a socket that was made for the child: the child gets its descriptor, and this process keeps another one.
    fn made(&self, fd: i32, reserved: [OwnedFd; 2]) -> Answer {
        drop(reserved);
        let alias = table::find(fd)?;
        let handle = table::duplicate_hidden(&alias);
        let given = rustix::io::fcntl_dupfd_cloexec(&*alias, 0);
        drop(alias);
        let _ = aliases::close(fd);
        let (handle, given) = (handle?, given?);
        lock(&self.0.handles).insert(handle);
        Ok((Writer::default().number(0).number(handle), Some(given)))
    }

    /// Executes a call that changes the state of a socket, from `bind` to `close`.
    fn live(&self, what: i32, fd: i32, request: &mut Reader) -> Answer {
        match what {
            ask::CLOSE => {
                lock(&self.0.handles).remove(&fd);
                aliases::close(fd)?;
            }
            ask::BIND => open::bind(fd, &request.bytes()?)?,
            ask::BIND_ADD => open::bind_add(fd, &request.bytes()?)?,
            ask::BIND_REMOVE => open::bind_remove(fd, &request.bytes()?)?,
            ask::LISTEN => open::listen(fd, request.number()?)?,
            ask::SHUTDOWN => open::shutdown(fd, request.number()?)?,
            ask::CONNECTED => open::connected(fd, request.number()?)?,
            ask::CONNECT => {
                let (number, told) = open::begin_to_connect(fd, &request.bytes()?)?;
                return Ok((Writer::default().number(0).number(number), Some(told.into())));
            }
            ask::ACCEPT => {
                let flags = request.number()?;
                let reserved = ChildServer::reserve()?;
                return self.made(open::accept_at_once(fd, flags | libc::SOCK_CLOEXEC)?, reserved);
            }
            ask::PEEL_OFF => {
                let (number, flags) = (request.number()?, request.number()?);
                let reserved = ChildServer::reserve()?;
                return self.made(open::peel_off(fd, number, flags | libc::SOCK_CLOEXEC)?, reserved);
            }
            _ => return Err(Errno::PROTO),
        }
        done()
    }
}

fn name(what: i32, fd: i32, request: &mut Reader) -> Answer {
    let answer = Writer::default().number(0);
    let answer = match what {
        ask::LOCAL_NAME => answer.bytes(&names::local_name(fd)?),
        ask::PEER_NAME => answer.bytes(&names::peer_name(fd)?),
        ask::NUMBER_TOWARDS => answer.number(open::number_towards(fd, &request.bytes()?)?),
        _ => {
            let number = request.number()?;
            let all = if what == ask::LOCAL_NAMES { names::local_names } else { names::peer_names };
            let (bytes, count) = all(fd, number)?;
            answer.bytes(&bytes).unsigned(count)
        }
    };
    Ok((answer, None))
}

fn option(what: i32, fd: i32, request: &mut Reader) -> Answer {
    let (level, option, value) = (request.number()?, request.number()?, request.bytes()?);
    let answer = Writer::default().number(0);
    let answer = if what == ask::OPTION {
        answer.bytes(&options::get(fd, level, option, &value)?)
    } else {
        answer.number(options::set(fd, level, option, &value)?)
    };
    Ok((answer, None))
}

fn carry(what: i32, fd: i32, request: &mut Reader) -> Answer {
    let answer = Writer::default().number(0);
    match what {
        ask::SEND => {
            let (flags, data) = (request.number()?, request.bytes()?);
            let info = read_info(request)?;
            // The child itself waits for room, and gets SIGPIPE.
            let waits = flags & libc::MSG_DONTWAIT == 0;
            let (sent, room) = send::send_at_once(fd, &send::Data::Owned(data.into()), &info, waits);
            match sent {
                Err(Errno::AGAIN) if waits => {
                    let room = room.and_then(|room| room.try_clone().ok());
                    Ok((Writer::default().number(Errno::AGAIN.raw_os_error()), room.map(OwnedFd::from)))
                }
                _ => sent.map(|_| (answer, None)),
            }
        }
        ask::RECEIVE => {
            let (flags, room) = (request.number()?, request.unsigned()? as usize);
            let mut data = vec![0; room];
            let received =
                receive::receive(fd, &mut [IoSliceMut::new(&mut data)], flags | libc::MSG_DONTWAIT, true)?;
            Ok((write_received(answer.bytes(&data[..received.bytes]), &received), None))
        }
        _ => {
            let bytes = receive::readable_bytes(fd)?;
            Ok((answer.unsigned(u32::try_from(bytes).unwrap_or(u32::MAX)), None))
        }
    }
}
