//! Standard output, for results only, and standard error, for all other text.
//!
//! While a screen covers the terminal, both are kept back.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;

/// Prints `text`. A reader that has gone away (`tresse … | head`) wants no more and is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(OutputLine { text: text.to_owned(), is_result: true })
}

/// A line for the user that is no result.
pub(crate) fn say(line: &str) {
    let _ = write(OutputLine { text: format!("tresse: {line}\n"), is_result: false });
}

/// Returns whether the reader is still there.
pub(crate) fn checked(outcome: io::Result<()>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::running(format!("standard output: {error}"))),
    }
}

/// Keeps everything back from now on.
pub(crate) fn hold() {
    held_back().get_or_insert_default();
}

/// Writes what was kept back, in its order, and keeps nothing back any more.
pub(crate) fn release() {
    let held = held_back().take();
    // A terminal that is gone has been written to before, and wants no more.
    held.into_iter().flatten().for_each(|said| drop(write(said)));
}

/// Returns whether everything is kept back.
pub(crate) fn is_held() -> bool {
    held_back().is_some()
}

/// The last lines that are kept back, so many at most.
pub(crate) fn held(most: usize) -> Vec<String> {
    let held = held_back();
    let lines = held.iter().flatten().rev().flat_map(|said| said.text.lines().rev());
    let mut last: Vec<String> = lines.take(most).map(str::to_owned).collect();
    last.reverse();
    last
}

/// Something written, or to be.
struct OutputLine {
    text: String,
    /// True if it goes to standard output.
    is_result: bool,
}

static HELD_BACK: Mutex<Option<Vec<OutputLine>>> = Mutex::new(None);

fn held_back() -> MutexGuard<'static, Option<Vec<OutputLine>>> {
    HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(said: OutputLine) -> Result<(), Failure> {
    if let Some(held) = held_back().as_mut() {
        held.push(said);
        return Ok(());
    }
    match said.is_result {
        true => checked(io::stdout().write_all(said.text.as_bytes())).map(drop),
        false => {
            // Nothing is left to do if even standard error is gone.
            let _ = io::stderr().write_all(said.text.as_bytes());
            Ok(())
        }
    }
}
