//! The table of descriptors and their sockets. Only descriptors in the table are ours, whatever else the program has open.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};

use rustix::io::Errno;

use crate::engine::{Engine, State};
use crate::ffi::Number;
use crate::numbers;
use crate::owned::{OWNED, PRIVATE};
use crate::settings::Style;

/// A socket, with any number of descriptors.
pub(crate) struct Socket {
    pub(crate) engine: Arc<Engine>,
    /// Key among the sockets of the engine.
    pub(crate) key: u64,
    pub(crate) style: Style,
    /// Number of its descriptors in the table.
    pub(crate) aliases: AtomicUsize,
    /// In a forked process: the handle of the socket in the process that has it.
    pub(crate) handle: AtomicI32,
}

impl Socket {
    fn new(engine: Arc<Engine>, key: u64, style: Style) -> Self {
        Socket { engine, key, style, aliases: AtomicUsize::new(0), handle: AtomicI32::new(-1) }
    }

    /// Creates a socket that another process has under this `handle`.
    pub(crate) fn elsewhere(style: Style, handle: i32) -> Self {
        Socket { handle: AtomicI32::new(handle), ..Socket::new(Engine::vacant(), fresh_key(), style) }
    }
}

/// Descriptor of a socket.
pub(crate) struct Alias {
    fd: Arc<Number>,
    pub(crate) socket: Arc<Socket>,
    /// True if only the library uses it: it represents the descriptors that a forked process has.
    hidden: bool,
}

impl Alias {
    /// Returns the number of the descriptor.
    pub(crate) fn number(&self) -> i32 {
        self.fd.value()
    }

    /// Returns whether the number is closed, or belongs to another descriptor.
    pub(crate) fn is_gone(&self) -> bool {
        self.fd.is_gone()
    }

    /// Closes the number at once, even if calls still have the alias.
    pub(crate) fn close(&self) {
        self.fd.close();
    }

    /// Leaves the number open, for another descriptor.
    pub(crate) fn give_up(&self) {
        self.fd.give_up();
    }

    /// Makes another descriptor of the socket, whose number is `least` or higher.
    ///
    /// # Errors
    /// No number is free; `BADF` if this descriptor was closed meanwhile, and the copy may be one of another file.
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

/// Number of changes of the table: a thread's copy of an entry is valid while this number stays the same.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A thread's copy of an entry of the table.
struct Remembered {
    fd: i32,
    changes: u64,
    alias: Weak<Alias>,
}

thread_local! {
    /// The entries that this thread used last, by the lowest bits of the descriptor. Most calls are on few sockets, and need not
    /// write to memory that all threads share.
    static REMEMBERED: [RefCell<Option<Remembered>>; PLACES] = const { [const { RefCell::new(None) }; PLACES] };
}

const PLACES: usize = 16;

/// Calls `act` with the place for this descriptor; does nothing in a signal handler that interrupts such a call, or in a thread
/// that is ending.
fn with_remembered<T>(fd: i32, act: impl FnOnce(&mut Option<Remembered>) -> Option<T>) -> Option<T> {
    let place = fd as usize % PLACES;
    REMEMBERED.try_with(|all| all[place].try_borrow_mut().ok().and_then(|mut one| act(&mut one))).ok()?
}

/// Returns whether the descriptor is one of our sockets. Takes no lock and allocates nothing, so that a signal handler may call it.
pub fn owns(fd: i32) -> bool {
    OWNED.contains(fd)
}

/// Fails on the thread that holds the table for a fork.
///
/// # Errors
/// `DEADLK`.
pub(crate) fn check_not_held() -> Result<(), Errno> {
    if HOLDS.try_with(Cell::get).unwrap_or(false) { Err(Errno::DEADLK) } else { Ok(()) }
}

/// Returns the entry of a descriptor.
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

/// Locks the table for a change, and invalidates the threads' copies of entries.
fn write() -> RwLockWriteGuard<'static, Vec<Option<Arc<Alias>>>> {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    CHANGES.fetch_add(1, Ordering::Release);
    table
}

