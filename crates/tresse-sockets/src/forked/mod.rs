//! Sockets in forked processes. The sockets stay in the process that made them, where a thread for each child executes the child's
//! calls. The child has the descriptors, which show readiness in every process, and waits by itself.
//!
//! Owns the change of the table at a fork, and the threads that serve children. Independent of the effects of a call: the modules
//! that execute calls of the process itself also execute those of a child.

mod agent;
mod moving;

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{MutexGuard, Once};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::numbers::Private;
use crate::parent::{CHANNEL, IS_CHILD, ParentSockets, elsewhere};
use crate::shared::lock;
use crate::stack::Stack;
use crate::{ffi, inside, numbers, open, table};

pub(crate) use moving::{let_go_of_the_rest, move_on};

/// Number of forked processes that still use sockets of this one.
static CHILDREN: AtomicUsize = AtomicUsize::new(0);

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

/// `socket(2)`: `kind` may have SOCK_NONBLOCK and SOCK_CLOEXEC. From the first socket on, forked processes can use the sockets.
///
/// # Errors
/// Those of that call.
pub fn socket(family: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
    static WATCHED: Once = Once::new();
    let made = open::socket(family, kind, protocol);
    if Stack::existing().is_some() {
        WATCHED.call_once(|| ffi::watch_forks(prepare, parent, child));
    }
    made
}

/// Prepares a fork: every socket gets a handle for the child, and the table is locked until the fork is over. If that fails, the
/// child has no sockets. A signal handler that interrupted this thread meanwhile, and made a call on a socket, would wait for the
/// table forever, so signals are blocked too.
extern "C" fn prepare() {
    ffi::hold_signals();
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
extern "C" fn parent() {
    serve_child();
    ffi::release_signals();
}

fn serve_child() {
    let plan = PLAN.try_with(RefCell::take).ok().flatten();
    let Some(ForkPlan { table, own_channel, handles, served, .. }) = plan else { return };
    drop((table, own_channel));
    if let Some(served) = served {
        agent::start(served, handles.into_iter().map(|(_, handle)| handle).collect());
    }
}

/// Ends a fork in the new process.
extern "C" fn child() {
    become_child();
    ffi::release_signals();
}

/// Makes the descriptors refer to sockets by their handles in the process that has them.
fn become_child() {
    if moving::is_under_way() {
        return;
    }
    IS_CHILD.store(true, Ordering::Relaxed);
    CHILDREN.store(0, Ordering::Relaxed);
    inside::stay();
    let plan = PLAN.try_with(RefCell::take).ok().flatten();
    let Some(ForkPlan { table, mut own_channel, handles, channel, served }) = plan else { return };
    let kept = channel.as_raw_fd();
    *own_channel = Some(channel);
    drop((table.leave(&handles), served));
    // If they stayed open, packets would still arrive at them, and other processes would not see the end of their connections.
    numbers::close_private(kept);
}
