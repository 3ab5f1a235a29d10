//! The flag that a call of the library is in progress on a thread: the functions that such a call uses go to the system, and not to
//! the library that is preloaded before the C library.
//!
//! No call is in progress while it only waits and holds no lock: a signal handler that interrupts the wait may make calls of its
//! own, also `close`, `exit` and `siglongjmp`. A descriptor that a handler closes at another time is closed when the call ends or
//! waits.
//!
//! While the process exits, calls of its other threads wait.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use crate::{aliases, ffi};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    /// True if `LEFT` may have descriptors.
    static ANY_LEFT: AtomicBool = const { AtomicBool::new(false) };
    /// Descriptors that signal handlers have closed during a call. Each place is written atomically: one handler may interrupt
    /// another.
    static LEFT: [AtomicI32; PLACES] = const { [const { AtomicI32::new(NONE) }; PLACES] };
}

/// Number of descriptors that handlers can close during one call.
const PLACES: usize = 16;
const NONE: i32 = -1;

/// Guard: a call is in progress on this thread while this value exists.
pub struct Inside(());

impl Inside {
    /// Begins a call.
    #[must_use]
    pub fn enter() -> Self {
        ON.set(true);
        Inside(())
    }

    /// Returns whether a call is in progress on this thread.
    pub fn is_on() -> bool {
        ON.get()
    }

    /// Closes a socket's descriptor when the call in progress ends or waits; returns false if too many descriptors are to be
    /// closed.
    pub fn close_later(fd: i32) -> bool {
        ANY_LEFT.with(|any| any.store(true, Ordering::Relaxed));
        LEFT.with(|left| {
            let mut free = left.iter();
            free.any(|place| place.compare_exchange(NONE, fd, Ordering::Relaxed, Ordering::Relaxed).is_ok())
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        ON.set(false);
        close_left();
    }
}

/// Runs `wait` within a call; no call is in progress meanwhile.
pub(crate) fn pause<T>(wait: impl FnOnce() -> T) -> T {
    if !ON.get() {
        return wait();
    }
    ON.set(false);
    close_left();
    let waited = wait();
    hold_back();
    ON.set(true);
    waited
}

fn close_left() {
    // The flag is cleared first: a handler that leaves a descriptor from now on sets it again.
    while ANY_LEFT.with(|any| any.load(Ordering::Relaxed) && any.swap(false, Ordering::Relaxed)) {
        LEFT.with(|left| left.iter().for_each(close_one));
    }
}

fn close_one(place: &AtomicI32) {
    let fd = place.swap(NONE, Ordering::Relaxed);
    if fd == NONE {
        return;
    }
    ON.set(true);
    ffi::keeping_errno(|| {
        // An error means that another thread has closed it meanwhile.
        let _ = aliases::close(fd);
    });
    ON.set(false);
}

/// True while this process waits for its associations to end.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Guard: calls of other threads wait while this value exists.
pub(crate) struct CallsHeld(());

impl CallsHeld {
    pub(crate) fn begin() -> Self {
        LEAVING.store(true, Ordering::Release);
        CallsHeld(())
    }
}

impl Drop for CallsHeld {
    fn drop(&mut self) {
        LEAVING.store(false, Ordering::Release);
    }
}

/// Makes a call of the program wait while the process exits, and for a while longer: the process ends before the call can find a
/// socket that another thread has closed.
pub fn hold_back() {
    if !LEAVING.load(Ordering::Acquire) {
        return;
    }
    while LEAVING.load(Ordering::Acquire) {
        std::thread::sleep(PAUSE);
    }
    std::thread::sleep(AFTERWARDS);
}

/// Stops holding back calls, in a process that was forked while its parent exits.
pub(crate) fn stay() {
    LEAVING.store(false, Ordering::Release);
}

/// Interval at which a call that is held back looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(1);
/// Longer than the rest of an exit lasts.
const AFTERWARDS: Duration = Duration::from_secs(1);
