//! Handlers for forks, and threads of the library, in which all signals are blocked.

use std::cell::Cell;
use std::sync::Once;

use rustix::io::Errno;

use crate::forked;

/// Installs the handlers for forks.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the functions exist as long as the process or this library: the C library removes the handlers when it unloads the
    // library.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(prepare), Some(parent), Some(child));
    });
}

thread_local! {
    /// Signal mask that the forking thread had before.
    static SAVED_MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Blocks signals before a fork. Until the fork is over, this thread holds the lock of the table: a signal handler that interrupted
/// it and made a call on a socket would wait for that lock forever.
extern "C" fn prepare() {
    SAVED_MASK.set(Some(block_signals()));
    forked::prepare();
}

extern "C" fn parent() {
    forked::parent();
    restore_mask();
}

extern "C" fn child() {
    forked::child();
    restore_mask();
}

fn restore_mask() {
    if let Some(saved) = SAVED_MASK.take() {
        restore_signals(&saved);
    }
}

/// Blocks all signals of this thread, and returns its previous signal mask.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are local, and written before they are read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set is only read.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Forks the process; returns whether this is the new process or the old one.
pub(crate) fn fork() -> Result<forked::Side, Errno> {
    // SAFETY: the new process continues with this thread alone, and its caller holds the locks of all data that other threads might
    // have been changing.
    match unsafe { libc::fork() } {
        -1 => Err(super::last_error()),
        0 => Ok(forked::Side::New),
        _ => Ok(forked::Side::Old),
    }
}

/// Ends the process at once, by a direct system call, which no preloaded library intercepts.
pub fn end_at_once(status: i32) -> ! {
    loop {
        // SAFETY: the call does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Closes descriptors that this process does not use any more.
pub(crate) fn close_all(fds: &[i32]) {
    for &fd in fds {
        // By a direct system call, which no preloaded library intercepts. SAFETY: this process does not use the descriptor again.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}

/// Starts a thread in which all signals are blocked; returns whether it started.
pub(crate) fn quiet_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    let before = block_signals();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok();
    restore_signals(&before);
    started
}
