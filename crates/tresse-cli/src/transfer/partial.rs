//! A file that is being received: `NAME.part-ID` until the last byte is stored and the digest matches.
//!
//! Owns the files of one transfer in the output directory. A file with the final name is always complete, and an existing file is
//! replaced only on request. At intervals, and when a transfer breaks off in order, the stored ranges are written to `NAME.part-ID.have`;
//! a later transfer with the same identifier resumes from them. Without that record a partial file starts over. An existing file of the
//! final name and the same length may be the same file: no data is received for it, and the digest decides.

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
    /// Length in bytes; `None` if the sender reads from a pipe.
    pub(crate) size: Option<u64>,
    /// True if an existing file is replaced.
    pub(crate) force: bool,
}

/// A partial file and its state.
pub(crate) struct Partial {
    order: Order,
    path: PathBuf,
    file: File,
    /// Position of the file's cursor.
    cursor: u64,
    have: Ranges,
    /// Bytes that were stored before this transfer.
    resumed: u64,
    hasher: blake3::Hasher,
    hashed: u64,
    /// True if the file already has its final name, and is only read.
    stands: bool,
    /// Bytes that were stored when the record was last written.
    on_record: u64,
}

impl Partial {
    /// Starts a file, or resumes one that an earlier transfer left.
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

    /// Opens an existing file of this name and length, which may be the announced one.
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

    /// Returns the stored ranges.
    pub(crate) fn have(&self) -> &Ranges {
        &self.have
    }

    /// Returns the number of bytes that an earlier transfer had stored.
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

    /// Writes the record of the stored ranges, for a later transfer. The record includes the ranges of earlier ones.
    fn record(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        let (path, fresh) = (beside(&self.path, ".have"), beside(&self.path, ".have.new"));
        fs::write(&fresh, Control::Accept { have: self.have.clone() }.encode())?;
        self.on_record = self.have.total();
        fs::rename(fresh, path)
    }

    /// Checks that the file is complete and its digest matches, and gives the file its final name.
    ///
    /// On an error the partial file is removed, because it cannot be completed any more.
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
        // The name survives a power failure only once the directory is written, too; not every system can do that on request.
        if let Ok(directory) = File::open(target.parent().unwrap_or(&self.order.directory)) {
            let _ = directory.sync_all();
        }
        Ok(target)
    }

    /// Returns whether all bytes of a file of `size` are stored.
    pub(crate) fn is_complete(&self, size: u64) -> bool {
        self.have.contains(&(0..size))
    }

    /// Keeps the stored data for a later transfer, and returns the name of the file; `None` if nothing is kept. A transfer of unknown
    /// size cannot be resumed, so its data is not kept.
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

    /// Removes the partial file and its record. A file that has its final name stays.
    pub(crate) fn discard(self) {
        if self.stands {
            return;
        }
        // A file that cannot be removed stays; its name shows that it is partial.
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

    /// Reads back and hashes the data up to `end` that did not arrive in order.
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

    /// Hashes data that has become contiguous, once there is enough of it.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        let prefix = self.have.prefix();
        if prefix.saturating_sub(self.hashed) >= READ_BACK as u64 {
            self.hash_up_to(prefix)?;
        }
        Ok(())
    }
}

/// Returns the ranges in the record of an earlier transfer, if the record fits the file. Their data was on the disk before the record was
/// written, so it is there however the transfer ended.
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

/// Renames `from` to `to`. Fails if `to` exists.
fn rename_new(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(fs::remove_file(from)?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(StoreError::Exists),
        // On a file system without hard links, the check before renaming has to suffice.
        Err(_) if to.symlink_metadata().is_ok() => Err(StoreError::Exists),
        Err(_) => Ok(fs::rename(from, to)?),
    }
}

/// Bytes between two records: a transfer that is killed loses no more.
const BETWEEN_RECORDS: u64 = 8 << 20;
/// Bytes that are read back at a time.
const READ_BACK: usize = 1 << 20;
/// Largest size of a file: no file system stores more.
const MAX_SIZE: u64 = i64::MAX as u64;

#[cfg(test)]
#[path = "partial_tests.rs"]
mod tests;
