//! Descriptors of a socket that exists: duplicates, and the end of each; the last one ends the socket.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{DupFlags, Errno};

use crate::forked;
use crate::stack::stack;
use crate::table::{self, Alias};

/// `close(2)`: the last descriptor ends the socket; associations are shut down, or aborted where SO_LINGER says so.
///
/// # Errors
/// As that call's.
pub fn close(fd: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
        return elsewhere.close(fd, Alias::close);
    }
    let_go(fd, Alias::close)
}

/// The same for a number that stays open, because another descriptor is about to take its place.
///
/// # Errors
/// As that call's.
pub(crate) fn give_up(fd: i32) -> Result<(), Errno> {
    if let Some(elsewhere) = forked::elsewhere() {
        return elsewhere.close(fd, Alias::give_up);
    }
    let_go(fd, Alias::give_up)
}

fn let_go(fd: i32, act: impl FnOnce(&Alias)) -> Result<(), Errno> {
    let stack = stack()?;
    let (alias, last) = table::remove(fd)?;
    stack.enter();
    let engine = &alias.socket.engine;
    let mut state = engine.lock();
    // Under the lock, as what a descriptor shows is written by its number.
    act(&alias);
    if last {
        state.close_socket(stack, alias.socket.key);
    }
    let unused = state.is_unused();
    drop(state);
    if unused {
        // Its port is free when this returns.
        engine.turn(stack);
    } else if last {
        stack.leave(engine);
    }
    Ok(())
}

/// `dup(2)` and `fcntl` with F_DUPFD and F_DUPFD_CLOEXEC.
///
/// # Errors
/// As that call's.
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

/// `dup3(2)`: `to` may be anything but one of ours, which the caller has given up.
///
/// # Errors
/// As that call's.
pub(crate) fn duplicate_to(fd: i32, mut to: OwnedFd, close_on_exec: bool) -> Result<i32, Errno> {
    let alias = table::find(fd)?;
    let flags = if close_on_exec { DupFlags::CLOEXEC } else { DupFlags::empty() };
    rustix::io::dup3(alias.as_fd(), &mut to, flags)?;
    if alias.is_gone() {
        return Err(Errno::BADF);
    }
    Ok(table::insert(to, Arc::clone(&alias.socket)))
}
