//! A file on its way in: `NAME.part-ID` until the last byte is here and the digest fits.
//!
//! Owns the files of one transfer in the output directory. Nothing ever stands under the final name
//! that is not complete, and no file there is replaced unless that was asked for. When a transfer
//! breaks off in order, and now and then before, the ranges that are here go to `NAME.part-ID.have`, and a later transfer with
//! the same id goes on from there; without that file a partial file is not trusted and starts over. A file of the final name
//! and of the same length may be the same: nothing of it has to come again, and the digest decides.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::message::{Control, TransferId};
use super::ranges::Ranges;

/// Reason for which a file cannot be stored, as the end of a line that names the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the file exists already (the receiver's --force replaces files)")]
    Exists,
    #[error("the file is just being received in another transfer")]
    Busy,
    #[error("{0}")]
    Io(String),
    #[error("data beyond the announced end of the file")]
    BeyondEnd,
    #[error("the sender announced {announced} bytes and sent {sent}")]
    WrongSize { announced: u64, sent: u64 },
    #[error("{missing} bytes are missing")]
    Incomplete { missing: u64 },
    #[error("the digest does not fit: the data was changed on the way, or the file while it was read")]
    WrongDigest,
    #[error(transparent)]
    Ranges(#[from] super::ranges::TooManyRanges),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        StoreError::Io(match error.kind() {
            ErrorKind::StorageFull => "no space is left on the disk".to_owned(),
            ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
            ErrorKind::PermissionDenied => "permission denied in the output directory".to_owned(),
            ErrorKind::FileTooLarge => "the file is larger than the file system allows".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// File to store, and its place.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) directory: PathBuf,
    /// Checked by `name::check`.
    pub(crate) name: String,
    pub(crate) id: TransferId,
    /// Not known when it is sent from a pipe.
    pub(crate) size: Option<u64>,
    /// Replace a file that exists.
    pub(crate) force: bool,
}

/// The file and what is known of it.
pub(crate) struct Partial {
    order: Order,
    path: PathBuf,
    file: File,
    /// Position of the file's cursor.
    cursor: u64,
    have: Ranges,
    /// Bytes that were here before this transfer.
    resumed: u64,
    hasher: blake3::Hasher,
    hashed: u64,
    /// It stands under its final name already, and is only read.
    stands: bool,
    /// Bytes that were here when the record was last written.
    on_record: u64,
}

impl Partial {
    /// Starts a file, or goes on with one that an earlier transfer left.
    pub(crate) fn open(order: Order) -> Result<Self, StoreError> {
        let target = order.directory.join(&order.name);
        if !order.force
            && let Ok(there) = target.symlink_metadata()
        {
            return if there.is_file() && Some(there.len()) == order.size {
                Partial::standing(order, target)
            } else {
                Err(StoreError::Exists)
            };
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let id: String = order.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = order.directory.join(format!("{}.part-{id}", order.name));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let have = recorded(&path, &file, order.size);
        if have.total() == 0 {
            file.set_len(0)?;
        }
        Ok(Partial::new(order, path, file, have))
    }

    /// A file of this name and length, which may be the one that is announced.
    fn standing(order: Order, target: PathBuf) -> Result<Self, StoreError> {
        let file = File::open(&target)?;
        let mut have = Ranges::default();
        have.insert(0..order.size.unwrap_or(0))?;
        Ok(Partial { stands: true, ..Partial::new(order, target, file, have) })
    }

    fn new(order: Order, path: PathBuf, file: File, have: Ranges) -> Self {
        let (resumed, hasher) = (have.total(), blake3::Hasher::new());
        Partial {
            order,
            path,
            file,
            cursor: 0,
            have,
            resumed,
            hasher,
            hashed: 0,
            stands: false,
            on_record: resumed,
        }
    }

    /// The ranges that are here.
    pub(crate) fn have(&self) -> &Ranges {
        &self.have
    }

    /// Bytes that an earlier transfer had brought.
    pub(crate) fn resumed(&self) -> u64 {
        self.resumed
    }

    /// Stores `bytes` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(StoreError::BeyondEnd)?;
        if end > self.order.size.unwrap_or(MAX_SIZE) {
            return Err(StoreError::BeyondEnd);
        }
        if self.stands {
            return Err(StoreError::Exists);
        }
        self.seek(offset)?;
        self.file.write_all(bytes)?;
        self.cursor = end;
        if offset == self.hashed {
            self.hasher.update(bytes);
            self.hashed = end;
        }
        self.have.insert(offset..end)?;
        if self.order.size.is_some() && self.have.total() - self.on_record >= BETWEEN_RECORDS {
            self.record()?;
        }
        self.catch_up()
    }

    /// Writes down which ranges are here, for a later transfer. Those of a record before are among them.
    fn record(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        let (path, fresh) = (beside(&self.path, ".have"), beside(&self.path, ".have.new"));
        fs::write(&fresh, Control::Accept { have: self.have.clone() }.encode())?;
        self.on_record = self.have.total();
        fs::rename(fresh, path)
    }

