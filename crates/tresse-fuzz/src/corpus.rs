//! Corpora: a text file for each target with one input on each line, in hexadecimal and sorted, so that its diffs are
//! readable. libFuzzer needs a file for each input; this module converts in both directions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Length in bytes above which inputs are not kept.
pub const LONGEST: usize = 256;

/// Returns the path of the file with the inputs of a target.
pub fn file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.txt"))
}

/// Returns the kept inputs of a target, in the order of the file.
///
/// # Errors
/// If the file does not exist, or a line of it is not hexadecimal.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let path = file(target);
    let text = fs::read_to_string(&path)?;
    let line = |(position, line): (usize, &str)| {
        let why = || format!("{}:{}: not hexadecimal", path.display(), position + 1);
        bytes(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why()))
    };
    text.lines().enumerate().map(line).collect()
}

/// Writes each kept input of a target to a file of its own in `folder`.
///
/// # Errors
/// If a file cannot be read or written.
pub fn unpack(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in read(target)?.into_iter().enumerate() {
        fs::write(folder.join(format!("kept-{number:05}")), input)?;
    }
    Ok(())
}

/// Replaces the kept inputs of a target by the files in `folder`, without those that are too long. Returns their number.
///
/// # Errors
/// If a file cannot be read or written.
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
