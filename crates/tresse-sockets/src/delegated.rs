//! The calls of a forked process, delegated to the process that has the sockets: each sends a request; a call that blocks waits in
//! this process.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::message_info::{NextInfo, ReceiveInfo, Received, SendFields, SendInfo, scatter};
use crate::numbers;
use crate::parent::frame::{Reader, Writer};
use crate::parent::{ParentSockets, about, ask, call, exchange, exchange_for_descriptor};
use crate::settings::Style;
use crate::stack::Stack;
use crate::table::{self, Alias};
use crate::wait::{self, Need};

const AGAIN: i32 = Errno::AGAIN.raw_os_error();

/// Enters a socket that the other process has made into the table; returns its descriptor.
fn made(mut answer: Reader, style: Style, close_on_exec: bool) -> Result<i32, Errno> {
    let handle = answer.number()?;
    let Ok(fd) = answer.descriptor() else {
        // Another thread took the reserved number first.
        exchange(Writer::default().number(ask::CLOSE).number(handle))?;
        return Err(Errno::MFILE);
    };
    if !close_on_exec {
        fcntl_setfd(&fd, FdFlags::empty())?;
    }
    Ok(table::insert_elsewhere(fd, style, handle))
}

fn names(mut answer: Reader) -> Result<(Vec<u8>, u32), Errno> {
    Ok((answer.bytes()?, answer.unsigned()?))
}

/// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until `told` is readable, at most for
/// SO_SNDTIMEO.
fn until_told<T>(
    alias: &Alias,
    told: impl AsFd,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Errno::AGAIN) => {}
            done => return done,
        }
        wait::wait_shown(alias, told.as_fd(), started.elapsed(), is_synchronous())?;
    }
}

fn is_synchronous() -> bool {
    Stack::existing().is_some_and(|stack| stack.shared.is_synchronous())
}

/// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until the descriptor is readable, unless
/// `at_once`.
fn until<T>(alias: &Alias, at_once: bool, mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    // In the synchronous mode nothing happens between calls, so the call is repeated after a short wait.
    let synchronous = is_synchronous();
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Errno::AGAIN) if !at_once => {}
            done => return done,
        }
        if alias.is_gone() {
            return Err(Errno::BADF);
        }
        if synchronous {
            wait::wait_a_little(alias, Need::Readable, started.elapsed())?;
        } else {
            wait::wait_readable(alias)?;
        }
    }
}

/// Repeats `attempt` until the message is not refused for lack of room. The argument of `attempt` is whether the call
/// will wait: if so, a refusal returns the descriptor to wait for.
fn until_room<T>(
    alias: &Alias,
    at_once: bool,
    mut attempt: impl FnMut(bool) -> Result<Result<T, Option<OwnedFd>>, Errno>,
) -> Result<T, Errno> {
    let synchronous = is_synchronous();
    let started = Instant::now();
    let mut waits = false;
    loop {
        let refused = match attempt(waits)? {
            Ok(done) => return Ok(done),
            Err(told) => told,
        };
        if at_once || wait::is_nonblocking(alias) {
            return Err(Errno::AGAIN);
        }
        if alias.is_gone() {
            return Err(Errno::BADF);
        }
        match refused {
            _ if synchronous => wait::wait_a_little(alias, Need::Writable, started.elapsed())?,
            Some(told) => wait::wait_shown(alias, told.as_fd(), started.elapsed(), false)?,
            None if waits => wait::wait_writable(alias)?,
            // The next attempt returns a descriptor to wait for.
            None => waits = true,
        }
    }
}

