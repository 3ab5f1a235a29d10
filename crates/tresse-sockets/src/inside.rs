//! Whether a call of the library is under way on a thread: what it calls in turn is meant for the system, and not for a library
//! that stands in front of the C library.
//!
//! None is under way while a call only waits and holds no lock: a signal handler that interrupts the wait may make calls of its own,
//! `close`, `exit` and `siglongjmp` included. A descriptor that a handler closes at another moment is closed once the call is
//! over, or waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::{aliases, ffi, finish};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    /// Some may be left.
    static ANY_LEFT: AtomicBool = const { AtomicBool::new(false) };
    /// Descriptors that signal handlers have closed meanwhile. Each place is written at once: one handler may interrupt another.
    static LEFT: [AtomicI32; PLACES] = const { [const { AtomicI32::new(NONE) }; PLACES] };
}

/// Descriptors that handlers close during one call.
const PLACES: usize = 16;
const NONE: i32 = -1;

/// A call is under way on this thread, as long as this is kept.
pub struct Inside(());

impl Inside {
    /// Begins one.
    #[must_use]
    pub fn enter() -> Self {
        ON.set(true);
        Inside(())
    }

    /// Returns whether one is under way.
    pub fn is_on() -> bool {
        ON.get()
    }

    /// Closes a socket's descriptor once the call that is under way is over or waits; false if too many wait for that.
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

/// A call waits: none is under way until `wait` is over.
pub(crate) fn pause<T>(wait: impl FnOnce() -> T) -> T {
    if !ON.get() {
        return wait();
    }
    ON.set(false);
    close_left();
    let waited = wait();
    finish::hold_back();
    ON.set(true);
    waited
}

fn close_left() {
    // First the mark: what a handler leaves from now on sets it again.
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
