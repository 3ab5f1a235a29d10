//! The end of a process: its sockets close, and what they have sent is delivered while somebody waits for it.

use std::time::{Duration, Instant};

use crate::stack::Stack;
use crate::{forked, open, table};

/// Closes all sockets and waits until their associations have ended, at most `limit`, and before for as long as processes that
/// were forked from this one have sockets of it. A kernel would see to them after the process has gone; here nobody does.
pub fn finish(limit: Duration) {
    let Some(stack) = Stack::existing() else { return };
    for alias in table::visible() {
        // One that another thread closes meanwhile is closed.
        let _ = open::close(alias.number());
    }
    if forked::elsewhere().is_some() {
        return;
    }
    // As long as there are sockets in forked processes, somebody has to be there for them.
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
