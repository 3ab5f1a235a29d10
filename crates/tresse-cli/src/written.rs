//! A file that a command writes beside its results: a capture, a trace.
//!
//! If a command is refused, it leaves no new file: a file that it created is removed, unless its work has begun.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, words};

/// A capture and a trace, as far as they are wanted.
///
/// # Errors
/// A file that exists, or that cannot be created; and one file for both.
pub(crate) fn capture_and_trace(
    capture: Option<&Path>,
    trace: Option<&Path>,
    force: bool,
) -> Result<(Option<Written>, Option<Written>), Failure> {
    if let (Some(capture), Some(trace)) = (capture, trace)
        && is_one_file(capture, trace)
    {
        return Err(Failure::usage(format!(
            "--trace {}: the capture goes to the same file: name another one",
            trace.display()
        )));
    }
    let create =
        |option, path: Option<&Path>| path.map(|path| Written::create(option, path, force)).transpose();
    Ok((create("--pcap", capture)?, create("--trace", trace)?))
}

/// Returns whether both paths name one file, which need not exist; devices do not count.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Some(directory.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
        })
    };
    let is_device = || fs::metadata(one).is_ok_and(|found| !found.is_file());
    place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one)) && !is_device()
}

/// The file. If it is dropped before [`Written::keep`], it is removed, unless it existed before.
pub(crate) struct Written {
    file: BufWriter<File>,
    path: PathBuf,
    kept: bool,
}

impl Written {
    /// Creates the file of `option`. An existing file is overwritten only with `force`.
    pub(crate) fn create(option: &str, path: &Path, force: bool) -> Result<Self, Failure> {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let (file, kept) = match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && force => (File::create(path), true),
            made => (made, false),
        };
        let refusal = |error: io::Error| {
            let why = match error.kind() {
                _ if path.is_dir() => "is a directory".to_owned(),
                ErrorKind::AlreadyExists => "the file exists (--force overwrites it)".to_owned(),
                ErrorKind::NotFound => "there is no such directory".to_owned(),
                _ => words(&error),
            };
            Failure::usage(format!("{option} {}: {why}", path.display()))
        };
        let file = BufWriter::new(file.map_err(refusal)?);
        Ok(Written { file, path: path.to_owned(), kept })
    }

    /// Keeps the file from now on, however the command ends: its work has begun.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Writes the rest of the file and keeps it. Errors call the file `what`.
    pub(crate) fn finish(mut self, what: &str) -> Result<(), Failure> {
        self.keep();
        let failed = |error| Failure::running(format!("the {what} could not be written: {}", words(&error)));
        self.file.flush().map_err(failed)
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.kept {
            // A file that cannot be removed stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}
