//! The table from file descriptors to sockets. A descriptor that is in it is ours, whatever else a program has open.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::io::Errno;

use crate::socket::Socket;

/// One descriptor of a socket.
pub(crate) struct Alias {
    fd: OwnedFd,
    pub(crate) socket: Arc<Socket>,
}

impl AsFd for Alias {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

static TABLE: RwLock<Vec<Option<Arc<Alias>>>> = RwLock::new(Vec::new());
/// Descriptors in the table, so that whoever owns none asks for no lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether the descriptor is one of our sockets.
pub fn owns(fd: i32) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && find(fd).is_ok()
}

/// The socket of a descriptor.
///
/// # Errors
/// `BADF` for a descriptor that is not ours.
pub(crate) fn find(fd: i32) -> Result<Arc<Alias>, Errno> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(fd).ok().and_then(|place| table.get(place));
    place.and_then(Clone::clone).ok_or(Errno::BADF)
}

/// Enters a descriptor and answers its number.
pub(crate) fn insert(fd: OwnedFd, socket: Arc<Socket>) -> i32 {
    let number = fd.as_raw_fd();
    socket.aliases.fetch_add(1, Ordering::Relaxed);
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(number).unwrap_or_default();
    if table.len() <= place {
        table.resize(place + 1, None);
    }
    // A number that the program has closed behind our back: what was there is gone.
    if let Some(stale) = table[place].replace(Arc::new(Alias { fd, socket })) {
        stale.socket.aliases.fetch_sub(1, Ordering::Relaxed);
        forget(stale);
    } else {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    number
}

/// Takes a descriptor out of the table, and answers whether it was the last of its socket.
///
/// # Errors
/// `BADF` for a descriptor that is not ours.
pub(crate) fn remove(fd: i32) -> Result<(Arc<Alias>, bool), Errno> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(fd).ok().and_then(|place| table.get_mut(place));
    let alias = place.and_then(Option::take).ok_or(Errno::BADF)?;
    COUNT.fetch_sub(1, Ordering::Relaxed);
    let last = alias.socket.aliases.fetch_sub(1, Ordering::Relaxed) == 1;
    Ok((alias, last))
}

/// Lets go of an alias without closing its number, which belongs to something else by now.
pub(crate) fn forget(alias: Arc<Alias>) {
    if let Some(alias) = Arc::into_inner(alias) {
        let _number = std::os::fd::IntoRawFd::into_raw_fd(alias.fd);
    }
}

/// All descriptors.
pub(crate) fn all() -> Vec<i32> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().map(|alias| alias.fd.as_raw_fd()).collect()
}

/// Any descriptor of the socket with this key.
pub(crate) fn any_of(key: u64) -> Option<Arc<Alias>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().find(|alias| alias.socket.key == key).cloned()
}
