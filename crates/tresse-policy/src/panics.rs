//! Boundary to the code of applications: results of its factories, and containment of its panics.
//!
//! Independent of the purpose of the code. There is no protection against code that never returns: it runs on the thread of
//! the driver.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A policy, or the reason for which its factory refuses the configuration.
pub(crate) type Made<T> = Result<Box<T>, String>;

/// Returns the result of `act`, or the message of its panic.
pub(crate) fn attempt<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(message_of)
}

/// Returns the message of a panic, on one line.
pub(crate) fn message_of(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref::<&str>().copied().unwrap_or("without a word"),
    };
    let text: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("it panicked: {text}")
}

/// Most characters of a panic's text that are kept.
const LONGEST_TEXT: usize = 200;
