//! Foreign code that is loaded into this process, and the hooks of its table.

use std::error::Error as _;
use std::path::Path;

use libloading::Library;

use crate::abi::{ControllerTable, Hooks, PathTable, StreamTable};
use crate::error::{Fault, LoadError};
use crate::table;

/// A valid table. Its code may be unloaded when this value is dropped: hooks must not be kept for longer.
pub(crate) struct Loaded {
    name: String,
    hooks: Hooks,
    _code: Code,
}

/// Owner of the code behind the hooks.
enum Code {
    /// A shared object, which is unloaded with this value.
    Object(#[expect(dead_code, reason = "it is there as long as its code is")] Library),
    /// Code of the caller, which is notified when the code is not used any more.
    Owned(Option<Unused>),
}

/// Function that is called when code is not used any more.
pub(crate) type Unused = Box<dyn FnOnce() + Send + Sync>;

impl Drop for Code {
    fn drop(&mut self) {
        if let Code::Owned(unused) = self
            && let Some(unused) = unused.take()
        {
            unused();
        }
    }
}

impl Loaded {
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        load(path).map_err(|fault| LoadError { path: path.to_owned(), fault })
    }

    /// Creates it from the table of a stream scheduler in memory.
    ///
    /// # Safety
    /// As for [`Plugin::of_table`](crate::Plugin::of_table).
    pub(crate) unsafe fn of_table(table: *const StreamTable, unused: Unused) -> Result<Self, LoadError> {
        let refused = |fault| LoadError { path: IN_MEMORY.into(), fault };
        // SAFETY: the caller guarantees it; any bits are a value of the type.
        let table = unsafe { checked(table) }.map_err(refused)?;
        let (name, hooks) = table::of_streams(&table).map_err(refused)?;
        Ok(Loaded { name, hooks, _code: Code::Owned(Some(unused)) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }
}

fn load(path: &Path) -> Result<Loaded, Fault> {
    // A bare name would be searched for in the directories of system libraries.
    let file = path.canonicalize().map_err(|error| Fault::Unloadable(error.to_string()))?;
    if is_old_code_loaded(&file) {
        return Err(Fault::Replaced);
    }
    // SAFETY: loading runs the object's initialisers. The user who named the file trusts its code (`Plugin::load`).
    let library = unsafe { open(&file) };
    let library = library.map_err(|error| {
        // The error itself only names the call that failed; its source has the system's message.
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Fault::Unloadable(one_line(&reason))
    })?;
    // SAFETY: any bits are a value of these types: numbers, characters and addresses that may be zero.
    let tables = unsafe {
        (
            read::<StreamTable>(&library, OF_STREAMS)?,
            read::<PathTable>(&library, OF_PATHS)?,
            read::<ControllerTable>(&library, OF_CONTROLLERS)?,
        )
    };
    let (name, hooks) = match tables {
        (Some(table), None, None) => table::of_streams(&table)?,
        (None, Some(table), None) => table::of_paths(&table)?,
        (None, None, Some(table)) => table::of_controllers(&table)?,
        (None, None, None) => return Err(Fault::NoTable),
        _ => return Err(Fault::TwoTables),
    };
    Ok(Loaded { name, hooks, _code: Code::Object(library) })
}

/// Returns whether code from an earlier file of this path is loaded. For a path that it knows, the system's loader returns that
/// code again and does not look at the file.
fn is_old_code_loaded(file: &Path) -> bool {
    // Only Linux has this file, whose lines end with the path, and with this word if the file is gone.
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return false };
    let gone = format!("{} (deleted)", file.display());
    String::from_utf8_lossy(&maps).lines().any(|line| line.find('/').is_some_and(|at| line[at..] == gone))
}

/// Opens the object and resolves all symbols now: a missing symbol is an error here, and not a crash later.
///
/// # Safety
/// The object's initialisers run.
#[cfg(unix)]
unsafe fn open(file: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the caller guarantees it.
    unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
/// The object's initialisers run.
#[cfg(not(unix))]
unsafe fn open(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the caller guarantees it.
    unsafe { Library::new(file) }
}

/// Returns a copy of the table that the object exports under this symbol, if it does.
///
/// # Safety
/// Any bits are a value of `Table`, which begins with its version and its size.
unsafe fn read<Table>(library: &Library, symbol: &[u8]) -> Result<Option<Table>, Fault> {
    // SAFETY: the symbol is only used as an address, and checked before anything is read.
    let Ok(symbol) = (unsafe { library.get::<*const Table>(symbol) }) else { return Ok(None) };
    // SAFETY: an exported object of this name has at least the two fields: the header requires that, and no more can be known
    // before they are read. Any bits are a value of `Table`, as the caller guarantees.
    unsafe { checked(*symbol) }.map(Some)
}

/// Returns a copy of the table at `address`, after checking its version and size.
///
/// # Safety
/// `address` is null, or is that of an object which begins with a version and a size and has at least that size. Any bits are a
/// value of `Table`.
unsafe fn checked<Table>(address: *const Table) -> Result<Table, Fault> {
    if address.is_null() || !address.is_aligned() {
        return Err(Fault::NoTable);
    }
    let head = address.cast::<[u32; 2]>();
    // SAFETY: the address is aligned and that of these two fields, as the caller guarantees.
    let [abi, size] = unsafe { head.read() };
    table::check_head::<Table>(abi, size)?;
    // SAFETY: the table states our version and size, and the caller guarantees that any bits are a value.
    Ok(unsafe { address.read() })
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

/// Name in messages for a table that comes from no file.
const IN_MEMORY: &str = "a table in memory";
/// Symbols of tables; an object exports one of them.
const OF_STREAMS: &[u8] = b"tresse_scheduler\0";
const OF_PATHS: &[u8] = b"tresse_path_scheduler\0";
const OF_CONTROLLERS: &[u8] = b"tresse_congestion_controller\0";
