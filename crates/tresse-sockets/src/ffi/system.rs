//! System calls that have no safe interface: forks, signals, threads of the library, in which all signals are blocked, and options
//! of local sockets.

use std::cell::Cell;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};

use libc::socklen_t;
use rustix::io::Errno;

/// Installs handlers for forks: one that is called before a fork, and one after it in each of the two processes.
pub(crate) fn watch_forks(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: the functions exist as long as the process or this library: the C library removes the handlers when it unloads the
    // library.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

thread_local! {
    /// Signal mask that the forking thread had before.
    static SAVED_MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Blocks all signals of this thread until [`release_signals`].
pub(crate) fn hold_signals() {
    SAVED_MASK.set(Some(block_signals()));
}

/// Restores the signal mask from before [`hold_signals`].
pub(crate) fn release_signals() {
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

/// The process in which a call returns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The process that has the sockets now.
    New,
    /// The process that had the sockets, and is about to end.
    Old,
}

/// Forks the process; returns whether this is the new process or the old one.
pub(crate) fn fork() -> Result<Side, Errno> {
    // SAFETY: the new process continues with this thread alone, and its caller holds the locks of all data that other threads might
    // have been changing.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        0 => Ok(Side::New),
        _ => Ok(Side::Old),
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

/// Calls `act`, and restores `errno` afterwards.
pub(crate) fn keeping_errno(act: impl FnOnce()) {
    // SAFETY: `errno` of this thread exists as long as the thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    act();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Sends SIGPIPE to the calling thread, as Linux does: another thread did not make the call and may not have blocked the signal.
pub(crate) fn signal_pipe() {
    // SAFETY: the calling thread exists, and SIGPIPE is a signal.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
}

/// Sets an option of the local socket behind a descriptor, by a direct system call, which no preloaded library intercepts.
pub(crate) fn set_native_option(fd: impl AsFd, name: c_int, value: &[u8]) -> Result<(), Errno> {
    let len = socklen_t::try_from(value.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `len` is the length of the value, which is only read.
    let done = unsafe {
        let number = fd.as_fd().as_raw_fd();
        libc::syscall(libc::SYS_setsockopt, number, libc::SOL_SOCKET, name, value.as_ptr(), len)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Returns the value of an option of the local socket behind a descriptor, at most `room` bytes.
pub(crate) fn native_option(fd: impl AsFd, name: c_int, room: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; room.min(4096)];
    let mut len = socklen_t::try_from(value.len()).unwrap_or(0);
    let (number, level, to) = (fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, value.as_mut_ptr());
    // SAFETY: `len` is the length of the buffer.
    let done = unsafe { libc::syscall(libc::SYS_getsockopt, number, level, name, to, &raw mut len) };
    value.truncate(len as usize);
    if done == 0 { Ok(value) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