impl ParentSockets {
    pub(crate) fn socket(&self, family: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        let request = Writer::default().number(ask::SOCKET).number(family).number(kind).number(protocol);
        let is_stream = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) == libc::SOCK_STREAM;
        let style = if is_stream { Style::OneToOne } else { Style::OneToMany };
        made(exchange_for_descriptor(request)?, style, kind & libc::SOCK_CLOEXEC != 0)
    }

    pub(crate) fn bind(&self, fd: i32, name: &[u8]) -> Result<(), Errno> {
        exchange(about(ask::BIND, &*table::find(fd)?).bytes(name)).map(|_| ())
    }

    pub(crate) fn bind_add(&self, fd: i32, names: &[u8]) -> Result<(), Errno> {
        exchange(about(ask::BIND_ADD, &*table::find(fd)?).bytes(names)).map(|_| ())
    }

    pub(crate) fn bind_remove(&self, fd: i32, names: &[u8]) -> Result<(), Errno> {
        exchange(about(ask::BIND_REMOVE, &*table::find(fd)?).bytes(names)).map(|_| ())
    }

    pub(crate) fn listen(&self, fd: i32, backlog: i32) -> Result<(), Errno> {
        exchange(about(ask::LISTEN, &*table::find(fd)?).number(backlog)).map(|_| ())
    }

    pub(crate) fn accept(&self, fd: i32, flags: i32) -> Result<i32, Errno> {
        let alias = table::find(fd)?;
        let answer =
            until(&alias, false, || exchange_for_descriptor(about(ask::ACCEPT, &alias).number(flags)))?;
        made(answer, Style::OneToOne, flags & libc::SOCK_CLOEXEC != 0)
    }

    pub(crate) fn connect(&self, fd: i32, names: &[u8]) -> Result<i32, Errno> {
        let alias = table::find(fd)?;
        let mut begun = exchange_for_descriptor(about(ask::CONNECT, &alias).bytes(names))?;
        let (number, told) = (begun.number()?, begun.descriptor()?);
        if wait::is_nonblocking(alias.as_fd()) {
            return Err(Errno::INPROGRESS);
        }
        let settled = until_told(&alias, &told, || {
            exchange(about(ask::CONNECTED, &alias).number(number)).map(|_| number)
        });
        settled.map_err(|error| if error == Errno::AGAIN { Errno::INPROGRESS } else { error })
    }

    pub(crate) fn shutdown(&self, fd: i32, how: i32) -> Result<(), Errno> {
        exchange(about(ask::SHUTDOWN, &*table::find(fd)?).number(how)).map(|_| ())
    }

    pub(crate) fn peel_off(&self, fd: i32, number: i32, flags: i32) -> Result<i32, Errno> {
        let answer =
            exchange_for_descriptor(about(ask::PEEL_OFF, &*table::find(fd)?).number(number).number(flags))?;
        made(answer, Style::OneToOne, flags & libc::SOCK_CLOEXEC != 0)
    }

    pub(crate) fn local_name(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        exchange(about(ask::LOCAL_NAME, &*table::find(fd)?))?.bytes()
    }

    pub(crate) fn peer_name(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        exchange(about(ask::PEER_NAME, &*table::find(fd)?))?.bytes()
    }

    pub(crate) fn local_names(&self, fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
        names(exchange(about(ask::LOCAL_NAMES, &*table::find(fd)?).number(number))?)
    }

    pub(crate) fn peer_names(&self, fd: i32, number: i32) -> Result<(Vec<u8>, u32), Errno> {
        names(exchange(about(ask::PEER_NAMES, &*table::find(fd)?).number(number))?)
    }

    pub(crate) fn number_towards(&self, fd: i32, names: &[u8]) -> Result<i32, Errno> {
        exchange(about(ask::NUMBER_TOWARDS, &*table::find(fd)?).bytes(names))?.number()
    }

    pub(crate) fn set_option(&self, fd: i32, level: i32, name: i32, value: &[u8]) -> Result<i32, Errno> {
        let request = about(ask::SET_OPTION, &*table::find(fd)?).number(level).number(name).bytes(value);
        exchange(request)?.number()
    }

    pub(crate) fn option(&self, fd: i32, level: i32, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
        exchange(about(ask::OPTION, &*table::find(fd)?).number(level).number(name).bytes(value))?.bytes()
    }

    pub(crate) fn readable_bytes(&self, fd: i32) -> Result<usize, Errno> {
        exchange(about(ask::READABLE_BYTES, &*table::find(fd)?))?.unsigned().map(|bytes| bytes as usize)
    }

    pub(crate) fn send(&self, fd: i32, data: &[u8], info: &SendInfo, flags: i32) -> Result<usize, Errno> {
        let alias = table::find(fd)?;
        let sent = until_room(&alias, flags & libc::MSG_DONTWAIT != 0, |waits| {
            let flags = if waits { flags } else { flags | libc::MSG_DONTWAIT };
            let request = write_info(about(ask::SEND, &alias).number(flags).bytes(data), info);
            // If no number is free for the descriptor that comes with AGAIN, this process waits for the socket's own descriptor.
            match call(request, || Ok(waits.then(|| numbers::reserve().ok()).flatten()))? {
                (0, _) => Ok(Ok(data.len())),
                (AGAIN, mut answer) => Ok(Err(answer.descriptor().ok())),
                (error, _) => Err(Errno::from_raw_os_error(error)),
            }
        });
        let quiet = flags & libc::MSG_NOSIGNAL != 0 || alias.socket.style == Style::OneToMany;
        if sent == Err(Errno::PIPE) && !quiet {
            crate::ffi::signal_pipe();
        }
        sent
    }

    pub(crate) fn receive(
        &self,
        fd: i32,
        into: &mut [IoSliceMut<'_>],
        flags: i32,
    ) -> Result<Received, Errno> {
        let alias = table::find(fd)?;
        let room = into.iter().fold(0, |sum: usize, one| sum.saturating_add(one.len())).min(MOST_ROOM);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        until(&alias, flags & libc::MSG_DONTWAIT != 0, || {
            let mut answer = exchange(about(ask::RECEIVE, &alias).number(flags).unsigned(room))?;
            let data = answer.bytes()?;
            let received = read_received(&mut answer)?;
            scatter(into, std::iter::once(data.as_slice()));
            Ok(received)
        })
    }
}

