//! Standard output: results, and nothing else. Standard error: what else there is to say.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Prints `text`. A reader that has gone away (`tresse … | head`) wants no more and is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    checked(io::stdout().write_all(text.as_bytes())).map(drop)
}

/// A line for the user that is no result.
pub(crate) fn say(line: &str) {
    // Nothing is left to do if even standard error is gone.
    let _ = writeln!(io::stderr(), "tresse: {line}");
}

/// Returns whether the reader is still there.
pub(crate) fn checked(outcome: io::Result<()>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::running(format!("standard output: {error}"))),
    }
}
