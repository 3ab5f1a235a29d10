//! The table from file descriptors to sockets. A descriptor that is in it is ours, whatever else a program has open.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};

use rustix::io::Errno;

use crate::engine::Engine;
use crate::ffi::Number;
use crate::owned::{OWNED, PRIVATE};
use crate::settings::Style;
use crate::socket::Socket;
use crate::{forked, numbers};

/// Descriptor of a socket.
pub(crate) struct Alias {
    fd: Number,
    pub(crate) socket: Arc<Socket>,
    /// The program does not know of it: it stands for those of a forked process.
    hidden: bool,
}

impl Alias {
    /// The descriptor's number.
    pub(crate) fn number(&self) -> i32 {
        self.fd.value()
    }

    /// Returns whether the number is closed, or belongs to something else.
    pub(crate) fn is_gone(&self) -> bool {
        self.fd.is_gone()
    }

    /// Closes the number at once, whichever calls still have the alias.
    pub(crate) fn close(&self) {
        self.fd.close();
    }

    /// Leaves the number open for what is to have it.
    pub(crate) fn give_up(&self) {
        self.fd.give_up();
    }

    /// Makes another descriptor of the socket, whose number is `least` or higher.
    ///
    /// # Errors
    /// None is left; `BADF` if this one was closed meanwhile, and the copy may be one of something else.
    pub(crate) fn duplicate(&self, least: i32) -> Result<OwnedFd, Errno> {
        let copy = rustix::io::fcntl_dupfd_cloexec(self, least)?;
        if self.is_gone() { Err(Errno::BADF) } else { Ok(copy) }
    }
}

impl AsFd for Alias {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

static TABLE: RwLock<Vec<Option<Arc<Alias>>>> = RwLock::new(Vec::new());

/// Number of changes of the table: a copy that a thread keeps of an entry is true as long as this stays.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A socket that a thread found in the table.
struct Remembered {
    fd: i32,
    changes: u64,
    alias: Weak<Alias>,
}

thread_local! {
    /// Entries that this thread found last, by the lowest bits of the descriptor: most calls are on few sockets, and need not write to
    /// what all threads share.
    static REMEMBERED: [RefCell<Option<Remembered>>; PLACES] = const { [const { RefCell::new(None) }; PLACES] };
}

const PLACES: usize = 16;

/// Does something with the place for this descriptor; nothing in a signal handler that interrupts just that, or in a thread that
/// ends.
fn with_remembered<T>(fd: i32, act: impl FnOnce(&mut Option<Remembered>) -> Option<T>) -> Option<T> {
    let place = fd as usize % PLACES;
    REMEMBERED.try_with(|all| all[place].try_borrow_mut().ok().and_then(|mut one| act(&mut one))).ok()?
}

/// Returns whether the descriptor is one of our sockets. Takes no lock and allocates nothing, so that a signal handler may ask.
pub fn owns(fd: i32) -> bool {
    OWNED.contains(fd)
}

/// Refuses a call on the thread that holds the table for a fork.
///
/// # Errors
/// `DEADLK`.
pub(crate) fn check_not_held() -> Result<(), Errno> {
    if forked::is_under_way() { Err(Errno::DEADLK) } else { Ok(()) }
}

/// The socket of a descriptor.
///
/// # Errors
/// `BADF` for a descriptor that is not ours; `DEADLK` on the thread that holds the table.
pub(crate) fn find(fd: i32) -> Result<Arc<Alias>, Errno> {
    let changes = CHANGES.load(Ordering::Acquire);
    let known = with_remembered(fd, |one| {
        one.as_ref().filter(|one| one.fd == fd && one.changes == changes)?.alias.upgrade()
    });
    if let Some(alias) = known {
        return Ok(alias);
    }
    check_not_held()?;
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(fd).ok().and_then(|place| table.get(place));
    let alias = place.and_then(Clone::clone).ok_or(Errno::BADF)?;
    let changes = CHANGES.load(Ordering::Acquire);
    drop(table);
    with_remembered(fd, |one| one.replace(Remembered { fd, changes, alias: Arc::downgrade(&alias) }));
    Ok(alias)
}

/// The table, to be changed: what threads remember of it is to be looked up again.
fn write() -> RwLockWriteGuard<'static, Vec<Option<Arc<Alias>>>> {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    CHANGES.fetch_add(1, Ordering::Release);
    table
}

