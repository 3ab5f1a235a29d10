//! The move of all sockets into a new process, when the process that has them is about to end and other processes still use them.
//! It is a fork while all locks are held, so that no thread is working on the sockets. The new process has the same descriptors and
//! the same memory, and starts threads of its own. In the old process the locks are never released.

use std::cell::Cell;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::agent;
use crate::ffi::Side;
use crate::parent::{CHANNEL, IS_CHILD, elsewhere};
use crate::shared::{lock, registry};
use crate::stack::{Stack, every_engine};
use crate::{numbers, schedulers, table};

thread_local! {
    /// True while this thread forks to move the sockets.
    static MOVES: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is forking to move the sockets.
pub(super) fn is_under_way() -> bool {
    MOVES.try_with(Cell::get).unwrap_or(false)
}

/// Moves all sockets into a new process. Returns in both processes.
///
/// # Errors
/// `INVAL` if this process has no sockets; errors of `fork(2)`; `AGAIN` in the new process if no thread can be started.
pub(crate) fn move_on() -> Result<Side, Errno> {
    let stack = Stack::existing().filter(|_| elsewhere().is_none()).ok_or(Errno::INVAL)?;
    // The locks are taken in the same order as by calls and threads.
    let answering = agent::ANSWERING.write().unwrap_or_else(PoisonError::into_inner);
    let (changing, intake) = (schedulers::hold_list(), stack.hold_intake());
    let engines = every_engine();
    let at_work: Vec<_> = engines.iter().map(|engine| engine.hold()).collect();
    let (shared, registry) = (stack.hold_shared(), registry());
    let (served, table, channel) = (lock(&agent::SERVED), table::hold(), lock(&CHANNEL));
    MOVES.set(true);
    let forked = crate::ffi::fork();
    MOVES.set(false);
    // From now on calls in the old process find no sockets.
    if forked == Ok(Side::Old) {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    drop((channel, table, served));
    if forked == Ok(Side::Old) {
        std::mem::forget((registry, shared, at_work, intake, changing, answering));
        return forked;
    }
    drop((registry, shared, at_work, intake, changing, answering));
    if forked == Ok(Side::New) {
        agent::resume();
        if !stack.run() {
            return Err(Errno::AGAIN);
        }
    }
    forked
}

/// Closes all descriptors of the new process that do not belong to a socket: no process must wait for the end of a pipe that this
/// one has.
pub(crate) fn let_go_of_the_rest() {
    // The lock keeps new descriptors from arriving.
    let _none = agent::ANSWERING.write().unwrap_or_else(PoisonError::into_inner);
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let others: Vec<i32> = open.filter(|&fd| !numbers::is_private(fd) && !table::owns(fd)).collect();
    crate::ffi::close_all(&others);
}
