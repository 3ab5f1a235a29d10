//! Exit of a process, and `daemon`: the sockets are closed, or move to another process, and the caller can wait until their data is
//! delivered.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{chdir, setsid};

use crate::engine::Engine;
use crate::ffi::Side;
use crate::inside::CallsHeld;
use crate::stack::Stack;
use crate::{aliases, forked, parent, table};

/// Closes all sockets and waits until their associations have ended, at most `limit`. Before that it waits without limit while
/// forked processes use sockets of this one. The kernel would serve its associations after the exit; here this process has to.
pub fn finish(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    close_all();
    if parent::elsewhere().is_none() {
        drain(stack, limit);
    }
}

/// Ends the associations at the exit of a process, and waits for them, at most `limit`. Other threads run until the process ends:
/// their calls wait (`inside.rs`), and their descriptors stay open. Sockets that forked processes use move into a new process,
/// which waits as [`finish`] does; the exit does not wait for that one.
pub fn leave(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    let leaving = CallsHeld::begin();
    if let Some(elsewhere) = parent::elsewhere() {
        elsewhere.leave();
        return;
    }
    if !is_needed() {
        end_all(stack, limit);
        return;
    }
    match forked::move_on() {
        Ok(Side::New) => {
            drop(leaving);
            close_all();
            // The terminal and the parent must not wait for this process.
            let _ = setsid();
            forked::let_go_of_the_rest();
            drain(stack, limit);
            crate::ffi::end_at_once(0);
        }
        Ok(Side::Old) => {}
        Err(_) => finish(limit),
    }
}

/// Ends all associations and waits for them, at most `limit`; the sockets stay.
fn end_all(stack: &Stack, limit: Duration) {
    let mut engines: Vec<Arc<Engine>> = Vec::new();
    stack.each_engine(|engine| engines.push(Arc::clone(engine)));
    for engine in &engines {
        engine.lock().end_all(stack.now());
        stack.leave(engine);
    }
    let started = Instant::now();
    while started.elapsed() < limit && !engines.iter().all(|engine| engine.is_over()) {
        stack.enter();
        std::thread::sleep(PAUSE);
    }
}

/// Returns whether processes that were forked from this one still use its sockets.
pub fn is_needed() -> bool {
    Stack::existing().is_some() && parent::elsewhere().is_none() && forked::has_children()
}

/// Returns whether this process has sockets, so that `daemonize` has to replace `daemon(3)`.
pub fn has_sockets() -> bool {
    Stack::existing().is_some() && parent::elsewhere().is_none()
}

/// `daemon(3)` for a process with sockets: the process in the background gets them.
///
/// # Errors
/// Those of that call.
pub fn daemonize(keep_directory: bool, keep_standard: bool) -> Result<(), Errno> {
    if forked::move_on()? == Side::Old {
        crate::ffi::end_at_once(0);
    }
    setsid()?;
    if !keep_directory {
        chdir("/")?;
    }
    if !keep_standard {
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NODEV))?;
        rustix::stdio::dup2_stdin(null.as_fd())?;
        rustix::stdio::dup2_stdout(null.as_fd())?;
        rustix::stdio::dup2_stderr(null.as_fd())?;
    }
    Ok(())
}

fn close_all() {
    for alias in table::visible() {
        // An error means that another thread has closed it meanwhile.
        let _ = aliases::close(alias.number());
    }
}

fn drain(stack: &Stack, limit: Duration) {
    // This process has to stay as long as forked processes use its sockets.
    while forked::has_children() {
        std::thread::sleep(PAUSE);
    }
    let started = Instant::now();
    while !stack.is_idle() && started.elapsed() < limit {
        stack.enter();
        std::thread::sleep(PAUSE);
    }
}

const PAUSE: Duration = Duration::from_millis(1);
