//! A file to be sent: its name, its length, and its bytes in pieces.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;

use super::message::TransferId;
use super::name;
use super::ranges::Ranges;
use super::{DATA_HEADER, PIECE};
use crate::failure::{Failure, of_file, words};
use crate::report::words::printable;

/// File that is to be sent.
pub(crate) struct Source {
    /// Name that the receiver is to give to the file.
    pub(crate) name: String,
    /// Length in bytes; `None` for a pipe.
    pub(crate) size: Option<u64>,
    /// Identifier: the same for the same file, as far as the sender knows the file without reading it.
    pub(crate) id: TransferId,
    reader: Box<dyn Read + Send>,
    /// Name of the file in errors.
    shown: String,
}

/// Size and digest of the whole file.
pub(crate) struct Whole {
    pub(crate) size: u64,
    pub(crate) digest: [u8; 32],
}

impl Source {
    /// Opens `path`, or standard input for "-".
    pub(crate) fn open(path: &Path, rename: Option<&str>) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let name = plain_name(rename.unwrap_or("stdin"))?;
            return Ok(Source {
                name,
                size: None,
                id: random_id()?,
                reader: Box::new(io::stdin()),
                shown: "standard input".to_owned(),
            });
        }
        let shown = path.display().to_string();
        let usage = |error: io::Error| of_file(&shown, &error);
        let file = File::open(path).map_err(usage)?;
        let metadata = file.metadata().map_err(usage)?;
        if metadata.is_dir() {
            return Err(Failure::usage(format!("{shown}: is a directory")));
        }
        let own_name = path.file_name().and_then(|name| name.to_str());
        let name = match rename.or(own_name) {
            Some(name) => plain_name(name)?,
            None => {
                return Err(Failure::usage(format!("{shown}: the name is not UTF-8; give one with --name")));
            }
        };
        // The length of a device or a named pipe has no meaning.
        let size = metadata.is_file().then_some(metadata.len());
        let id = match (size, metadata.modified()) {
            (Some(size), Ok(changed)) => {
                let changed = changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
                derived_id(&name, size, changed)
            }
            _ => random_id()?,
        };
        Ok(Source { name, size, id, reader: Box::new(file), shown })
    }

    /// Returns advice for a user whose transfer was interrupted. Only a source of known length can be resumed.
    pub(crate) fn next_time(&self) -> &'static str {
        match self.size {
            Some(_) => "the receiver keeps what it has, send the file again to go on",
            None => "the receiver keeps nothing of a transfer whose length it was not told",
        }
    }

    /// Reads the whole file, and passes the pieces that are not in `have` to `pieces`, each with its header.
    ///
    /// Blocks; ends early without an error if the receiving end of `pieces` is dropped.
    pub(crate) fn read_all(mut self, have: &Ranges, pieces: &mpsc::Sender<Bytes>) -> Result<Whole, Failure> {
        let mut hasher = blake3::Hasher::new();
        let mut offset = 0;
        loop {
            let mut message = BytesMut::with_capacity(DATA_HEADER + PIECE);
            message.put_u64(offset);
            message.resize(DATA_HEADER + PIECE, 0);
            let len = fill(&mut self.reader, &mut message[DATA_HEADER..])
                .map_err(|error| Failure::running(format!("{}: {}", self.shown, words(&error))))?;
            if len == 0 {
                break;
            }
            message.truncate(DATA_HEADER + len);
            hasher.update(&message[DATA_HEADER..]);
            let piece = offset..offset + len as u64;
            offset = piece.end;
            if self.size.is_some_and(|size| offset > size) {
                break;
            }
            if !have.contains(&piece) && pieces.blocking_send(message.freeze()).is_err() {
                break;
            }
        }
        if self.size.is_some_and(|size| size != offset) && !pieces.is_closed() {
            return Err(Failure::running(format!("{}: changed its length while it was sent", self.shown)));
        }
        Ok(Whole { size: offset, digest: hasher.finalize().into() })
    }
}

/// Reads until `buffer` is full or the end is reached.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match reader.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

fn plain_name(name: &str) -> Result<String, Failure> {
    match name::check(name) {
        Ok(()) => Ok(name.to_owned()),
        Err(reason) => {
            Err(Failure::usage(format!("\"{}\" cannot be sent as a name: {reason}", printable(name))))
        }
    }
}

fn derived_id(name: &str, size: u64, changed: u128) -> TransferId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_be_bytes());
    hasher.update(&changed.to_be_bytes());
    hasher.update(name.as_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    id
}

fn random_id() -> Result<TransferId, Failure> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Failure::running(format!("no random numbers: {error}")))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(data: &'static [u8], size: Option<u64>) -> Source {
        Source { name: "x".to_owned(), size, id: [0; 16], reader: Box::new(data), shown: "x".to_owned() }
    }

    /// Reads the whole source; returns the pieces and the result.
    fn read(source: Source, have: &Ranges) -> (Vec<Bytes>, Result<Whole, Failure>) {
        let (sender, mut receiver) = mpsc::channel(64);
        let whole = source.read_all(have, &sender);
        drop(sender);
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.blocking_recv() {
            pieces.push(piece);
        }
        (pieces, whole)
    }

    const DATA: &[u8] = &[7; PIECE + 10];

    #[test]
    fn pieces_say_where_they_belong() {
        let (pieces, whole) = read(source(DATA, Some(DATA.len() as u64)), &Ranges::default());
        assert_eq!(
            pieces.iter().map(Bytes::len).collect::<Vec<_>>(),
            [DATA_HEADER + PIECE, DATA_HEADER + 10]
        );
        assert_eq!(pieces[1][..DATA_HEADER], (PIECE as u64).to_be_bytes());
        let whole = whole.expect("unchanged");
        assert_eq!((whole.size, whole.digest), (DATA.len() as u64, blake3::hash(DATA).into()));
    }

    #[test]
    fn what_is_there_is_not_sent_again() {
        let mut have = Ranges::default();
        have.insert(0..PIECE as u64).expect("few");
        let (pieces, whole) = read(source(DATA, None), &have);
        assert_eq!(pieces.len(), 1);
        assert_eq!(whole.expect("unchanged").digest, <[u8; 32]>::from(blake3::hash(DATA)));
    }

    #[test]
    fn a_file_that_changes_meanwhile_is_an_error() {
        for size in [DATA.len() as u64 + 1, DATA.len() as u64 - 1] {
            let (_, whole) = read(source(DATA, Some(size)), &Ranges::default());
            assert_eq!(whole.err().map(|failure| failure.exit_code()), Some(1));
        }
    }
}