/// Enters a descriptor into the table and returns its number.
pub(crate) fn insert(fd: OwnedFd, socket: Arc<Socket>) -> i32 {
    enter(Alias { fd: Arc::new(Number::new(fd)), socket, hidden: false })
}

/// Enters a descriptor of a socket that another process has under `handle`; returns its number.
pub(crate) fn insert_elsewhere(fd: OwnedFd, style: Style, handle: i32) -> i32 {
    insert(fd, Arc::new(Socket::elsewhere(style, handle)))
}

/// Makes another descriptor of a socket, which only the library uses; returns its number, a high one if possible.
///
/// # Errors
/// No number is free.
pub(crate) fn duplicate_hidden(alias: &Alias) -> Result<i32, Errno> {
    let fd = numbers::duplicate(|least| alias.duplicate(least))?;
    Ok(enter(Alias { fd: Arc::new(Number::new(fd)), socket: Arc::clone(&alias.socket), hidden: true }))
}

fn enter(alias: Alias) -> i32 {
    let (number, hidden) = (alias.number(), alias.hidden);
    alias.socket.aliases.fetch_add(1, Ordering::Relaxed);
    let mut table = write();
    let place = usize::try_from(number).unwrap_or_default();
    if table.len() <= place {
        table.resize(place + 1, None);
    }
    // The program has closed an earlier descriptor of this number by a call that the library does not see.
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

/// Removes a descriptor from the table; returns it, and whether it was the last one of its socket. The number stays open: the
/// caller closes it or gives it up.
///
/// # Errors
/// As for [`find`].
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

/// Returns the engines of all sockets; an engine may occur more than once.
pub(crate) fn engines() -> Vec<Arc<Engine>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().map(|alias| Arc::clone(&alias.socket.engine)).collect()
}

/// Returns all descriptors that the program has.
pub(crate) fn visible() -> Vec<Arc<Alias>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().filter(|alias| !alias.hidden).cloned().collect()
}

/// The locked table: no other thread reads or changes it.
pub(crate) struct Held(RwLockWriteGuard<'static, Vec<Option<Arc<Alias>>>>);

/// Locks the table while the process forks.
pub(crate) fn hold() -> Held {
    let table = write();
    let _ = HOLDS.try_with(|holds| holds.set(true));
    Held(table)
}

thread_local! {
    /// True while this thread holds the table for a fork: a call on a socket in a fork handler of the program would wait forever.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = HOLDS.try_with(|holds| holds.set(false));
    }
}

impl Held {
    /// In a forked process: keeps the descriptors that have a handle in the process with the sockets, and returns the others. They
    /// must be dropped when the table is no longer locked: the function that closes a descriptor may look it up in the table.
    pub(crate) fn leave(mut self, handles: &[(i32, i32)]) -> Vec<Arc<Alias>> {
        let table = &mut self.0;
        let mut gone = Vec::new();
        for place in table.iter_mut() {
            let Some(alias) = place else { continue };
            // The engine's descriptors belong to another process, so the engine is never dropped here.
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

/// Returns any descriptor of the socket with this key.
pub(crate) fn any_of(key: u64) -> Option<Arc<Number>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().flatten().find(|alias| alias.socket.key == key).map(|alias| Arc::clone(&alias.fd))
}

/// Enters a socket of `engine`, which has its state under `key`, into the table; returns its descriptor.
pub(crate) fn enter_socket(
    engine: &Arc<Engine>,
    state: &mut State,
    key: u64,
    style: Style,
    theirs: OwnedFd,
) -> i32 {
    let fd = insert(theirs, Arc::new(Socket::new(Arc::clone(engine), key, style)));
    // So the first use of the descriptor does not have to search the table.
    if let (Ok(socket), Ok(alias)) = (state.socket(key), find(fd)) {
        socket.note(&alias.fd);
    }
    fd
}

/// Returns a key that no other socket of this process has.
pub(crate) fn fresh_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