/// Enters a descriptor and returns its number.
pub(crate) fn insert(fd: OwnedFd, socket: Arc<Socket>) -> i32 {
    enter(Alias { fd: Number::new(fd), socket, hidden: false })
}

/// Enters one of a socket that another process has, where it is called `handle`.
pub(crate) fn insert_elsewhere(fd: OwnedFd, style: Style, handle: i32) -> i32 {
    insert(fd, Arc::new(Socket::elsewhere(style, handle)))
}

/// Makes another descriptor of a socket, which the program does not see; returns its number, out of the way of the program's.
///
/// # Errors
/// None is left.
pub(crate) fn duplicate_hidden(alias: &Alias) -> Result<i32, Errno> {
    let fd = numbers::duplicate(|least| alias.duplicate(least))?;
    Ok(enter(Alias { fd: Number::new(fd), socket: Arc::clone(&alias.socket), hidden: true }))
}

fn enter(alias: Alias) -> i32 {
    let (number, hidden) = (alias.number(), alias.hidden);
    alias.socket.aliases.fetch_add(1, Ordering::Relaxed);
    let mut table = write();
    let place = usize::try_from(number).unwrap_or_default();
    if table.len() <= place {
        table.resize(place + 1, None);
    }
    // The program has closed this descriptor by a call that the library does not see.
    if let Some(stale) = table[place].replace(Arc::new(alias)) {
        stale.socket.aliases.fetch_sub(1, Ordering::Relaxed);
        stale.give_up();
        PRIVATE.remove(number);
    }
    if hidden {
        PRIVATE.insert(number);
    }
    OWNED.insert(number);
    number
}

/// Takes a descriptor out of the table, and returns whether it was the last of its socket. The number stays open: the caller
/// closes it or gives it up.
///
/// # Errors
/// As [`find`].
pub(crate) fn remove(fd: i32) -> Result<(Arc<Alias>, bool), Errno> {
    check_not_held()?;
    let mut table = write();
    let place = usize::try_from(fd).ok().and_then(|place| table.get_mut(place));
    let alias = place.and_then(Option::take).ok_or(Errno::BADF)?;
    forget_number(fd);
    let last = alias.socket.aliases.fetch_sub(1, Ordering::Relaxed) == 1;
    Ok((alias, last))
}

fn forget_number(fd: i32) {
    OWNED.remove(fd);
    PRIVATE.remove(fd);
}

/// The engines of all sockets, some of them more than once.
pub(crate) fn engines() -> Vec<Arc<Engine>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().map(|alias| Arc::clone(&alias.socket.engine)).collect()
}

/// All descriptors that the program has.
pub(crate) fn visible() -> Vec<Arc<Alias>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().filter(|alias| !alias.hidden).cloned().collect()
}

/// The table, which nobody else sees or changes meanwhile.
pub(crate) struct Held(RwLockWriteGuard<'static, Vec<Option<Arc<Alias>>>>);

/// Holds the table while the process forks.
pub(crate) fn hold() -> Held {
    Held(write())
}

impl Held {
    /// In a process that was forked: of the descriptors those stay that have a name where the sockets are. The others are to be
    /// dropped once nobody holds the table: whoever closes a descriptor may be asked whose it is.
    pub(crate) fn leave(mut self, handles: &[(i32, i32)]) -> Vec<Arc<Alias>> {
        let table = &mut self.0;
        let mut gone = Vec::new();
        for place in table.iter_mut() {
            let Some(alias) = place else { continue };
            // The engine's descriptors belong to another process, so it is never dropped here.
            std::mem::forget(Arc::clone(&alias.socket.engine));
            match handles.iter().find(|(fd, handle)| *fd == alias.number() && *handle >= 0) {
                Some((_, handle)) => alias.socket.handle.store(*handle, Ordering::Relaxed),
                None => {
                    alias.socket.aliases.fetch_sub(1, Ordering::Relaxed);
                    forget_number(alias.number());
                    gone.extend(place.take());
                }
            }
        }
        gone
    }
}

/// Any descriptor of the socket with this key.
pub(crate) fn any_of(key: u64) -> Option<Arc<Alias>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().find(|alias| alias.socket.key == key).cloned()
}
