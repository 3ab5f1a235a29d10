//! The end of a process: its sockets close, and what they have sent is delivered while somebody waits for it.

use std::time::{Duration, Instant};

use crate::stack::Stack;
use crate::{open, table};

/// Closes all sockets and waits until their associations have ended, at most `limit`. A kernel would see to them after the
/// process has gone; here nobody does.
pub fn finish(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    for fd in table::all() {
        // One that another thread closes meanwhile is closed.
        let _ = open::close(fd);
    }
    let started = Instant::now();
    while !stack.is_idle() && started.elapsed() < limit {
        stack.enter();
        std::thread::sleep(PAUSE);
    }
}

const PAUSE: Duration = Duration::from_millis(1);
