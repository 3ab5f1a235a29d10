//! Sockets in processes that were forked: they stay with the process that made them, where a thread for each child does what
//! the child's calls ask for. A child has the descriptors, which show what can be read and written wherever they are, and waits
//! by itself.
//!
//! Owns what becomes of the table at a fork, and both ends of the connection between two such processes. Independent of the
//! effects of a call: the modules that serve calls of the process itself serve those of a child.

mod agent;
mod calls;
mod frame;
mod moving;

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::numbers::Private;
use crate::socket::Need;
use crate::stack::{Stack, lock};
use crate::{descriptor, numbers, table};

pub(crate) use calls::ParentSockets;
pub(crate) use moving::{Side, let_go_of_the_rest, move_on};

/// True if this process was forked from the one that has the sockets.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// The connection to the process that has them.
static CHANNEL: Mutex<Option<Private<OwnedFd>>> = Mutex::new(None);
/// Forked processes that still have sockets of this one.
static CHILDREN: AtomicUsize = AtomicUsize::new(0);

/// Process that has the sockets, if it is not this one.
pub(crate) fn elsewhere() -> Option<ParentSockets> {
    IS_CHILD.load(Ordering::Relaxed).then_some(ParentSockets)
}

/// Returns whether processes that were forked from this one still use its sockets.
pub(crate) fn has_children() -> bool {
    CHILDREN.load(Ordering::Acquire) > 0
}

/// Preparations of a process that is about to fork.
struct ForkPlan {
    table: table::Held,
    own_channel: MutexGuard<'static, Option<Private<OwnedFd>>>,
    /// Descriptors of ours in the child, and what its socket is called in the process that has it.
    handles: Vec<(i32, i32)>,
    /// The child's end of its connection.
    channel: Private<OwnedFd>,
    /// The other end, where this process has the sockets.
    served: Option<Private<OwnedFd>>,
}

thread_local! {
    /// Between the two halves of a fork, on the thread that forks.
    static PLAN: RefCell<Option<ForkPlan>> = const { RefCell::new(None) };
}

/// Returns whether this thread forks: it holds the table, and a call on a socket in a handler of the program would wait for itself.
pub(crate) fn is_under_way() -> bool {
    moving::is_under_way() || PLAN.try_with(|plan| plan.borrow().is_some()).unwrap_or(false)
}

/// Before a fork: every socket gets a name that lasts, and the table stays as it is until it is over. Without a plan the child
/// has no socket.
pub(crate) fn prepare() {
    if moving::is_under_way() {
        return;
    }
    let plan = plan();
    let _ = PLAN.try_with(|place| place.replace(plan));
}

fn plan() -> Option<ForkPlan> {
    if elsewhere().is_some() {
        let own = table::visible();
        let names: Vec<i32> = own.iter().map(|alias| alias.socket.handle.load(Ordering::Relaxed)).collect();
        let (fresh, channel) = ParentSockets.fork(&names).ok()?;
        let handles = own.iter().map(|alias| alias.number()).zip(fresh).collect();
        let own_channel = lock(&CHANNEL);
        return Some(ForkPlan { table: table::hold(), own_channel, handles, channel, served: None });
    }
    Stack::existing()?;
    let (served, channel) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
    let (served, channel) = (Private::moved(served), Private::moved(channel));
    let mut handles = Vec::new();
    for alias in table::visible() {
        // A socket without a name any more is not one in the child either.
        if let Ok(handle) = table::duplicate_hidden(&alias) {
            handles.push((alias.number(), handle));
        }
    }
    let own_channel = lock(&CHANNEL);
    Some(ForkPlan { table: table::hold(), own_channel, handles, channel, served: Some(served) })
}

/// After a fork, in the process that forked.
pub(crate) fn parent() {
    let plan = PLAN.try_with(RefCell::take).ok().flatten();
    let Some(ForkPlan { table, own_channel, handles, served, .. }) = plan else { return };
    drop((table, own_channel));
    if let Some(served) = served {
        agent::start(served, handles.into_iter().map(|(_, handle)| handle).collect());
    }
}

/// After a fork, in the new process: its descriptors are known by what their sockets are called elsewhere.
pub(crate) fn child() {
    if moving::is_under_way() {
        return;
    }
    IS_CHILD.store(true, Ordering::Relaxed);
    CHILDREN.store(0, Ordering::Relaxed);
    crate::finish::stay();
    let plan = PLAN.try_with(RefCell::take).ok().flatten();
    let Some(ForkPlan { table, mut own_channel, handles, channel, served }) = plan else { return };
    let kept = channel.as_raw_fd();
    *own_channel = Some(channel);
    drop((table.leave(&handles), served));
    // Packets would go on coming to them, and those of other processes would not find the end of their connections.
    numbers::close_private(kept);
}

/// Waits, in a child, for what a descriptor tells by being readable, no longer than SO_SNDTIMEO.
fn until_told<T>(
    alias: &table::Alias,
    told: impl AsFd,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Errno::AGAIN) => {}
            done => return done,
        }
        descriptor::wait_shown(alias, told.as_fd(), started.elapsed(), is_synchronous())?;
    }
}

fn is_synchronous() -> bool {
    Stack::existing().is_some_and(Stack::is_synchronous)
}

/// Waits, in a child, until an attempt is not refused with `AGAIN`: in between for something to read.
fn until<T>(
    alias: &table::Alias,
    at_once: bool,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    // In the synchronous mode nothing happens between calls, so the call is tried again.
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
            descriptor::wait_a_little(alias, Need::Readable, started.elapsed())?;
        } else {
            descriptor::wait_readable(alias)?;
        }
    }
}

/// Waits, in a child, until a message is not refused for want of room. An attempt that is told that the call waits brings what can
/// be waited for.
fn until_room<T>(
    alias: &table::Alias,
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
        if at_once || descriptor::is_nonblocking(alias) {
            return Err(Errno::AGAIN);
        }
        if alias.is_gone() {
            return Err(Errno::BADF);
        }
        match refused {
            _ if synchronous => descriptor::wait_a_little(alias, Need::Writable, started.elapsed())?,
            Some(told) => descriptor::wait_shown(alias, told.as_fd(), started.elapsed(), false)?,
            None if waits => descriptor::wait_writable(alias)?,
            // Asked again, it says what to wait for.
            None => waits = true,
        }
    }
}