pub(crate) fn write_info(to: Writer, info: &SendInfo) -> Writer {
    let fields = info.fields.unwrap_or_default();
    let policy = info.policy.unwrap_or_default();
    to.bytes(&info.name)
        .flag(info.number.is_some())
        .number(info.number.unwrap_or_default())
        .flag(info.fields.is_some())
        .number(i32::from(fields.stream))
        .number(i32::from(fields.flags))
        .unsigned(fields.ppid)
        .unsigned(fields.context)
        .flag(info.policy.is_some())
        .number(i32::from(policy.0))
        .unsigned(policy.1)
        .bytes(&info.init)
}

pub(crate) fn read_info(from: &mut Reader) -> Result<SendInfo, Errno> {
    let name = from.bytes()?;
    let (has_number, number) = (from.flag()?, from.number()?);
    let has_fields = from.flag()?;
    let fields = SendFields {
        stream: short(from.number()?)?,
        flags: short(from.number()?)?,
        ppid: from.unsigned()?,
        context: from.unsigned()?,
    };
    let has_policy = from.flag()?;
    let policy = (short(from.number()?)?, from.unsigned()?);
    Ok(SendInfo {
        name,
        number: has_number.then_some(number),
        fields: has_fields.then_some(fields),
        policy: has_policy.then_some(policy),
        init: from.bytes()?,
    })
}

pub(crate) fn write_received(to: Writer, received: &Received) -> Writer {
    let info = received.info.unwrap_or_default();
    let next = received.next.unwrap_or_default();
    to.unsigned(u32::try_from(received.bytes).unwrap_or(u32::MAX))
        .number(received.flags)
        .bytes(&received.name)
        .flag(received.info.is_some())
        .number(i32::from(info.stream))
        .number(i32::from(info.ssn))
        .number(i32::from(info.flags))
        .unsigned(info.ppid)
        .unsigned(info.tsn)
        .unsigned(info.cumulative_tsn)
        .unsigned(info.context)
        .number(info.number)
        .flag(received.next.is_some())
        .number(i32::from(next.stream))
        .number(i32::from(next.flags))
        .unsigned(next.ppid)
        .unsigned(next.length)
        .number(next.number)
        .flag(received.wants_info)
        .flag(received.wants_old_info)
}

pub(crate) fn read_received(from: &mut Reader) -> Result<Received, Errno> {
    let (bytes, flags, name) = (from.unsigned()? as usize, from.number()?, from.bytes()?);
    let has_info = from.flag()?;
    let info = ReceiveInfo {
        stream: short(from.number()?)?,
        ssn: short(from.number()?)?,
        flags: short(from.number()?)?,
        ppid: from.unsigned()?,
        tsn: from.unsigned()?,
        cumulative_tsn: from.unsigned()?,
        context: from.unsigned()?,
        number: from.number()?,
    };
    let has_next = from.flag()?;
    let next = NextInfo {
        stream: short(from.number()?)?,
        flags: short(from.number()?)?,
        ppid: from.unsigned()?,
        length: from.unsigned()?,
        number: from.number()?,
    };
    Ok(Received {
        bytes,
        flags,
        name,
        info: has_info.then_some(info),
        next: has_next.then_some(next),
        wants_info: from.flag()?,
        wants_old_info: from.flag()?,
    })
}

fn short(value: i32) -> Result<u16, Errno> {
    u16::try_from(value).map_err(|_| Errno::PROTO)
}

/// Bytes of a message that one call reads at most; the next call reads the rest.
const MOST_ROOM: usize = 1 << 24;
