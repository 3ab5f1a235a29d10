//! Corpora: a text file for each target with one input a line, in hexadecimal and sorted, so that a diff of it can be
//! read. libFuzzer wants a file for each input; the conversion in both directions is here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Inputs longer than this are not kept.
pub const LONGEST: usize = 256;

/// File with the inputs of a target.
pub fn file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.txt"))
}

/// The kept inputs of a target, in their order.
///
/// # Errors
/// The file is not there, or a line of it is not hexadecimal.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let path = file(target);
    let text = fs::read_to_string(&path)?;
    let line = |(position, line): (usize, &str)| {
        let why = || format!("{}:{}: not hexadecimal", path.display(), position + 1);
        bytes(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why()))
    };
    text.lines().enumerate().map(line).collect()
}

/// Makes a file of each kept input of a target in `folder`.
///
/// # Errors
/// A file that cannot be read or written.
pub fn unpack(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in read(target)?.into_iter().enumerate() {
        fs::write(folder.join(format!("kept-{number:05}")), input)?;
    }
    Ok(())
}

/// Keeps the inputs that are files in `folder`, and no others.
///
/// # Errors
/// A file that cannot be read or written.
pub fn pack(target: &str, folder: &Path) -> io::Result<usize> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let input = fs::read(entry?.path())?;
        if input.len() <= LONGEST {
            inputs.push(input);
        }
    }
    inputs.sort();
    inputs.dedup();
    let line = |input: &Vec<u8>| {
        let digits: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        digits + "\n"
    };
    fs::write(file(target), inputs.iter().map(line).collect::<String>())?;
    Ok(inputs.len())
}

fn bytes(line: &str) -> Option<Vec<u8>> {
    let pairs = line.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
