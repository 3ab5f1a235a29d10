//! Keeps what goes wrong inside an application's scheduler away from everybody else.
//!
//! Owns the boundary where a panic stops. Refuses to know what becomes of streams and paths: the core asks what
//! went wrong and lets another scheduler take over. Built-in schedulers need no guard.
//!
//! A scheduler that never returns cannot be helped from here: it runs on the thread of whoever drives the core.

mod path;
mod stream;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::registry::Made;

pub(super) use path::make as make_path;
pub(super) use stream::make as make_stream;

/// What `act` answers, or what its panic says.
fn attempt<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(words)
}

/// What a panic says, on one line.
fn words(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref::<&str>().copied().unwrap_or("without a word"),
    };
    let text: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("it panicked: {text}")
}

/// Characters of a panic's text that are kept.
const LONGEST_TEXT: usize = 200;