    /// Checks that everything is here and unchanged, and gives the file its name.
    ///
    /// On an error the partial file is removed: it cannot become the file any more.
    pub(crate) fn finish(mut self, size: u64, digest: &[u8; 32]) -> Result<PathBuf, StoreError> {
        let finished = self.try_finish(size, digest);
        if finished.is_err() {
            self.discard();
        }
        finished
    }

    fn try_finish(&mut self, size: u64, digest: &[u8; 32]) -> Result<PathBuf, StoreError> {
        if let Some(announced) = self.order.size
            && announced != size
        {
            return Err(StoreError::WrongSize { announced, sent: size });
        }
        if self.have.end() > size {
            return Err(StoreError::BeyondEnd);
        }
        if !self.is_complete(size) {
            return Err(StoreError::Incomplete { missing: size - self.have.total() });
        }
        self.hash_up_to(size)?;
        let fits = self.hasher.finalize().as_bytes() == digest;
        if self.stands {
            return if fits { Ok(self.path.clone()) } else { Err(StoreError::Exists) };
        }
        if !fits {
            return Err(StoreError::WrongDigest);
        }
        self.file.sync_all()?;
        let target = self.order.directory.join(&self.order.name);
        if self.order.force {
            fs::rename(&self.path, &target)?;
        } else {
            rename_new(&self.path, &target)?;
        }
        let _ = fs::remove_file(beside(&self.path, ".have"));
        // The name is only safe from a power cut once the directory is written, where that can be asked for.
        if let Ok(directory) = File::open(target.parent().unwrap_or(&self.order.directory)) {
            let _ = directory.sync_all();
        }
        Ok(target)
    }

    /// Returns whether all bytes of a file of `size` are here.
    pub(crate) fn is_complete(&self, size: u64) -> bool {
        self.have.contains(&(0..size))
    }

    /// Leaves what is here for a later transfer; returns the partial file. A transfer of unknown size
    /// cannot be repeated, so nothing of it is kept.
    pub(crate) fn keep(mut self) -> Option<PathBuf> {
        if self.stands {
            return Some(self.path);
        }
        if self.order.size.is_none() || self.have.total() == 0 {
            self.discard();
            return None;
        }
        match self.record() {
            Ok(()) => Some(self.path),
            Err(_) => {
                self.discard();
                None
            }
        }
    }

    /// Removes what is here.
    pub(crate) fn discard(self) {
        if self.stands {
            return;
        }
        // Nothing is left to be done about a file that cannot be removed; its name says what it is.
        let _ = fs::remove_file(beside(&self.path, ".have"));
        let _ = fs::remove_file(&self.path);
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        if self.cursor != offset {
            self.file.seek(SeekFrom::Start(offset))?;
            self.cursor = offset;
        }
        Ok(())
    }

    /// Reads back and hashes what did not arrive in order, as far as it is here.
    fn hash_up_to(&mut self, end: u64) -> io::Result<()> {
        let mut buffer = vec![0; READ_BACK];
        while self.hashed < end {
            self.seek(self.hashed)?;
            let want = buffer.len().min(usize::try_from(end - self.hashed).unwrap_or(usize::MAX));
            self.file.read_exact(&mut buffer[..want])?;
            self.hasher.update(&buffer[..want]);
            self.hashed += want as u64;
            self.cursor = self.hashed;
        }
        Ok(())
    }

    /// Hashes what has become contiguous, once it is worth the reading.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        let prefix = self.have.prefix();
        if prefix.saturating_sub(self.hashed) >= READ_BACK as u64 {
            self.hash_up_to(prefix)?;
        }
        Ok(())
    }
}

/// Ranges in the record of an earlier transfer, if it fits the file: what was here then still is, however that ended.
fn recorded(path: &Path, file: &File, size: Option<u64>) -> Ranges {
    let bytes = fs::read(beside(path, ".have")).unwrap_or_default();
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    match Control::decode(&bytes) {
        Ok(Control::Accept { have }) if have.end() <= len.min(size.unwrap_or(0)) => have,
        _ => Ranges::default(),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Gives `from` the name `to`, which nobody else may have taken meanwhile.
fn rename_new(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(fs::remove_file(from)?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(StoreError::Exists),
        // A file system without hard links: the look before is all there is.
        Err(_) if to.symlink_metadata().is_ok() => Err(StoreError::Exists),
        Err(_) => Ok(fs::rename(from, to)?),
    }
}

/// Bytes after which the ranges that are here are written down: what a transfer that is killed loses at most.
const BETWEEN_RECORDS: u64 = 8 << 20;
/// Bytes that are read back in one go.
const READ_BACK: usize = 1 << 20;
/// No file system stores more.
const MAX_SIZE: u64 = i64::MAX as u64;

#[cfg(test)]
#[path = "partial_tests.rs"]
mod tests;
