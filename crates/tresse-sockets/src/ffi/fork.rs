//! Hooks of the system for forks, and threads of ours that take none of the program's signals.

use std::cell::Cell;
use std::sync::Once;

use rustix::io::Errno;

use crate::forked;

/// Installs the handlers for forks.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the functions are there as long as the process, or as this library: the system forgets them when it goes.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(prepare), Some(parent), Some(child));
    });
}

thread_local! {
    /// Signals that the thread which forks took before.
    static TAKEN: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Until the fork is over this thread holds the table. A signal handler that interrupted it and made a call on a socket would wait
/// for that lock for ever, so signals wait.
extern "C" fn prepare() {
    TAKEN.set(Some(block_signals()));
    forked::prepare();
}

extern "C" fn parent() {
    forked::parent();
    take_signals();
}

extern "C" fn child() {
    forked::child();
    take_signals();
}

fn take_signals() {
    if let Some(taken) = TAKEN.take() {
        restore_signals(&taken);
    }
}

/// Blocks all signals of this thread, and answers which were blocked before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are of this function, and written before they are read.
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

/// Forks; answers in which of the two processes this is.
pub(crate) fn fork() -> Result<forked::Side, Errno> {
    // SAFETY: the new process goes on with this thread alone, whose caller holds what others might have been at work on.
    match unsafe { libc::fork() } {
        -1 => Err(super::last_error()),
        0 => Ok(forked::Side::New),
        _ => Ok(forked::Side::Old),
    }
}

/// Ends the process at once, without whoever may stand in front of the C library.
pub fn end_at_once(status: i32) -> ! {
    loop {
        // SAFETY: it does not come back.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Closes descriptors that nobody uses any more in this process.
pub(crate) fn close_all(fds: &[i32]) {
    for &fd in fds {
        // By its number, without whoever may stand in front of the C library. SAFETY: nothing of this process uses it again.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}

/// Starts a thread that takes no signals; returns whether it could.
pub(crate) fn quiet_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    let before = block_signals();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok();
    restore_signals(&before);
    started
}
