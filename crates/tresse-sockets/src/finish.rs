//! Exit of a process, and `daemon`: its sockets close, or move along, and the caller can wait until what they have sent
//! is delivered.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{chdir, setsid};

use crate::engine::Engine;
use crate::forked::Side;
use crate::stack::Stack;
use crate::{aliases, forked, table};

/// Closes all sockets and waits until their associations have ended, at most `limit`, and before for as long as processes that
/// were forked from this one have sockets of it. A kernel would see to them after the process has gone; here nobody does.
pub fn finish(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    close_all();
    if forked::elsewhere().is_none() {
        drain(stack, limit);
    }
}

/// The end of a process, whose other threads go on until it is over: their calls wait ([`hold_back`]), and their descriptors stay
/// open. The associations end, and are waited for, at most `limit`. Sockets that forked processes have move into a process of their
/// own, which waits as [`finish`] does, and nobody waits for this one.
pub fn leave(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    let leaving = CallsHeld::begin();
    if let Some(elsewhere) = forked::elsewhere() {
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
            // Neither the terminal nor the parent may wait for this process.
            let _ = setsid();
            forked::let_go_of_the_rest();
            drain(stack, limit);
            crate::ffi::end_at_once(0);
        }
        Ok(Side::Old) => {}
        Err(_) => finish(limit),
    }
}

/// True while this process waits for its associations to end.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Calls of other threads are held back, as long as this is kept.
struct CallsHeld(());

impl CallsHeld {
    fn begin() -> Self {
        LEAVING.store(true, Ordering::Release);
        CallsHeld(())
    }
}

impl Drop for CallsHeld {
    fn drop(&mut self) {
        LEAVING.store(false, Ordering::Release);
    }
}

/// Keeps a call of the program waiting while the process leaves, and for a while longer: then the process has ended, and the
/// call has not found a socket that another thread has ended.
pub fn hold_back() {
    if !LEAVING.load(Ordering::Acquire) {
        return;
    }
    while LEAVING.load(Ordering::Acquire) {
        std::thread::sleep(PAUSE);
    }
    std::thread::sleep(AFTERWARDS);
}

/// A process was forked while this one leaves: it goes on.
pub(crate) fn stay() {
    LEAVING.store(false, Ordering::Release);
}

/// Ends all associations, and waits for that; the sockets stay.
fn end_all(stack: &Stack, limit: Duration) {
    let mut engines: Vec<Arc<Engine>> = Vec::new();
    stack.each_engine(|engine| engines.push(Arc::clone(engine)));
    for engine in &engines {
        engine.lock().end_all(stack);
        stack.leave(engine);
    }
    let started = Instant::now();
    while started.elapsed() < limit && !engines.iter().all(|engine| engine.is_over()) {
        stack.enter();
        std::thread::sleep(PAUSE);
    }
}

/// Returns whether processes that were forked from this one still use sockets of it.
pub fn is_needed() -> bool {
    Stack::existing().is_some() && forked::elsewhere().is_none() && forked::has_children()
}

/// Returns whether `daemonize` is to stand for `daemon(3)`: this process has sockets.
pub fn has_sockets() -> bool {
    Stack::existing().is_some() && forked::elsewhere().is_none()
}

/// `daemon(3)` of a process with sockets: they go along into the background.
///
/// # Errors
/// As that call's.
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
    // This process has to stay as long as forked processes have sockets.
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
/// Longer than the rest of an exit lasts.
const AFTERWARDS: Duration = Duration::from_secs(1);
