//! Descriptors of an existing socket, and calls that duplicate and close them. The last one that is closed closes the socket.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{DupFlags, Errno};

use crate::parent;
use crate::stack::Stack;
use crate::table::{self, Alias};

/// `close(2)`: closing the last descriptor closes the socket. Its associations are shut down, or aborted if SO_LINGER is 0 or data
/// is unread.
///
/// # Errors
/// Those of that call.
pub fn close(fd: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.close(fd, Alias::close);
    }
    remove(fd, Alias::close)
}

/// Removes a descriptor as [`close`] does, but leaves its number open: another descriptor is about to take the number.
///
/// # Errors
/// Those of that call.
pub(crate) fn give_up(fd: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.close(fd, Alias::give_up);
    }
    remove(fd, Alias::give_up)
}

fn remove(fd: i32, act: impl FnOnce(&Alias)) -> Result<(), Errno> {
    let stack = Stack::existing().ok_or(Errno::BADF)?;
    let (alias, last) = table::remove(fd)?;
    stack.enter();
    let engine = &alias.socket.engine;
    let mut state = engine.lock();
    // Under the lock of the engine: other threads write to the descriptor by its number.
    act(&alias);
    if last {
        state.close_socket(stack.now(), alias.socket.key);
    }
    let unused = state.is_unused();
    drop(state);
    if unused {
        // Frees the port before this function returns.
        stack.turn_engine(engine);
    } else if last {
        stack.leave(engine);
    }
    Ok(())
}

/// `dup(2)`, and `fcntl(2)` with F_DUPFD and F_DUPFD_CLOEXEC. Returns the new descriptor, which is `least` or higher.
///
/// # Errors
/// Those of that call.
pub fn duplicate(fd: i32, least: i32, close_on_exec: bool) -> Result<i32, Errno> {
    let alias = table::find(fd)?;
    if least < 0 {
        return Err(Errno::INVAL);
    }
    let copy = alias.duplicate(least)?;
    if !close_on_exec {
        rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    }
    Ok(table::insert(copy, Arc::clone(&alias.socket)))
}

/// `dup3(2)`. `to` is no descriptor of a socket of ours: if it was one, the caller has removed it from the table.
///
/// # Errors
/// Those of that call.
pub(crate) fn duplicate_to(fd: i32, mut to: OwnedFd, close_on_exec: bool) -> Result<i32, Errno> {
    let alias = table::find(fd)?;
    let flags = if close_on_exec { DupFlags::CLOEXEC } else { DupFlags::empty() };
    rustix::io::dup3(alias.as_fd(), &mut to, flags)?;
    if alias.is_gone() {
        return Err(Errno::BADF);
    }
    Ok(table::insert(to, Arc::clone(&alias.socket)))
}
