//! `tresse-corpus unpack|pack TARGET FOLDER`: converts the kept inputs of a target into files and back, for `make fuzz`.

use std::path::Path;
use std::process::ExitCode;

use tresse_fuzz::{TARGETS, corpus};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["unpack", target, folder] if is_known(target) => {
            corpus::unpack(target, Path::new(folder)).map(|()| format!("{target}: unpacked"))
        }
        ["pack", target, folder] if is_known(target) => {
            corpus::pack(target, Path::new(folder)).map(|count| format!("{target}: {count} inputs are kept"))
        }
        _ => {
            let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("usage: tresse-corpus unpack|pack {} FOLDER", known.join("|"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tresse-corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_known(target: &str) -> bool {
    TARGETS.iter().any(|(name, _)| *name == target)
}
