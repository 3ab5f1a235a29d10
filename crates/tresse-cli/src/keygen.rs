//! `tresse keygen`: a private key in a file that only its owner may read, and the fingerprint by which peers identify the key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tresse::security::Identity;

use crate::failure::{Failure, words};
use crate::input;
use crate::output;

#[derive(Args)]
pub(crate) struct KeygenArgs {
    /// The file for the key, which may not exist yet; only its owner may read it
    pub(crate) file: PathBuf,
    /// Make nothing; print the fingerprint of the key that is in the file
    #[arg(long)]
    pub(crate) show: bool,
}

pub(crate) fn run(args: &KeygenArgs) -> Result<(), Failure> {
    let refuse = |error: &io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let hint = "exists; a key is never overwritten (--show prints the fingerprint of this one)";
            Failure::usage(format!("{}: {hint}", args.file.display()))
        }
        _ => Failure::usage(format!("{}: {}", args.file.display(), words(error))),
    };
    if !args.show {
        let key = Identity::generate_pem().map_err(Failure::running)?;
        let mut file = create_private(&args.file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Failure::usage(format!("{}: there is no such directory", args.file.display()))
            }
            _ => refuse(&error),
        })?;
        let written = file.write_all(key.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // An incomplete key is useless.
            let _ = fs::remove_file(&args.file);
            return Err(Failure::running(format!("{}: {error}", args.file.display())));
        }
    }
    let text = input::read(&args.file, LONGEST_KEY).map_err(|error| refuse(&error))?;
    let identity = Identity::from_pem(&text)
        .map_err(|error| Failure::usage(format!("{}: {error}", args.file.display())))?;
    output::print(&format!("{}\n", identity.fingerprint()))
}

/// Most bytes that are read of a key's file.
const LONGEST_KEY: u64 = 1 << 20;

/// Creates a file that only its owner may read and write, from its creation on.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
