//! Files that the user names. Each is read up to a length, so that a device or a wrong file exhausts no memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use tresse::units;

/// Returns the content of a file of at most `most` bytes.
pub(crate) fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let long = format!("is longer than {}", units::format_size(most));
        return Err(io::Error::new(ErrorKind::FileTooLarge, long));
    }
    Ok(content)
}

/// Returns the text of a file of at most `most` bytes.
pub(crate) fn read_text(file: &Path, most: u64) -> io::Result<String> {
    let what = "is no text in UTF-8";
    String::from_utf8(read(file, most)?).map_err(|_| io::Error::new(ErrorKind::InvalidData, what))
}
