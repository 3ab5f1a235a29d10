//! Hooks of the system for forks, and threads of ours that take none of the program's signals.

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

extern "C" fn prepare() {
    forked::prepare();
}

extern "C" fn parent() {
    forked::parent();
}

extern "C" fn child() {
    forked::child();
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

/// Starts a thread that takes no signals; answers whether it could.
pub(crate) fn quiet_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: both sets are of this function, and the one that is restored is the one that was there.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}
