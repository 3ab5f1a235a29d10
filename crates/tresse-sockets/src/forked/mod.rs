//! Sockets in forked processes. The sockets stay in the process that made them, where a thread for each child executes the child's
//! calls. The child has the descriptors, which show readiness in every process, and waits by itself.
//!
//! Owns the change of the table at a fork, and both ends of the connection between two such processes. Independent of the effects
//! of a call: the modules that execute calls of the process itself also execute those of a child.

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
/// Connection to the process that has the sockets.
static CHANNEL: Mutex<Option<Private<OwnedFd>>> = Mutex::new(None);
/// Number of forked processes that still use sockets of this one.
static CHILDREN: AtomicUsize = AtomicUsize::new(0);

/// Returns access to the sockets if another process has them.
pub(crate) fn elsewhere() -> Option<ParentSockets> {
    IS_CHILD.load(Ordering::Relaxed).then_some(ParentSockets)
}

/// Returns whether processes that were forked from this one still use its sockets.
pub(crate) fn has_children() -> bool {
    CHILDREN.load(Ordering::Acquire) > 0
}

/// Preparations for a fork.
struct ForkPlan {
    table: table::Held,
    own_channel: MutexGuard<'static, Option<Private<OwnedFd>>>,
    /// Descriptors of the child, each with the handle of its socket in the process that has it.
    handles: Vec<(i32, i32)>,
    /// The child's end of its connection.
    channel: Private<OwnedFd>,
    /// The other end, if this process has the sockets.
    served: Option<Private<OwnedFd>>,
}

thread_local! {
    /// The plan of the forking thread, between the handlers before and after the fork.
    static PLAN: RefCell<Option<ForkPlan>> = const { RefCell::new(None) };
}

/// Returns whether this thread is forking. It holds the table then, and a call on a socket in a fork handler of the program would
/// wait forever.
pub(crate) fn is_under_way() -> bool {
    moving::is_under_way() || PLAN.try_with(|plan| plan.borrow().is_some()).unwrap_or(false)
}

/// Prepares a fork: every socket gets a handle for the child, and the table is locked until the fork is over. If that fails, the
/// child has no sockets.
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
        // A socket that gets no handle does not exist in the child.
        if let Ok(handle) = table::duplicate_hidden(&alias) {
            handles.push((alias.number(), handle));
        }
    }
    let own_channel = lock(&CHANNEL);
    Some(ForkPlan { table: table::hold(), own_channel, handles, channel, served: Some(served) })
}

/// Ends a fork in the process that forked.
pub(crate) fn parent() {
    let plan = PLAN.try_with(RefCell::take).ok().flatten();
    let Some(ForkPlan { table, own_channel, handles, served, .. }) = plan else { return };
    drop((table, own_channel));
    if let Some(served) = served {
        agent::start(served, handles.into_iter().map(|(_, handle)| handle).collect());
    }
}

/// Ends a fork in the new process: its descriptors refer to sockets by their handles in the process that has them.
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
    // If they stayed open, packets would still arrive at them, and other processes would not see the end of their connections.
    numbers::close_private(kept);
}

/// Repeats `attempt`, in a child, until it does not fail with `AGAIN`. In between it waits until `told` is readable, at most for
/// SO_SNDTIMEO.
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

/// Repeats `attempt`, in a child, until it does not fail with `AGAIN`. In between it waits until the descriptor is readable, unless
/// `at_once`.
fn until<T>(
    alias: &table::Alias,
    at_once: bool,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
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
            descriptor::wait_a_little(alias, Need::Readable, started.elapsed())?;
        } else {
            descriptor::wait_readable(alias)?;
        }
    }
}

/// Repeats `attempt`, in a child, until the message is not refused for lack of room. The argument of `attempt` is whether the call
/// will wait: if so, a refusal returns the descriptor to wait for.
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
            // The next attempt returns a descriptor to wait for.
            None => waits = true,
        }
    }
}
