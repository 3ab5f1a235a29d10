//! Standard output, for results only, and standard error, for all other text.
//!
//! While a screen covers the terminal, the output to both is held back.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;

/// Prints a result. It is no failure if the reader has closed the pipe (`tresse … | head`).
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(OutputLine { text: text.to_owned(), is_result: true })
}

/// Prints a line for the user that is no result.
pub(crate) fn say(line: &str) {
    let _ = write(OutputLine { text: format!("tresse: {line}\n"), is_result: false });
}

/// Returns whether the reader still has the pipe open.
pub(crate) fn checked(outcome: io::Result<()>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::running(format!("standard output: {error}"))),
    }
}

/// Holds all output back from now on.
pub(crate) fn hold() {
    held_back().get_or_insert_default();
}

/// Writes the output that was held back, in its order, and holds nothing back from now on.
pub(crate) fn release() {
    let held = held_back().take();
    // If the terminal is gone, this output is lost.
    held.into_iter().flatten().for_each(|said| drop(write(said)));
}

/// Returns whether output is held back.
pub(crate) fn is_held() -> bool {
    held_back().is_some()
}

/// Returns the last lines that are held back, at most `most`.
pub(crate) fn held(most: usize) -> Vec<String> {
    let held = held_back();
    let lines = held.iter().flatten().rev().flat_map(|said| said.text.lines().rev());
    let mut last: Vec<String> = lines.take(most).map(str::to_owned).collect();
    last.reverse();
    last
}

/// Text to be written.
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
